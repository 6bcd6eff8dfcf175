//! What went wrong at the server, and whether a change can have been made all the same.

use super::place::Place;
use crate::StoreError;
use std::error::Error as _;
use std::time::Duration;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// Why a call has no answer.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// Certainly nothing was changed.
    Certain(StoreError),
    /// Certainly nothing was changed, and the same call may well succeed at once.
    Again(StoreError),
    /// Certainly nothing was changed: another session held a row that was needed for too long.
    Held,
    /// Certainly nothing was changed: it was not this caller's turn for too long, whatever it wanted.
    Busy,
    /// The server did not say whether it did it.
    Lost(String),
}

impl Fault {
    /// What a call says that changes nothing.
    pub(super) fn into_error(self) -> StoreError {
        match self {
            Self::Certain(error) | Self::Again(error) => error,
            Self::Held | Self::Busy => {
                StoreError::Unavailable("another session holds the store for too long".to_owned())
            }
            Self::Lost(why) => StoreError::Unavailable(why),
        }
    }
}

/// What an error means that came after a call was sent.
pub(super) fn fault(place: &Place, error: &Error) -> Fault {
    let Some(said) = error.as_db_error() else { return Fault::Lost(chain(error)) };
    let code = said.code();
    if is_lost(said.parsed_severity(), said.severity(), code) {
        return Fault::Lost(words(said));
    }
    match *code {
        SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED => {
            Fault::Again(StoreError::Unavailable(words(said)))
        }
        // The statements of functions that were under way are told in every language as they stand.
        SqlState::LOCK_NOT_AVAILABLE if said.where_().is_some_and(|at| at.contains("pg_advisory_xact_lock")) => {
            Fault::Busy
        }
        SqlState::LOCK_NOT_AVAILABLE => Fault::Held,
        _ => Fault::Certain(refusal(place, said, code)),
    }
}

/// Whether the commit may have been made all the same: whoever is sent away while it waits for a standby may have
/// committed. A pooler whose server died says so in its own words, without the severity that needs no translation.
fn is_lost(severity: Option<Severity>, translated: &str, code: &SqlState) -> bool {
    let is_fatal = match severity {
        Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
        None => matches!(translated, "FATAL" | "PANIC"),
    };
    is_fatal || code.code().starts_with("08") || *code == SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
}

fn refusal(place: &Place, said: &DbError, code: &SqlState) -> StoreError {
    match code.code() {
        "TN001" => StoreError::ClockWentBack { by: Duration::from_nanos(said.message().parse().unwrap_or(u64::MAX)) },
        "TN002" => place.wrong(format!(
            "transactions there are {} by default, but each statement of a change must see what others committed \
             before it: ALTER ROLE {} SET default_transaction_isolation = 'read committed'",
            said.message(),
            place.user()
        )),
        "25006" => StoreError::Unavailable(format!("{place} takes no writes now: it is a standby, or made read-only")),
        "42501" => StoreError::NotWritable(format!("{}; {}", words(said), grants(place))),
        "53100" => StoreError::NotWritable(words(said)),
        // No such schema, table or function.
        "3F000" | "42P01" | "42883" => StoreError::Missing(place.to_string()),
        "XX001" | "XX002" => StoreError::Corrupt(words(said)),
        _ => StoreError::Unavailable(words(said)),
    }
}

/// What to type when a right is missing.
pub(super) fn grants(place: &Place) -> String {
    let (schema, user) = (&place.schema, place.user());
    format!(
        "GRANT USAGE ON SCHEMA {schema} TO {user}; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \
         {schema} TO {user}; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {user}"
    )
}

/// What an error means that came while a connection was made.
pub(super) fn unconnected(place: &Place, error: &Error) -> StoreError {
    let Some(said) = error.as_db_error() else {
        let why = chain(error);
        // The words of rustls for a certificate that nobody vouches for, or that is another server's.
        return if why.contains("invalid peer certificate") {
            place.wrong(format!(
                "{why}: name the file with the authority that signed the server's certificate (tls_ca=FILE), and the \
                 server as its certificate does"
            ))
        } else if why.contains("password missing") {
            place.wrong(format!("{} needs a password: write USER:PASSWORD@, or set PGPASSWORD", place.user()))
        } else {
            StoreError::Unavailable(format!("{}: {why}", place.shown))
        };
    };
    match said.code().code() {
        "28P01" | "28000" => place.wrong(format!("{}: check the user and the password", words(said))),
        "3D000" => place.wrong(format!("{}: check its name, or CREATE DATABASE {}", words(said), place.database())),
        _ => StoreError::Unavailable(format!("{}: {}", place.shown, words(said))),
    }
}

fn words(said: &DbError) -> String {
    format!("{} ({})", said.message(), said.code().code())
}

/// The error with its causes: the driver's own words alone say little.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
