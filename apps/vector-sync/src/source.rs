//! Where the documents come from.

use crate::manifest::Sum;
use futures_util::stream::BoxStream;

/// A document, as it was read.
#[derive(Clone, PartialEq, Eq)]
pub struct Document {
    /// Its name within the source, such as a path with `/` in it. No two are equal.
    pub id: String,
    /// How it is written.
    pub format: Format,
    /// Its text, in UTF-8 as it was read: still with marks of its format.
    pub text: String,
    /// Over the bytes that were read.
    pub content: Sum,
}

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Markdown, as CommonMark reads it.
    Markdown,
    /// HTML.
    Html,
    /// reStructuredText.
    Rst,
    /// Plain text.
    Text,
}

/// A place that documents come from.
pub trait Source: Send + Sync + std::fmt::Debug {
    /// For people and for the manifest, without a password.
    fn place(&self) -> &str;

    /// All documents in the order of their names, each read when it is asked for. Reading them twice may give two answers:
    /// whoever needs one takes the digests from the reading that it uses.
    ///
    /// An error about one document is followed by the others; any other one ends the stream.
    fn documents(&self) -> BoxStream<'_, Result<Document, SourceError>>;
}

/// Why documents were not read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SourceError {
    /// One document cannot be used. The others follow.
    #[error("{document}: {why}")]
    Document {
        /// Its name.
        document: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// None can be read.
    #[error("{place} cannot be read: {why}")]
    Place {
        /// The source.
        place: String,
        /// What is wrong, and what to do.
        why: String,
    },
}

impl std::fmt::Debug for Document {
    /// Without its text: that belongs in no log.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { id, format, text, content } = self;
        write!(out, "{id} ({format:?}, {} bytes, {content:?})", text.len())
    }
}
