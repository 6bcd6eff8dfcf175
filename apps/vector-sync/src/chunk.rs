//! The pieces of documents that are embedded and found.

mod cut;
mod html;
mod markdown;
mod outline;
mod rst;
mod text;

use crate::manifest::Sum;
use crate::source::{Document, Format};
pub(crate) use cut::is_ideograph;
use outline::Outline;
use serde::{Deserialize, Serialize};

/// What cuts, its version, and how large a piece may be: part of the manifest. Whoever changes what the same document is cut
/// into changes this, and everything is cut and embedded anew.
pub const CHUNKER: &str = "pieces-1:210";

/// Cuts a document. Every word of its text is in the text or in the heading of some piece; a document without words has
/// none. A piece with its heading has at most 210 parts as a sentence model counts them, which is about 180 English words.
///
/// Headings, paragraphs and code are taken as the format has them, and any text is a document of any format: broken marks
/// are read as text.
#[must_use]
pub fn chunks(document: &Document) -> Vec<Chunk> {
    let mut outline = Outline::new(&document.id);
    match document.format {
        Format::Markdown => markdown::read(&document.text, &mut outline),
        Format::Html => html::read(&document.text, &mut outline),
        Format::Rst => rst::read(&document.text, &mut outline),
        Format::Text => text::read(&document.text, &mut outline),
    }
    outline.finish()
}

/// A piece of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// The document's name within its source.
    pub document: String,
    /// The piece's number within the document, from 0.
    pub number: u32,
    /// The document's title, and the headings over the piece, outermost first. Part of what is embedded.
    pub heading: String,
    /// The text.
    pub text: String,
}

impl Chunk {
    /// What is given to the model.
    #[must_use]
    pub fn words(&self) -> String {
        if self.heading.is_empty() { self.text.clone() } else { format!("{}\n{}", self.heading, self.text) }
    }

    /// Under which a model's answer about it is kept: the same words to the same model have one.
    #[must_use]
    pub fn key(&self, model: &str) -> Sum {
        Sum::of(&[model.as_bytes(), self.heading.as_bytes(), self.text.as_bytes()])
    }
}

#[cfg(test)]
mod tests;
