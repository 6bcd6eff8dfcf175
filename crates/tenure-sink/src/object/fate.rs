//! What became of a write.

use tenure_core::Verdict;

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "only a verdict says that the effect stands, or that nothing was written"]
pub enum Fate {
    /// It was judged.
    Judged(Verdict),
    /// No answer came, and what stands does not tell: it was written, or it was not, or it still will be. Look the
    /// operation up, which also ends the "still will be". Without an operation, look at what the name stands for, and
    /// write again under a token that is admitted.
    Unknown {
        /// What happened to the connection.
        why: String,
    },
}

impl Fate {
    /// The verdict, when there is one.
    #[must_use]
    pub const fn verdict(&self) -> Option<&Verdict> {
        match self {
            Self::Judged(verdict) => Some(verdict),
            Self::Unknown { .. } => None,
        }
    }
}

/// The effect was refused, by the caller's own condition or by a bound of the sink. Nothing of it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);
