//! A run while its command runs: the lease is renewed, the watchdog is told, and whatever happens is followed.

use super::foreground::Foreground;
use super::link::{Link, Order, Tidings};
use super::report::Report;
use super::token_file::TokenFile;
use super::tree::Process;
use super::voice::Voice;
use super::watchdog::now;
use super::{Task, back, signals};
use crate::exit::Exit;
use crate::problem::Problem;
use crate::span::Span;
use rustix::process::{Pid, Signal, getpid, set_child_subreaper};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::Duration;
use tenure::{FinishError, Lease, Loss};
use tokio_util::sync::CancellationToken;

/// Something that a run reacts to.
#[derive(Debug)]
pub(super) enum Event {
    Tidings(Tidings),
    /// The watchdog's end of the link is closed.
    WatchdogGone,
    Signal(i32),
    /// The end of an attempt to come back after a loss; `None` when it was called off.
    Back(Option<back::Back>),
    /// What the authority said to the release.
    Released(Result<(), FinishError>),
    /// Something else has ended that this thread waits for; its result comes another way.
    Nudge,
}

/// The reasons of a loss that are a run's own.
pub(super) const MAX_HOLD: &str = "max-hold";
pub(super) const TAKEN_OVER: &str = "taken-over";
pub(super) const NOT_REGAINED: &str = "not-regained";
pub(super) const INTERRUPTED: &str = "interrupted";
pub(super) const WATCHDOG_GONE: &str = "watchdog-gone";

/// A command that runs under a lease.
pub(super) struct Keep<'a> {
    pub(super) task: &'a Task,
    pub(super) lease: Option<Lease>,
    pub(super) link: Link,
    pub(super) watchdog: Child,
    pub(super) events: Receiver<Event>,
    pub(super) tell: Sender<Event>,
    pub(super) foreground: Foreground,
    pub(super) token_file: Option<TokenFile>,
    pub(super) report: Report,
    pub(super) voice: &'a Voice,
    pub(super) standing: Standing,
    /// The attempt to come back that has not told its end yet.
    pub(super) attempt: Option<CancellationToken>,
    /// Since when the command stands still.
    pub(super) still_since: Option<u64>,
    /// Whether the watchdog's end of the link is closed.
    pub(super) watchdog_gone: bool,
    /// Whether the command for a loss is this process's to run.
    pub(super) hook_is_ours: bool,
    /// The newest signal that others sent to this process, and that was passed on.
    pub(super) passed_on: Option<i32>,
    /// The newest freeze that was followed.
    frozen: u64,
    /// Children of this process that are not the command's: it may have become this program with some.
    pub(super) others: Vec<Process>,
}

/// How the command stands, as far as this process knows.
pub(super) enum Standing {
    Runs,
    /// The watchdog was asked to stop it, and has not said yet that it has.
    Stopping,
    Stopped {
        since: u64,
    },
    Ending,
}

impl<'a> Keep<'a> {
    /// Starts the watchdog, which starts the command.
    pub(super) fn start(
        task: &'a Task,
        lease: Lease,
        voice: &'a Voice,
        (tell, events): (Sender<Event>, Receiver<Event>),
    ) -> Result<Self, (Lease, Problem)> {
        let others = super::tree::descendants(getpid());
        match prepare(task, &lease, &tell) {
            Ok(Prepared { link, watchdog, token_file, report }) => Ok(Self {
                task,
                lease: Some(lease),
                link,
                watchdog,
                events,
                tell,
                foreground: Foreground::find(),
                token_file,
                report,
                voice,
                standing: Standing::Runs,
                attempt: None,
                still_since: None,
                watchdog_gone: false,
                hook_is_ours: false,
                passed_on: None,
                frozen: 0,
                others,
            }),
            Err(problem) => Err((lease, problem)),
        }
    }

    /// Follows the command to its end.
    pub(super) fn follow(mut self) -> Report {
        while self.report.gone.is_none() {
            let first = self.events.recv_timeout(self.task.plan.tick()).ok();
            // What is known of the command first, then the lease, then what others want: a command that ended by itself
            // has not lost anything, and a wake-up call must not wake one that has.
            let (tidings, others): (Vec<_>, Vec<_>) = first
                .into_iter()
                .chain(self.events.try_iter())
                .partition(|event| matches!(event, Event::Tidings(_) | Event::WatchdogGone));
            for event in tidings {
                self.react(event);
            }
            self.look_at_the_lease();
            for event in others {
                self.react(event);
            }
            self.link.flush();
            self.wake_the_watchdog();
        }
        self.end()
    }

    pub(super) fn react(&mut self, event: Event) {
        match event {
            Event::Tidings(tidings) => self.hear(tidings),
            Event::WatchdogGone => {
                self.watchdog_gone = true;
                if self.report.gone.is_none() {
                    self.end_without_watchdog();
                }
            }
            Event::Signal(signal) => self.pass_on(signal),
            Event::Back(end) => {
                self.attempt = None;
                self.come_back(end);
            }
            Event::Released(_) | Event::Nudge => {}
        }
    }

    pub(super) fn hear(&mut self, tidings: Tidings) {
        match tidings {
            Tidings::Started(pid) => {
                self.report.pid = Some(pid);
                if let Some(pid) = Pid::from_raw(pid) {
                    self.foreground.give(pid);
                }
                if self.foreground.is_given() {
                    // It may have asked for the keyboard before it had it.
                    self.link.send(&Order::Signal(signal_hook::consts::SIGCONT));
                }
            }
            Tidings::Stopped(signal) if self.foreground.is_given() => {
                if signal == signal_hook::consts::SIGTSTP && !self.foreground.stop_with_it() {
                    self.link.send(&Order::Signal(signal_hook::consts::SIGCONT));
                }
            }
            // Somebody has stopped it by name, and will wake it.
            Tidings::Stopped(signal_hook::consts::SIGTSTP) => {}
            Tidings::Stopped(_) => self.voice.say(
                "the command waits for the keyboard, which it does not have here; give it an input, as with </dev/null, or \
                 interrupt it",
            ),
            Tidings::Ended(status) => self.report.status = Some(status),
            Tidings::Frozen(since) => self.stopped(since),
            Tidings::Ending(why) => {
                self.settle_on_the_end();
                self.report.lost.get_or_insert(why);
            }
            Tidings::Refused(processes) => self.voice.say(format!(
                "the system does not let this user stop or end {}; do it by hand. {} is not released until it has ended",
                processes.join(", "),
                self.task.resource
            )),
            Tidings::Gone(gone) => self.report.gone = Some(gone),
            Tidings::Hook(status) => self.report.hook = Some(status),
        }
    }

    fn pass_on(&mut self, signal: i32) {
        match &self.standing {
            // What does not run hears nothing. Whoever wants the end gets it; a wake-up call must not wake it.
            Standing::Stopping | Standing::Stopped { .. } => {
                if signals::asks_for_the_end(signal) {
                    self.lose(INTERRUPTED);
                }
            }
            Standing::Runs | Standing::Ending => {
                if signal == signal_hook::consts::SIGCONT {
                    self.foreground.woken();
                }
                self.passed_on = Some(signal);
                self.link.send(&Order::Signal(signal));
            }
        }
    }

    fn look_at_the_lease(&mut self) {
        if self.report.gone.is_some() || matches!(self.standing, Standing::Ending) {
            return;
        }
        // Read first: what lies between the two readings makes the deadline earlier, never later.
        let now = now();
        let held = Duration::from_nanos(now.saturating_sub(self.report.acquired_at));
        if self.task.max_hold.is_some_and(|most| held >= most) {
            return self.lose(MAX_HOLD);
        }
        if !matches!(self.standing, Standing::Runs) {
            return;
        }
        match self.lease.as_ref().map(|lease| lease.time_left()) {
            Some(Ok(left)) => {
                let end_at = now.saturating_add(nanos(left));
                // The two clocks are read apart, so the same deadline comes out a little earlier or later each time.
                if end_at > self.report.end_at.saturating_add(nanos(self.task.plan.tick())) {
                    self.report.end_at = end_at;
                    self.link.send(&Order::Until(end_at));
                }
            }
            Some(Err(lost)) if self.task.freeze && may_come_back(lost.loss) => {
                self.standing = Standing::Stopping;
                self.link.send(&Order::Freeze);
            }
            Some(Err(lost)) => self.lose(lost.loss.name()),
            None => {}
        }
    }

    /// The command is to end. The watchdog tells whether it came to that: the command may have ended by itself before.
    fn lose(&mut self, why: &str) {
        self.settle_on_the_end();
        self.link.send(&Order::Lost(why.to_owned()));
    }

    pub(super) fn settle_on_the_end(&mut self) {
        if let Some(attempt) = &self.attempt {
            attempt.cancel();
        }
        self.standing = Standing::Ending;
        if let Some(file) = &self.token_file {
            file.remove();
        }
    }

    /// The command stands still. Now nothing is written any more, and there is time to ask.
    fn stopped(&mut self, since: u64) {
        // Each freeze once: the command may run again by the time that one is told.
        if since <= self.frozen || !matches!(self.standing, Standing::Runs | Standing::Stopping) {
            return;
        }
        self.frozen = since;
        self.still_since = Some(since);
        // Whoever sits there may want to end it, and the keys would go to a command that stands still.
        self.foreground.withdraw();
        if let Some(file) = &self.token_file {
            file.remove();
        }
        self.voice.say(format!(
            "the lease of {} was not renewed in time: the command stands still until it is known who has it",
            self.task.resource
        ));
        self.standing = Standing::Stopped { since };
        self.ask_for_it();
    }

    /// Gives the lost grant up and asks for the next one.
    fn ask_for_it(&mut self) {
        let Some(lease) = self.lease.take() else { return };
        let attempt = CancellationToken::new();
        let (wish, tell, cancel) = (back::Wish::new(self.task, &lease), self.tell.clone(), attempt.clone());
        // The old grant is given up by being dropped.
        drop(lease);
        let asking = thread::Builder::new().name("way-back".into());
        match asking.spawn(move || drop(tell.send(Event::Back(wish.come_back(&cancel))))) {
            Ok(_) => self.attempt = Some(attempt),
            Err(error) => {
                self.voice.say(format!("there is no thread to ask with ({error})"));
                self.lose(NOT_REGAINED);
            }
        }
    }

    fn come_back(&mut self, end: Option<back::Back>) {
        let (since, lease) = match (end, &self.standing) {
            (None, _) => return,
            (Some(back::Back::Same(lease)), Standing::Stopped { since }) if self.report.gone.is_none() => {
                (*since, lease)
            }
            // It was ended meanwhile; the lease is released with its end.
            (Some(back::Back::Same(lease)), _) => return self.lease = Some(lease),
            (Some(back::Back::Another(lease)), _) => {
                self.lease = lease;
                return self.lose(TAKEN_OVER);
            }
            (Some(back::Back::Over(why)), _) => {
                self.voice.say(why);
                return self.lose(NOT_REGAINED);
            }
        };
        let (began, left) = (now(), lease.time_left());
        let token = lease.token().clone();
        self.report.tokens.push(token.clone());
        self.lease = Some(lease);
        // Lost again already: once more.
        let Ok(left) = left else { return self.ask_for_it() };
        if let Some(Err(error)) = self.token_file.as_ref().map(|file| file.replace(&token)) {
            self.voice.say(format!("the new token cannot be written to its file: {error}"));
            return self.lose(NOT_REGAINED);
        }
        let stood = Duration::from_nanos(began.saturating_sub(since));
        self.still_since = None;
        self.report.frozen += stood;
        self.report.end_at = began.saturating_add(nanos(left));
        let resource = &self.task.resource;
        let (stood, epoch, end_at) = (Span(stood), token.epoch, self.report.end_at);
        self.voice
            .say(format!("nobody had taken over {resource}: the command goes on after {stood} under epoch {epoch}"));
        self.standing = Standing::Runs;
        self.foreground.woken();
        self.link.send(&Order::Thaw { since, end_at });
    }

    /// A watchdog that somebody has stopped ends nothing in time. It is woken for as long as this process runs.
    pub(super) fn wake_the_watchdog(&mut self) {
        // Once it has ended, its number may be another's.
        if !matches!(self.watchdog.try_wait(), Ok(None)) {
            return;
        }
        let watchdog = Pid::from_child(&self.watchdog);
        if Process::read(watchdog).is_some_and(|process| process.is_stopped() && process.is_alive()) {
            let _ = rustix::process::kill_process(watchdog, Signal::CONT);
        }
    }
}

struct Prepared {
    link: Link,
    watchdog: Child,
    token_file: Option<TokenFile>,
    report: Report,
}

fn prepare(task: &Task, lease: &Lease, tell: &Sender<Event>) -> Result<Prepared, Problem> {
    let failed = |what: &'static str| move |error: std::io::Error| Problem::failure(format_args!("{what}: {error}"));
    if !Path::new("/proc/self/exe").exists() {
        return Err(Problem::failure(
            "/proc is not there: without it nobody can tell which processes are the command's",
        ));
    }
    // Should the watchdog be killed, its orphans come here.
    set_child_subreaper(Some(getpid())).map_err(|error| failed("orphans cannot be adopted")(error.into()))?;
    let token_file = task.freeze.then(|| TokenFile::create(lease.token())).transpose();
    let token_file = token_file.map_err(failed("the token cannot be written to a file"))?;
    let (here, there) = UnixStream::pair().map_err(failed("no sockets can be had"))?;
    let link = Link::new(here);
    // Before the watchdog is there, so that nothing can fail any more once the command may run.
    listen(&link, tell).map_err(failed("nobody can listen to the watchdog"))?;
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
    match &token_file {
        Some(file) => command.arg("--token-file").arg(file.path()).env("TENURE_TOKEN_FILE", file.path()),
        // An outer run's is not this one's.
        None => command.env_remove("TENURE_TOKEN_FILE"),
    };
    command.envs(task.environment(lease.token())).arg("--").args(&task.command);
    // Apart from this process's group, so that what is sent to the group does not stop it.
    let watchdog = command.stdin(OwnedFd::from(there)).process_group(0).spawn();
    let mut watchdog = watchdog.map_err(failed("the watchdog cannot be started"))?;
    if let Err(error) = link.hand_over(rustix::stdio::stdin()) {
        // It starts nothing without that.
        link.close();
        let _ = watchdog.wait();
        return Err(failed("the watchdog does not take the command's input")(error));
    }
    let (resource, owner, token) = (task.resource.clone(), task.owner.to_string(), lease.token().clone());
    let mut report = Report::new(resource, owner, task.plan, token, end_at, began);
    report.excused = lease.excused().iter().map(ToString::to_string).collect();
    Ok(Prepared { link, watchdog, token_file, report })
}

/// Makes events of what the watchdog tells.
fn listen(link: &Link, tell: &Sender<Event>) -> std::io::Result<()> {
    let (tell, mut link) = (tell.clone(), link.another()?);
    let listening = thread::Builder::new().name("watchdog".into());
    listening.spawn(move || {
        while let Ok(Some(tidings)) = link.receive() {
            if tell.send(Event::Tidings(tidings)).is_err() {
                return;
            }
        }
        drop(tell.send(Event::WatchdogGone));
    })?;
    Ok(())
}

/// A loss after which nobody else need have the resource.
const fn may_come_back(loss: Loss) -> bool {
    matches!(loss, Loss::DeadlinePassed | Loss::RenewalRefused | Loss::RenewalUnanswered | Loss::CheckUnanswered)
}

pub(super) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
