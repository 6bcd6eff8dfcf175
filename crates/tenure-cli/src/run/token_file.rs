//! Where the command of a freezing run finds its token: after it was stopped and goes on under a new epoch, the one in its
//! environment is dead.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use tenure::Token;

/// A file with one token, removed when the right to write is lost.
#[derive(Debug)]
pub(super) struct TokenFile {
    folder: tempfile::TempDir,
}

impl TokenFile {
    pub(super) fn create(token: &Token) -> io::Result<Self> {
        let file = Self { folder: tempfile::Builder::new().prefix("tenure-run-").tempdir()? };
        file.replace(token)?;
        Ok(file)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    /// In one step, so that a reader finds a whole token.
    pub(super) fn replace(&self, token: &Token) -> io::Result<()> {
        let mut aside = tempfile::NamedTempFile::new_in(self.folder.path())?;
        writeln!(aside, "{token}")?;
        aside.persist(self.path()).map_err(|error| error.error)?;
        Ok(())
    }

    /// Whoever looks from now on finds that nothing is held.
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(self.path());
    }
}
