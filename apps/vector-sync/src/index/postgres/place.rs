//! The address of an index in PostgreSQL.

use super::stop::Stop;
use crate::index::IndexError;
use tenure::core::address::plain;
use tenure::sink::shown;

/// The schema, unless said otherwise.
const SCHEMA: &str = "vector_sync";

/// Where an index in PostgreSQL is.
#[derive(Clone)]
pub(in crate::index) struct Place {
    /// For people: without user and password.
    pub(in crate::index) name: String,
    pub(super) schema: String,
    /// The address as its sink takes it.
    pub(super) url: String,
}

impl Place {
    /// Reads an address.
    pub(in crate::index) fn parse(url: &str) -> Result<Self, IndexError> {
        let wrong = |why: String| IndexError::Address { url: shown(url), why };
        let (before, parameters) = url.split_once('?').unwrap_or((url, ""));
        let mut schema = None;
        for parameter in parameters.split('&') {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name {
                "schema" => schema = Some(plain(value).map_err(|error| wrong(error.to_string()))?),
                // A tenant's sink has an id of its own, is always under one rule, and is made by the first round.
                "id" | "rule" | "create" => {
                    return Err(wrong(format!("an index has no parameter {name:?}: leave it out")));
                }
                _ => {}
            }
        }
        let mark = if parameters.is_empty() { "" } else { "&" };
        let (schema, url) = match schema {
            Some(schema) => (schema, url.to_owned()),
            None => (SCHEMA.to_owned(), format!("{before}?{parameters}{mark}schema={SCHEMA}")),
        };
        Ok(Self { name: format!("{} (schema {schema})", shown(before)), schema, url })
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
