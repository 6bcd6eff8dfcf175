//! What the manifest of each package must say.

use super::{File, Finding};
use crate::workspace::Package;

/// The lints of the workspace, a description, and at most one binary of integration tests: each binary more is linked
/// again at every change.
#[must_use]
pub fn check(files: &[File], packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let path = format!("{}/Cargo.toml", package.dir);
        if package.description.trim().is_empty() {
            findings.push(Finding::new(&path, "has no `description`"));
        }
        if package.test_binaries.len() > 1 {
            let names = package.test_binaries.join(", ");
            let what = format!("has several integration test binaries ({names}): make them modules of one");
            findings.push(Finding::new(&path, what));
        }
        let manifest = files.iter().find(|file| file.path == path);
        if !manifest.is_some_and(|file| has_workspace_lints(&file.text)) {
            findings.push(Finding::new(&path, "lacks `[lints] workspace = true` (or git does not track it)"));
        }
    }
    findings
}

fn has_workspace_lints(manifest: &str) -> bool {
    let mut section = "";
    manifest.lines().map(str::trim).any(|line| {
        if line.starts_with('[') {
            section = line;
        }
        (section == "[lints]" && line == "workspace = true") || line == "lints.workspace = true"
    })
}

#[cfg(test)]
mod tests;
