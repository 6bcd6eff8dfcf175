//! What is known of one attempt to change the outside world.
//!
//! The epoch says whose turn it is; the operation id says which intent it is. An attempt is keyed by resource,
//! operation and epoch: L2 speaks of attempts, L4 of operations.

use crate::{Digest, NameError, OperationId};
use core::fmt;

impl OperationId {
    /// The id of one intent: this step of this run, with this input. Whoever tries it again, under whatever epoch and in
    /// whatever process, comes to the same id, and another input is another intent.
    ///
    /// It reads `run/step/` and the first 16 hexadecimal digits of the input's digest. A slash within a name is written
    /// `%2F`, so that no two intents share an id.
    ///
    /// # Errors
    /// [`NameError`] when a name is empty or has control characters, or the two together are too long: shorten them.
    pub fn for_intent(run: &str, step: &str, input: &Digest) -> Result<Self, NameError> {
        for (what, name) in [("name of a run", run), ("name of a step", step)] {
            if name.is_empty() {
                return Err(NameError::Empty { what });
            }
        }
        let mut id = alloc::format!("{}/{}/", part(run), part(step));
        for byte in input.0.iter().take(8) {
            // Writing to a String cannot fail.
            let _ = fmt::Write::write_fmt(&mut id, format_args!("{byte:02x}"));
        }
        Self::new(id)
    }
}

/// A name in which no slash is left. A percent sign is escaped as well.
fn part(name: &str) -> alloc::string::String {
    name.replace('%', "%25").replace('/', "%2F")
}

/// Where an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attempt {
    /// Written down; not one byte was sent.
    Intent,
    /// The mark that it may have been sent is durable.
    Sent,
    /// It took effect, and the answer said so.
    Done,
    /// It took no effect, and the answer proved it.
    Failed,
    /// Nobody knows. Never left by itself.
    Unknown,
    /// A look-up after a seal, or a rule or a person, found the effect.
    Applied,
    /// It took no effect and never will: the intent may run again under a new token.
    NotApplied,
}

/// What happened to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Happening {
    /// The mark before the first byte became durable.
    Marked,
    /// The answer says that the effect stands.
    Confirmed,
    /// The answer proves that there is no effect: a fence refused, a constraint failed. Never a timeout.
    RefusedWithoutEffect,
    /// A timeout, a reset, a crash after the mark.
    Unanswered,
    /// The next holder has sealed the receiver of this attempt.
    TakenOver,
    /// A look-up under the next token, after its seal, found the effect. Also a provider's rule or a person who did.
    Found,
    /// A look-up under the next token, after its seal, found no effect. Also a provider's rule or a person who did.
    Absent,
}

/// The happening cannot follow the state. The state stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Illegal {
    /// The state.
    pub state: Attempt,
    /// The happening.
    pub happening: Happening,
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} cannot follow {:?}: the record of this operation is left as it is", self.happening, self.state)
    }
}

impl core::error::Error for Illegal {}

impl Attempt {
    /// The state after a happening.
    ///
    /// # Errors
    /// [`Illegal`] when the happening cannot follow; the caller leaves the record alone and reports it, since one of
    /// the two is wrong.
    pub const fn next(self, happening: Happening) -> Result<Self, Illegal> {
        use Attempt::{Applied, Done, Failed, Intent, NotApplied, Sent, Unknown};
        use Happening::{Absent, Confirmed, Found, Marked, RefusedWithoutEffect, TakenOver, Unanswered};
        Ok(match (self, happening) {
            (Intent, Marked) => Sent,
            // Nothing left before the mark (L5), so whoever comes next may say so.
            (Intent, TakenOver | Unanswered) => NotApplied,
            (Sent, Confirmed) => Done,
            (Sent, RefusedWithoutEffect) => Failed,
            (Sent | Unknown, Unanswered | TakenOver) => Unknown,
            (Sent | Unknown, Found) => Applied,
            (Sent | Unknown, Absent) => NotApplied,
            // The same news again changes nothing.
            (Done, Confirmed | Found) => Done,
            (Applied, Confirmed | Found) => Applied,
            (NotApplied, Absent) => NotApplied,
            (Failed, RefusedWithoutEffect | Absent) => Failed,
            (Done | Applied | NotApplied | Failed, TakenOver) => self,
            (state, happening) => return Err(Illegal { state, happening }),
        })
    }

    /// Whether the attempt is over: it never changes its effect again.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Applied | Self::NotApplied)
    }

    /// Whether the intent may be tried again, under a new token with the same operation id.
    #[must_use]
    pub const fn may_run_again(self) -> bool {
        matches!(self, Self::Failed | Self::NotApplied)
    }

    /// The name in stores, tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Intent => "intent",
            Self::Sent => "sent",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Applied => "applied",
            Self::NotApplied => "not-applied",
        }
    }

    /// All states, for stores that read them back.
    pub const ALL: [Self; 7] =
        [Self::Intent, Self::Sent, Self::Done, Self::Failed, Self::Unknown, Self::Applied, Self::NotApplied];
}

impl Happening {
    /// All happenings.
    pub const ALL: [Self; 7] = [
        Self::Marked,
        Self::Confirmed,
        Self::RefusedWithoutEffect,
        Self::Unanswered,
        Self::TakenOver,
        Self::Found,
        Self::Absent,
    ];
}

#[cfg(test)]
mod tests;
