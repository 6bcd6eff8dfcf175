//! The incident of a worker that was stopped, overtaken, and woken, with real processes and real files.

mod actor;
mod check;
mod ground;
mod incident;
mod receipts;
mod receiver;
mod report;
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
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// Compare a fresh run with a stored result: the form that `--json` prints, or the form published with the
    /// experiment that this incident comes from. Exit status 1 when they differ. In real time deadlines are left out.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Leave the databases in this new or empty folder, to look at.
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
            DemoError::NotEmpty { .. } | DemoError::NoResult { .. } => Self::usage(error),
            DemoError::Store(error) => error.into(),
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
        let report = match &self.keep {
            Some(dir) => play_in(&ground, &empty_folder(dir)?)?,
            None => {
                let dir = tempfile::tempdir().map_err(|error| DemoError::File { path: std::env::temp_dir(), error })?;
                play_in(&ground, dir.path())?
            }
        };
        let mut out = Out::new();
        if self.json {
            out.line(&report::one_line(&report.summary()))?;
        } else {
            out.write(&report.text())?;
            if let Some(dir) = &self.keep {
                out.line(&format!("The databases are in {}.", dir.display()))?;
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
type Scene = (&'static str, Kind, fn(&Ground, &Path, Kind) -> Result<Incident, DemoError>);

const SCENES: [Scene; 5] = [
    ("takeover", Kind::None, incident::takeover),
    ("takeover", Kind::HighWater, incident::takeover),
    ("takeover", Kind::Sealed, incident::takeover),
    ("gap", Kind::HighWater, incident::gap),
    ("gap", Kind::Sealed, incident::gap),
];

fn play_in(ground: &Ground, dir: &Path) -> Result<Report, DemoError> {
    let shared = match ground {
        Ground::Own => {
            let played =
                SCENES.into_iter().map(|(what, kind, play)| play(ground, dir, kind).map(|incident| (what, incident)));
            return Ok(report(played.collect::<Result<_, DemoError>>()?, None));
        }
        Ground::Shared(shared) => shared,
    };
    // In real time each waits for a deadline: all at once, then.
    let played: Result<Vec<_>, DemoError> = std::thread::scope(|scope| {
        let begun = SCENES
            .map(|(what, kind, play)| scope.spawn(move || play(ground, dir, kind).map(|incident| (what, incident))));
        let ended = begun.map(|scene| scene.join().unwrap_or(Err(DemoError::Thread)));
        ended.into_iter().collect()
    });
    let scenes = SCENES.map(|(what, kind, _)| (incident::scene(what, kind), kind));
    let left = shared.clear(&scenes, dir);
    let (name, shown) = (shared.name(), shared.shown());
    if left.is_empty() {
        say("demo", format_args!("what it held at {shown} is retired ({name}/…); the history keeps its rows"));
    } else {
        say("demo", format_args!("left behind at {shown}: {}; see tenure retire", left.join(", ")));
    }
    Ok(report(played?, Some(shown)))
}

fn report(played: Vec<(&'static str, Incident)>, shared: Option<String>) -> Report {
    let (takeover, gap): (Vec<_>, Vec<_>) = played.into_iter().partition(|(what, _)| *what == "takeover");
    let incidents = |scenes: Vec<(&str, Incident)>| scenes.into_iter().map(|(_, incident)| incident).collect();
    Report { takeover: incidents(takeover), gap: incidents(gap), shared }
}

fn empty_folder(dir: &Path) -> Result<PathBuf, DemoError> {
    let unusable = |error| DemoError::File { path: dir.to_owned(), error };
    std::fs::create_dir_all(dir).map_err(unusable)?;
    if std::fs::read_dir(dir).map_err(unusable)?.next().is_some() {
        return Err(DemoError::NotEmpty { path: dir.to_owned() });
    }
    dir.canonicalize().map_err(unusable)
}
