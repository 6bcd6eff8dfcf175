//! Why work in a file came to no end, and what people are told.

use crate::index::{IndexError, WriteError};
use rusqlite::{Error, ErrorCode};
use tenure::sink::{ApplyError, SinkError};

/// Why work in a file came to no end.
#[derive(Debug)]
pub(in crate::index) enum Stop {
    /// SQLite says so.
    Sqlite(Error),
    /// It is said already.
    Said(WriteError),
}

impl Stop {
    /// For the caller of what changes something.
    pub(in crate::index) fn write(self, place: &str, doing: &'static str) -> WriteError {
        match self {
            Self::Sqlite(error) => explained(place, doing, &error).into(),
            Self::Said(error) => error,
        }
    }

    /// For the caller of what only reads.
    pub(in crate::index) fn read(self, place: &str, doing: &'static str) -> IndexError {
        match self.write(place, doing) {
            WriteError::Index(error) => error,
            other => IndexError::Failed { place: place.to_owned(), doing, why: other.to_string() },
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<WriteError> for Stop {
    fn from(error: WriteError) -> Self {
        Self::Said(error)
    }
}

impl From<IndexError> for Stop {
    fn from(error: IndexError) -> Self {
        Self::Said(error.into())
    }
}

impl From<SinkError> for Stop {
    fn from(error: SinkError) -> Self {
        IndexError::from(error).into()
    }
}

impl From<ApplyError<Self>> for Stop {
    fn from(error: ApplyError<Self>) -> Self {
        match error {
            ApplyError::Sink(error) => error.into(),
            ApplyError::Effect(stop) => stop,
        }
    }
}

/// From what SQLite says to what to do.
pub(in crate::index) fn explained(place: &str, doing: &'static str, error: &Error) -> IndexError {
    let said = error.to_string();
    let advice = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let why = format!(
                "{said}: another process is in a transaction that writes. If it stays so, that process is stopped or hangs: \
                 let it go on, or end it"
            );
            return IndexError::Unreachable { place: place.to_owned(), why };
        }
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            "the file is damaged, or is something else: put it back from a backup, or move it away and sync anew"
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            "give this user the right to write the file, and others in its folder"
        }
        Some(ErrorCode::DiskFull) => "nothing was changed; make room, and repeat it",
        Some(ErrorCode::SystemIoFailure) => "look at the disk",
        _ if matches!(error, Error::FromSqlConversionFailure(..)) => {
            "the record is damaged: put the file back from a backup, or move it away and sync anew"
        }
        _ => "repeat it once the cause is removed",
    };
    IndexError::Failed { place: place.to_owned(), doing, why: format!("{said}: {advice}") }
}
