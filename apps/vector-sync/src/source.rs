//! Where the documents come from.

mod choose;
mod folder;
mod postgres;

use crate::manifest::Sum;
use futures_util::stream::BoxStream;
use std::collections::BTreeMap;

pub use choose::{Settings, open};
pub use folder::FolderSource;
pub use postgres::PostgresSource;

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

    /// What the last reading came by and did not take for a document, by kind, such as `.pdf`, with how many there were. For
    /// people.
    fn left_out(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
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

impl Format {
    /// The format of files with this ending, without the point, in small letters or capitals.
    #[must_use]
    pub fn of_ending(ending: &str) -> Option<Self> {
        Some(match ending.to_ascii_lowercase().as_str() {
            "md" | "markdown" => Self::Markdown,
            "html" | "htm" => Self::Html,
            "rst" => Self::Rst,
            "txt" => Self::Text,
            _ => return None,
        })
    }
}

/// The text that these bytes are, without a mark of its encoding, or why they are none.
fn readable(bytes: Vec<u8>) -> Result<String, String> {
    let utf16 = |order| Err(format!("it is written in UTF-16 ({order}): convert it to UTF-8"));
    match bytes.as_slice() {
        [0xff, 0xfe, ..] => return utf16("little-endian"),
        [0xfe, 0xff, ..] => return utf16("big-endian"),
        _ => {}
    }
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return Err(format!("it has a zero byte at {at}, so it is no text: convert it to UTF-8, or take it out"));
    }
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("it is not written in UTF-8, as the byte at {at} shows: convert it, or take it out")
    })?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}
