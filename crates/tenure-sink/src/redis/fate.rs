//! What became of a write, and what is found of it later.

use crate::Found;
use tenure_core::{Epoch, Outcome, Verdict};

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "only a verdict says that the effect stands, or that nothing was written"]
pub enum Fate {
    /// The server has judged it.
    Judged {
        /// What it said.
        verdict: Verdict,
        /// What the caller's script returned, when it ran now and returned a text or a number.
        said: Option<Outcome>,
    },
    /// The caller's script broke off after it had written, in this call or in an earlier one of the same operation. What
    /// it had written stands, the rest was not done, and the operation is not run again.
    Broken(Broken),
    /// No answer came: it was written, or it was not, or it still will be. Look the operation up, under a token that is
    /// registered; never send it anew without its operation id.
    Unknown {
        /// What happened to the connection.
        why: String,
    },
}

/// An operation that broke off half-way. A person or a rule finds out what stands, and says so with
/// [`RedisFence::mend`](super::RedisFence::mend).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The epoch under which it ran.
    pub epoch: Epoch,
    /// The script's error.
    pub why: String,
}

/// What a look-up has found of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an absent operation may run again, the others must not"]
pub enum Trace {
    /// Its effect stands.
    Found(Found),
    /// It broke off half-way.
    Broken(Broken),
    /// There is no effect, and there will be none under an older token either: what is still under way meets the fence.
    Absent,
}

/// What a person or a rule has found out about an operation that broke off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mending {
    /// Its whole effect stands now. A repeat is a replay with this outcome.
    Applied(Outcome),
    /// What it had written was undone by hand. It may run again.
    NotApplied,
}

/// What came of saying so.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an operation that is not mended stays as it was"]
pub enum Mended {
    /// It is recorded.
    Done,
    /// The operation had not broken off, or is mended already; this is what stands.
    Was(Trace),
}

impl Fate {
    /// The verdict, when there is one.
    #[must_use]
    pub const fn verdict(&self) -> Option<&Verdict> {
        match self {
            Self::Judged { verdict, .. } => Some(verdict),
            Self::Broken(_) | Self::Unknown { .. } => None,
        }
    }
}

/// The server refused the effect itself, such as a hash command on a string, or the caller's script raised an error before
/// it had written. Nothing of it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);
