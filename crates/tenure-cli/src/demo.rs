//! The incident of a worker that was stopped, overtaken, and woken, with real processes and real files.

mod actor;
mod check;
mod ground;
mod incident;
mod receipts;
mod receiver;
mod report;
mod shelf;
mod timeline;
mod worker;

pub(crate) use receipts::PlayerArgs;
pub(crate) use worker::Args as WorkerArgs;

use crate::access::named_authority;
use crate::exit::Exit;
use crate::problem::Problem;
use crate::screen::{Out, say};
use ground::{Ground, Shared};
use incident::Incident;
use receiver::Kind;
use report::Report;
use shelf::{Receivers, Shelf};
use std::io;
use std::path::{Path, PathBuf};
use tenure::authority::{ClockError, StoreError};

/// What is asked of the demo.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    other: Option<Other>,
    /// Play it on this authority, in real time and with a ttl of 2 s; without a URL, on the one that TENURE_AUTHORITY or
    /// ./tenure.toml names. It is not disturbed: all names begin with demo/, and are retired at the end.
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    authority: Option<String>,
    /// Where the documents are: sqlite, files, or the address of a PostgreSQL, Redis or S3 server. Nothing there is
    /// disturbed: what the demo makes bears its name, and is removed at the end.
    #[arg(
        long,
        value_name = "sqlite|files|URL",
        env = "TENURE_DEMO_SINK",
        hide_env_values = true,
        default_value = "sqlite"
    )]
    #[arg(hide_default_value = true)]
    sink: String,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// Compare a fresh run with a stored result: the form that `--json` prints, or the form published with the
    /// experiment that this incident comes from. Exit status 1 when they differ. In real time deadlines are left out.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Leave the databases in this new or empty folder, and what was made on a server, to look at.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// What else can be shown.
#[derive(Debug, clap::Subcommand)]
enum Other {
    Receipts(receipts::Args),
}

const AFTER_HELP: &str = "\
Examples:
  tenure demo
  tenure demo receipts
  tenure demo --sink files
  tenure demo --sink 'postgres://app@db1/shop'
  tenure demo --authority 'postgres://tenure@db1/jobs'
  TENURE_AUTHORITY='redis://:PASSWORD@cache1' tenure demo --authority";

/// Why the demo could not be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    #[error("{path} cannot be used: {error}", path = path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("{path} is not empty: name a new or an empty folder, so that nothing is overwritten", path = path.display())]
    NotEmpty { path: PathBuf },
    #[error("{path} holds no result to compare with: {why}", path = path.display())]
    NoResult { path: PathBuf, why: String },
    #[error("worker {name}: {why}")]
    Worker { name: String, why: String },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Clock(#[from] ClockError),
    #[error("the receiver's database: {0}")]
    Receiver(#[from] rusqlite::Error),
    #[error("the receiver's server: {0}")]
    Server(String),
    #[error("--sink names no place for the documents: {why}")]
    NoSink { why: String },
    #[error("{0}")]
    Sink(#[from] tenure::sink::SinkError),
    #[error("{0}")]
    Problem(#[from] Problem),
    #[error("a thread of the demo has ended before its time")]
    Thread,
}

impl From<DemoError> for Problem {
    fn from(error: DemoError) -> Self {
        match error {
            DemoError::NotEmpty { .. } | DemoError::NoResult { .. } | DemoError::NoSink { .. } => Self::usage(error),
            DemoError::Store(error) => error.into(),
            DemoError::Sink(error) => error.into(),
            DemoError::Problem(problem) => problem,
            _ => Self::failure(error),
        }
    }
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        if let Some(Other::Receipts(args)) = &self.other {
            return args.run();
        }
        // Read first: a file that cannot be compared with costs no run.
        let stored = self.check.as_deref().map(check::Stored::read).transpose()?;
        let ground = match &self.authority {
            Some(named) => Ground::Shared(Shared::open(&named_authority(named)?)?),
            None => Ground::Own,
        };
        // Not while the words are parsed: what is wrong with one would be shown with the password in it.
        let shelf: Shelf = self.sink.parse().map_err(|why| DemoError::NoSink { why })?;
        let receivers = Receivers::on(shelf)?;
        let stage = Stage { ground, receivers };
        let report = match &self.keep {
            Some(dir) => stage.play_in(&empty_folder(dir)?)?,
            None => {
                let dir = tempfile::tempdir().map_err(|error| DemoError::File { path: std::env::temp_dir(), error })?;
                let played = stage.play_in(dir.path());
                stage.clear_receivers(dir.path());
                played?
            }
        };
        let mut out = Out::new();
        if self.json {
            out.line(&report::one_line(&report.summary()))?;
        } else {
            out.write(&report.text())?;
            if let Some(dir) = &self.keep {
                out.line(&format!("The databases are in {}.", dir.display()))?;
                if let Some(there) = stage.receivers.there() {
                    out.line(&format!("The documents are {there}."))?;
                }
            }
        }
        let Some(stored) = stored else { return Ok(Exit::Success) };
        let differences = stored.differences(&report);
        for difference in &differences {
            say("demo", format_args!("differs: {difference}"));
        }
        if differences.is_empty() {
            let but = if report.shared.is_some() { ", but for the deadlines" } else { "" };
            say("demo", format_args!("equal to {}: events and final rows{but}", stored.path().display()));
        }
        Ok(if differences.is_empty() { Exit::Success } else { Exit::Different })
    }
}

/// One scene: A is overtaken before or after B has written.
type Scene = (&'static str, Kind, fn(&Stage, &Path, Kind) -> Result<Incident, DemoError>);

const SCENES: [Scene; 5] = [
    ("takeover", Kind::None, incident::takeover),
    ("takeover", Kind::HighWater, incident::takeover),
    ("takeover", Kind::Sealed, incident::takeover),
    ("gap", Kind::HighWater, incident::gap),
    ("gap", Kind::Sealed, incident::gap),
];

/// On which authority a run is played, and in front of which receivers.
#[derive(Debug)]
struct Stage {
    ground: Ground,
    receivers: Receivers,
}

impl Stage {
    fn play_in(&self, dir: &Path) -> Result<Report, DemoError> {
        let play = |(what, kind, play): Scene| play(self, dir, kind).map(|incident| (what, incident));
        let Ground::Shared(shared) = &self.ground else {
            return Ok(self.report(SCENES.into_iter().map(play).collect::<Result<_, DemoError>>()?, None));
        };
        // In real time each waits for a deadline: all at once, then.
        let played: Result<Vec<_>, DemoError> = std::thread::scope(|scope| {
            let begun = SCENES.map(|scene| scope.spawn(move || play(scene)));
            let ended = begun.map(|scene| scene.join().unwrap_or(Err(DemoError::Thread)));
            ended.into_iter().collect()
        });
        let left = SCENES.map(|(what, kind, _)| {
            let dir = dir.join(incident::scene(what, kind));
            shared.clear(&incident::scene(what, kind), &self.receivers.address(what, kind, &dir), kind)
        });
        let left: Vec<_> = left.into_iter().filter_map(Result::err).collect();
        let (name, shown) = (shared.name(), shared.shown());
        if left.is_empty() {
            say("demo", format_args!("what it held at {shown} is retired ({name}/…); the history keeps its rows"));
        } else {
            say("demo", format_args!("left behind at {shown}: {}; see tenure retire", left.join(", ")));
        }
        Ok(self.report(played?, Some(shown)))
    }

    fn report(&self, played: Vec<(&'static str, Incident)>, shared: Option<String>) -> Report {
        let (takeover, gap): (Vec<_>, Vec<_>) = played.into_iter().partition(|(what, _)| *what == "takeover");
        let incidents =
            |scenes: Vec<(&str, Incident)>| scenes.into_iter().map(|(_, incident)| incident).collect::<Vec<_>>();
        let (takeover, gap) = (incidents(takeover), incidents(gap));
        let may_lose = takeover.iter().chain(&gap).find_map(|incident| incident.may_lose);
        Report { takeover, gap, shared, documents: self.receivers.shown(), may_lose }
    }

    /// Removes what the receivers hold on a server. What is in the demo's folder goes with it.
    fn clear_receivers(&self, dir: &Path) {
        let Some(there) = self.receivers.there() else { return };
        let scenes = SCENES.map(|(what, kind, _)| (what, kind));
        let left = self.receivers.clear(&scenes, dir);
        if !left.is_empty() {
            say("demo", format_args!("left behind of {there}: {}", left.join(", ")));
        }
    }
}

fn empty_folder(dir: &Path) -> Result<PathBuf, DemoError> {
    let unusable = |error| DemoError::File { path: dir.to_owned(), error };
    std::fs::create_dir_all(dir).map_err(unusable)?;
    if std::fs::read_dir(dir).map_err(unusable)?.next().is_some() {
        return Err(DemoError::NotEmpty { path: dir.to_owned() });
    }
    dir.canonicalize().map_err(unusable)
}
