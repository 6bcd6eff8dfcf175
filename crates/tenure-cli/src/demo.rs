//! The incident of a worker that was stopped, overtaken, and woken, with real processes and real files.

mod actor;
mod check;
mod incident;
mod receiver;
mod report;
mod timeline;
mod worker;

pub(crate) use worker::Args as WorkerArgs;

use crate::exit::Exit;
use crate::problem::Problem;
use crate::screen::{Out, say};
use receiver::Kind;
use report::Report;
use std::io;
use std::path::{Path, PathBuf};
use tenure::authority::{ClockError, StoreError};

/// What is asked of the demo.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// Compare a fresh run with a stored result: the form that `--json` prints, or the form published with the
    /// experiment that this incident comes from. Exit status 1 when they differ.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Leave the databases in this new or empty folder, to look at.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

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
}

impl From<DemoError> for Problem {
    fn from(error: DemoError) -> Self {
        match error {
            DemoError::NotEmpty { .. } | DemoError::NoResult { .. } => Self::usage(error),
            _ => Self::failure(error),
        }
    }
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        // Read first: a file that cannot be compared with costs no run.
        let stored = self.check.as_deref().map(check::Stored::read).transpose()?;
        let report = match &self.keep {
            Some(dir) => play_in(&empty_folder(dir)?)?,
            None => {
                let dir = tempfile::tempdir().map_err(|error| DemoError::File { path: std::env::temp_dir(), error })?;
                play_in(dir.path())?
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
            say("demo", format_args!("equal to {}: events and final rows", stored.path().display()));
        }
        Ok(if differences.is_empty() { Exit::Success } else { Exit::Different })
    }
}

fn play_in(dir: &Path) -> Result<Report, DemoError> {
    let takeover = [Kind::None, Kind::HighWater, Kind::Sealed].map(|kind| incident::takeover(dir, kind));
    let gap = [Kind::HighWater, Kind::Sealed].map(|kind| incident::gap(dir, kind));
    Ok(Report {
        takeover: takeover.into_iter().collect::<Result<_, _>>()?,
        gap: gap.into_iter().collect::<Result<_, _>>()?,
    })
}

fn empty_folder(dir: &Path) -> Result<PathBuf, DemoError> {
    let unusable = |error| DemoError::File { path: dir.to_owned(), error };
    std::fs::create_dir_all(dir).map_err(unusable)?;
    if std::fs::read_dir(dir).map_err(unusable)?.next().is_some() {
        return Err(DemoError::NotEmpty { path: dir.to_owned() });
    }
    dir.canonicalize().map_err(unusable)
}
