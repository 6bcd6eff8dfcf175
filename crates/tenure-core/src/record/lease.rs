use super::{Grant, Owner};
use crate::{AuthorityClock, Epoch, Generation, GrantId, Instant, Outcome, ResourceName, SessionId, SinkId, Token};
use alloc::collections::{BTreeMap, BTreeSet};

/// One per resource that was ever granted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseRecord {
    /// What is held.
    pub resource: ResourceName,
    /// The epoch of the newest grant, or a higher one that a sink has shown.
    pub epoch: Epoch,
    /// The newest grant.
    pub grant: GrantId,
    /// The session on which the newest grant stands.
    pub session: SessionId,
    /// Whose session that is, so that a refusal can say who.
    pub owner: Owner,
    /// When the newest grant was given.
    pub since: Instant<AuthorityClock>,
    /// Where the newest grant stands.
    pub phase: Phase,
    /// The enrolled sinks, and how far the newest grant got with each.
    pub sinks: BTreeMap<SinkId, SinkMark>,
}

/// Where a resource stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Nobody holds it.
    Free,
    /// Granted, but not announced: the sinks are being sealed.
    Sealing,
    /// Granted and announced.
    Held,
    /// Done for good, until an operator reopens it.
    Completed {
        /// What it ended with.
        outcome: Outcome,
    },
    /// On its way to be forgotten, at every sink first.
    Retiring {
        /// Epochs up to it will never be accepted again.
        cut: Epoch,
        /// The sinks that have forgotten it at this cut.
        forgotten: BTreeSet<SinkId>,
    },
}

impl Phase {
    /// The name in tables and in JSON.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Sealing => "sealing",
            Self::Held => "held",
            Self::Completed { .. } => "completed",
            Self::Retiring { .. } => "retiring",
        }
    }
}

/// How far a grant got with one enrolled sink.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SinkMark {
    /// The sink's generation, read before the authority confirmed it.
    pub bound: Option<Generation>,
    /// Whether the grant is registered there, in that generation.
    pub sealed: bool,
    /// Whether the takeover was announced without it, by the holder's policy. Until it is sealed, the holder is refused
    /// there, and a former one may still be accepted.
    pub excused: bool,
}

impl LeaseRecord {
    /// The token of the newest grant.
    #[must_use]
    pub fn token(&self) -> Token {
        Token { resource: self.resource.clone(), epoch: self.epoch, grant: self.grant }
    }

    /// Whether a grant stands: given, and neither released nor finished.
    #[must_use]
    pub const fn is_granted(&self) -> bool {
        matches!(self.phase, Phase::Sealing | Phase::Held)
    }

    /// Whether this very token stands.
    #[must_use]
    pub fn is_current(&self, token: &Token) -> bool {
        self.is_granted() && self.epoch == token.epoch && self.grant == token.grant
    }

    /// The sinks without which the takeover was announced, and which are not sealed yet.
    #[must_use]
    pub fn excused(&self) -> BTreeSet<SinkId> {
        let excused = self.sinks.iter().filter(|(_, mark)| self.is_granted() && mark.excused && !mark.sealed);
        excused.map(|(sink, _)| sink.clone()).collect()
    }

    /// The record in another store than the one that has granted, where none of its sessions is: no grant stands, the
    /// receivers stay enrolled but are to be sealed anew, and since when is only vouched for from now on.
    #[must_use]
    pub fn imported(&self, now: Instant<AuthorityClock>) -> Self {
        Self {
            phase: if self.is_granted() { Phase::Free } else { self.phase.clone() },
            sinks: self.sinks.keys().map(|sink| (sink.clone(), SinkMark::default())).collect(),
            since: now,
            ..self.clone()
        }
    }

    /// The grant that stands, with its session.
    #[must_use]
    pub fn holding(&self) -> Option<(SessionId, Grant)> {
        self.is_granted().then_some((self.session, Grant { epoch: self.epoch, id: self.grant }))
    }
}
