use super::blocker;
use crate::StoreError;
use rusqlite::ErrorCode;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where the file is, for messages.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) path: Arc<Path>,
    pub(super) busy_timeout: Duration,
}

impl Place {
    pub(super) fn new(path: PathBuf, busy_timeout: Duration) -> Self {
        Self { path: path.into(), busy_timeout }
    }

    /// What an error of SQLite means to a caller.
    pub(super) fn fault(&self, error: &rusqlite::Error) -> StoreError {
        let rusqlite::Error::SqliteFailure(failure, _) = error else {
            // A value that does not fit its column, or a row that must be there and is not.
            return StoreError::Corrupt(format!("{self}: {error}"));
        };
        match failure.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Unavailable(format!(
                "another process has held {self} for longer than {:?}: {}",
                self.busy_timeout,
                blocker::named(&self.path)
                    .unwrap_or_else(|| "see which one is stopped or hangs in a transaction".to_owned())
            )),
            ErrorCode::NotADatabase => StoreError::Foreign(self.to_string()),
            ErrorCode::DatabaseCorrupt => StoreError::Corrupt(format!("{self}: {error}")),
            ErrorCode::ReadOnly | ErrorCode::DiskFull | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => {
                StoreError::NotWritable(format!("{self}: {error}"))
            }
            ErrorCode::SystemIoFailure if writes(failure.extended_code) => {
                StoreError::NotWritable(format!("{self}: {error}"))
            }
            _ => StoreError::Unavailable(format!("{self}: {error}")),
        }
    }
}

/// Whether an I/O error came from writing; a full disk often shows itself so.
fn writes(extended_code: i32) -> bool {
    use rusqlite::ffi;
    let writing = [
        ffi::SQLITE_IOERR_WRITE,
        ffi::SQLITE_IOERR_FSYNC,
        ffi::SQLITE_IOERR_DIR_FSYNC,
        ffi::SQLITE_IOERR_TRUNCATE,
        ffi::SQLITE_IOERR_SHMOPEN,
        ffi::SQLITE_IOERR_SHMSIZE,
    ];
    writing.contains(&extended_code)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}
