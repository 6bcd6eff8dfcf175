//! A file has one noun and stays short.

use super::{File, Finding, source};

/// Lines of code that a file may have; blank lines and comments do not count.
const CODE_LINES_MAX: usize = 500;
/// The same for a file of tests.
const TEST_LINES_MAX: usize = 700;

/// Files that are longer than they should be, with their length. The list may only shrink: a new line in it is a
/// decision, and a file in it may not grow.
pub const RATCHET: &[(&str, usize)] = &[];

/// Finds files that are too long, and lines of `ratchet` that have become too generous.
#[must_use]
pub fn check(files: &[File], ratchet: &[(&str, usize)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let lines = source::split(&file.text).code.lines().filter(|line| !line.trim().is_empty()).count();
        let max = if file.is_test() { TEST_LINES_MAX } else { CODE_LINES_MAX };
        match ratchet.iter().find(|(path, _)| *path == file.path) {
            None if lines > max => {
                findings
                    .push(Finding::new(&file.path, format!("{lines} lines of code, at most {max}: split it by noun")));
            }
            Some((_, listed)) if lines > *listed => {
                findings
                    .push(Finding::new(&file.path, format!("grew from {listed} to {lines} lines of code: split it")));
            }
            Some((_, listed)) if lines < *listed => {
                findings.push(Finding::new(
                    &file.path,
                    format!("has {lines} lines of code: lower {listed} in the ratchet"),
                ));
            }
            _ => {}
        }
    }
    for (path, _) in ratchet {
        if !files.iter().any(|file| file.path == *path) {
            findings.push(Finding::new(*path, "is in the ratchet and not in the tree: remove its line"));
        }
    }
    findings
}

#[cfg(test)]
mod tests;
