//! The files that belong to the project.

use std::path::Path;
use std::process::{Command, Stdio};

/// One text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path from the root, with `/`.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl File {
    /// A file with this path and text.
    #[must_use]
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Whether it is Rust source.
    #[must_use]
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether it holds tests or benches and nothing else.
    #[must_use]
    pub fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.split('/').any(|part| part == "tests" || part == "benches")
    }
}

/// The text files that git tracks under `root`. Without git, as in a source archive, every text file that is neither
/// hidden nor built.
///
/// # Errors
///
/// A file or folder could not be read.
pub fn read(root: &Path) -> std::io::Result<Vec<File>> {
    let paths = match listed(root, &[]) {
        Some(paths) => paths,
        None => walk(root, "")?,
    };
    let mut files = Vec::new();
    for path in paths {
        let place = root.join(&path);
        // A tracked file that was just removed is no longer part of the tree, and a symbolic link has no text.
        if !place.symlink_metadata().is_ok_and(|data| data.is_file()) {
            continue;
        }
        // What is not UTF-8 is no text.
        if let Ok(text) = String::from_utf8(std::fs::read(place)?) {
            files.push(File { path, text });
        }
    }
    Ok(files)
}

/// The paths of the tree as it stands, from the root: also of new files that git does not track yet.
///
/// # Errors
///
/// A folder could not be read.
pub fn paths(root: &Path) -> std::io::Result<Vec<String>> {
    listed(root, &["--cached", "--others", "--exclude-standard"]).map_or_else(|| walk(root, ""), Ok)
}

/// What git lists: what it tracks, or what is asked for.
fn listed(root: &Path, which: &[&str]) -> Option<Vec<String>> {
    // The tree of a build machine often belongs to another user, which git refuses by default.
    let output = Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "-z"])
        .args(which)
        .current_dir(root)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let paths = String::from_utf8(output.stdout).ok()?;
    let paths: Vec<String> = paths.split('\0').filter(|path| !path.is_empty()).map(ToOwned::to_owned).collect();
    (output.status.success() && !paths.is_empty()).then_some(paths)
}

fn walk(root: &Path, dir: &str) -> std::io::Result<Vec<String>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(root.join(dir))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "target" || name.starts_with('.') {
            continue;
        }
        let path = if dir.is_empty() { name } else { format!("{dir}/{name}") };
        if entry.file_type()?.is_dir() {
            paths.extend(walk(root, &path)?);
        } else {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests;
