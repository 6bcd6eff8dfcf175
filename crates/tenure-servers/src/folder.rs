//! The folder of one server.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::installed::Account;
use crate::keeper::keeper;

/// A temporary folder; it goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    dir: TempDir,
    account: Option<Account>,
}

impl Folder {
    /// A new one, which belongs to `account`.
    pub(crate) fn new(name: &str, account: Option<Account>) -> Self {
        let dir = tempfile::Builder::new().prefix(&format!("{name}-")).tempdir_in(keeper().root());
        let folder = Self { dir: dir.expect("a temporary folder"), account };
        folder.give(folder.path());
        folder
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Who owns what is in it.
    pub(crate) fn account(&self) -> Option<Account> {
        self.account
    }

    /// The path of something in it.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file that the server may read and change.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        std::fs::write(&path, text).expect("the folder can be written");
        self.give(&path);
        path
    }

    /// Makes something in it the server's own.
    pub(crate) fn give(&self, path: &Path) {
        if let Some(account) = self.account {
            chown(path, Some(account.uid), Some(account.gid)).expect("root may give files away");
        }
    }
}

/// Copies a folder with all that is in it: owners, times and permissions.
pub(crate) fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).output().expect("`cp` starts");
    assert!(copied.status.success(), "not copied: {}", String::from_utf8_lossy(&copied.stderr));
}
