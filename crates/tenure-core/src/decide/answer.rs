use crate::record::{EndReason, Holdings, LeaseRecord, Owner, Seen};
use crate::{AuthorityClock, Epoch, Instant, Outcome, SinkId, Token, Ttl};
use alloc::collections::BTreeSet;
use core::fmt;
use core::time::Duration;

/// A request was granted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// The authority's time and history.
    Hello {
        /// Its clock.
        now: Instant<AuthorityClock>,
        /// The newest point of its history.
        seen: Seen,
        /// The longest ttl that it allows.
        max_ttl: Ttl,
    },
    /// The session is open, or was opened by this very request before.
    Opened {
        /// The newest point of the history.
        seen: Seen,
    },
    /// The session is renewed, or was renewed by this very request before.
    Renewed {
        /// The newest point of the history.
        seen: Seen,
        /// The grants that stand on the session.
        holdings: Holdings,
    },
    /// The session has ended.
    Ended,
    /// The resource is granted.
    Granted(Granted),
    /// The sinks are enrolled.
    Enrolled,
    /// The generations are confirmed: the seals may be sent.
    Bound,
    /// The seals are marked.
    Marked,
    /// The takeover is announced: only now does the caller hold the resource.
    Announced,
    /// What a sink showed is known now: the next epoch is above the sink's, and its enrolment is known.
    Learnt,
    /// The store counts as restored, and is in quarantine.
    Restored {
        /// The incarnation, in which no session stands yet.
        incarnation: u64,
        /// How long nothing is granted.
        remaining: Duration,
    },
    /// The grant stands.
    Stands,
    /// The grant is given up.
    Released,
    /// The resource is done.
    Completed,
    /// The grant is taken away.
    Revoked {
        /// Which one it was.
        token: Token,
        /// Whose it was.
        owner: Owner,
    },
    /// The resource may be acquired again.
    Reopened,
    /// The sink is out of the enrolment.
    Unenrolled,
    /// The sink is to be bound and sealed again.
    SinkReopened,
    /// The sinks must forget the resource at this cut.
    Retiring {
        /// The cut.
        cut: Epoch,
        /// The sinks that have not forgotten yet.
        waiting: BTreeSet<SinkId>,
    },
    /// The resource is gone.
    Retired,
}

/// What a candidate was given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Granted {
    /// The right to write, once it is announced.
    pub token: Token,
    /// Whether it is announced already: no sink is enrolled, or this is a lost answer that comes again.
    pub announced: bool,
    /// The enrolled sinks, all of which must be sealed.
    pub sinks: BTreeSet<SinkId>,
    /// Those of them that are not marked as sealed: once it is announced, the ones that were excused and those that are to
    /// be sealed again.
    pub unsealed: BTreeSet<SinkId>,
}

impl Granted {
    pub(super) fn of(lease: &LeaseRecord) -> Self {
        Self {
            token: lease.token(),
            announced: matches!(lease.phase, crate::record::Phase::Held),
            sinks: lease.sinks.keys().cloned().collect(),
            unsealed: lease.sinks.iter().filter(|(_, mark)| !mark.sealed).map(|(sink, _)| sink.clone()).collect(),
        }
    }
}

/// A request was refused. A refusal is an answer: the authority works.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Somebody else holds the resource. Wait, or ask an operator.
    Busy {
        /// Who.
        owner: Owner,
        /// Under which epoch.
        epoch: Epoch,
        /// For how long already.
        held_for: Duration,
        /// How long still, unless it is renewed.
        remaining: Duration,
        /// Whether the sinks are still being sealed.
        sealing: bool,
    },
    /// The caller's session has ended. Open another one.
    SessionEnded {
        /// Why; `None` when there is no such session (it was swept, or never opened).
        why: Option<EndReason>,
    },
    /// The store went back in time, and nothing is granted for a while.
    Quarantined {
        /// How long still.
        remaining: Duration,
    },
    /// The resource is done.
    Completed {
        /// The stored outcome.
        outcome: Outcome,
        /// The epoch under which it was completed.
        epoch: Epoch,
        /// Who completed it.
        owner: Owner,
    },
    /// The resource is being retired.
    Retiring {
        /// The cut.
        cut: Epoch,
    },
    /// The grant is not the current one: it was released, revoked or taken over.
    NotCurrent {
        /// The current epoch; `None` when the resource has no record.
        epoch: Option<Epoch>,
        /// The current owner, when somebody holds it.
        owner: Option<Owner>,
    },
    /// The grant is current but not announced yet.
    NotAnnounced {
        /// The sinks that are not sealed.
        waiting: BTreeSet<SinkId>,
    },
    /// The candidate cannot seal a sink that is enrolled.
    NoAdapter {
        /// Which.
        sink: SinkId,
    },
    /// The sink is not enrolled. Enrol it first.
    NotEnrolled {
        /// Which.
        sink: SinkId,
    },
    /// The sink was sealed in a generation that was not confirmed. Bind and seal again.
    NotBound {
        /// Which.
        sink: SinkId,
    },
    /// The ttl is above what this authority allows.
    TtlTooLong {
        /// The longest allowed.
        max: Ttl,
    },
    /// The opening was under way for too long. Say hello again.
    OpeningTooOld,
    /// The renewal carries a number that is not its turn: the session cannot be trusted any more.
    OutOfStep {
        /// The number whose turn it is.
        expected: u64,
    },
    /// The resource is held, being retired, or was never granted; this request needs another phase.
    WrongPhase {
        /// The phase, by name; `absent` without a record.
        phase: &'static str,
    },
    /// The cut is not the present one. Ask for the present one with a retirement.
    OldCut {
        /// The present cut.
        cut: Epoch,
    },
    /// No epoch is left.
    EpochsExhausted,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy { owner, epoch, held_for, remaining, sealing } => write!(
                f,
                "held by {owner} under epoch {epoch} for {}{}; it is free in {} unless it is renewed: wait, or ask that worker to release it",
                Span(*held_for),
                if *sealing { " (still sealing its receivers)" } else { "" },
                Span(*remaining)
            ),
            Self::SessionEnded { why: Some(why) } => write!(f, "the session has ended ({why}): open another one"),
            Self::SessionEnded { why: None } => f.write_str("there is no such session: open another one"),
            Self::Quarantined { remaining } => write!(
                f,
                "the authority's store went back in time and grants nothing for {} more, so that no old holder is overtaken: wait, \
                 and let it learn meanwhile what its receivers know (tenure restore --learn-from RECEIVER)",
                Span(*remaining)
            ),
            Self::Completed { epoch, owner, .. } => {
                write!(f, "{owner} has completed the resource under epoch {epoch}: an operator can reopen it")
            }
            Self::Retiring { cut } => write!(f, "the resource is being retired at epoch {cut}: wait until it is gone"),
            Self::NotCurrent { epoch: Some(epoch), owner: Some(owner) } => {
                write!(f, "the grant is gone: {owner} holds the resource under epoch {epoch}; stop this worker")
            }
            Self::NotCurrent { epoch: Some(epoch), owner: None } => {
                write!(f, "the grant is gone: nobody holds the resource, its last epoch is {epoch}; acquire it again")
            }
            Self::NotCurrent { .. } => f.write_str("the grant is gone: the authority has no record of this resource"),
            Self::NotAnnounced { waiting } => {
                write!(f, "the takeover is not announced: {} of its receivers are not sealed", waiting.len())
            }
            Self::NoAdapter { sink } => write!(
                f,
                "the receiver {sink} is enrolled for this resource, and this worker cannot seal it: configure it, or have an operator remove it"
            ),
            Self::NotEnrolled { sink } => {
                write!(f, "the receiver {sink} is not enrolled for this resource: enrol it first")
            }
            Self::NotBound { sink } => {
                write!(
                    f,
                    "the receiver {sink} was sealed in a generation that was not confirmed: bind and seal it again"
                )
            }
            Self::TtlTooLong { max } => write!(f, "this authority allows a ttl of at most {}", Span(max.get())),
            Self::OpeningTooOld => f.write_str("the request to open a session was too long under way: connect again"),
            Self::OutOfStep { expected } => {
                write!(f, "renewal {expected} is due, another one was sent: open another session")
            }
            Self::WrongPhase { phase } => write!(f, "the resource is {phase}: this needs another state"),
            Self::OldCut { cut } => write!(f, "the cut is {cut} now: forget the resource at that cut"),
            Self::EpochsExhausted => f.write_str("no epoch is left for this resource: use another resource name"),
        }
    }
}

impl core::error::Error for Refusal {}

/// A duration for people: seconds with one digit, or milliseconds below one second.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < Duration::from_secs(1) {
            write!(f, "{} ms", self.0.as_millis())
        } else {
            write!(f, "{:.1} s", self.0.as_secs_f64())
        }
    }
}
