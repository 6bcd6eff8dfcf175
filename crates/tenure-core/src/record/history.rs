use crate::{Actor, AuthorityClock, Epoch, GrantId, Instant, Reason, ResourceName, SessionId};

/// The newest point of an authority's history that somebody has seen. An authority that is shown a later point than its
/// own went back in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seen {
    /// The incarnation; it decides first.
    pub incarnation: u64,
    /// The number of the newest transition.
    pub number: u64,
}

/// One row of the history, written in the same atomic step as the change that it tells.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transition {
    /// When, on the authority's clock.
    pub at: Instant<AuthorityClock>,
    /// What happened.
    pub event: Event,
    /// The resource, when it is about one.
    pub resource: Option<ResourceName>,
    /// The session, when it is about one.
    pub session: Option<SessionId>,
    /// The epoch after the step, when it is about a resource.
    pub epoch: Option<Epoch>,
    /// The grant, when it is about one.
    pub grant: Option<GrantId>,
    /// Who: an owner's name, or an operator.
    pub actor: Option<Actor>,
    /// Why, in the words of whoever did it, or the protocol's.
    pub why: Option<Reason>,
}

/// What a row of the history tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// A session was opened.
    Opened,
    /// A session was renewed. Stores may leave these rows out: nothing changes hands.
    Renewed,
    /// A session ended.
    Ended,
    /// An ended session was swept away.
    Swept,
    /// A resource was granted, and its sinks are to be sealed.
    Granted,
    /// A sink was enrolled.
    Enrolled,
    /// A sink's generation was confirmed.
    Bound,
    /// A grant was registered at a sink.
    Sealed,
    /// The takeover was announced.
    Announced,
    /// A sink refused the grant.
    Refused,
    /// The grant was given up by its holder.
    Released,
    /// The resource is done.
    Completed,
    /// The grant was taken away.
    Revoked,
    /// A completed resource was opened again.
    Reopened,
    /// A sink was taken out of the enrolment.
    Unenrolled,
    /// A sink was reopened after a restore there.
    SinkReopened,
    /// The resource is on its way to be forgotten.
    Retiring,
    /// A sink has forgotten the resource.
    Forgotten,
    /// The namespace's floor was raised.
    FloorRaised,
    /// The resource is gone.
    Retired,
    /// The store was found to have gone back in time, or has taken over the history of another one.
    Quarantined,
    /// An operator has said that the store was put back.
    Restored,
    /// What a sink knows was taught to the store.
    Learnt,
}

impl Event {
    /// All events, for stores that read them back.
    pub const ALL: [Self; 23] = [
        Self::Opened,
        Self::Renewed,
        Self::Ended,
        Self::Swept,
        Self::Granted,
        Self::Enrolled,
        Self::Bound,
        Self::Sealed,
        Self::Announced,
        Self::Refused,
        Self::Released,
        Self::Completed,
        Self::Revoked,
        Self::Reopened,
        Self::Unenrolled,
        Self::SinkReopened,
        Self::Retiring,
        Self::Forgotten,
        Self::FloorRaised,
        Self::Retired,
        Self::Quarantined,
        Self::Restored,
        Self::Learnt,
    ];

    /// The name in stores, tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Renewed => "renewed",
            Self::Ended => "ended",
            Self::Swept => "swept",
            Self::Granted => "granted",
            Self::Enrolled => "enrolled",
            Self::Bound => "bound",
            Self::Sealed => "sealed",
            Self::Announced => "announced",
            Self::Refused => "refused",
            Self::Released => "released",
            Self::Completed => "completed",
            Self::Revoked => "revoked",
            Self::Reopened => "reopened",
            Self::Unenrolled => "unenrolled",
            Self::SinkReopened => "sink-reopened",
            Self::Retiring => "retiring",
            Self::Forgotten => "forgotten",
            Self::FloorRaised => "floor-raised",
            Self::Retired => "retired",
            Self::Quarantined => "quarantined",
            Self::Restored => "restored",
            Self::Learnt => "learnt",
        }
    }
}
