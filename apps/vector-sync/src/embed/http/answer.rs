//! What a service answers, looked at before it is believed.

use crate::embed::normalise;
use serde::Deserialize;

/// Vectors for all texts of a call, in the order of the texts.
pub(super) struct Answer {
    pub(super) vectors: Vec<Vec<f32>>,
    /// What the service says that it took.
    pub(super) tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Said {
    data: Vec<Item>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Item {
    index: Option<usize>,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct Usage {
    total_tokens: Option<u64>,
}

impl Answer {
    /// Reads an answer to a call with so many texts.
    pub(super) fn read(body: &[u8], texts: usize, dimensions: u32) -> Result<Self, String> {
        let said: Said = serde_json::from_slice(body)
            .map_err(|error| format!("its answer is not one with embeddings: {}", kind(&error)))?;
        if said.data.len() != texts {
            return Err(format!("it gave {} vectors for {texts} texts", said.data.len()));
        }
        let mut vectors = vec![Vec::new(); texts];
        for (at, item) in said.data.into_iter().enumerate() {
            let index = item.index.unwrap_or(at);
            let length = item.embedding.len();
            let mut vector = item.embedding;
            if u32::try_from(length) != Ok(dimensions) {
                return Err(format!(
                    "its vectors have {length} numbers, and {dimensions} were asked for; write dimensions={length} if that is right"
                ));
            }
            normalise(&mut vector).ok_or_else(|| format!("its vector {index} has no direction"))?;
            match vectors.get_mut(index) {
                Some(place) if place.is_empty() => *place = vector,
                Some(_) => return Err(format!("it gave two vectors for text {index}")),
                None => return Err(format!("it gave a vector for text {index}, and there are {texts}")),
            }
        }
        Ok(Self { vectors, tokens: said.usage.and_then(|usage| usage.total_tokens) })
    }
}

/// What is wrong with it, without what is in it.
fn kind(error: &serde_json::Error) -> String {
    let kind = match error.classify() {
        serde_json::error::Category::Data => "something is missing in it, or is no number",
        serde_json::error::Category::Eof => "it is cut off",
        serde_json::error::Category::Syntax | serde_json::error::Category::Io => "it is no JSON",
    };
    format!("{kind} (line {}, column {})", error.line(), error.column())
}
