//! A copy of the tree, in which mutants are applied one at a time.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::tidy::tree;

/// The copy. What is broken in it is mended when the next copy is made, also after a run that was cut short.
#[derive(Debug)]
pub(super) struct Copy {
    dir: PathBuf,
}

impl Copy {
    /// Brings the copy of the tree at `root` up to date. A file that has not changed is not written, so that cargo
    /// builds nothing anew for it.
    pub(super) fn of(root: &Path, dir: PathBuf) -> io::Result<Self> {
        let paths = tree::paths(root)?;
        for path in &paths {
            let (from, to) = (root.join(path), dir.join(path));
            let Ok(content) = fs::read(&from) else { continue };
            if fs::read(&to).ok().as_ref() == Some(&content) {
                continue;
            }
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&to, content)?;
        }
        let paths: BTreeSet<PathBuf> =
            paths.iter().map(PathBuf::from).filter(|path| root.join(path).is_file()).collect();
        remove_others(&dir, Path::new(""), &paths)?;
        Ok(Self { dir })
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn read(&self, path: &str) -> io::Result<String> {
        fs::read_to_string(self.dir.join(path))
    }

    /// Puts a text into a file for as long as the answer lives.
    pub(super) fn with(&self, path: &str, text: &str) -> io::Result<Replaced> {
        let place = self.dir.join(path);
        let former = fs::read_to_string(&place)?;
        fs::write(&place, text)?;
        Ok(Replaced { place, former })
    }
}

/// A file of the copy that is broken. It is mended when this is dropped.
#[derive(Debug)]
#[must_use = "the file is mended at once when this is dropped"]
pub(super) struct Replaced {
    place: PathBuf,
    former: String,
}

impl Drop for Replaced {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.place, &self.former) {
            eprintln!("{} is still broken: {error}", self.place.display());
        }
    }
}

fn remove_others(dir: &Path, below: &Path, keep: &BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            remove_others(dir, &path, keep)?;
        } else if !keep.contains(&path) {
            fs::remove_file(dir.join(&path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
