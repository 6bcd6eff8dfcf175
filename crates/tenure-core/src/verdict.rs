//! What a sink answers. A verdict is an answer, not an error.

use crate::{Epoch, Outcome};
use core::fmt;

/// The answer of a sink to a write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a verdict other than `Written` and `Replay` means that nothing was written"]
pub enum Verdict {
    /// The effect is applied, in the same transaction as the check.
    Written,
    /// The same operation with the same digest was applied before; its stored outcome comes back.
    Replay(Replayed),
    /// The same operation or the same epoch, with other content. Nothing was written.
    Conflict {
        /// The epoch under which the other content stands.
        current: Epoch,
    },
    /// A newer token is registered. Nothing was written, and this holder has lost.
    Stale {
        /// The epoch that was shown.
        presented: Epoch,
        /// The epoch that the sink has.
        current: Epoch,
    },
    /// This token is not registered here, or not in the sink's present generation. Nothing was written. It is no loss:
    /// bind and seal again.
    Unsealed,
}

/// An operation that was applied before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The epoch under which it was applied.
    pub epoch: Epoch,
    /// What it ended with.
    pub outcome: Outcome,
}

impl Verdict {
    /// The name in tables and in JSON.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Replay(_) => "replay",
            Self::Conflict { .. } => "conflict",
            Self::Stale { .. } => "stale",
            Self::Unsealed => "unsealed",
        }
    }

    /// Whether the effect stands, by this call or by an earlier one.
    #[must_use]
    pub const fn stands(&self) -> bool {
        matches!(self, Self::Written | Self::Replay(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Written => f.write_str("written"),
            Self::Replay(replayed) => write!(f, "replay: already applied under epoch {}", replayed.epoch),
            Self::Conflict { current } => write!(f, "conflict: other content stands under epoch {current}"),
            Self::Stale { presented, current } => {
                write!(f, "stale: epoch {presented} was shown, epoch {current} is registered; stop this worker")
            }
            Self::Unsealed => f.write_str("unsealed: this token is not registered here; bind and seal it first"),
        }
    }
}
