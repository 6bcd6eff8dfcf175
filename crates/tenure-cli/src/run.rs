//! `tenure run`: a command that runs only while its lease is held.

mod back;
mod command;
mod ending;
mod excuse;
mod family;
mod foreground;
mod hook;
mod keep;
mod link;
mod plan;
mod report;
pub(crate) mod signals;
mod token_file;
pub(crate) mod tree;
mod voice;
mod watchdog;

pub(crate) use command::Args as CommandArgs;
pub(crate) use watchdog::Args as WatchdogArgs;

use crate::access::{Access, Setup};
use crate::exit::Exit;
use crate::holder::{Holder, time_of};
use crate::owner::Who;
use crate::problem::Problem;
use crate::screen::account;
use crate::screen::progress::Progress;
use crate::span::{self, Span};
use excuse::Excuse;
use keep::{Event, Keep};
use plan::Plan;
use report::{Report, not_started, say};
use std::ffi::OsString;
use std::future::IntoFuture;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;
use tenure::blocking::wait_for;
use tenure::core::decide::Refusal;
use tenure::sink::{Sink, SinkError};
use tenure::{Acquire, AcquireError, Lease, ResourceName, Tenure, Token, Ttl};
use tokio_util::sync::CancellationToken;
use voice::Voice;

/// Run a command only while the lease of a resource is held.
///
/// The command starts once the resource is held, and its processes are gone before anybody else can hold it: on a loss
/// the whole group, and whatever left it, is asked to end, then killed, before the authority's deadline. A watchdog beside
/// this process does so even if this process is stopped or killed, or if the authority does not answer. The resource is
/// released when the last process is gone.
///
/// The command finds TENURE_RESOURCE, TENURE_EPOCH, TENURE_TOKEN, TENURE_AUTHORITY and TENURE_OWNER in its environment,
/// for `tenure check` and `tenure put`, or for a receiver of its own. TENURE_AUTHORITY is the whole address, with its
/// password if it has one.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// What is to be held, such as tenant:42.
    #[arg(long, short, value_name = "NAME")]
    resource: ResourceName,
    /// How long the lease lasts without a renewal; it is renewed every third of it. 120s, unless the configuration file
    /// says otherwise.
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    ttl: Option<Duration>,
    /// How long to wait for the resource at most; 0s asks once.
    #[arg(long, value_parser = span::parse, value_name = "SPAN", default_value = "30s")]
    wait: Duration,
    /// How long the command has to end after it was asked to. 5s, or what a short ttl leaves.
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    grace: Option<Duration>,
    /// Run this once, through a shell, when the right to write was lost and the command is gone. TENURE_LOSS says why.
    #[arg(long, value_name = "CMD")]
    on_loss: Option<OsString>,
    /// A receiver to be sealed before the command starts, such as file:/srv/out or sqlite:docs.db. May be given more than
    /// once.
    #[arg(long, value_name = "URL")]
    sink: Vec<String>,
    /// A receiver of --sink, by its name or its address, that the command may start without. Until it is sealed it refuses the
    /// command, and may accept a former holder. May be given more than once; unless it is, nothing is excused.
    #[arg(long, value_name = "NAME")]
    excuse: Vec<String>,
    /// How long a receiver of --excuse is tried before the command starts without it. Less than --wait.
    #[arg(long, value_parser = span::parse, value_name = "SPAN", default_value = "10s", requires = "excuse")]
    excuse_after: Duration,
    /// End the command after so long, however well it is renewed: a hung job must not hold the resource for days.
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    max_hold: Option<Duration>,
    /// Stop the command on a loss instead of ending it, and let it go on under a new epoch if nobody took over in between.
    /// For work too dear to begin again because a laptop slept.
    #[arg(long)]
    freeze: bool,
    /// Write one JSON object as the last line of standard error; standard output is the command's.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

const AFTER_HELP: &str = "\
Examples:
  tenure run --resource nightly-backup -- restic backup /srv
  tenure run --resource tenant:42 --ttl 30s --wait 5m -- ./sync.sh
  export TENURE_AUTHORITY='postgres://tenure:PASSWORD@db1/jobs'
  tenure run --resource nightly-backup -- restic backup /srv
  tenure run --resource report --sink file:/srv/out -- \\
    sh -c './make-report | tenure put --sink file:/srv/out --op today'
  tenure run --resource feed --sink 'sqlite:main.db?id=main' --sink 'file:/mnt/copy?id=copy' \\
    --excuse copy --excuse-after 5s -- ./feed.sh

Exit status:
  the command's own, or 128 and the number of the signal that ended it; otherwise
  64  the command line makes no sense
  69  the authority, or a receiver, cannot be reached
  75  not acquired in time: somebody else holds the resource, and is named
  76  the right to write was lost while the command ran
  126, 127  the command cannot be started, or is not there";

/// What is to be done, after everything was checked.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    resource: ResourceName,
    owner: Who,
    authority: String,
    tenure: Tenure,
    plan: Plan,
    sinks: Vec<Arc<dyn Sink>>,
    excuse: Excuse,
    max_hold: Option<Duration>,
    freeze: bool,
    on_loss: Option<OsString>,
    command: Vec<OsString>,
}

impl Task {
    /// The wish for the resource.
    fn wish(&self, wait: Duration) -> Acquire {
        let wish =
            self.tenure.acquire(self.resource.clone()).ttl(self.plan.ttl.get()).margin(self.plan.holder_margin());
        let wish = self.sinks.iter().fold(wish.wait(wait), |wish, sink| wish.sink(Arc::clone(sink)));
        self.excuse.wish(wish)
    }

    /// The wish of a command that stands still: whoever may be excused has had its time when the command was started, and is
    /// tried once.
    fn wish_again(&self) -> Acquire {
        self.wish(Duration::ZERO).excuse([], Duration::ZERO)
    }

    fn environment(&self, token: &Token) -> [(&'static str, String); 5] {
        [
            ("TENURE_RESOURCE", self.resource.to_string()),
            ("TENURE_EPOCH", token.epoch.to_string()),
            ("TENURE_TOKEN", token.to_string()),
            ("TENURE_AUTHORITY", self.authority.clone()),
            ("TENURE_OWNER", self.owner.to_string()),
        ]
    }
}

/// Why the command was not started.
struct NotStarted {
    exit: Exit,
    why: String,
    holder: Option<Box<Holder>>,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let voice = Voice::new();
        let ended = self.start(&voice);
        // Nothing is held any more. Whoever does not read what is said now may keep this process, but can always end it.
        signals::let_go();
        voice.finish();
        match ended {
            Ok(report) => {
                report.say();
                if self.json {
                    account(&report.json());
                }
                if let Some(signal) = report.interrupted {
                    foreground::end_by(signal);
                }
                Ok(report.exit())
            }
            Err(NotStarted { exit, why, holder }) => {
                say(&why);
                if self.json {
                    account(&not_started(&self.resource, exit, &why, holder.as_deref()));
                }
                Ok(exit)
            }
        }
    }

    fn start(&self, voice: &Voice) -> Result<Report, NotStarted> {
        let task = self.task(voice)?;
        let (tell, events) = channel();
        signals::watch(tell.clone()).map_err(|error| Problem::failure(format_args!("signals: {error}")))?;
        let lease = self.acquire(&task, voice, &tell, &events)?;
        match Keep::start(&task, lease, voice, (tell, events)) {
            Ok(keep) => Ok(keep.follow()),
            Err((lease, problem)) => {
                // Nothing runs: it is given back at once.
                let _ = wait_for(lease.release());
                Err(problem.into())
            }
        }
    }

    fn task(&self, voice: &Voice) -> Result<Task, NotStarted> {
        let setup = self.access.setup()?;
        let ttl = self.ttl.or(setup.settings.ttl).unwrap_or(Ttl::DEFAULT.get());
        let plan = Plan::new(ttl, self.grace)?;
        if let Some(program) = self.command.first()
            && !is_there(Path::new(program))
        {
            let why =
                format!("{} is not there: give the command's path, or one that is found by PATH", program.display());
            return Err(NotStarted { exit: command::cannot_start(ErrorKind::NotFound), why, holder: None });
        }
        let sinks = self.sink.iter().map(|url| Ok(self.receiver(url)?)).collect::<Result<Vec<_>, Problem>>()?;
        let excuse = Excuse::of(&self.excuse, (self.excuse_after, self.wait), (&self.sink, &sinks), voice)?;
        let owner = setup.who.clone().process();
        let tenure = connect(&setup, &owner, self.wait)?;
        Ok(Task {
            resource: self.resource.clone(),
            authority: setup.shared_url(),
            owner,
            tenure,
            plan,
            sinks,
            excuse,
            max_hold: self.max_hold,
            freeze: self.freeze,
            on_loss: self.on_loss.clone(),
            command: self.command.clone(),
        })
    }

    /// The receiver at this address; one that may be excused need not be there yet.
    fn receiver(&self, url: &str) -> Result<Arc<dyn Sink>, SinkError> {
        tenure::sink::connect(url).or_else(|error| {
            let excused =
                |sink: &Arc<dyn Sink>| self.excuse.iter().any(|name| name == url || name == sink.id().as_str());
            tenure::sink::connect_later(url).filter(excused).ok_or(error)
        })
    }

    /// Asks once, says who is in the way, and waits for as long as that makes sense.
    fn acquire(
        &self,
        task: &Task,
        voice: &Voice,
        tell: &Sender<Event>,
        events: &Receiver<Event>,
    ) -> Result<Lease, NotStarted> {
        let refused = match attempt(task, Duration::ZERO, tell, events)? {
            Ok(lease) => return Ok(lease),
            Err(error) => error,
        };
        let holder = holder(task, &refused);
        // Nobody renews what a dead process holds: it is free then, and not before.
        let in_vain = holder.as_ref().is_some_and(|holder| holder.is_dead() && holder.remaining > self.wait);
        let may_wait = matches!(
            refused,
            AcquireError::Refused { refusal: Refusal::Busy { .. } | Refusal::Quarantined { .. }, .. }
                | AcquireError::Unanswered { .. }
        ) || task.excuse.asks_again(&refused);
        if !may_wait || in_vain || self.wait.is_zero() {
            return Err(not_acquired(task, &refused, Duration::ZERO));
        }
        let why = holder.map_or_else(|| refused.to_string(), |holder| holder.refusal());
        voice.say(format!("{why}\n            waiting for it for up to {}", Span(self.wait)));
        attempt(task, self.wait, tell, events)?.map_err(|error| not_acquired(task, &error, self.wait))
    }
}

/// One wish, which a signal interrupts; nothing is left behind then.
fn attempt(
    task: &Task,
    wait: Duration,
    tell: &Sender<Event>,
    events: &Receiver<Event>,
) -> Result<Result<Lease, AcquireError>, NotStarted> {
    let (cancel, wish, nudge) = (CancellationToken::new(), task.wish(wait), tell.clone());
    let (answer, answered) = channel();
    let asking = thread::Builder::new().name("acquire".into()).spawn({
        let cancel = cancel.clone();
        move || {
            // The answer first: whoever is nudged finds it.
            drop(answer.send(wait_for(cancel.run_until_cancelled(wish.into_future()))));
            drop(nudge.send(Event::Nudge));
        }
    });
    let asking = asking.map_err(|error| no_thread(&error))?;
    let began = watchdog::now();
    let mut progress = (!wait.is_zero()).then(|| Progress::of_waiting(task.resource.to_string(), wait));
    loop {
        let event = events.recv_timeout(LOOK);
        if let Some(progress) = &mut progress {
            progress.at(Duration::from_nanos(watchdog::now().saturating_sub(began)).as_secs());
        }
        match event {
            // Also when the answer is there: nothing is started for somebody who wants the end.
            Ok(Event::Signal(signal)) if signals::asks_for_the_end(signal) => {
                cancel.cancel();
                let _ = asking.join();
                if let Ok(Some(Ok(lease))) = answered.try_recv() {
                    let _ = wait_for(lease.release());
                }
                let exit = Exit::Command(128_u8.saturating_add(u8::try_from(signal).unwrap_or(0)));
                let why = "interrupted while waiting; nothing was started".to_owned();
                return Err(NotStarted { exit, why, holder: None });
            }
            Ok(_) | Err(RecvTimeoutError::Timeout) => {
                if let Ok(Some(answer)) = answered.try_recv() {
                    return Ok(answer);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(Err(AcquireError::Closed)),
        }
    }
}

/// How often somebody who watches sees how long it takes already.
const LOOK: Duration = Duration::from_millis(200);

fn holder(task: &Task, error: &AcquireError) -> Option<Holder> {
    match error {
        AcquireError::Refused { resource, refusal } => {
            Holder::refusing(resource, refusal, time_of(task.tenure.authority()), &task.owner)
        }
        _ => None,
    }
}

fn not_acquired(task: &Task, error: &AcquireError, waited: Duration) -> NotStarted {
    let exit = match error {
        AcquireError::Refused { refusal: Refusal::TtlTooLong { .. } | Refusal::NoAdapter { .. }, .. }
        | AcquireError::NotExcusable { .. }
        | AcquireError::Name(_)
        | AcquireError::Timing(_) => Exit::Usage,
        AcquireError::Refused { .. } | AcquireError::HeldHere { .. } | AcquireError::LostAtOnce { .. } => {
            Exit::NotAcquired
        }
        AcquireError::Unanswered { .. } | AcquireError::Sink { .. } => Exit::Unavailable,
        AcquireError::Clock(_) | AcquireError::Entropy(_) | AcquireError::Closed => Exit::Failure,
    };
    let holder = holder(task, error);
    let mut why = holder.as_ref().map_or_else(|| error.to_string(), Holder::refusal);
    if holder.is_some() && !waited.is_zero() {
        why = format!("not acquired within {}: {why}", Span(waited));
    }
    NotStarted { exit, why, holder: holder.map(Box::new) }
}

/// Connects, but not for ever: a store on a device that hangs does not answer at all.
fn connect(setup: &Setup, owner: &Who, wait: Duration) -> Result<Tenure, NotStarted> {
    let bound = wait.max(Duration::from_secs(10));
    let (tell, told) = channel();
    let (setup, owner) = (setup.clone(), owner.clone());
    let url = setup.shown_url();
    thread::Builder::new()
        .name("connect".into())
        .spawn(move || drop(tell.send(setup.connect(&owner))))
        .map_err(|error| no_thread(&error))?;
    match told.recv_timeout(bound) {
        Ok(connected) => Ok(connected?),
        Err(_) => {
            Err(Problem::unavailable(format_args!("the authority at {url} did not answer within {}", Span(bound)))
                .into())
        }
    }
}

fn no_thread(error: &std::io::Error) -> Problem {
    Problem::failure(format_args!("the system refuses a thread ({error}): raise the limit on processes"))
}

/// Whether there is such a program, looked for as the system does. It may be refused still when it is started.
fn is_there(program: &Path) -> bool {
    if program.components().count() > 1 || program.is_absolute() {
        return program.exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/bin:/usr/bin".into());
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

impl From<Problem> for NotStarted {
    fn from(problem: Problem) -> Self {
        Self { exit: problem.exit(), why: problem.to_string(), holder: None }
    }
}
