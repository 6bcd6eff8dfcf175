//! A run while its command runs: the lease is renewed, the watchdog is told, and whatever happens is followed.

use super::foreground::Foreground;
use super::link::{Link, Order, Status, Tidings};
use super::report::{Release, Report, say};
use super::token_file::TokenFile;
use super::watchdog::{now, pause};
use super::{Task, back, signals, tree};
use crate::exit::Exit;
use crate::problem::Problem;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, set_child_subreaper, wait};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;
use tenure::blocking::wait_for;
use tenure::core::record::LeaseRecord;
use tenure::{Lease, Loss};
use tokio_util::sync::CancellationToken;

/// Something that a run reacts to.
#[derive(Debug)]
pub(super) enum Event {
    Tidings(Tidings),
    /// The watchdog's end of the link is closed.
    WatchdogGone,
    Signal(i32),
    /// The end of an attempt to come back after a loss.
    Back(back::Back),
    /// Something else has ended that this thread waits for; its result comes another way.
    Nudge,
}

/// The reasons of a loss that are a run's own.
pub(super) const MAX_HOLD: &str = "max-hold";
pub(super) const TAKEN_OVER: &str = "taken-over";
pub(super) const INTERRUPTED: &str = "interrupted";
pub(super) const WATCHDOG_GONE: &str = "watchdog-gone";

/// How long a release is waited for beyond the own deadline: the authority may hang in a way that no timeout reaches.
const RELEASE: Duration = Duration::from_secs(2);

/// How long a look at the authority after a loss may take.
const LOOK: Duration = Duration::from_secs(1);

/// A command that runs under a lease.
pub(super) struct Keep<'a> {
    task: &'a Task,
    lease: Option<Lease>,
    link: Link,
    watchdog: Child,
    events: Receiver<Event>,
    tell: Sender<Event>,
    foreground: Foreground,
    token_file: Option<TokenFile>,
    report: Report,
    standing: Standing,
}

/// How the command stands, as far as this process knows.
enum Standing {
    Runs,
    /// The watchdog was asked to stop it, and has not said yet that it has.
    Stopping,
    Stopped {
        since: u64,
        attempt: CancellationToken,
    },
    Ending,
}

impl<'a> Keep<'a> {
    /// Starts the watchdog, which starts the command.
    pub(super) fn start(
        task: &'a Task,
        lease: Lease,
        (tell, events): (Sender<Event>, Receiver<Event>),
    ) -> Result<Self, (Lease, Problem)> {
        match Self::prepare(task, &lease) {
            Ok((link, watchdog, token_file, report)) => {
                let (foreground, standing) = (Foreground::find(), Standing::Runs);
                let lease = Some(lease);
                Ok(Self { task, lease, link, watchdog, events, tell, foreground, token_file, report, standing })
            }
            Err(problem) => Err((lease, problem)),
        }
    }

    fn prepare(task: &Task, lease: &Lease) -> Result<(Link, Child, Option<TokenFile>, Report), Problem> {
        let failed =
            |what: &'static str| move |error: std::io::Error| Problem::failure(format_args!("{what}: {error}"));
        // Should the watchdog be killed, its orphans come here.
        set_child_subreaper(Some(getpid())).map_err(|error| failed("orphans cannot be adopted")(error.into()))?;
        let token_file = task.freeze.then(|| TokenFile::create(lease.token())).transpose();
        let token_file = token_file.map_err(failed("the token cannot be written to a file"))?;
        let (here, there) = UnixStream::pair().map_err(failed("no sockets can be had"))?;
        let began = now();
        let left = lease.time_left().map_err(|lost| Problem::new(Exit::Lost, lost))?;
        let end_at = began.saturating_add(nanos(left));
        let mut command = Command::new("/proc/self/exe");
        command.arg("run-watchdog").args(["--end-at", &end_at.to_string()]);
        command.args(["--grace-ms", &task.plan.grace.as_millis().to_string()]);
        if task.freeze {
            command.arg("--freeze");
        }
        if let Some(on_loss) = &task.on_loss {
            // In one word: it may begin with a dash.
            let mut word = std::ffi::OsString::from("--on-loss=");
            word.push(on_loss);
            command.arg(word);
        }
        command.arg("--").args(&task.command);
        for (name, value) in task.environment(lease.token()) {
            command.env(name, value);
        }
        match &token_file {
            Some(file) => command.env("TENURE_TOKEN_FILE", file.path()),
            // An outer run's is not this one's.
            None => command.env_remove("TENURE_TOKEN_FILE"),
        };
        // Apart from this process's group, so that what is sent to the group does not stop it.
        let watchdog = command.stdin(OwnedFd::from(there)).process_group(0).spawn();
        let watchdog = watchdog.map_err(failed("the watchdog cannot be started"))?;
        let link = Link::new(here);
        link.hand_over(rustix::stdio::stdin()).map_err(failed("the watchdog does not take the command's input"))?;
        let (resource, owner, token) = (task.resource.clone(), task.owner.to_string(), lease.token().clone());
        Ok((link, watchdog, token_file, Report::new(resource, owner, task.plan, token, end_at, began)))
    }

    /// Follows the command to its end.
    pub(super) fn follow(mut self) -> Report {
        self.listen_to_the_watchdog();
        while self.report.gone.is_none() {
            match self.events.recv_timeout(self.task.plan.tick()) {
                Ok(Event::Tidings(tidings)) => self.hear(tidings),
                Ok(Event::WatchdogGone) => self.end_without_watchdog(),
                Ok(Event::Signal(signal)) => self.pass_on(signal),
                Ok(Event::Back(end)) => self.come_back(end),
                Ok(Event::Nudge) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.look_at_the_lease();
        }
        self.foreground.take_back();
        if let Some(file) = &self.token_file {
            file.remove();
        }
        self.release();
        self.look_for_a_successor();
        self.wait_for_the_hook();
        self.report
    }

    fn listen_to_the_watchdog(&self) {
        let (tell, link) = (self.tell.clone(), self.link.another());
        std::thread::spawn(move || {
            if let Ok(mut link) = link {
                while let Ok(Some(tidings)) = link.receive() {
                    if tell.send(Event::Tidings(tidings)).is_err() {
                        return;
                    }
                }
            }
            drop(tell.send(Event::WatchdogGone));
        });
    }

    fn hear(&mut self, tidings: Tidings) {
        match tidings {
            Tidings::Started(pid) => {
                self.report.pid = Some(pid);
                if let Some(pid) = Pid::from_raw(pid) {
                    self.foreground.give(pid);
                }
                if self.foreground.is_given() {
                    // It may have asked for the keyboard before it had it.
                    self.order(&Order::Signal(signal_hook::consts::SIGCONT));
                }
            }
            Tidings::Stopped(signal) if signal == signal_hook::consts::SIGTSTP => self.foreground.stop_with_it(),
            Tidings::Stopped(_) => {}
            Tidings::Ended(status) => self.report.status = Some(status),
            Tidings::Frozen(since) => self.stopped(since),
            Tidings::Ending(why) => self.note_loss(&why),
            Tidings::Gone(gone) => self.report.gone = Some(gone),
            Tidings::Hook(status) => self.report.hook = Some(status),
        }
    }

    /// A watchdog that is gone is noticed on the link.
    fn order(&self, order: &Order) {
        let _ = self.link.send(order);
    }

    fn pass_on(&mut self, signal: i32) {
        if signal == signal_hook::consts::SIGCONT {
            self.foreground.woken();
        }
        match &self.standing {
            // What does not run hears nothing. Whoever wants the end gets it; a wake-up call must not wake it.
            Standing::Stopping | Standing::Stopped { .. } => {
                if signals::asks_for_the_end(signal) {
                    self.lose(INTERRUPTED);
                }
            }
            Standing::Runs | Standing::Ending => self.order(&Order::Signal(signal)),
        }
    }

    fn look_at_the_lease(&mut self) {
        if !matches!(self.standing, Standing::Runs) || self.report.gone.is_some() {
            return;
        }
        // Read first: what lies between the two readings makes the deadline earlier, never later.
        let now = now();
        match self.lease.as_ref().map(|lease| lease.time_left()) {
            Some(Ok(left)) => {
                let end_at = now.saturating_add(nanos(left));
                // The two clocks are read apart, so the same deadline comes out a little earlier or later each time.
                if end_at > self.report.end_at.saturating_add(nanos(self.task.plan.tick())) {
                    self.report.end_at = end_at;
                    self.order(&Order::Until(end_at));
                }
            }
            Some(Err(lost)) if self.task.freeze && may_come_back(lost.loss) => {
                self.standing = Standing::Stopping;
                self.order(&Order::Freeze);
            }
            Some(Err(lost)) => self.lose(lost.loss.name()),
            None => {}
        }
        let held = Duration::from_nanos(now.saturating_sub(self.report.acquired_at));
        if self.task.max_hold.is_some_and(|most| held >= most) && matches!(self.standing, Standing::Runs) {
            self.lose(MAX_HOLD);
        }
    }

    fn note_loss(&mut self, why: &str) {
        if self.report.lost.is_none() {
            self.report.lost = Some(why.to_owned());
        }
        if let Standing::Stopped { attempt, .. } = &self.standing {
            attempt.cancel();
        }
        self.standing = Standing::Ending;
        if let Some(file) = &self.token_file {
            file.remove();
        }
    }

    fn lose(&mut self, why: &str) {
        self.note_loss(why);
        self.order(&Order::Lost(why.to_owned()));
    }

    /// The command stands still. Now nothing is written any more, and there is time to ask.
    fn stopped(&mut self, since: u64) {
        if !matches!(self.standing, Standing::Runs | Standing::Stopping) {
            return;
        }
        if let Some(file) = &self.token_file {
            file.remove();
        }
        let attempt = CancellationToken::new();
        self.standing = Standing::Stopped { since, attempt: attempt.clone() };
        let Some(lease) = self.lease.take() else { return };
        say(&format!(
            "the lease of {} was not renewed in time: the command stands still until it is known who has it",
            self.task.resource
        ));
        let (wish, tell) = (back::Wish::new(self.task, &lease), self.tell.clone());
        // The old grant is given up by being dropped.
        drop(lease);
        std::thread::spawn(move || {
            if let Some(end) = wish.come_back(&attempt) {
                drop(tell.send(Event::Back(end)));
            }
        });
    }

    fn come_back(&mut self, end: back::Back) {
        let (since, lease) = match (end, &self.standing) {
            (back::Back::Same(lease), Standing::Stopped { since, .. }) => (*since, lease),
            // It was ended meanwhile.
            (back::Back::Same(lease) | back::Back::Another(Some(lease)), Standing::Ending) => {
                return drop(wait_for(lease.release()));
            }
            (back::Back::Another(lease), _) => {
                if let Some(lease) = lease {
                    drop(wait_for(lease.release()));
                }
                return self.lose(TAKEN_OVER);
            }
            (back::Back::Over(why), _) => {
                say(&why);
                return self.lose(TAKEN_OVER);
            }
            (back::Back::Same(lease), _) => return drop(wait_for(lease.release())),
        };
        let written = self.token_file.as_ref().map_or(Ok(()), |file| file.replace(lease.token()));
        let began = now();
        let (Ok(()), Ok(left)) = (written, lease.time_left()) else {
            self.lease = Some(lease);
            return self.lose(Loss::Ended.name());
        };
        let stood = Duration::from_nanos(began.saturating_sub(since));
        self.report.frozen += stood;
        self.report.tokens.push(lease.token().clone());
        self.report.end_at = began.saturating_add(nanos(left));
        say(&format!(
            "nobody had taken over {}: the command goes on after {} under epoch {}",
            self.task.resource,
            crate::span::Span(stood),
            lease.epoch()
        ));
        self.lease = Some(lease);
        self.standing = Standing::Runs;
        self.order(&Order::Thaw(self.report.end_at));
    }

    /// The watchdog was killed, and with it the command. Whatever else came from it is here now, and is ended at once:
    /// there is nobody left who would do so in time.
    fn end_without_watchdog(&mut self) {
        self.note_loss(WATCHDOG_GONE);
        let mut gone = super::link::Gone { killed_at: Some(now()), ..Default::default() };
        loop {
            tree::signal_descendants(getpid(), Signal::STOP);
            tree::signal_descendants(getpid(), Signal::KILL);
            match wait(WaitOptions::NOHANG) {
                Err(Errno::CHILD) => break,
                Ok(None) => pause(Duration::from_millis(2)),
                Ok(Some((pid, status))) if Some(pid.as_raw_pid()) == self.report.pid => {
                    self.report.status = status.terminating_signal().map(Status::Killed).or(self.report.status);
                }
                Ok(Some(_)) | Err(_) => {}
            }
        }
        gone.at = now();
        self.report.gone = Some(gone);
    }

    /// Only now: nobody may hold the resource while a process of the command is there.
    fn release(&mut self) {
        let Some(lease) = self.lease.take() else {
            self.report.release = Release::Lost;
            return;
        };
        let bound = lease.time_left().unwrap_or_default() + RELEASE;
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || drop(tell.send(wait_for(lease.release()))));
        self.report.release = match told.recv_timeout(bound) {
            Ok(Ok(())) => Release::Released,
            Ok(Err(tenure::FinishError::Lost(_) | tenure::FinishError::Refused { .. })) => Release::Lost,
            Ok(Err(_)) | Err(_) => Release::Unknown,
        };
    }

    /// Who has it now, if the authority tells that in a moment: whoever reads of a loss asks this first.
    fn look_for_a_successor(&mut self) {
        if self.report.lost.is_none() {
            return;
        }
        let (tenure, resource) = (self.task.tenure.clone(), self.task.resource.clone());
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || drop(tell.send(wait_for(tenure.authority().inspect(&resource)))));
        let Ok(Ok(read)) = told.recv_timeout(LOOK) else { return };
        let newer = |lease: &LeaseRecord| self.report.tokens.last().is_some_and(|token| lease.epoch > token.epoch);
        self.report.successor = read.view.lease.filter(newer).map(|lease| (lease.owner.name.to_string(), lease.epoch));
    }

    fn wait_for_the_hook(&mut self) {
        if self.report.lost.is_some()
            && self.task.on_loss.is_some()
            && self.report.lost.as_deref() != Some(WATCHDOG_GONE)
        {
            while self.report.hook.is_none() {
                match self.events.recv_timeout(super::hook::AT_MOST * 2) {
                    Ok(Event::Tidings(tidings)) => self.hear(tidings),
                    Ok(Event::WatchdogGone) | Err(_) => break,
                    Ok(_) => {}
                }
            }
        }
        let _ = self.watchdog.wait();
    }
}

/// A loss after which nobody else need have the resource.
const fn may_come_back(loss: Loss) -> bool {
    matches!(loss, Loss::DeadlinePassed | Loss::RenewalRefused | Loss::RenewalUnanswered | Loss::CheckUnanswered)
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
