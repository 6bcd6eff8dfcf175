//! The ledger of calls to the outside world, in the store of a sink.
//!
//! # What is not guaranteed
//!
//! * **Not** that a call is made exactly once. Whether it took effect may be known to nobody; then it is
//!   [`unknown`](Attempt::Unknown), is never made again by itself, and waits for a probe or a person.
//! * **Not** that an absence at a system that checks no token means anything: a request that is under way may still
//!   arrive. [`Looked::NotSeen`] changes nothing.
//! * **Not** that the outside system applies a request once. Give it the operation's id as its idempotency key, if it
//!   has such a thing.
//! * **Not** what a backup has forgotten. A store that was put back knows nothing of the calls that were made since, and
//!   would let them be made again: before the workers start, compare with the outside systems' own books.
//! * **Not** without seals. A ledger belongs to a sink under [`Rule::Sealed`](tenure_core::fence::Rule::Sealed) or
//!   [`Rule::Held`](tenure_core::fence::Rule::Held). Under the second one a worker whose lease has run out can say nothing
//!   more of its call, and the next holder finds it unknown.
//!
//! # The life of a call
//!
//! ```text
//! intent --the mark is durable--> sent --answer--> done
//!                                   |--a refusal that proves no effect--> failed   (never a timeout)
//!                                   |--timeout, reset--> unknown
//! intent, taken over        -> not-applied
//! sent, taken over          -> unknown
//! unknown, looked for after the seal of a system that checks tokens -> applied, or not-applied for good
//! unknown, looked for by its key elsewhere                          -> applied, or unknown still
//! failed, not-applied       -> may run again under a new token, with the same operation id
//! ```
//!
//! The worker writes through its store's own type, inside its own transactions:
#![cfg_attr(feature = "sqlite", doc = "[`SqliteLedger`](crate::SqliteLedger),")]
#![cfg_attr(feature = "postgres", doc = "[`PostgresLedger`](crate::PostgresLedger).")]
//!
//! Whoever takes over, and whoever looks, uses [`Ledger`]. [`reconcile`] asks the probes.
//!
//! The judgement is [`tenure_core::ledger`]'s.

mod probe;
mod reconcile;

pub use probe::{Probe, ProbeError};
pub use reconcile::{Reconciled, reconcile};

use crate::{Answer, SinkError};
use std::fmt;
use tenure_core::ledger::{Intending, Looked, Unheard};
use tenure_core::operation::Attempt;
use tenure_core::{
    Actor, Digest, Epoch, OperationId, Outcome, OwnerName, Reason, ResourceName, SinkId, Token, Verdict,
};

/// What is about to be asked of the outside world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Which intent it is, the same whenever it is tried again. See [`OperationId::for_intent`].
    pub operation: OperationId,
    /// Of the request's content.
    pub digest: Digest,
    /// The outside system, by a name of your own. It says which [`Probe`] can look.
    pub system: SinkId,
    /// Who is going to send it: whom to ask when nobody knows.
    pub owner: OwnerName,
}

/// What became of an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "only `Written` allows the call, after its mark"]
pub enum Intended {
    /// It is written down, and stands once the transaction is committed. Nothing was sent; mark it next.
    Written,
    /// The operation took effect before. Do not call.
    Effective {
        /// The epoch under which it did.
        epoch: Epoch,
        /// What it ended with, when somebody has said so.
        outcome: Option<Outcome>,
    },
    /// The same operation stands there with other content. Do not call: one of the two has the wrong id.
    Conflict {
        /// The epoch under which it stands.
        current: Epoch,
    },
    /// An attempt is not over, and may have taken effect or still take it. Do not call: reconcile first. Commit
    /// the transaction, since it may have settled what older epochs left.
    Unsettled {
        /// The attempt's epoch.
        epoch: Epoch,
        /// Where it stands.
        state: Attempt,
    },
    /// This epoch has had its attempt, and it took no effect. It may run again under a new token.
    Over {
        /// How that attempt ended.
        state: Attempt,
    },
}

impl From<Intending> for Intended {
    fn from(judged: Intending) -> Self {
        match judged {
            Intending::Write | Intending::Standing => Self::Written,
            Intending::Effective { epoch, outcome } => Self::Effective { epoch, outcome },
            Intending::Conflict { current } => Self::Conflict { current },
            Intending::Unsettled { epoch, state } => Self::Unsettled { epoch, state },
            Intending::Over { state } => Self::Over { state },
        }
    }
}

/// Why there was no effect, when the call's failure proves it. A timeout, a reset or a broken connection proves nothing:
/// they are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoEffect {
    /// The receiver's fence refused the token.
    Fenced,
    /// The receiver answered that it refuses the request, and does so before anything changes: a constraint, a card
    /// that was declined.
    Refused,
    /// Not one byte has left: no connection came about.
    Unreached,
}

impl NoEffect {
    /// The name in stores and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fenced => "fenced",
            Self::Refused => "refused",
            Self::Unreached => "unreached",
        }
    }
}

/// The ledger has not taken what was said; nothing of it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "what the ledger refused did not happen"]
pub enum Refused {
    /// The fence refuses the token.
    Token(Verdict),
    /// There is no such attempt.
    Missing,
    /// It cannot be said of the attempt as it stands.
    Unheard(Unheard),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(verdict) => verdict.fmt(f),
            Self::Missing => f.write_str("there is no such attempt: write its intent down first"),
            Self::Unheard(why) => why.fmt(f),
        }
    }
}

/// The proof that the mark of an attempt is durable: now, and only now, the first byte may leave.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the mark says that the call may have been made: make it, or say that it was not"]
pub struct Marked {
    key: AttemptKey,
}

impl Marked {
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) const fn new(key: AttemptKey) -> Self {
        Self { key }
    }

    /// Which attempt it is.
    #[must_use]
    pub const fn key(&self) -> &AttemptKey {
        &self.key
    }
}

/// Which attempt it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptKey {
    /// The resource under whose lease it was made.
    pub resource: ResourceName,
    /// Which intent.
    pub operation: OperationId,
    /// Under which epoch.
    pub epoch: Epoch,
}

impl fmt::Display for AttemptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} under epoch {}", self.operation, self.resource, self.epoch)
    }
}

/// An attempt as it stands in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Which attempt.
    pub key: AttemptKey,
    /// Between which two seals it was made.
    pub seal_no: u64,
    /// Of its content.
    pub digest: Digest,
    /// Where it stands.
    pub state: Attempt,
    /// What it ended with, when somebody has said so.
    pub outcome: Option<Outcome>,
    /// The outside system.
    pub system: SinkId,
    /// Who made it.
    pub owner: OwnerName,
    /// When its intent was written: milliseconds since 1970 on the store's wall clock. For people; nothing is decided by it.
    pub intended_ms: u64,
    /// When its state last changed, likewise.
    pub changed_ms: u64,
    /// How old its state is by now, in milliseconds on the same clock.
    pub age_ms: u64,
    /// Who decided it, if that was a person.
    pub decided_by: Option<Actor>,
    /// Why it stands as it stands, when somebody has said so.
    pub why: Option<Reason>,
}

/// Which attempts are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Which {
    /// Those that nobody knows about.
    Unknown,
    /// Those that are not over: intents, marked ones, unknown ones.
    Open,
    /// All.
    All,
}

/// What a takeover has settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// So many attempts were marked, and are unknown now.
    pub unknown: u64,
    /// So many were mere intents, and are not applied.
    pub not_applied: u64,
}

/// What a person has decided of an unknown attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It took effect, with this outcome if that is known.
    Applied(Option<Outcome>),
    /// It took no effect and never will: the request, and the worker that may still send it, are gone.
    NotApplied,
}

/// A ledger as a new holder and an operator see it. Workers write another way: through their store's own transactions.
///
/// # Contract
///
/// Each clause is a function of the `conformance` suite for ledgers.
///
/// 1. **One book.** The entry of an attempt changes in the same transaction as the check of its token, and with whatever
///    else is in that transaction: all of it stands, or none.
/// 2. **Mark first.** Nothing leaves `intent` but by the mark, which is durable when its call returns (L5). Of those who
///    mark one attempt at once, one gets it.
/// 3. **Closed book.** Once a newer token is registered, no older one moves an entry.
/// 4. **Takeover.** `settle` judges by [`tenure_core::ledger::take_over`], for a token that is registered here and not before.
/// 5. **Unknown stays.** It is left by a finding alone (L6). An absence is one only where the receiver was sealed since, or
///    where a person says so; and a person decides what is unknown and nothing else.
/// 6. **Over is over.** `failed` and `not-applied` are final (L2), and so are `done` and `applied`.
/// 7. **Once.** An operation that took effect, or may have, is not begun again (L4). Other content under its id is a conflict.
/// 8. **Listing.** `list` shows each attempt once, in the order of its keys, with whoever made it and the age of its state.
/// 9. **Whole.** Every valid name and digest comes back as it was given, and so does every text, unless it is refused by name
///    because the store cannot keep it.
pub trait Ledger: Send + Sync + fmt::Debug {
    /// The name of the sink in whose store it is kept.
    fn id(&self) -> &SinkId;

    /// The attempts that come after `after`'s, of one resource or of all, at most `limit` of them. Fewer come only when there
    /// are no more.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was read. Try again when [`SinkError::is_transient`].
    fn list<'a>(
        &'a self,
        which: Which,
        resource: Option<&'a ResourceName>,
        after: Option<&'a AttemptKey>,
        limit: usize,
    ) -> Answer<'a, Result<Vec<AttemptRecord>, SinkError>>;

    /// Every attempt of an operation, under whichever resources it has some, in the order of their keys.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    fn attempts<'a>(&'a self, operation: &'a OperationId) -> Answer<'a, Result<Vec<AttemptRecord>, SinkError>>;

    /// Settles what older epochs of the token's resource have left: the first thing to do after a takeover. May be repeated.
    ///
    /// # Errors
    /// [`SinkError`]: whether it was settled is not known. Repeating it is safe.
    fn settle<'a>(&'a self, token: &'a Token) -> Answer<'a, Result<Result<Settled, Refused>, SinkError>>;

    /// Writes down what a look-up under this token has shown, and returns where the attempt stands.
    ///
    /// # Errors
    /// [`SinkError`]: whether it was written is not known. Repeating it is safe.
    fn found<'a>(
        &'a self,
        token: &'a Token,
        attempt: &'a AttemptKey,
        looked: &'a Looked,
    ) -> Answer<'a, Result<Result<Attempt, Refused>, SinkError>>;

    /// Writes down what a person has decided of an unknown attempt, with who and why.
    ///
    /// # Errors
    /// As [`found`](Self::found).
    fn decide<'a>(
        &'a self,
        attempt: &'a AttemptKey,
        decision: &'a Decision,
        by: &'a Actor,
        why: &'a Reason,
    ) -> Answer<'a, Result<Result<Attempt, Refused>, SinkError>>;
}
