//! The pieces of documents that are embedded and found.

use crate::manifest::Sum;
use serde::{Deserialize, Serialize};

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

pub const CHUNKER: &str = "todo";
pub fn cut(document: &crate::source::Document) -> Vec<Chunk> {
    vec![Chunk { document: document.id.clone(), number: 0, heading: String::new(), text: document.text.clone() }]
}
