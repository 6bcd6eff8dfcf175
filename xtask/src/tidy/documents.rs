//! The documents that a reader looks for at the root.

use super::{File, Finding};

/// Their names.
pub const REQUIRED: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "GUARANTEES.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];

/// Finds those that are missing or empty.
#[must_use]
pub fn check(files: &[File]) -> Vec<Finding> {
    let there = |name: &str| files.iter().any(|file| file.path == name && !file.text.trim().is_empty());
    REQUIRED
        .iter()
        .filter(|name| !there(name))
        .map(|name| Finding::new(*name, "is missing or empty (git must track it)"))
        .collect()
}

#[cfg(test)]
mod tests;
