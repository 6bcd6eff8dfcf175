//! Each guarantee, broken on purpose: `cargo xtask break` applies one mutant after the other to a copy of the tree and
//! watches whether the tests that GUARANTEES.md names notice it.
//!
//! A mutant that no longer fits the tree is a finding of [`check`], which `cargo xtask test` applies.

mod binaries;
mod command_line;
mod copy;
mod core;
mod holder;
mod ledger;
mod objects;
pub mod run;
mod signatures;
mod sinks;
mod stores;
mod vectors;

use crate::tidy::guarantees::{self, DOCUMENT};
use crate::tidy::{File, Finding};

/// One way to break one guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mutant {
    /// The guarantee, as in GUARANTEES.md.
    pub id: &'static str,
    /// What is broken, in a few words.
    pub what: &'static str,
    /// The file, from the root.
    pub file: &'static str,
    /// The text to replace; it stands once in the file.
    pub find: &'static str,
    /// What breaks the guarantee and still compiles.
    pub replace: &'static str,
    /// Who must notice.
    pub tests: &'static [Test],
}

/// A test that must notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Test {
    /// As GUARANTEES.md names it.
    pub name: &'static str,
    /// The test that runs it, `path::to::test_name`, when it is a clause of a suite. The clause must then be seen in what
    /// that test says when it fails.
    pub run_by: Option<&'static str>,
}

impl Test {
    const fn own(name: &'static str) -> Self {
        Self { name, run_by: None }
    }

    const fn clause(name: &'static str, run_by: &'static str) -> Self {
        Self { name, run_by: Some(run_by) }
    }

    /// The package whose test it is: all are named `crate_name::path`.
    #[must_use]
    pub fn package(&self) -> String {
        self.name.split("::").next().unwrap_or_default().replace('_', "-")
    }
}

/// All mutants, in an order in which little has to be built anew: by the package that is changed.
#[must_use]
pub fn all() -> Vec<Mutant> {
    [
        core::MUTANTS,
        ledger::MUTANTS,
        signatures::MUTANTS,
        sinks::MUTANTS,
        objects::MUTANTS,
        stores::MUTANTS,
        holder::MUTANTS,
        command_line::MUTANTS,
        vectors::MUTANTS,
    ]
    .concat()
}

/// Finds guarantees that no mutant breaks, and mutants that do not fit the tree or name tests that the guarantee does not.
#[must_use]
pub fn check(files: &[File], mutants: &[Mutant]) -> Vec<Finding> {
    let Some(document) = files.iter().find(|file| file.path == DOCUMENT) else {
        return vec![Finding::new(DOCUMENT, "is missing (git must track it)")];
    };
    let rows = guarantees::promises(&document.text);
    let mut findings = Vec::new();
    for row in rows.iter().filter(|row| !mutants.iter().any(|mutant| mutant.id == row.id)) {
        findings.push(Finding::on_line(document, row.line, format!("{} has no mutant in xtask/src/mutants", row.id)));
    }
    for mutant in mutants {
        let say =
            |what: String| Finding::new(mutant.file, format!("the mutant of {} ({}) {what}", mutant.id, mutant.what));
        match files.iter().find(|file| file.path == mutant.file) {
            None => findings.push(say("changes a file that is not there".to_owned())),
            Some(file) => findings.extend(mutant.applied(&file.text).err().map(say)),
        }
        let Some(row) = rows.iter().find(|row| row.id == mutant.id) else {
            findings.push(say(format!("breaks no guarantee of {DOCUMENT}")));
            continue;
        };
        if mutant.tests.is_empty() {
            findings.push(say("names no test".to_owned()));
        }
        for test in mutant.tests.iter().filter(|test| !row.tests.contains(&test.name)) {
            findings.push(say(format!("names `{}`, which {DOCUMENT} does not name for {}", test.name, row.id)));
        }
    }
    findings
}

impl Mutant {
    /// The text of the file, broken.
    ///
    /// # Errors
    ///
    /// The mutant does not fit the text; the error says how.
    pub fn applied(&self, text: &str) -> Result<String, String> {
        match text.matches(self.find).count() {
            1 if self.find != self.replace => Ok(text.replacen(self.find, self.replace, 1)),
            1 => Err("changes nothing".to_owned()),
            count => Err(format!("wants a text that stands there {count} times, not once:\n{}", self.find)),
        }
    }
}

#[cfg(test)]
mod tests;
