//! From what SQLite says to what the caller should do.

use super::{blocker, held, schema};
use crate::SinkError;
use rusqlite::{Connection, Error, ErrorCode, ffi};
use std::time::Duration;

/// How the database is called in messages.
pub(super) fn place_of(connection: &Connection) -> String {
    match connection.path() {
        Some(path) if !path.is_empty() => path.to_owned(),
        _ => "the in-memory database".to_owned(),
    }
}

/// Explains a failed statement.
#[expect(clippy::needless_pass_by_value, reason = "made for `map_err`")]
pub(super) fn sink_error(connection: &Connection, doing: &'static str, error: Error) -> SinkError {
    let place = place_of(connection);
    // Plain SQL errors come from tables that are missing or of another version.
    if cause(&error).is_some_and(|cause| cause.code == ErrorCode::Unknown)
        && let Some(found) = misfit(connection, &place)
    {
        return found;
    }
    named_error(&place, busy_timeout(connection), doing, &error)
}

/// The same, where the connection is not to be had any more.
pub(super) fn named_error(place: &str, waited: Duration, doing: &'static str, error: &Error) -> SinkError {
    let place = place.to_owned();
    let why = error.to_string();
    let extended = cause(error).map(|cause| cause.extended_code);
    match cause(error).map(|cause| cause.code) {
        _ if extended == Some(ffi::SQLITE_BUSY_SNAPSHOT) => SinkError::Snapshot { place },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => match blocker::named(&place) {
            Some(by) => SinkError::HeldBy { place, waited, by },
            None => SinkError::Busy { place, waited },
        },
        Some(ErrorCode::Unknown) if why.contains("no such table: tenure_held") => {
            SinkError::NoAuthority { place, why: held::NO_AUTHORITY.to_owned() }
        }
        Some(ErrorCode::NotADatabase) => {
            SinkError::Foreign { place, why: "it is not a SQLite database (or it is encrypted or cut off)".into() }
        }
        Some(ErrorCode::DatabaseCorrupt) => SinkError::Corrupt { place, what: why },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            SinkError::NotWritable { place, why }
        }
        Some(ErrorCode::DiskFull) => SinkError::Full { place, why },
        _ => SinkError::Failed { place, doing, why },
    }
}

/// The same, of another driver, which gives the extended code and the words.
#[cfg(feature = "sqlx")]
pub(super) fn explained(place: &str, doing: &'static str, code: Option<i32>, why: &str) -> SinkError {
    match code {
        Some(ffi::SQLITE_ERROR) if why.contains("no such table") && !why.contains("no such table: tenure_held") => {
            SinkError::NotInstalled { place: place.to_owned() }
        }
        Some(code) => {
            let error = Error::SqliteFailure(ffi::Error::new(code), Some(why.to_owned()));
            named_error(place, Duration::ZERO, doing, &error)
        }
        None => SinkError::Failed { place: place.to_owned(), doing, why: why.to_owned() },
    }
}

/// Explains a failed opening, before there is a connection.
pub(super) fn open_error(place: &str, error: &Error) -> SinkError {
    named_error(place, Duration::ZERO, "opening", error)
}

/// SQLite's own code, also of a statement that could not be prepared.
fn cause(error: &Error) -> Option<&ffi::Error> {
    match error {
        Error::SqlInputError { error, .. } => Some(error),
        _ => error.sqlite_error(),
    }
}

/// The database has no fence, or one of another version.
fn misfit(connection: &Connection, place: &str) -> Option<SinkError> {
    let table = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'tenure_sink_namespace'";
    let tables: i64 = connection.query_row(table, [], |row| row.get(0)).ok()?;
    if tables == 0 {
        return Some(SinkError::NotInstalled { place: place.to_owned() });
    }
    let version = connection.query_row("SELECT schema_version FROM tenure_sink_namespace", [], |row| row.get(0));
    match version {
        Ok(found) if found != schema::VERSION => Some(SinkError::schema(place, found, schema::VERSION)),
        Ok(_) => None,
        Err(_) => Some(SinkError::Foreign {
            place: place.to_owned(),
            why: "it has a table `tenure_sink_namespace` that no sink has written".into(),
        }),
    }
}

fn busy_timeout(connection: &Connection) -> Duration {
    let millis: i64 = connection.query_row("PRAGMA busy_timeout", [], |row| row.get(0)).unwrap_or_default();
    Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}
