//! The process beside a run that ends the command in time, whatever becomes of the run: it may be stopped, killed, or
//! hang on an authority that does not answer.

use super::hook;
use super::link::{Gone, Link, Order, Status, Tidings};
use super::{signals, tree};
use crate::exit::Exit;
use crate::screen::say;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process_group, set_child_subreaper, wait};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;
use tenure::authority::BootClock;

/// What a run tells its watchdog at the start; the run's end of the link is its standard input.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Until when the command may run, in nanoseconds of CLOCK_BOOTTIME.
    #[arg(long)]
    pub(super) end_at: u64,
    #[arg(long)]
    pub(super) grace_ms: u64,
    #[arg(long)]
    pub(super) freeze: bool,
    #[arg(long)]
    pub(super) on_loss: Option<OsString>,
    #[arg(last = true, required = true)]
    pub(super) command: Vec<OsString>,
}

impl Args {
    pub(crate) fn run(&self) -> Exit {
        match Watchdog::start(self).and_then(Watchdog::watch) {
            Ok(()) => Exit::Success,
            Err(error) => {
                say("run", format_args!("the watchdog failed: {error}"));
                Exit::Failure
            }
        }
    }
}

struct Watchdog<'a> {
    args: &'a Args,
    link: Link,
    own: Pid,
    /// The command, and the number of its group for as long as it is not reaped.
    command: Pid,
    /// Readable when a child has changed its state.
    children: UnixStream,
    timer: OwnedFd,
    phase: Phase,
    end_at: u64,
    frozen_at: u64,
    ended: Option<Status>,
    lost: Option<String>,
    gone: Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Stopped where it stands; it runs again only when the run says so.
    Frozen,
    /// Asked to end; killed at this instant.
    Ending {
        kill_at: u64,
    },
    Killing,
}

/// How long to wait between two looks at processes that were killed and are not gone yet.
const LOOK_AGAIN: u64 = 10_000_000;

/// How often a process is looked at until it has stopped. One that waits for a device stops before it does anything else.
const LOOKS_AT_A_STOP: usize = 200;

impl<'a> Watchdog<'a> {
    fn start(args: &'a Args) -> io::Result<Self> {
        // Orphans of the command become children of this process, also those that left its group.
        set_child_subreaper(Some(getpid()))?;
        signals::outlast()?;
        let (children, tell) = UnixStream::pair()?;
        children.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, tell)?;
        let link = Link::new(UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?));
        let input = link.take_over()?;
        let own = getpid();
        let child = Command::new("/proc/self/exe")
            .args(["run-command", "--parent", &own.as_raw_pid().to_string(), "--"])
            .args(&args.command)
            .stdin(input)
            .process_group(0)
            .spawn()?;
        let command = Pid::from_child(&child);
        // Its few steps must come in time on a machine that is short of it. Only after the command was started, which
        // would inherit it, and only where that is allowed.
        let _ = rustix::process::nice(-15);
        let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let (phase, end_at) = (Phase::Running, args.end_at);
        let (frozen_at, ended, lost, gone) = (0, None, None, Gone::default());
        let watchdog = Self { args, link, own, command, children, timer, phase, end_at, frozen_at, ended, lost, gone };
        watchdog.tell(&Tidings::Started(command.as_raw_pid()));
        Ok(watchdog)
    }

    fn watch(mut self) -> io::Result<()> {
        while self.reap()? {
            self.sleep()?;
            // What the run has said first: a renewal that is here already counts.
            self.listen()?;
            self.look_at_the_time();
        }
        self.gone.at = now();
        self.tell(&Tidings::Gone(self.gone.clone()));
        if let (Some(why), Some(command)) = (&self.lost, &self.args.on_loss) {
            self.tell(&Tidings::Hook(hook::run(command, why)?));
        }
        Ok(())
    }

    /// A run that is gone or full cannot be told anything; nothing here depends on it.
    fn tell(&self, tidings: &Tidings) {
        let _ = self.link.send(tidings);
    }

    /// Takes note of children that ended or stopped. `false` when no child is left, and so, since orphans come here, no
    /// descendant.
    fn reap(&mut self) -> io::Result<bool> {
        loop {
            match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED) {
                Ok(Some((pid, status))) if pid == self.command => {
                    let exited = status.exit_status().map(|code| Status::Exited(u8::try_from(code).unwrap_or(u8::MAX)));
                    if let Some(ended) = exited.or(status.terminating_signal().map(Status::Killed)) {
                        self.command_ended(ended);
                    } else if let Some(signal) = status.stopping_signal() {
                        if self.phase == Phase::Running {
                            self.tell(&Tidings::Stopped(signal));
                        }
                    } else if status.continued() && self.phase == Phase::Frozen {
                        // Somebody else woke it: it may not run.
                        self.stop_all();
                    }
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Ok(true),
                Err(Errno::CHILD) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn command_ended(&mut self, status: Status) {
        self.ended = Some(status);
        self.tell(&Tidings::Ended(status));
        if !matches!(self.phase, Phase::Running | Phase::Frozen) {
            return;
        }
        let left: Vec<_> = tree::descendants(self.own);
        if left.is_empty() {
            return;
        }
        self.gone.left_behind = left.iter().map(|process| format!("{} (pid {})", process.name, process.pid)).collect();
        if self.phase == Phase::Frozen { self.kill() } else { self.ask() }
    }

    fn sleep(&self) -> io::Result<()> {
        let next = match self.phase {
            Phase::Running => self.end_at,
            // A timer of zero never goes off.
            Phase::Frozen => 0,
            Phase::Ending { kill_at } => kill_at.max(1),
            Phase::Killing => now().saturating_add(LOOK_AGAIN),
        };
        let at = Timespec {
            tv_sec: i64::try_from(next / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(next % 1_000_000_000).unwrap_or(0),
        };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: at };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        let mut waiting = vec![PollFd::new(&self.children, PollFlags::IN), PollFd::new(&self.timer, PollFlags::IN)];
        if self.lost.as_deref() != Some(RUN_GONE) {
            waiting.push(PollFd::new(&self.link, PollFlags::IN));
        }
        match poll(&mut waiting, None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn listen(&mut self) -> io::Result<()> {
        let mut marks = [0; 64];
        while (&self.children).read(&mut marks).is_ok_and(|count| count > 0) {}
        let mut readable = [PollFd::new(&self.link, PollFlags::IN)];
        let at_once = Timespec::default();
        if self.lost.as_deref() == Some(RUN_GONE) || poll(&mut readable, Some(&at_once)).unwrap_or(0) == 0 {
            return Ok(());
        }
        let open = self.link.fill()?;
        while let Some(order) = self.link.waiting()? {
            self.obey(order);
        }
        if !open {
            // Nobody renews any more, and nobody will release: it ends now.
            self.lost = None;
            self.lose(RUN_GONE.to_owned());
        }
        Ok(())
    }

    fn obey(&mut self, order: Order) {
        match (order, self.phase) {
            (Order::Until(end_at), Phase::Running) => self.end_at = self.end_at.max(end_at),
            (Order::Signal(signal), _) => {
                if let Some(signal) = Signal::from_named_raw(signal).filter(|_| self.ended.is_none()) {
                    let _ = kill_process_group(self.command, signal);
                }
            }
            (Order::Lost(why), _) => self.lose(why),
            (Order::Freeze, Phase::Running | Phase::Frozen) => self.freeze(),
            (Order::Thaw(end_at), Phase::Frozen) => {
                (self.phase, self.end_at) = (Phase::Running, end_at);
                tree::signal_descendants(self.own, Signal::CONT);
            }
            // Too late, or for another phase: what has begun to end is not brought back.
            (Order::Until(_) | Order::Freeze | Order::Thaw(_), _) => {}
        }
    }

    fn look_at_the_time(&mut self) {
        let now = now();
        match self.phase {
            Phase::Running if now >= self.end_at && self.args.freeze => self.freeze(),
            Phase::Running if now >= self.end_at => self.lose(DEADLINE_PASSED.to_owned()),
            Phase::Ending { kill_at } if now >= kill_at => self.kill(),
            Phase::Killing => self.kill(),
            Phase::Running | Phase::Frozen | Phase::Ending { .. } => {}
        }
    }

    fn lose(&mut self, why: String) {
        if self.lost.is_none() {
            self.tell(&Tidings::Ending(why.clone()));
            self.lost = Some(why);
        }
        match self.phase {
            Phase::Running => self.ask(),
            // What was stopped at its deadline may not run again, not even to end itself.
            Phase::Frozen => self.kill(),
            Phase::Ending { .. } | Phase::Killing => {}
        }
    }

    fn ask(&mut self) {
        let (now, grace) = (now(), self.args.grace_ms.saturating_mul(1_000_000));
        // Not beyond what the authority's deadline leaves, however late this is noticed.
        let kill_at = now.saturating_add(grace).min(self.end_at.saturating_add(grace));
        self.phase = Phase::Ending { kill_at };
        if now >= kill_at {
            return self.kill();
        }
        self.gone.asked_at = Some(now);
        self.signal_all(Signal::TERM);
        // A stopped process acts on it only when it goes on.
        self.signal_all(Signal::CONT);
    }

    fn kill(&mut self) {
        self.phase = Phase::Killing;
        self.gone.killed_at.get_or_insert_with(now);
        // The group first: that is one step, however many processes the machine has to list.
        self.signal_group(Signal::KILL);
        // Then whoever left it: all of them stopped before any is killed, so that few get to start another one meanwhile.
        let others = tree::descendants_in_haste(self.own).filter(|others| !others.is_empty());
        let others = others.unwrap_or_else(|| tree::descendants(self.own));
        for signal in [Signal::STOP, Signal::KILL] {
            for process in &others {
                let _ = process.signal(signal);
            }
        }
    }

    fn freeze(&mut self) {
        if self.phase != Phase::Frozen {
            self.phase = Phase::Frozen;
            self.frozen_at = now();
        }
        self.stop_all();
        self.tell(&Tidings::Frozen(self.frozen_at));
    }

    fn stop_all(&self) {
        for _ in 0..LOOKS_AT_A_STOP {
            self.signal_all(Signal::STOP);
            if tree::descendants(self.own).iter().all(tree::Process::is_stopped) {
                break;
            }
            pause(Duration::from_millis(1));
        }
    }

    fn signal_all(&self, signal: Signal) {
        self.signal_group(signal);
        self.signal_others(signal);
    }

    /// The command's number names its group for as long as the command is not reaped, and not a moment longer.
    fn signal_group(&self, signal: Signal) {
        if self.ended.is_none() {
            let _ = kill_process_group(self.command, signal);
        }
    }

    /// Whoever is not in the group, or everybody once the command is reaped.
    fn signal_others(&self, signal: Signal) {
        let group = self.ended.is_none().then(|| self.command.as_raw_pid());
        for process in tree::descendants(self.own).iter().filter(|process| Some(process.group) != group) {
            let _ = process.signal(signal);
        }
    }
}

/// The reason when the run's end of the link is closed.
pub(super) const RUN_GONE: &str = "run-gone";
/// The reason when no renewal came in time; the same word as the library's.
pub(super) const DEADLINE_PASSED: &str = "deadline-passed";

/// Nanoseconds of the clock that counts the time in suspend.
pub(super) fn now() -> u64 {
    BootClock.now_nanos()
}

/// Waits a moment for something that the system does not tell of.
pub(super) fn pause(span: Duration) {
    let span = Timespec::try_from(span).unwrap_or_default();
    let _ = poll(&mut [], Some(&span));
}
