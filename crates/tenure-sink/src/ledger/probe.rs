use super::AttemptRecord;
use crate::Answer;
use tenure_core::ledger::Looked;
use tenure_core::{SinkId, Token};

/// How to ask an outside system what became of a call, by the system's own key.
///
/// # Contract
///
/// * It only looks. It never makes the call, and changes nothing.
/// * [`Looked::AbsentForGood`] is answered only by a system that has checked *this* token in the same transaction as the
///   look-up, and refuses every older one. All others answer [`Looked::NotSeen`].
pub trait Probe: Send + Sync {
    /// The outside system that it can ask, as intents name it.
    fn system(&self) -> &SinkId;

    /// Looks for the effect of an operation.
    ///
    /// # Errors
    /// [`ProbeError`]: nothing was found out, and the attempt stays unknown.
    fn look<'a>(&'a self, token: &'a Token, attempt: &'a AttemptRecord) -> Answer<'a, Result<Looked, ProbeError>>;
}

/// The outside system could not be asked. The message says why, for whoever will decide.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProbeError(pub String);
