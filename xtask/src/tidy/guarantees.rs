//! Each guarantee names a test that exists.
//!
//! `GUARANTEES.md` holds tables. A table whose last column is headed "test" or "tests" promises: each of its rows
//! begins with an id and ends with one or more tests in backticks, `crate_name::path::to::test_name`. The path is the
//! folders, files and modules under the crate's `src/` or `tests/`.

use super::{File, Finding, source};
use crate::workspace::Package;

/// The document.
pub const DOCUMENT: &str = "GUARANTEES.md";

/// The ids that must be there: safety of the fence (I), beside an authority in its database (H), of operations (L), progress (V), what `tenure run` (R), `tenure
/// probe` (P), an operator's verbs (O), the stores (S), signed grants (G) and the application vector-sync (A) promise. Clock assumptions (C) are numbered there and nowhere else.
const REQUIRED: &[(char, u8)] =
    &[('I', 11), ('H', 3), ('L', 6), ('V', 9), ('C', 1), ('R', 5), ('P', 2), ('O', 6), ('S', 5), ('G', 3), ('A', 10)];

/// Finds guarantees that are missing, that name no test, or whose test does not exist.
#[must_use]
pub fn check(files: &[File], packages: &[Package]) -> Vec<Finding> {
    let Some(document) = files.iter().find(|file| file.path == DOCUMENT) else {
        return vec![Finding::new(DOCUMENT, "is missing (git must track it)")];
    };
    let rows = promises(&document.text);
    let mut findings = Vec::new();
    for id in REQUIRED.iter().flat_map(|&(letter, last)| (1..=last).map(move |n| format!("{letter}{n}"))) {
        if !rows.iter().any(|row| row.id == id) {
            findings.push(Finding::new(DOCUMENT, format!("{id} has no row in a table that ends with its tests")));
        }
    }
    for row in &rows {
        if row.tests.is_empty() {
            findings.push(Finding::on_line(document, row.line, format!("{} names no test", row.id)));
        }
        for test in &row.tests {
            if let Err(why) = find(test, files, packages) {
                findings.push(Finding::on_line(document, row.line, format!("{}: `{test}`: {why}", row.id)));
            }
        }
    }
    findings
}

/// A promise of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    /// The line, from 0.
    pub(crate) line: usize,
    /// The guarantee.
    pub(crate) id: &'a str,
    /// The tests that hold it.
    pub(crate) tests: Vec<&'a str>,
}

/// The promises, in the order of the document.
pub(crate) fn promises(text: &str) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    // Whether the table that the line stands in promises; `None` outside of tables.
    let mut promising = None;
    for (line, text) in text.lines().enumerate() {
        let Some(cells) = cells(text) else {
            promising = None;
            continue;
        };
        let (Some(first), Some(last)) = (cells.first(), cells.last()) else { continue };
        match promising {
            None => promising = Some(matches!(last.to_lowercase().as_str(), "test" | "tests")),
            Some(true) if !first.starts_with(['-', ':']) => {
                let id = first.trim_matches(['*', '`']);
                rows.push(Row { line, id, tests: last.split('`').skip(1).step_by(2).collect() });
            }
            Some(_) => {}
        }
    }
    rows
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

fn find(test: &str, files: &[File], packages: &[Package]) -> Result<(), String> {
    let parts: Vec<&str> = test.split("::").collect();
    let [krate, modules @ .., name] = parts.as_slice() else {
        return Err("write it as `crate_name::path::to::test_name`".to_owned());
    };
    let package = packages
        .iter()
        .find(|package| package.name.replace('-', "_") == *krate)
        .ok_or_else(|| format!("there is no crate {krate}"))?;
    let folder = format!("{}/", package.dir);
    let sources = files.iter().filter(|file| file.is_rust() && file.path.starts_with(&folder));
    // A look at the text first: taking every file apart for every test takes seconds.
    let sources = sources.filter(|file| file.text.contains(*name));
    let mut elsewhere = None;
    for file in sources {
        let items = source::declared(&file.text);
        let Some(item) = items.iter().find(|item| item.keyword == "fn" && item.name == *name) else { continue };
        let inside = |module: &&str| {
            file.path.split('/').any(|part| part.trim_end_matches(".rs") == *module)
                || items.iter().any(|item| item.keyword == "mod" && item.name == **module)
        };
        if !modules.iter().all(inside) {
            elsewhere = Some(file.path.as_str());
        } else if is_run(file, item.line) {
            return Ok(());
        } else {
            return Err(format!("the function in {} is no test", file.path));
        }
    }
    Err(elsewhere.map_or("there is no such function".to_owned(), |path| format!("the function is in {path}")))
}

/// Whether tests run the function on this line: it has an attribute that says so, or it belongs to a conformance suite,
/// whose functions are called for every store and sink.
fn is_run(file: &File, line: usize) -> bool {
    let code = source::split(&file.text).code;
    let before: Vec<&str> = code.lines().take(line).collect();
    // Attributes and comments stand right above the function; comments are blank lines by now.
    let attributes =
        before.iter().rev().map(|line| line.trim()).take_while(|line| line.is_empty() || line.starts_with('#'));
    attributes.into_iter().any(|line| line.contains("test")) || file.path.contains("conformance")
}

#[cfg(test)]
mod tests;
