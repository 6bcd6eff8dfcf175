//! A model without a model.

use super::{EmbedError, Embedder, Spent, normalise};
use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many numbers a vector has.
const DIMENSIONS: u16 = 256;

/// Finds texts that use the same words as the question, and words beside each other as the question has them. It knows no
/// meaning: `car` finds no `automobile`, and `cars` no `car`. It needs no files, answers at once, and gives the same vector
/// everywhere: for a first look, and for tests of everything but meaning.
///
/// Each word and each pair of neighbours counts at one of 256 places, for or against, both by its hash; often said counts
/// for less than as often, and so do short words.
#[derive(Debug, Default)]
pub struct Words {
    calls: AtomicU64,
    texts: AtomicU64,
    tokens: AtomicU64,
}

impl Words {
    /// Its name. The same text gets the same vector as long as this stays the same.
    pub const MODEL: &str = "words@1";
}

#[async_trait]
impl Embedder for Words {
    fn model(&self) -> &str {
        Self::MODEL
    }

    fn dimensions(&self) -> u32 {
        DIMENSIONS.into()
    }

    fn batch(&self) -> usize {
        256
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.texts.fetch_add(texts.len() as u64, Ordering::Relaxed);
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            let (vector, count) = vector(text);
            self.tokens.fetch_add(count, Ordering::Relaxed);
            vectors.push(vector);
            // Whoever drops this, or waits for its thread, is not kept until the end of the batch.
            tokio::task::yield_now().await;
        }
        Ok(vectors)
    }

    fn spent(&self) -> Spent {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Spent { calls: read(&self.calls), texts: read(&self.texts), tokens: read(&self.tokens) }
    }
}

/// The vector of a text, and how many words that has.
fn vector(text: &str) -> (Vec<f32>, u64) {
    let mut counts: HashMap<u64, (f32, u32)> = HashMap::new();
    let mut count = |feature: u64, worth: f32| counts.entry(feature).or_insert((worth, 0)).1 += 1;
    let (mut last, mut words) = (None, 0);
    for word in words_of(text) {
        let hash = hash(&word);
        // Most short words stand in any text.
        let worth = if word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_lowercase()) { 0.3 } else { 1.0 };
        count(hash, worth);
        if let Some((before, other)) = last.replace((hash, worth)) {
            count(mixed(before.rotate_left(17) ^ hash), 0.5 * f32::min(worth, other));
        }
        words += 1;
    }
    let mut vector = vec![0_f32; DIMENSIONS.into()];
    // In one order, or sums of the same numbers would differ in their last digits.
    let mut features: Vec<(u64, (f32, u32))> = counts.into_iter().collect();
    features.sort_unstable_by_key(|(feature, _)| *feature);
    for (feature, (worth, count)) in features {
        let place = usize::try_from(feature % u64::from(DIMENSIONS)).unwrap_or_default();
        let sign = if feature >> 63 == 0 { 1.0 } else { -1.0 };
        #[expect(clippy::cast_precision_loss, reason = "no text has so many words")]
        let often = 1.0 + (count as f32).ln();
        vector[place] += sign * worth * often;
    }
    // Without words, or with such that cancel each other out, all such texts are alike.
    if normalise(&mut vector).is_none() {
        vector.fill(0.0);
        vector[0] = 1.0;
    }
    (vector, words)
}

/// What stands between punctuation, in small letters. Where words are written without spaces, each character is one.
fn words_of(text: &str) -> impl Iterator<Item = String> {
    let mut chars = text.chars().flat_map(char::to_lowercase).peekable();
    std::iter::from_fn(move || {
        while chars.next_if(|char| !char.is_alphanumeric()).is_some() {}
        let first = chars.next()?;
        let mut word = first.to_string();
        while !crate::chunk::is_ideograph(first)
            && let Some(next) = chars.next_if(|char| char.is_alphanumeric() && !crate::chunk::is_ideograph(*char))
        {
            word.push(next);
        }
        Some(word)
    })
}

/// FNV-1a, mixed once more, since its high bits alone say little about short words.
fn hash(word: &str) -> u64 {
    let hash = word
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    mixed(hash)
}

fn mixed(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests;
