//! From file to file, in the order of their names.

use crate::source::Format;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{DirEntry, FileType};
use std::io;
use std::path::{Path, PathBuf};

/// Goes through a folder. In memory are the names in the folders that are open, never all names.
pub(super) struct Walk {
    /// Without links in it.
    root: PathBuf,
    /// What is still to be looked at, the next one last.
    open: Vec<Entry>,
    left_out: BTreeMap<String, u64>,
}

/// What was found.
pub(super) enum Found {
    /// A file with an ending of documents.
    Document {
        /// Its path within the folder.
        id: String,
        format: Format,
    },
    /// Something that cannot be a document, or a folder that cannot be read.
    Broken { name: String, why: String },
}

struct Entry {
    /// Below the root. A folder has a slash at its end, so that the order of the entries is that of the paths of the files.
    path: Vec<u8>,
    what: io::Result<FileType>,
}

impl Walk {
    pub(super) fn new(root: &Path) -> io::Result<Self> {
        let mut walk = Self { root: root.canonicalize()?, open: Vec::new(), left_out: BTreeMap::new() };
        walk.enter(&[])?;
        Ok(walk)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn left_out(&self) -> &BTreeMap<String, u64> {
        &self.left_out
    }

    pub(super) fn into_left_out(self) -> BTreeMap<String, u64> {
        self.left_out
    }

    fn enter(&mut self, folder: &[u8]) -> io::Result<()> {
        let mut inside = Vec::new();
        for entry in std::fs::read_dir(self.root.join(path(folder)))? {
            inside.push(Entry::of(&entry?, folder));
        }
        inside.sort_unstable_by(|one, other| other.path.cmp(&one.path));
        self.open.append(&mut inside);
        Ok(())
    }

    fn leave_out(&mut self, kind: impl Into<String>) {
        *self.left_out.entry(kind.into()).or_default() += 1;
    }

    /// Whether a link leads to a file within the folder. Links to folders could lead in a circle.
    fn is_inside(&self, link: &[u8]) -> bool {
        let target = self.root.join(path(link)).canonicalize();
        target.is_ok_and(|target| target.starts_with(&self.root) && !target.is_dir())
    }

    fn look(&mut self, entry: Entry) -> Option<Found> {
        let name = String::from_utf8_lossy(&entry.path).into_owned();
        let broken = |why: String| Some(Found::Broken { name: name.clone(), why });
        let what = match entry.what {
            Ok(what) => what,
            Err(error) => return broken(format!("{error}: let this user read it, or take it out of the folder")),
        };
        let last = name.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        if last.starts_with('.') {
            self.leave_out("hidden");
            return None;
        }
        if what.is_dir() {
            let entered = self.enter(&entry.path);
            return entered
                .err()
                .and_then(|error| broken(format!("{error}: let this user read the folder, or take it out")));
        }
        let ending = last.rsplit_once('.').map(|(_, ending)| ending);
        let Some(format) = ending.and_then(Format::of_ending) else {
            self.leave_out(
                ending.map_or("without an ending".to_owned(), |ending| format!(".{}", ending.to_lowercase())),
            );
            return None;
        };
        if what.is_symlink() && !self.is_inside(&entry.path) {
            self.leave_out("links");
            return None;
        }
        match String::from_utf8(entry.path) {
            Ok(id) => Some(Found::Document { id, format }),
            Err(_) => broken("its name is not written in UTF-8: rename it".to_owned()),
        }
    }
}

impl Iterator for Walk {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            let entry = self.open.pop()?;
            if let Some(found) = self.look(entry) {
                return Some(found);
            }
        }
    }
}

impl Entry {
    fn of(entry: &DirEntry, folder: &[u8]) -> Self {
        use std::os::unix::ffi::OsStringExt as _;
        let what = entry.file_type();
        let mut path = folder.to_vec();
        path.append(&mut OsString::into_vec(entry.file_name()));
        if what.as_ref().is_ok_and(FileType::is_dir) {
            path.push(b'/');
        }
        Self { path, what }
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    Path::new(std::ffi::OsStr::from_bytes(bytes)).to_owned()
}
