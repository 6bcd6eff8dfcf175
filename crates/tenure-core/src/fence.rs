//! What a sink's one transaction must do. Pure: the sink reads its row, asks here, and writes what it is told to.
//!
//! Under [`Rule::Held`] there are two steps: [`admit`], and [`still_held`] on what the authority says in the same database.
//!
//! The row has no time to live, no clean-up and no reset but the named operator call: a fence that can be forgotten
//! lets a stopped worker in again.

mod held;

pub use held::{HeldRow, Hold, still_held};

use crate::{Epoch, Generation, GrantId, Order, SinkId, Token, Verdict};
use alloc::collections::BTreeSet;

/// What a sink keeps for one resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FenceRow {
    /// The epoch of the registered token.
    pub epoch: Epoch,
    /// Its grant.
    pub grant: GrantId,
    /// The sink's generation in which it was registered.
    pub generation: Generation,
    /// Raised by one at each seal: it gives every accepted write a place between two seals, without a clock.
    pub seal_no: u64,
    /// The union of all enrolments that this sink was ever given for the resource, so that an authority that lost its
    /// memory forgets no receiver.
    pub enrolled: BTreeSet<SinkId>,
}

/// What a sink accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Only the registered token, in the generation in which it was registered. The default.
    Sealed,
    /// Any epoch at or above the highest seen. For receivers that cannot be sealed in advance: a late write that
    /// arrives before the new holder's first is accepted.
    HighWater,
    /// What [`Sealed`](Self::Sealed) accepts, and only while the authority, whose records are in the same database, says
    /// that the grant stands and its deadline lies ahead: [`still_held`]. A late write is refused before anybody takes over.
    Held,
}

impl Rule {
    /// All rules, for whoever reads one back.
    pub const ALL: [Self; 3] = [Self::Sealed, Self::HighWater, Self::Held];

    /// Whether a sink under it is enrolled and sealed.
    #[must_use]
    pub const fn is_sealed(self) -> bool {
        !matches!(self, Self::HighWater)
    }

    /// The name in tables and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sealed => "sealed",
            Self::HighWater => "high-water",
            Self::Held => "held",
        }
    }
}

/// Whether a write may go on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a refused write must not be applied"]
pub enum Admission {
    /// It may. The row stays as it is: writing it again would make every write of a holder wait for the others.
    Admit,
    /// It may, and the row must become this in the same transaction.
    Raise(FenceRow),
    /// It must not; the verdict says why.
    Refuse(Verdict),
}

/// Judges a write. Under [`Rule::Held`], what is admitted here is admitted only if it is [`still_held`] as well.
///
/// `row` is the sink's row of the token's resource, `floor` the namespace's floor, `generation` the sink's present one;
/// all read in the transaction of the effect.
pub fn admit(
    rule: Rule,
    row: Option<&FenceRow>,
    floor: Option<Epoch>,
    generation: &Generation,
    token: &Token,
) -> Admission {
    let stale = |current| Admission::Refuse(Verdict::Stale { presented: token.epoch, current });
    let Some(row) = row else {
        return match (rule, floor) {
            (_, Some(floor)) if token.epoch <= floor => stale(floor),
            (Rule::Sealed | Rule::Held, _) => Admission::Refuse(Verdict::Unsealed),
            (Rule::HighWater, _) => Admission::Raise(registered(token, generation, 1, BTreeSet::new())),
        };
    };
    match (token.order(row.epoch, row.grant), rule) {
        (Order::Older, _) => stale(row.epoch),
        (Order::Conflict, _) => Admission::Refuse(Verdict::Conflict { current: row.epoch }),
        (Order::Same, Rule::HighWater) => Admission::Admit,
        (Order::Same, Rule::Sealed | Rule::Held) if row.generation == *generation => Admission::Admit,
        (Order::Same | Order::Newer, Rule::Sealed | Rule::Held) => Admission::Refuse(Verdict::Unsealed),
        (Order::Newer, Rule::HighWater) => {
            Admission::Raise(registered(token, generation, row.seal_no.saturating_add(1), row.enrolled.clone()))
        }
    }
}

/// What became of a seal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a takeover may only be announced after every seal was made"]
pub enum Sealing {
    /// The token is registered: the row must become this. The holder learns the enrolment from it.
    Seal(FenceRow),
    /// The sink's generation is another one: read it, have the authority confirm it, and seal again.
    WrongGeneration {
        /// The present generation.
        current: Generation,
    },
    /// A newer token is registered.
    Stale {
        /// Its epoch.
        epoch: Epoch,
        /// Its grant.
        grant: GrantId,
    },
    /// Another grant of the same epoch is registered.
    Conflict {
        /// The epoch.
        epoch: Epoch,
        /// The other grant.
        grant: GrantId,
    },
    /// The resource was retired above this epoch.
    BelowFloor {
        /// The floor.
        floor: Epoch,
    },
}

/// Judges a seal. It must wait until every transaction that was admitted under an older token has ended.
///
/// `bound` is the generation that the authority has confirmed for this token.
pub fn seal(
    row: Option<&FenceRow>,
    floor: Option<Epoch>,
    generation: &Generation,
    token: &Token,
    bound: &Generation,
    enrolled: &BTreeSet<SinkId>,
) -> Sealing {
    if bound != generation {
        return Sealing::WrongGeneration { current: generation.clone() };
    }
    let Some(row) = row else {
        return match floor {
            Some(floor) if token.epoch <= floor => Sealing::BelowFloor { floor },
            _ => Sealing::Seal(registered(token, generation, 1, enrolled.clone())),
        };
    };
    match token.order(row.epoch, row.grant) {
        Order::Older => Sealing::Stale { epoch: row.epoch, grant: row.grant },
        Order::Conflict => Sealing::Conflict { epoch: row.epoch, grant: row.grant },
        Order::Same | Order::Newer => {
            let union = row.enrolled.union(enrolled).cloned().collect();
            Sealing::Seal(registered(token, generation, row.seal_no.saturating_add(1), union))
        }
    }
}

/// What became of a retirement at a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a resource may only be dropped after every sink has forgotten it"]
pub enum Forgetting {
    /// The floor must become this and the row must go, in one transaction.
    Forget {
        /// The namespace's new floor.
        floor: Epoch,
    },
    /// The row lies above the cut, and stays: the cut must be raised first.
    Above {
        /// The row's epoch.
        epoch: Epoch,
        /// The row's grant.
        grant: GrantId,
    },
}

/// Judges a retirement.
pub fn forget(row: Option<&FenceRow>, floor: Option<Epoch>, cut: Epoch) -> Forgetting {
    match row {
        Some(row) if row.epoch > cut => Forgetting::Above { epoch: row.epoch, grant: row.grant },
        _ => Forgetting::Forget { floor: floor.map_or(cut, |floor| floor.max(cut)) },
    }
}

fn registered(token: &Token, generation: &Generation, seal_no: u64, enrolled: BTreeSet<SinkId>) -> FenceRow {
    FenceRow { epoch: token.epoch, grant: token.grant, generation: generation.clone(), seal_no, enrolled }
}

#[cfg(test)]
mod tests;
