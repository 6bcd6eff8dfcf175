//! The authority's whole judgement, as one pure function.
//!
//! [`decide`] reads records and answers with at most one change of one record. Whoever runs it reads the records, lets
//! it decide, and swaps: the swap goes through only if the changed record still has the version that was read **and**
//! the session that the decision relied on is still Live. After [`Then::Again`] the records are read anew.

mod answer;
mod lease;
mod request;
mod restore;
mod retire;
mod session;
mod store;

pub use answer::{Granted, Refusal, Reply};
pub use request::{Request, SinkRefusal};
pub use session::SWEEP_AGE;
pub use store::EXPLAINED_FOR;

use crate::record::{AuthorityRecord, Event, Holdings, LeaseRecord, Seen, SessionRecord, Standing, Transition};
use crate::{Actor, AuthorityClock, GrantId, Instant, Reason, ResourceName, SessionId, StoreIdentity};

/// What was read, in one consistent step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// The store's own record.
    pub authority: AuthorityRecord,
    /// Which store this is by its own account, apart from what the record says.
    pub observed: StoreIdentity,
    /// The number of the newest row of the history.
    pub history: u64,
    /// The session that the request names.
    pub caller: Option<SessionRecord>,
    /// The fingerprint of the grants that stand on that session.
    pub holdings: Holdings,
    /// The resource that the request names.
    pub lease: Option<LeaseRecord>,
    /// The session on which the resource's newest grant stands.
    pub holder: Option<SessionRecord>,
    /// Whether the history knows the grant that a sink has shown; true when none was shown.
    pub grant_known: bool,
}

/// What a request needs to have read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// The session to read as [`View::caller`].
    pub session: Option<SessionId>,
    /// The resource to read as [`View::lease`].
    pub resource: Option<ResourceName>,
    /// The grant to look for in the history.
    pub grant: Option<GrantId>,
}

/// One change of one record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// The store's own record becomes this.
    Authority(AuthorityRecord),
    /// A session becomes this.
    Session(SessionRecord),
    /// An ended session is swept away.
    DropSession(SessionId),
    /// A resource becomes this.
    Lease(LeaseRecord),
    /// A retired resource goes.
    DropLease(ResourceName),
}

/// What the store must do, all or nothing and durable on return.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Swap {
    /// The change, under the version that was read.
    pub change: Change,
    /// The session that must still be Live, in the authority's present incarnation.
    pub relies_on: Option<SessionId>,
    /// The row of the history.
    pub transition: Transition,
}

impl Swap {
    /// Before when, on the store's clock, the swap must be made; a later one is decided anew. `None`: whenever.
    ///
    /// A quarantine is counted from the reading, and until it is made, sessions of the former incarnation are renewed: a
    /// twentieth of the longest ttl is half of the margin by which their holders stop earlier (see `Timing::MARGIN_DIVISOR`).
    #[must_use]
    pub fn made_before(&self) -> Option<Instant<AuthorityClock>> {
        match &self.change {
            Change::Authority(record) if record.quarantined_until.is_some() => {
                Some(self.transition.at.after(record.max_ttl.get() / 20))
            }
            _ => None,
        }
    }
}

/// What follows from the records and the request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The change to make first, if any.
    pub swap: Option<Swap>,
    /// What to do once it is made.
    pub then: Then,
}

/// What to do once the change is made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Then {
    /// Answer.
    Answer(Result<Reply, Refusal>),
    /// Read and decide again: the change only cleared the way.
    Again,
}

impl Decision {
    fn answer(answer: Result<Reply, Refusal>) -> Self {
        Self { swap: None, then: Then::Answer(answer) }
    }

    fn refuse(refusal: Refusal) -> Self {
        Self::answer(Err(refusal))
    }

    fn swap(swap: Swap, reply: Reply) -> Self {
        Self { swap: Some(swap), then: Then::Answer(Ok(reply)) }
    }

    fn first(swap: Swap) -> Self {
        Self { swap: Some(swap), then: Then::Again }
    }
}

/// Judges one request.
///
/// `now` is the reading of the store's clock that belongs to `view`.
#[must_use]
pub fn decide(view: &View, request: &Request, now: Instant<AuthorityClock>) -> Decision {
    if let Some(swap) = store::went_back(view, request, now) {
        return Decision::first(swap);
    }
    match request {
        Request::Hello { .. } => Decision::answer(Ok(store::hello(view, now))),
        Request::Open { .. }
        | Request::Renew { .. }
        | Request::Close { .. }
        | Request::RevokeSession { .. }
        | Request::Sweep { .. } => session::decide(view, request, now),
        Request::Acquire { .. }
        | Request::Enrol { .. }
        | Request::Bind { .. }
        | Request::Sealed { .. }
        | Request::Announce { .. }
        | Request::Refused { .. }
        | Request::Check { .. }
        | Request::Release { .. }
        | Request::Complete { .. }
        | Request::Revoke { .. } => lease::decide(view, request, now),
        Request::Reopen { .. }
        | Request::Unenrol { .. }
        | Request::ReopenSink { .. }
        | Request::Retire { .. }
        | Request::Forgotten { .. }
        | Request::ForgetRefused { .. } => retire::decide(view, request, now),
        Request::Restore { .. } | Request::Learn { .. } | Request::LearnFloor { .. } => {
            restore::decide(view, request, now)
        }
    }
}

impl View {
    fn caller_standing(&self, now: Instant<AuthorityClock>) -> Standing {
        SessionRecord::standing(self.caller.as_ref(), &self.authority, now)
    }

    fn holder_standing(&self, now: Instant<AuthorityClock>) -> Standing {
        SessionRecord::standing(self.holder.as_ref(), &self.authority, now)
    }

    /// The newest point of this history.
    #[must_use]
    pub const fn seen(&self) -> Seen {
        Seen { incarnation: self.authority.incarnation, number: self.history }
    }
}

fn lease_transition(lease: &LeaseRecord, event: Event, now: Instant<AuthorityClock>) -> Transition {
    Transition {
        at: now,
        event,
        resource: Some(lease.resource.clone()),
        session: Some(lease.session),
        epoch: Some(lease.epoch),
        grant: Some(lease.grant),
        actor: actor_of(lease.owner.name.as_str()),
        why: None,
    }
}

fn session_transition(session: &SessionRecord, event: Event, now: Instant<AuthorityClock>) -> Transition {
    Transition {
        at: now,
        event,
        resource: None,
        session: Some(session.id),
        epoch: None,
        grant: None,
        actor: actor_of(session.owner.name.as_str()),
        why: None,
    }
}

/// Owner names and actors have the same limits, so this is always there.
fn actor_of(name: &str) -> Option<Actor> {
    Actor::new(name).ok()
}

fn reason(text: &dyn core::fmt::Display) -> Option<Reason> {
    Reason::new(alloc::format!("{text}")).ok()
}

#[cfg(test)]
mod tests;
