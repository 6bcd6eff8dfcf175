//! From what PostgreSQL says to what the caller should do.

use super::place::Place;
use super::schema::rights;
use crate::SinkError;
use std::error::Error as _;
use std::time::Duration;
use tokio_postgres::Error;

/// What the server said, whichever driver brought it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said<'a> {
    pub(super) code: &'a str,
    pub(super) message: &'a str,
    pub(super) detail: Option<&'a str>,
    pub(super) hint: Option<&'a str>,
    pub(super) constraint: Option<&'a str>,
}

/// Where it was said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Where<'a> {
    pub(super) place: &'a str,
    pub(super) doing: &'static str,
    pub(super) waited: Duration,
    /// What to do when a right is missing.
    pub(super) rights: &'a str,
}

/// Explains a failed call of the sealing side.
pub(super) fn failed(place: &Place, doing: &'static str, error: &Error) -> SinkError {
    let (name, rights) = (place.to_string(), rights(place));
    explained(&Where { place: &name, doing, waited: place.wait, rights: &rights }, error)
}

/// Explains what the driver brought.
pub(super) fn explained(at: &Where<'_>, error: &Error) -> SinkError {
    let Some(said) = error.as_db_error() else {
        // A value that is no value of its type came back, or the connection is gone.
        return match error.is_closed() || !chained(error).contains("deserializing") {
            true => SinkError::Unreachable { place: at.place.to_owned(), why: chained(error) },
            false => SinkError::corrupt(at.place, chained(error)),
        };
    };
    refusal(
        at,
        &Said {
            code: said.code().code(),
            message: said.message(),
            detail: said.detail(),
            hint: said.hint(),
            constraint: said.constraint(),
        },
    )
}

/// Explains what the server said.
pub(super) fn refusal(at: &Where<'_>, said: &Said<'_>) -> SinkError {
    let (place, why) = (at.place.to_owned(), words(said));
    match said.code {
        "40001" | "40P01" => SinkError::Repeat { place, why },
        // Two that could not see each other have recorded the same operation.
        "23505" if said.constraint == Some("sink_operation_pkey") => SinkError::Repeat { place, why },
        // The session's own lock_timeout, and nobody knows who was in the way.
        "55P03" if said.detail.is_none() => SinkError::Repeat { place, why },
        "55P03" => SinkError::HeldBy {
            place,
            waited: at.waited,
            by: [said.detail, said.hint].into_iter().flatten().collect::<Vec<_>>().join(" "),
        },
        "TN107" => SinkError::NoAuthority {
            place,
            why: [Some(said.message), said.hint].into_iter().flatten().collect::<Vec<_>>().join(". "),
        },
        // What a server does not do in such a transaction; the hint says in which one it does.
        "0A000" => SinkError::Failed {
            place,
            doing: at.doing,
            why: [Some(&*why), said.hint].into_iter().flatten().collect::<Vec<_>>().join(". "),
        },
        "TN105" => SinkError::NeverSealed { place },
        "25P02" => SinkError::NoTransaction { place },
        "25006" => {
            SinkError::Unreachable { place, why: format!("{why}: it is a standby, or was made read-only by somebody") }
        }
        "42501" => SinkError::NotWritable { place, why: format!("{why}; {}", at.rights) },
        "53100" => SinkError::Full { place, why },
        // No such schema, table, type or function.
        "3F000" | "42P01" | "42704" | "42883" => SinkError::Missing { place },
        "XX001" | "XX002" => SinkError::Corrupt { place, what: why },
        // The connection, or the server, is going away or full.
        code if code.starts_with("08") || code.starts_with("57P") || code.starts_with("53") => {
            SinkError::Unreachable { place, why }
        }
        _ => SinkError::Failed { place, doing: at.doing, why },
    }
}

/// Explains why there is no connection.
pub(super) fn unconnected(place: &Place, error: &Error) -> SinkError {
    let unreachable = |why: String| SinkError::Unreachable { place: place.to_string(), why };
    let Some(said) = error.as_db_error() else {
        let why = chained(error);
        // The words of rustls for a certificate that nobody vouches for, or that is another server's.
        return if why.contains("invalid peer certificate") {
            place.wrong(format!(
                "{why}: name the file with the authority that signed the server's certificate (tls_ca=FILE), and the \
                 server as its certificate does"
            ))
        } else if why.contains("password missing") {
            place.wrong(format!("{} needs a password: write USER:PASSWORD@, or set PGPASSWORD", place.user()))
        } else {
            unreachable(why)
        };
    };
    let why = format!("{} ({})", said.message(), said.code().code());
    match said.code().code() {
        "28P01" | "28000" => place.wrong(format!("{why}: check the user and the password")),
        // To whoever looks for a sink, a database that is not there is one that is not there.
        "3D000" => SinkError::Missing { place: place.to_string() },
        _ => unreachable(why),
    }
}

fn words(said: &Said<'_>) -> String {
    format!("{} ({})", said.message, said.code)
}

/// The error with its causes: the driver's own words alone say little.
pub(super) fn chained(error: &Error) -> String {
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
