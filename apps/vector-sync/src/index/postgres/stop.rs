//! Why work in a database came to no end, and what people are told.

use super::place::Place;
use crate::index::{IndexError, WriteError};
use std::error::Error as _;
use tenure::sink::{ApplyError, SinkError};
use tokio_postgres::Error;

/// Why work in a database came to no end.
#[derive(Debug)]
pub(in crate::index) enum Stop {
    /// The server, or the connection, says so.
    Postgres(Error),
    /// It is said already.
    Said(WriteError),
}

impl Stop {
    /// For the caller of what changes something.
    pub(super) fn write(self, place: &Place, doing: &'static str) -> WriteError {
        match self {
            Self::Postgres(error) => explained(place, doing, &error).into(),
            Self::Said(error) => error,
        }
    }

    /// For the caller of what only reads.
    pub(super) fn read(self, place: &Place, doing: &'static str) -> IndexError {
        match self.write(place, doing) {
            WriteError::Index(error) => error,
            other => IndexError::Failed { place: place.name.clone(), doing, why: other.to_string() },
        }
    }

    /// Whether a table, or the schema, is not there.
    pub(super) fn is_missing(&self) -> bool {
        match self {
            Self::Postgres(error) => error.code().is_some_and(|code| ["42P01", "3F000"].contains(&code.code())),
            Self::Said(WriteError::Index(IndexError::Sink(error))) => matches!(error, SinkError::Missing { .. }),
            Self::Said(_) => false,
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Postgres(error)
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

/// From what PostgreSQL says to what to do.
pub(super) fn explained(place: &Place, doing: &'static str, error: &Error) -> IndexError {
    let why = chained(error);
    let Some(said) = error.as_db_error() else {
        return IndexError::Unreachable { place: place.name.clone(), why };
    };
    let code = said.code().code();
    let why = format!("{} ({code})", said.message());
    let advice = match code {
        "55P03" => "another transaction holds what this one needs; let it end, or end it",
        "57014" => "it took longer than it may; look at what else the server does",
        "40001" | "40P01" => "two transactions were in each other's way, and this one was rolled back; repeat it",
        "25006" => "it is a standby, or was made read-only by somebody",
        "53100" => "nothing was changed; make room, and repeat it",
        "42501" => "give this user the right to do so, or let the schema's owner run the rounds",
        _ => "",
    };
    let why = if advice.is_empty() { why } else { format!("{why}: {advice}") };
    let passes = ["55P03", "57014", "40001", "40P01", "25006"].contains(&code)
        // The connection, or the server, is going away or full.
        || ["08", "57P", "53"].iter().any(|class| code.starts_with(class) && code != "53100");
    if passes {
        IndexError::Unreachable { place: place.name.clone(), why }
    } else {
        IndexError::Failed { place: place.name.clone(), doing, why }
    }
}

/// The error with its causes: the driver's own words alone say little.
fn chained(error: &Error) -> String {
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
