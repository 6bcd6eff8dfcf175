//! Nothing unfinished is in the tree: no test that is switched off, no placeholder, no note to do it later.

use super::{File, Finding};

/// Texts that mean "not finished". They are put together here so that this file does not hold them.
const MARKS: &[&str] = &[
    concat!("#[", "ignore"),
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("dbg", "!("),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Finds the marks, as whole words, in any file but the lock file, whose checksums may spell anything.
#[must_use]
pub fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path != "Cargo.lock") {
        for (line, text) in file.text.lines().enumerate() {
            for mark in MARKS.iter().filter(|mark| stands_alone(text, mark)) {
                findings.push(Finding::on_line(file, line, format!("`{mark}`: finish it, or leave it out")));
            }
        }
    }
    findings
}

fn stands_alone(text: &str, mark: &str) -> bool {
    let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(mark).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + mark.len()..].chars().next());
        !word(before) && (!mark.ends_with(char::is_alphanumeric) || !word(after))
    })
}

#[cfg(test)]
mod tests;
