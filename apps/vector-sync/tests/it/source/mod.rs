//! Places that documents come from.

mod folder;
mod postgres;

use futures_util::StreamExt as _;
use vector_sync::source::{Document, Source, SourceError};

/// Everything that a source gives: documents, and errors as text.
async fn read(source: &dyn Source) -> Vec<Result<Document, String>> {
    source.documents().map(|found| found.map_err(|error: SourceError| error.to_string())).collect().await
}

/// The one error of a source from which nothing can be read.
async fn refused(source: &dyn Source) -> String {
    let found: Vec<_> = source.documents().collect().await;
    match found.as_slice() {
        [Err(error @ SourceError::Place { .. })] => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Names of documents, and errors.
async fn names(source: &dyn Source) -> Vec<String> {
    let name =
        |found: Result<Document, String>| found.map_or_else(|error| format!("! {error}"), |document| document.id);
    read(source).await.into_iter().map(name).collect()
}
