//! No drawer for what has no name: a module that is called after nothing ends up holding everything.

use super::{File, Finding, source};
use crate::workspace::Package;

const DRAWERS: &[&str] = &["common", "util", "utils", "misc", "helpers"];

/// Finds packages, folders, files and modules with such a name.
#[must_use]
pub fn check(files: &[File], packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages.iter().filter(|package| package.name.split(['-', '_']).any(is_drawer)) {
        findings.push(Finding::new(format!("{}/Cargo.toml", package.dir), "name the package after what it holds"));
    }
    for file in files.iter().filter(|file| file.is_rust()) {
        if file.path.split('/').any(|part| is_drawer(part.trim_end_matches(".rs"))) {
            findings.push(Finding::new(&file.path, "name the file or folder after what it holds"));
        }
        let mods =
            source::declared(&file.text).into_iter().filter(|item| item.keyword == "mod" && is_drawer(&item.name));
        findings.extend(mods.map(|item| Finding::on_line(file, item.line, "name the module after what it holds")));
    }
    findings
}

fn is_drawer(name: &str) -> bool {
    DRAWERS.contains(&name)
}

#[cfg(test)]
mod tests;
