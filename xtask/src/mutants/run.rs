//! Runs mutants: builds, watches, and says who noticed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use super::binaries::{Binaries, Ended};
use super::copy::Copy;
use super::{Mutant, Test};
use crate::runner::timed;

/// The folder of the copy, of what is built in it and of what broken tests said.
const FOLDER: &str = "target/break";

/// What came of a mutant and one of its tests.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Noticed,
    /// The test passed all the same.
    Missed,
    /// The suite failed, but at another clause than the named one.
    Elsewhere,
    /// The test never ended, which says nothing.
    Hung,
    /// The mutant is wrong: it does not compile or does not fit.
    Broken(String),
}

/// Where each test is: by its package and by what is run for it, the binary and its full name there.
type Found = BTreeMap<(String, &'static str), (String, String)>;

/// Applies the mutants one by one and prints a table. `true` when each of their tests noticed.
///
/// # Errors
///
/// Nothing could be shown: the tree could not be copied or built, or a test fails with nothing broken.
pub fn run(root: &Path, mutants: &[Mutant]) -> Result<bool, String> {
    let copy = Copy::of(root, root.join(FOLDER).join("tree")).map_err(|error| format!("copying the tree: {error}"))?;
    let found = unbroken(&copy, mutants)?;
    let mut rows = Vec::new();
    for (number, mutant) in mutants.iter().enumerate() {
        eprintln!("breaking {}: {}", mutant.id, mutant.what);
        let (outcomes, span) = timed(|| one(&copy, number, mutant, &found));
        for (test, outcome) in outcomes {
            eprintln!("  {} {}", outcome.says(), test.name);
            rows.push((mutant, test, outcome, span.as_secs()));
        }
    }
    rows.sort_by_key(|(mutant, ..)| place(mutant.id));
    println!("\n{}", table(&rows));
    let noticed = rows.iter().filter(|(_, _, outcome, _)| *outcome == Outcome::Noticed).count();
    let ids: BTreeSet<_> = mutants.iter().map(|mutant| mutant.id).collect();
    println!("{} guarantees, {} mutants; {noticed} of {} tests noticed", ids.len(), mutants.len(), rows.len());
    Ok(noticed == rows.len())
}

/// Runs every test with nothing broken: a test that fails anyway, or is not there, shows nothing.
fn unbroken(copy: &Copy, mutants: &[Mutant]) -> Result<Found, String> {
    let tests: BTreeSet<(String, &'static str)> =
        mutants.iter().flat_map(|mutant| mutant.tests).map(|test| (test.package(), entry(test))).collect();
    let packages: BTreeSet<&String> = tests.iter().map(|(package, _)| package).collect();
    let mut found = Found::new();
    for package in packages {
        eprintln!("building {package} with nothing broken");
        let binaries = Binaries::build(copy.dir(), package, None)?;
        for (_, test) in tests.iter().filter(|(of, _)| of == package) {
            let (target, name) = binaries.find(test)?;
            match binaries.run(&target, &name)? {
                Ended::Passed => drop(found.insert((package.clone(), *test), (target, name))),
                Ended::Failed(said) => return Err(format!("{said}\n{test} of {package} fails with nothing broken")),
                Ended::Hung => return Err(format!("{test} of {package} never ends with nothing broken")),
            }
        }
    }
    Ok(found)
}

/// The test to run: the suite's, or the test itself without its crate.
fn entry(test: &Test) -> &'static str {
    test.run_by.unwrap_or_else(|| path(test))
}

/// The name without its crate.
fn path(test: &Test) -> &'static str {
    test.name.split_once("::").map_or(test.name, |(_, path)| path)
}

fn one(copy: &Copy, number: usize, mutant: &Mutant, found: &Found) -> Vec<(&'static Test, Outcome)> {
    let all = |what: &str| mutant.tests.iter().map(|test| (test, Outcome::Broken(what.to_owned()))).collect::<Vec<_>>();
    let broken = copy.read(mutant.file).map_err(|error| error.to_string()).and_then(|text| mutant.applied(&text));
    let broken = match broken.and_then(|text| copy.with(mutant.file, &text).map_err(|error| error.to_string())) {
        Ok(broken) => broken,
        Err(what) => return all(&what),
    };
    let packages: BTreeSet<String> = mutant.tests.iter().map(Test::package).collect();
    let mut outcomes = Vec::new();
    for package in packages {
        let tests = || mutant.tests.iter().filter(|test| test.package() == package);
        let place = |test: &Test| found.get(&(package.clone(), entry(test)));
        let targets = tests().filter_map(place).map(|(target, _)| target.as_str()).collect();
        let binaries = Binaries::build(copy.dir(), &package, Some(&targets));
        for test in tests() {
            let outcome = match (&binaries, place(test)) {
                (Ok(binaries), Some((target, name))) => match binaries.run(target, name) {
                    Ok(ended) => judge(test, ended, &log(copy, number, mutant, test)),
                    Err(what) => Outcome::Broken(what),
                },
                (Err(what), _) => Outcome::Broken(format!("does not compile:\n{what}")),
                (_, None) => Outcome::Broken("its test was not run with nothing broken".to_owned()),
            };
            outcomes.push((test, outcome));
        }
    }
    drop(broken);
    outcomes
}

fn judge(test: &Test, ended: Ended, log: &Path) -> Outcome {
    match ended {
        Ended::Passed => Outcome::Missed,
        Ended::Hung => Outcome::Hung,
        Ended::Failed(said) => {
            // For whoever wants to read how it was noticed; the verdict does not depend on it.
            let _ = std::fs::write(log, &said);
            match test.run_by {
                Some(_) if !said.contains(test.name) => Outcome::Elsewhere,
                _ => Outcome::Noticed,
            }
        }
    }
}

/// Where the words of a failing test are kept.
fn log(copy: &Copy, number: usize, mutant: &Mutant, test: &Test) -> std::path::PathBuf {
    let name = test.name.rsplit("::").next().unwrap_or_default();
    copy.dir().with_file_name(format!("{:02}-{}-{name}.txt", number + 1, mutant.id))
}

impl Outcome {
    fn says(&self) -> &str {
        match self {
            Self::Noticed => "noticed",
            Self::Missed => "NOT noticed",
            Self::Elsewhere => "NOT noticed by this clause, by another",
            Self::Hung => "NOT noticed, never ended",
            Self::Broken(what) => what,
        }
    }
}

/// The order of GUARANTEES.md.
fn place(id: &str) -> (Option<usize>, u32) {
    let (letter, number) = id.split_at_checked(1).unwrap_or_default();
    ("ILVCRPO".find(letter), number.parse().unwrap_or_default())
}

fn table(rows: &[(&Mutant, &Test, Outcome, u64)]) -> String {
    let mut table = String::from("| id | what was broken | test | | seconds |\n|---|---|---|---|---|\n");
    for (mutant, test, outcome, seconds) in rows {
        let says = outcome.says().lines().next().unwrap_or_default();
        let _ = writeln!(table, "| {} | {} | `{}` | {says} | {seconds} |", mutant.id, mutant.what, test.name);
    }
    table
}

#[cfg(test)]
mod tests;
