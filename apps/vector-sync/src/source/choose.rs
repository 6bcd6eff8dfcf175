//! Which source is meant.

use super::{FolderSource, PostgresSource, Source, SourceError};
use std::path::Path;

/// How a source is read.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The largest document, in bytes. Larger ones are errors.
    pub max_document: u64,
    /// For a database: the query that gives the documents.
    pub query: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max_document: 16 << 20, query: None }
    }
}

/// A folder by its path, or a database by its address (`postgres://…`) and a query. Nothing is read yet.
///
/// # Errors
/// [`SourceError::Place`] when the address makes no sense.
pub fn open(place: &str, settings: &Settings) -> Result<Box<dyn Source>, SourceError> {
    let wrong = |why: &str| SourceError::Place { place: place.to_owned(), why: why.to_owned() };
    if place.starts_with("postgres://") || place.starts_with("postgresql://") {
        let query = settings.query.as_deref().unwrap_or_default();
        return Ok(Box::new(PostgresSource::new(place, query, settings.max_document)?));
    }
    match (&settings.query, place) {
        (_, "") => Err(wrong("it is empty: give a folder, or postgres://… with a query")),
        (Some(_), _) => Err(wrong("a query is for postgres://…: leave it out for a folder")),
        (None, folder) => Ok(Box::new(FolderSource::new(Path::new(folder), settings.max_document))),
    }
}
