//! The address of an index in PostgreSQL.

use super::stop::Stop;
use crate::index::IndexError;
use std::time::Duration;
use tenure::core::address::{plain, span};
use tenure::sink::shown;

/// The schema, unless said otherwise.
const SCHEMA: &str = "vector_sync";

/// How long a call waits for another transaction, unless said otherwise; and the longest that may be said.
const WAIT: Duration = Duration::from_secs(5);
const WAIT_MAX: Duration = Duration::from_secs(600);

/// Where an index in PostgreSQL is.
#[derive(Clone)]
pub(in crate::index) struct Place {
    /// For people: without user and password.
    pub(in crate::index) name: String,
    pub(in crate::index) schema: String,
    /// How long a call waits for another transaction. All other bounds are counted in it.
    pub(super) wait: Duration,
    /// The address as its sink takes it.
    pub(super) url: String,
}

impl Place {
    /// Reads an address.
    pub(in crate::index) fn parse(url: &str) -> Result<Self, IndexError> {
        let wrong = |why: String| IndexError::Address { url: shown(url), why };
        let (before, parameters) = url.split_once('?').unwrap_or((url, ""));
        let (mut schema, mut wait) = (None, WAIT);
        for parameter in parameters.split('&') {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name {
                "schema" => schema = Some(plain(value).map_err(|error| wrong(error.to_string()))?),
                "wait" => wait = span(value).map_err(|error| wrong(error.to_string()))?,
                // A tenant's sink has an id of its own, is always under one rule, and is made by the first round.
                "id" | "rule" | "create" => {
                    return Err(wrong(format!("an index has no parameter {name:?}: leave it out")));
                }
                _ => {}
            }
        }
        if wait.is_zero() || wait > WAIT_MAX {
            return Err(wrong(format!("wait is how long a call waits for another: from 1ms to {WAIT_MAX:?}")));
        }
        let mark = if parameters.is_empty() { "" } else { "&" };
        let (schema, url) = match schema {
            Some(schema) => (schema, url.to_owned()),
            None => (SCHEMA.to_owned(), format!("{before}?{parameters}{mark}schema={SCHEMA}")),
        };
        Ok(Self { name: format!("{} (schema {schema})", shown(before)), schema, wait, url })
    }

    /// A record that this program cannot have written.
    pub(in crate::index) fn odd(&self, what: &str) -> Stop {
        let why =
            format!("{what}: the record is damaged; put the database back from a backup, or sync into another schema");
        IndexError::Failed { place: self.name.clone(), doing: "reading a record", why }.into()
    }
}

impl std::fmt::Debug for Place {
    /// Without the address: it may hold a password.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Place({})", self.name)
    }
}
