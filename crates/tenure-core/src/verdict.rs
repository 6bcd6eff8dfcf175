//! What a sink answers. A verdict is an answer, not an error.

use crate::record::EndReason;
use crate::{Epoch, Outcome, OwnerName};
use core::fmt;
use core::time::Duration;

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
    /// The token is registered, but the authority in the same database says that its grant is over
    /// ([`Rule::Held`](crate::fence::Rule::Held)). Nothing was written, and this holder has lost, though perhaps nobody has
    /// taken over yet.
    Over(Over),
}

/// An operation that was applied before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The epoch under which it was applied.
    pub epoch: Epoch,
    /// What it ended with.
    pub outcome: Outcome,
}

/// How the grant of a token came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    /// The epoch that was shown.
    pub presented: Epoch,
    /// The epoch of the authority's newest grant; `None` when it has none, or was not told.
    pub current: Option<Epoch>,
    /// Why the grant is over.
    pub why: Ending,
    /// Whose the newest grant is or was; `None` when that is not known here.
    pub holder: Option<OwnerName>,
    /// How long it has been over by the authority's clock; `None` when that is not known here.
    pub ago: Option<Duration>,
}

/// Why a grant is over at the authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ending {
    /// Its session ended, or its deadline has passed and nobody has ended it yet.
    Session(EndReason),
    /// Its session is not there: it ended long ago and was swept.
    Swept,
    /// It was given back, or taken away.
    Free,
    /// The resource is completed.
    Completed,
    /// The resource is on its way to be forgotten.
    Retiring,
    /// Another grant has followed it.
    Superseded,
    /// The authority has no record of the resource.
    Unknown,
}

impl Ending {
    /// All endings, for whoever reads one back.
    pub const ALL: [Self; 11] = [
        Self::Session(EndReason::Expired),
        Self::Session(EndReason::Closed),
        Self::Session(EndReason::Revoked),
        Self::Session(EndReason::Rebooted),
        Self::Session(EndReason::Restored),
        Self::Swept,
        Self::Free,
        Self::Completed,
        Self::Retiring,
        Self::Superseded,
        Self::Unknown,
    ];

    /// The name in stores and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Session(why) => why.name(),
            Self::Swept => "swept",
            Self::Free => "free",
            Self::Completed => "completed",
            Self::Retiring => "retiring",
            Self::Superseded => "superseded",
            Self::Unknown => "unknown",
        }
    }

    /// The ending of this name; `None` when there is none.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ending| ending.name() == name)
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(why) => why.fmt(f),
            Self::Swept => f.write_str("its session ended long ago"),
            Self::Free => f.write_str("it was given back or taken away"),
            Self::Completed => f.write_str("the resource is completed"),
            Self::Retiring => f.write_str("the resource is being retired"),
            Self::Superseded => f.write_str("another grant has followed it"),
            Self::Unknown => f.write_str("it knows nothing of the resource"),
        }
    }
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
            Self::Over(_) => "over",
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
            Self::Over(over) => over.fmt(f),
        }
    }
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { presented, current, why, holder, ago } = self;
        write!(f, "over: epoch {presented} was shown, and of its grant the authority says that {why}")?;
        if let Some(ago) = ago {
            write!(f, " ({ago:.1?} ago)")?;
        }
        match (current, holder) {
            (Some(current), Some(holder)) => write!(f, "; the newest grant is epoch {current} of {holder}")?,
            (Some(current), None) => write!(f, "; the newest grant is epoch {current}")?,
            _ => {}
        }
        f.write_str("; stop this worker")
    }
}
