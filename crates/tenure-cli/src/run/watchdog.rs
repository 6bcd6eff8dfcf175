//! The process beside a run that ends the command in time, whatever becomes of the run: it may be stopped, killed, or
//! hang on an authority that does not answer.

use super::family::Family;
use super::hook;
use super::keep::INTERRUPTED;
use super::link::{Gone, Link, Order, Status, Tidings};
use super::{signals, tree};
use crate::exit::Exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getpriority_process, set_child_subreaper, setpriority_process, wait,
};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
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
    /// The file with the token, which goes with the run.
    #[arg(long)]
    pub(super) token_file: Option<PathBuf>,
    #[arg(last = true, required = true)]
    pub(super) command: Vec<OsString>,
}

impl Args {
    pub(crate) fn run(&self) -> Exit {
        let watched = Watchdog::start(self).and_then(|watchdog| watchdog.map_or(Ok(()), Watchdog::watch));
        match watched {
            Ok(()) => Exit::Success,
            Err(error) => {
                super::report::say(&format!("the watchdog failed: {error}"));
                Exit::Failure
            }
        }
    }
}

struct Watchdog<'a> {
    args: &'a Args,
    link: Link,
    /// Whether the run's end of the link is closed.
    run_gone: bool,
    family: Family,
    /// Readable when a child has changed its state.
    children: UnixStream,
    timer: OwnedFd,
    phase: Phase,
    end_at: u64,
    ended: Option<Status>,
    /// The first reason, when the right to write is lost.
    lost: Option<String>,
    gone: Gone,
    /// Whom the system does not let this process kill.
    refused: Vec<String>,
    /// The own priority, as it was before it was raised.
    hurried: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Stopped where it stands, since this instant; it runs again only when the run says so.
    Frozen {
        since: u64,
    },
    /// Asked to end; killed at this instant.
    Ending {
        kill_at: u64,
    },
    Killing,
}

/// How long to wait, in nanoseconds, before processes that were killed, stopped, or asked to end are looked at again.
const LOOK_AGAIN: u64 = 10_000_000;
const LOOK_AT_THE_FROZEN: u64 = 50_000_000;
const ASK_AGAIN: u64 = 50_000_000;

/// How much more often this process gets its turn than others.
const HURRY: i32 = 15;

impl<'a> Watchdog<'a> {
    fn start(args: &'a Args) -> io::Result<Option<Self>> {
        // Orphans of the command become children of this process, also those that left its group.
        set_child_subreaper(Some(getpid()))?;
        signals::outlast()?;
        let (children, tell) = UnixStream::pair()?;
        children.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, tell)?;
        let mut link = Link::new(UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?));
        let input = link.take_over()?;
        let own = getpid();
        if now() >= args.end_at {
            // It took too long until here: nothing is started under a lease that may be over.
            link.send(&Tidings::Ending(DEADLINE_PASSED.to_owned()));
            link.send(&Tidings::Gone(Gone { at: now(), ..Gone::default() }));
            run_the_hook(args, DEADLINE_PASSED, &mut link);
            link.finish();
            return Ok(None);
        }
        let child = Command::new("/proc/self/exe")
            .args([
                "run-command",
                "--parent",
                &own.as_raw_pid().to_string(),
                "--end-at",
                &args.end_at.to_string(),
                "--",
            ])
            .args(&args.command)
            .stdin(input)
            .process_group(0)
            .spawn()?;
        let family = Family::new(own, Pid::from_child(&child));
        // Its few steps must come in time on a machine that is short of it. Only after the command was started, which
        // would inherit it, and only where that is allowed.
        let usual = getpriority_process(None);
        let hurried = usual.and_then(|usual| setpriority_process(None, usual - HURRY).map(|()| usual)).ok();
        let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        link.send(&Tidings::Started(family.command().as_raw_pid()));
        Ok(Some(Self {
            args,
            link,
            run_gone: false,
            family,
            children,
            timer,
            phase: Phase::Running,
            end_at: args.end_at,
            ended: None,
            lost: None,
            gone: Gone::default(),
            refused: Vec::new(),
            hurried,
        }))
    }

    fn watch(mut self) -> io::Result<()> {
        while self.reap()? {
            if self.ended.is_some() && matches!(self.phase, Phase::Running | Phase::Frozen { .. }) {
                self.end_what_is_left();
            }
            self.sleep()?;
            // What the run has said first: a renewal that is here already counts.
            self.listen()?;
            self.look_at_the_time();
        }
        self.gone.at = now();
        self.link.send(&Tidings::Gone(self.gone.clone()));
        if let Some(usual) = self.hurried {
            // What comes now is in no hurry, and must not inherit it.
            let _ = setpriority_process(None, usual);
        }
        if let Some(why) = &self.lost {
            run_the_hook(self.args, why, &mut self.link);
        }
        // A run that was killed cannot clear up behind itself.
        if let Some(folder) = self.args.token_file.as_ref().and_then(|file| file.parent()).filter(|_| self.run_gone) {
            let _ = std::fs::remove_dir_all(folder);
        }
        self.link.finish();
        Ok(())
    }

    /// Takes note of children that ended or stopped. `false` when no child is left, and so, since orphans come here, no
    /// descendant.
    fn reap(&mut self) -> io::Result<bool> {
        loop {
            match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((pid, status))) if pid == self.family.command() && self.ended.is_none() => {
                    let exited = status.exit_status().map(|code| Status::Exited(u8::try_from(code).unwrap_or(u8::MAX)));
                    if let Some(ended) = exited.or(status.terminating_signal().map(Status::Killed)) {
                        self.command_ended(ended);
                    } else if let Some(signal) =
                        status.stopping_signal().filter(|signal| signals::is_of_a_terminal(*signal))
                        && self.phase == Phase::Running
                    {
                        self.link.send(&Tidings::Stopped(signal));
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
        // First of all: from here on its number may be another's.
        self.family.reaped();
        // At the deadline or behind it, the end came too late to be in time, whoever made it.
        if self.phase == Phase::Running && now() >= self.end_at {
            self.lose(DEADLINE_PASSED.to_owned());
        }
        self.ended = Some(status);
        self.link.send(&Tidings::Ended(status));
    }

    /// Whoever is left would work on without a right to it. Looked for as long as this process has a child: one that was
    /// about to start another may not have been in the list.
    fn end_what_is_left(&mut self) {
        let left = self.family.members();
        if left.is_empty() {
            return;
        }
        self.gone.left_behind = left.iter().map(tree::Process::to_string).collect();
        if self.phase == Phase::Running { self.ask() } else { self.kill() }
    }

    fn sleep(&self) -> io::Result<()> {
        let next = match self.phase {
            // Something is left of a command that has ended, and did not show itself yet.
            Phase::Running if self.ended.is_some() => now().saturating_add(LOOK_AGAIN),
            Phase::Running => self.end_at,
            Phase::Frozen { .. } => now().saturating_add(LOOK_AT_THE_FROZEN),
            Phase::Ending { kill_at } => kill_at.min(now().saturating_add(ASK_AGAIN)),
            Phase::Killing => now().saturating_add(LOOK_AGAIN),
        };
        let at = Timespec {
            tv_sec: i64::try_from(next / 1_000_000_000).unwrap_or(i64::MAX),
            // A timer of zero never goes off.
            tv_nsec: i64::try_from(next % 1_000_000_000).unwrap_or(0).max(1),
        };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: at };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        let mut waiting = vec![PollFd::new(&self.children, PollFlags::IN), PollFd::new(&self.timer, PollFlags::IN)];
        if !self.run_gone {
            // A run that is stopped does not read; what could not be sent yet waits for it here, and nothing else does.
            let out = if self.link.owes() { PollFlags::OUT } else { PollFlags::empty() };
            waiting.push(PollFd::new(&self.link, PollFlags::IN | out));
        }
        match poll(&mut waiting, None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn listen(&mut self) -> io::Result<()> {
        let mut marks = [0; 64];
        while (&self.children).read(&mut marks).is_ok_and(|count| count > 0) {}
        if self.run_gone {
            return Ok(());
        }
        self.link.flush();
        let mut readable = [PollFd::new(&self.link, PollFlags::IN)];
        if poll(&mut readable, Some(&Timespec::default())).unwrap_or(0) == 0 {
            return Ok(());
        }
        let open = self.link.fill()?;
        while let Some(order) = self.link.waiting()? {
            self.obey(order);
        }
        if !open {
            // Nobody renews any more, and nobody will release: it ends now.
            self.run_gone = true;
            self.lose(RUN_GONE.to_owned());
        }
        Ok(())
    }

    fn obey(&mut self, order: Order) {
        match (order, self.phase) {
            (Order::Until(end_at), Phase::Running) => self.end_at = self.end_at.max(end_at),
            // What stands still hears nothing; whoever wants its end gets it.
            (Order::Signal(signal), Phase::Frozen { .. }) if signals::asks_for_the_end(signal) => {
                self.lose(INTERRUPTED.to_owned());
            }
            (Order::Signal(_), Phase::Frozen { .. }) => {}
            (Order::Signal(signal), _) => self.pass_on(signal),
            (Order::Lost(why), _) => self.lose(why),
            (Order::Freeze, Phase::Running) => self.freeze(),
            (Order::Thaw { since, end_at }, Phase::Frozen { since: stopped }) if since == stopped => {
                self.end_at = end_at;
                if now() < end_at {
                    self.phase = Phase::Running;
                    self.family.signal(Signal::CONT);
                } else {
                    // This lease is over as well. It never ran under it, and the run has to ask once more.
                    self.freeze();
                }
            }
            // Too late, or for another phase: what has begun to end is not brought back.
            (Order::Until(_) | Order::Freeze | Order::Thaw { .. }, _) => {}
        }
    }

    fn pass_on(&self, signal: i32) {
        let Some(named) = Signal::from_named_raw(signal) else { return };
        self.family.signal_group(named);
        if signals::asks_for_the_end(signal) {
            // A stopped process acts on it only when it goes on.
            self.family.signal_group(Signal::CONT);
        }
    }

    fn look_at_the_time(&mut self) {
        let now = now();
        match self.phase {
            Phase::Running if now >= self.end_at && self.args.freeze => self.freeze(),
            Phase::Running if now >= self.end_at => self.lose(DEADLINE_PASSED.to_owned()),
            // Somebody else may wake it.
            Phase::Frozen { .. } if !self.family.stands_still() => self.stop(),
            Phase::Ending { kill_at } if now >= kill_at => self.kill(),
            Phase::Ending { .. } => self.family.ask(),
            Phase::Killing => self.kill(),
            Phase::Running | Phase::Frozen { .. } => {}
        }
    }

    fn lose(&mut self, why: String) {
        // A command that has ended by itself did so in time; what it left behind is being ended already.
        if self.lost.is_none() && self.ended.is_none() {
            self.link.send(&Tidings::Ending(why.clone()));
            self.lost = Some(why);
        }
        match self.phase {
            Phase::Running => self.ask(),
            // What was stopped at its deadline may not run again, not even to end itself.
            Phase::Frozen { .. } => self.kill(),
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
        self.family.ask();
    }

    fn kill(&mut self) {
        self.phase = Phase::Killing;
        self.gone.killed_at.get_or_insert_with(now);
        let refused = self.family.kill();
        self.tell_of(refused);
    }

    fn stop(&mut self) {
        let refused = self.family.stop();
        self.tell_of(refused);
    }

    /// Once for each set of them.
    fn tell_of(&mut self, refused: Vec<String>) {
        if refused != self.refused && !refused.is_empty() {
            self.link.send(&Tidings::Refused(refused.clone()));
        }
        self.refused = refused;
    }

    fn freeze(&mut self) {
        let since = now();
        self.phase = Phase::Frozen { since };
        self.stop();
        self.link.send(&Tidings::Frozen(since));
    }
}

fn run_the_hook(args: &Args, why: &str, link: &mut Link) {
    if let Some(command) = &args.on_loss {
        link.send(&Tidings::Hook(hook::run(command, why)));
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
