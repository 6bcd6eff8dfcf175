use super::Keys;
use crate::record::{Owner, Seen};
use crate::{
    Actor, AuthorityClock, Epoch, Generation, GrantId, Instant, Outcome, Reason, ResourceName, SessionId, SinkId,
    Token, Ttl,
};
use alloc::collections::{BTreeMap, BTreeSet};

/// What somebody asks of the authority. Every request may be sent again: a holder's gets the same answer, an operator's
/// ([`Revoke`](Self::Revoke), [`Reopen`](Self::Reopen), [`ForgetRefused`](Self::ForgetRefused)) may find nothing left to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Request {
    /// What time is it, and who are you. Asked before an opening.
    Hello {
        /// The newest point of the history that the caller has seen.
        seen: Seen,
    },
    /// Opens a session.
    Open {
        /// Fresh, 128 random bits.
        id: SessionId,
        /// Whose it is.
        owner: Owner,
        /// Whether the holder runs on the store's host.
        on_this_host: bool,
        /// How long a granted renewal lasts.
        ttl: Ttl,
        /// The authority's time from a recent [`Request::Hello`]: an opening that was long under way is refused.
        asked_at: Instant<AuthorityClock>,
        /// The newest point of the history that the caller has seen.
        seen: Seen,
    },
    /// Renews a session, with all that stands on it.
    Renew {
        /// Which.
        id: SessionId,
        /// The number of this renewal; a repeat carries the same.
        n: u64,
        /// The newest point of the history that the caller has seen.
        seen: Seen,
    },
    /// The owner ends its session.
    Close {
        /// Which.
        id: SessionId,
    },
    /// An operator ends a session.
    RevokeSession {
        /// Which.
        id: SessionId,
        /// Who ends it.
        actor: Actor,
        /// Why.
        reason: Reason,
    },
    /// Removes a session that ended long ago.
    Sweep {
        /// Which.
        id: SessionId,
    },
    /// Asks for a resource.
    Acquire {
        /// Which.
        resource: ResourceName,
        /// Drawn by the candidate; also the id of this request.
        grant: GrantId,
        /// The candidate's session.
        session: SessionId,
        /// The sinks that the candidate will seal; they are enrolled with the grant.
        sinks: BTreeSet<SinkId>,
    },
    /// Adds sinks to a grant and every later one.
    Enrol {
        /// The current grant.
        token: Token,
        /// The sinks.
        sinks: BTreeSet<SinkId>,
    },
    /// Asks for the confirmation without which no seal may be sent.
    Bind {
        /// The current grant.
        token: Token,
        /// Its session.
        session: SessionId,
        /// Each sink's generation, read before asking.
        generations: BTreeMap<SinkId, Generation>,
    },
    /// Reports seals that were made.
    Sealed {
        /// The current grant.
        token: Token,
        /// The sinks, and the generation in which each was sealed.
        generations: BTreeMap<SinkId, Generation>,
    },
    /// Announces the takeover.
    Announce {
        /// The current grant.
        token: Token,
        /// Its session.
        session: SessionId,
        /// Sinks that a policy lets the takeover do without; they are named in the history.
        excused: BTreeSet<SinkId>,
    },
    /// Reports that a sink refused the grant.
    Refused {
        /// The current grant.
        token: Token,
        /// What the sink showed.
        shown: SinkRefusal,
    },
    /// Asks whether a grant stands.
    Check {
        /// The grant.
        token: Token,
        /// Its session.
        session: SessionId,
    },
    /// Gives a grant up.
    Release {
        /// The grant.
        token: Token,
    },
    /// Says that the resource is done.
    Complete {
        /// The current grant.
        token: Token,
        /// Its session.
        session: SessionId,
        /// What it ended with.
        outcome: Outcome,
    },
    /// Takes the present grant away.
    Revoke {
        /// Of which resource.
        resource: ResourceName,
        /// Only while its epoch is this one: whoever looked first does not hit the next holder.
        only: Option<Epoch>,
        /// Who takes it away.
        actor: Actor,
        /// Why.
        reason: Reason,
    },
    /// Opens a completed resource again.
    Reopen {
        /// Which.
        resource: ResourceName,
        /// Who opens it.
        actor: Actor,
        /// Why.
        reason: Reason,
    },
    /// Takes a sink out of the enrolment, after it has forgotten the resource.
    Unenrol {
        /// Which resource.
        resource: ResourceName,
        /// Which sink.
        sink: SinkId,
        /// The epoch up to which it has forgotten: a later grant may have been sealed there since, and is forgotten first.
        /// `None` when the sink is gone, and could not be asked.
        forgotten: Option<Epoch>,
        /// Who takes it out.
        actor: Actor,
        /// Why.
        reason: Reason,
    },
    /// Reports that an operator has reopened a sink, after a restore there: the present grant counts as unsealed there.
    ReopenSink {
        /// Of which resource.
        resource: ResourceName,
        /// Which sink.
        sink: SinkId,
        /// Who reopened it.
        actor: Actor,
        /// Why.
        reason: Reason,
    },
    /// Starts, or finishes, the forgetting of a resource.
    Retire {
        /// Which.
        resource: ResourceName,
        /// Who retires it.
        actor: Actor,
    },
    /// Reports that a sink has forgotten the resource.
    Forgotten {
        /// Which resource.
        resource: ResourceName,
        /// The cut at which it was forgotten.
        cut: Epoch,
        /// Which sink.
        sink: SinkId,
    },
    /// Reports that a sink refused to forget, because its row lies above the cut.
    ForgetRefused {
        /// Which resource.
        resource: ResourceName,
        /// The cut that was refused.
        cut: Epoch,
        /// The epoch of the sink's row.
        row: Epoch,
    },
    /// An operator has put a backup of the store back, or has promoted a replica: quarantines, also when nothing was
    /// noticed. During a quarantine there is nothing left to do.
    Restore {
        /// The longest ttl that a session of the lost history may have had, where it is known; the store's longest otherwise.
        longest_ttl: Option<Ttl>,
        /// Who says so.
        actor: Actor,
        /// Why it was put back.
        reason: Reason,
    },
    /// Teaches what a sink's row knows of a resource and a restored store may have forgotten. It raises, and lowers nothing.
    Learn {
        /// Which resource.
        resource: ResourceName,
        /// The epoch of the row.
        epoch: Epoch,
        /// The grant of the row.
        grant: GrantId,
        /// The sinks that are to be enrolled: all that the row was given, and the one that has the row.
        sinks: BTreeSet<SinkId>,
        /// Who teaches it.
        actor: Actor,
    },
    /// Teaches the floor of a sink, below which nothing is to be granted to a resource without a record.
    LearnFloor {
        /// The sink's floor.
        floor: Epoch,
        /// Who teaches it.
        actor: Actor,
    },
}

/// What a sink showed when it refused a seal or a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SinkRefusal {
    /// The epoch of its row, or its floor.
    pub epoch: Epoch,
    /// The grant of its row; none when the floor refused.
    pub grant: Option<GrantId>,
}

impl Request {
    /// What must be read before this request can be judged.
    #[must_use]
    pub fn keys(&self) -> Keys {
        match self {
            Self::Hello { .. } | Self::Restore { .. } | Self::LearnFloor { .. } => Keys::default(),
            Self::Open { id, .. }
            | Self::Renew { id, .. }
            | Self::Close { id }
            | Self::RevokeSession { id, .. }
            | Self::Sweep { id } => Keys { session: Some(*id), ..Keys::default() },
            Self::Acquire { resource, session, .. } => {
                Keys { session: Some(*session), resource: Some(resource.clone()), grant: None }
            }
            Self::Bind { token, session, .. }
            | Self::Announce { token, session, .. }
            | Self::Check { token, session }
            | Self::Complete { token, session, .. } => {
                Keys { session: Some(*session), resource: Some(token.resource.clone()), grant: None }
            }
            Self::Refused { token, shown } => {
                Keys { session: None, resource: Some(token.resource.clone()), grant: shown.grant }
            }
            Self::Enrol { token, .. } | Self::Sealed { token, .. } | Self::Release { token } => {
                Keys { resource: Some(token.resource.clone()), ..Keys::default() }
            }
            Self::Revoke { resource, .. }
            | Self::Reopen { resource, .. }
            | Self::Unenrol { resource, .. }
            | Self::ReopenSink { resource, .. }
            | Self::Retire { resource, .. }
            | Self::Forgotten { resource, .. }
            | Self::ForgetRefused { resource, .. }
            | Self::Learn { resource, .. } => Keys { resource: Some(resource.clone()), ..Keys::default() },
        }
    }

    /// The point of the history that the caller claims to have seen.
    #[must_use]
    pub const fn seen(&self) -> Option<Seen> {
        match self {
            Self::Hello { seen } | Self::Open { seen, .. } | Self::Renew { seen, .. } => Some(*seen),
            _ => None,
        }
    }
}
