//! The sixteen scenarios of a lost receipt: a worker asks a receiver for a ticket, and one of the two ends itself at a named
//! point. Then the worker is started again, and what it finds and does is counted.

mod case;
mod count;
mod player;
mod receiver;
mod sender;

pub(crate) use player::Args as PlayerArgs;

use super::check::Stored;
use super::{DemoError, empty_folder};
use crate::exit::Exit;
use crate::problem::Problem;
use crate::screen::{Out, say};
use case::{CASES, Case, Ended};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The status with which a process ends itself at its point.
const FAULT: i32 = 73;

/// So many scenarios are played at once: most of their time they wait for the disk.
const AT_ONCE: usize = 4;

/// Show the sixteen scenarios of a lost receipt: the work was done, and nobody was told.
///
/// A worker asks a receiver for a ticket; one of the two ends itself at a named point, and the worker is started again.
/// Real processes, real SQLite files, the ledger of calls in the worker's own database. Three of the scenarios break a
/// rule on purpose, and show what comes of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenure demo receipts
  tenure demo receipts --json | jq .cases.after_external_effect")]
pub(crate) struct Args {
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
    /// Compare a fresh run with a stored result, in the form that `--json` prints. Exit status 1 when they differ.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Leave the databases in this new or empty folder, to look at.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let stored = self.check.as_deref().map(|path| Stored::read_with(path, "cases")).transpose()?;
        let played = match &self.keep {
            Some(dir) => play_in(&empty_folder(dir)?)?,
            None => {
                let dir = tempfile::tempdir().map_err(|error| DemoError::File { path: std::env::temp_dir(), error })?;
                play_in(dir.path())?
            }
        };
        let mut out = Out::new();
        if self.json {
            out.json(&whole(&played))?;
        } else {
            out.write(&text(&played))?;
            if let Some(dir) = &self.keep {
                out.line(&format!("The databases are in {}.", dir.display()))?;
            }
        }
        let Some(stored) = stored else { return Ok(Exit::Success) };
        // How the time of the experiment is described is prose.
        let differences = stored.compared_with(&whole(&played), Some("clock"));
        for difference in &differences {
            say("demo", format_args!("differs: {difference}"));
        }
        if differences.is_empty() {
            say("demo", format_args!("equal to {}: all {} cases", stored.path().display(), played.len()));
        }
        Ok(if differences.is_empty() { Exit::Success } else { Exit::Different })
    }
}

type Played = Vec<(&'static str, Ended)>;

fn play_in(dir: &Path) -> Result<Played, DemoError> {
    let mut played = Vec::new();
    for some in CASES.chunks(AT_ONCE) {
        let ended: Vec<_> = std::thread::scope(|scope| {
            let begun: Vec<_> = some.iter().map(|case| scope.spawn(|| play(case, dir))).collect();
            begun.into_iter().map(|case| case.join().unwrap_or(Err(DemoError::Thread))).collect()
        });
        for ended in ended {
            played.push(ended?);
        }
    }
    Ok(played)
}

fn play(case: &Case, dir: &Path) -> Result<(&'static str, Ended), DemoError> {
    let folder = dir.join(case.name);
    std::fs::create_dir(&folder).map_err(|error| DemoError::File { path: folder.clone(), error })?;
    Ok((case.name, case.play(&folder)?))
}

/// The object that `--json` prints, which is the form in which the experiment was published.
fn whole(played: &Played) -> Value {
    let cases: Map<String, Value> = played.iter().map(|(name, ended)| ((*name).to_owned(), ended.json())).collect();
    json!({ "exit_code_of_injected_faults": FAULT, "cases": cases })
}

/// What a person reads.
fn text(played: &Played) -> String {
    let mut text = String::from(
        "A worker asks a receiver for a ticket. It writes the call down before it makes it, and one of the two ends itself at\n\
         the point that the scenario is named after; then the worker is started again under the next epoch. Real processes,\n\
         real SQLite files; time is a clock in a file: leases of 10 ticks, the second start at tick 11.\n\n  \
         scenario                      before the second start     after it                    tickets\n",
    );
    for (name, ended) in played {
        let [before, after, tickets] = ended.columns();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {name:<29} {before:<27} {after:<27} {tickets}");
    }
    text += "\n\
        Proved here:  where the receiver keeps receipts in the transaction of its effect, each call ends in one ticket,\n\
        \x20             wherever somebody falls. A look-up under the new token, after the seal, finds out what became of it.\n\
        Not proved:   that a call to a system without receipts is made exactly once. It stays unknown, and is not made again;\n\
        \x20             whoever does it all the same gets two tickets, as the counterexamples show.\n";
    text
}
