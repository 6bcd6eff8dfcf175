//! Runs steps one after the other: names, times, and at the first failure what to type.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::call::Call;
use crate::setup;
use crate::steps::{Step, Work};

/// How one step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It passed.
    Passed,
    /// Its tool is not here; the text is the command that installs it.
    LeftOut(String),
    /// It failed; the text says what to type, or what to get.
    Failed(String),
}

/// What a run did.
#[derive(Debug, Default)]
pub struct Report {
    /// The steps that were begun, with their time and end.
    pub lines: Vec<(&'static str, Duration, Ending)>,
    /// The steps that were not begun, because one before them failed.
    pub not_run: Vec<&'static str>,
}

impl Report {
    /// No step failed.
    #[must_use]
    pub fn passed(&self) -> bool {
        !self.lines.iter().any(|(_, _, ending)| matches!(ending, Ending::Failed(_)))
    }

    /// The table for the end of the run.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut out = String::from("step      result    time\n");
        for (name, time, ending) in &self.lines {
            let seconds = time.as_secs_f64();
            let result = match ending {
                Ending::Passed => "passed",
                Ending::LeftOut(_) => "left out",
                Ending::Failed(_) => "FAILED",
            };
            let _ = writeln!(out, "{name:<9} {result:<8} {seconds:>6.1} s");
        }
        for name in &self.not_run {
            let _ = writeln!(out, "{name:<9} not run");
        }
        for (name, _, ending) in &self.lines {
            match ending {
                Ending::Passed => {}
                Ending::LeftOut(install) => {
                    let _ = writeln!(out, "{name} was left out: its tool is not installed. To install it: {install}");
                }
                Ending::Failed(what) => {
                    let _ =
                        writeln!(out, "{name} failed. {what}\nThe whole step again: cargo xtask test --only {name}");
                }
            }
        }
        out
    }
}

/// Runs the steps in `root` and stops at the first that fails.
#[must_use]
pub fn run(steps: &[Step], root: &Path) -> Report {
    let mut report = Report::default();
    for step in steps {
        if !report.passed() {
            report.not_run.push(step.name);
            continue;
        }
        eprintln!("\n== {}: {}", step.name, step.what);
        let (ending, time) = timed(|| run_one(step, root));
        eprintln!("== {} took {:.1} s", step.name, time.as_secs_f64());
        report.lines.push((step.name, time, ending));
    }
    report
}

fn run_one(step: &Step, root: &Path) -> Ending {
    match &step.work {
        Work::SetUp => match setup::provide(&setup::needs(), setup::is_root(root), root) {
            Ok(()) => Ending::Passed,
            Err(missing) => Ending::Failed(missing.to_string()),
        },
        Work::Calls(calls) => run_calls(calls, root),
        Work::Optional { probe, install, .. } if !probe.succeeds(root) => Ending::LeftOut(install.clone()),
        Work::Optional { calls, .. } => run_calls(calls, root),
    }
}

fn run_calls(calls: &[Call], root: &Path) -> Ending {
    for call in calls {
        eprintln!("$ {call}");
        match call.run(root) {
            Ok(true) => {}
            Ok(false) => return Ending::Failed(format!("To repeat: {call}")),
            Err(error) => return Ending::Failed(format!("Could not be started ({error}): {call}")),
        }
    }
    Ending::Passed
}

#[expect(clippy::disallowed_methods, reason = "a stopwatch for a person; nothing is decided by it")]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let value = work();
    (value, begun.elapsed())
}

#[cfg(test)]
mod tests;
