//! The book of calls to the outside world: what may follow, and who may say so. Pure: a ledger reads its entries, asks
//! here, and writes what it is told to, all in one transaction.
//!
//! # What is not promised
//!
//! * **Not** that a call is made exactly once. It is made at most once by each attempt, and whether it took effect may be
//!   known to nobody: then its state is [`Attempt::Unknown`], for as long as that is so.
//! * **Not** that an absence means "not applied". Where nothing checks a token, a request that is still under way may
//!   arrive after any look-up.
//! * **Not** that a person is right. Whoever says that nothing was applied must know that the request, and the worker that
//!   may still send it, are gone.
//!
//! # Attempts and operations
//!
//! An attempt is keyed by resource, operation and epoch. The operation's id stays the same under each epoch, and so does
//! its content: under one id with another digest it is a conflict. Of one operation at most one attempt is open at a time,
//! since [`intend`] opens none beside another that is not over.

use crate::operation::{Attempt, Happening, Illegal};
use crate::{Digest, Epoch, Outcome};
use core::fmt;

/// What a ledger has of one attempt of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The epoch under which it was made.
    pub epoch: Epoch,
    /// Of its content.
    pub digest: Digest,
    /// Where it stands.
    pub state: Attempt,
    /// What it ended with, when somebody has said so.
    pub outcome: Option<Outcome>,
}

/// What to do about a new intent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "only `Write` and `Standing` allow the call"]
pub enum Intending {
    /// Write it down as [`Attempt::Intent`], under the epoch that asks.
    Write,
    /// It stands already, under this very epoch, and nothing was sent.
    Standing,
    /// The operation took effect. It must not run again.
    Effective {
        /// The epoch under which it did.
        epoch: Epoch,
        /// What it ended with, when somebody has said so.
        outcome: Option<Outcome>,
    },
    /// The same operation stands there with other content.
    Conflict {
        /// The epoch under which it does.
        current: Epoch,
    },
    /// An attempt is not over, and may have taken effect or still take it. The operation must not run again before
    /// somebody has found out.
    Unsettled {
        /// The attempt's epoch.
        epoch: Epoch,
        /// Where it stands.
        state: Attempt,
    },
    /// This epoch has had its attempt, and it took no effect. The operation may run again under a new token.
    Over {
        /// How that attempt ended.
        state: Attempt,
    },
}

/// Judges a new intent. `entries` are all attempts of the operation, after [`take_over`] was applied to each.
pub fn intend(entries: &[Entry], epoch: Epoch, digest: &Digest) -> Intending {
    if let Some(other) = entries.iter().find(|entry| entry.digest != *digest) {
        return Intending::Conflict { current: other.epoch };
    }
    if let Some(stands) = entries.iter().find(|entry| matches!(entry.state, Attempt::Done | Attempt::Applied)) {
        return Intending::Effective { epoch: stands.epoch, outcome: stands.outcome.clone() };
    }
    let own_intent = |entry: &Entry| entry.epoch == epoch && entry.state == Attempt::Intent;
    if let Some(open) = entries.iter().find(|entry| !entry.state.is_final() && !own_intent(entry)) {
        return Intending::Unsettled { epoch: open.epoch, state: open.state };
    }
    match entries.iter().find(|entry| entry.epoch == epoch) {
        None => Intending::Write,
        Some(own) if own.state == Attempt::Intent => Intending::Standing,
        Some(over) => Intending::Over { state: over.state },
    }
}

/// What a takeover makes of an attempt; `None` when it stays as it is. `sealed` is the epoch of the token that is
/// registered at the ledger's own sink *in this transaction*: before that the old holder may still move its entries.
///
/// An intent becomes not applied, because the mark that must come before the first byte is refused from now on. What was
/// marked becomes unknown.
#[must_use]
pub fn take_over(entry: &Entry, sealed: Epoch) -> Option<Attempt> {
    if entry.epoch >= sealed {
        return None;
    }
    entry.state.next(Happening::TakenOver).ok().filter(|next| *next != entry.state)
}

/// Who speaks of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Voice {
    /// The holder whose token of this epoch was admitted in this transaction.
    Holder(Epoch),
    /// A person, or a rule of the outside system that a person has written down.
    Person,
}

/// What a look-up at an outside system showed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Looked {
    /// The effect stands.
    Found(Outcome),
    /// There is no effect, *and* the system refuses every older token: the look-up was made under a token that is
    /// registered there. No late request can change it.
    AbsentForGood,
    /// No effect was seen. The system checks no token, so that a request may still arrive: it proves nothing.
    NotSeen,
}

impl Looked {
    /// What it means for the attempt; `None` when it means nothing.
    #[must_use]
    pub const fn happening(&self) -> Option<Happening> {
        match self {
            Self::Found(_) => Some(Happening::Found),
            Self::AbsentForGood => Some(Happening::Absent),
            Self::NotSeen => None,
        }
    }
}

/// Why the ledger does not take what was said. The entry stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unheard {
    /// It cannot follow the state.
    Illegal(Illegal),
    /// Only the attempt's own holder can know this.
    NotItsHolder {
        /// The attempt's epoch.
        attempt: Epoch,
        /// The epoch of whoever spoke.
        holder: Epoch,
    },
    /// Nothing was sealed since the attempt was made: its request may still be under way and be accepted.
    TooSoon {
        /// The attempt's epoch.
        attempt: Epoch,
    },
    /// A person decides what is unknown, and nothing else: its holder may still hear the answer.
    NotUnknown {
        /// Where the attempt stands.
        state: Attempt,
    },
}

impl fmt::Display for Unheard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Illegal(illegal) => illegal.fmt(f),
            Self::NotItsHolder { attempt, holder } => write!(
                f,
                "the attempt is that of epoch {attempt}, and epoch {holder} cannot know how its call ended: look for the \
                 effect instead"
            ),
            Self::TooSoon { attempt } => write!(
                f,
                "no receiver was sealed since the attempt of epoch {attempt}: its request may still arrive, and an absence \
                 proves nothing. Look again under the next token"
            ),
            Self::NotUnknown { state } => write!(
                f,
                "it is {}, and only what is unknown is decided by a person. What is sent becomes unknown when its holder \
                 says so, or when the next holder takes over",
                state.name()
            ),
        }
    }
}

impl core::error::Error for Unheard {}

/// Where an attempt stands after somebody spoke of it.
///
/// # Errors
/// [`Unheard`]: leave the entry as it is, and tell whoever spoke.
pub fn hear(entry: &Entry, voice: Voice, news: Happening) -> Result<Attempt, Unheard> {
    let next = || entry.state.next(news).map_err(Unheard::Illegal);
    match (voice, news) {
        (Voice::Person, Happening::Found | Happening::Absent) => match entry.state {
            Attempt::Intent | Attempt::Sent => Err(Unheard::NotUnknown { state: entry.state }),
            // What is over takes the same again, and nothing else.
            _ => next(),
        },
        (Voice::Person, _) => Err(Unheard::NotUnknown { state: entry.state }),
        (Voice::Holder(epoch), Happening::Found) if entry.epoch <= epoch => next(),
        (Voice::Holder(epoch), Happening::Absent) if entry.epoch == epoch => {
            Err(Unheard::TooSoon { attempt: entry.epoch })
        }
        (Voice::Holder(epoch), Happening::Absent | Happening::TakenOver) if entry.epoch < epoch => next(),
        (Voice::Holder(epoch), _) if entry.epoch == epoch && news != Happening::TakenOver => next(),
        (Voice::Holder(holder), _) => Err(Unheard::NotItsHolder { attempt: entry.epoch, holder }),
    }
}

#[cfg(test)]
mod tests;
