//! How far a round has got.

use serde::Serialize;
use std::fmt;

/// A part of a round, between two checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The lease, and the seal of the index.
    Acquiring,
    /// Which documents there are.
    Listing,
    /// Into pieces, with a file for them.
    Chunking,
    /// A vector for each piece that has none.
    Embedding,
    /// The shadow generation.
    Writing,
    /// The shadow generation, read back.
    Verifying,
    /// The alias.
    Switching,
    /// The round's record.
    Recording,
    /// What dead epochs have left.
    Clearing,
}

impl Stage {
    /// What is being done, as in "stopped while *embedding*".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Acquiring => "acquiring",
            Self::Listing => "listing",
            Self::Chunking => "chunking",
            Self::Embedding => "embedding",
            Self::Writing => "writing",
            Self::Verifying => "verifying",
            Self::Switching => "switching",
            Self::Recording => "recording",
            Self::Clearing => "clearing",
        }
    }

    /// What its numbers count.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Listing | Self::Chunking => "documents",
            Self::Embedding | Self::Writing | Self::Verifying => "chunks",
            Self::Acquiring | Self::Switching | Self::Recording | Self::Clearing => "steps",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
