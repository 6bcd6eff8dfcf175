//! What a sink remembers of an operation.

use sha2::{Digest as _, Sha256};
use tenure_core::{Digest, Epoch, OperationId, Outcome};

/// An effect that stands at a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The epoch under which it was applied.
    pub epoch: Epoch,
    /// Of its content.
    pub digest: Digest,
    /// What it ended with.
    pub outcome: Outcome,
}

/// What a look-up of an operation found. It finds the *effect*, not the intent, because both are one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an absent operation may run again, a found one must not"]
pub enum Lookup {
    /// The effect stands.
    Found(Found),
    /// There is no effect. Under [`tenure_core::fence::Rule::Sealed`], and once the transaction of the look-up is
    /// committed also under [`tenure_core::fence::Rule::HighWater`], there will be none under an older token either.
    Absent,
}

/// The digest of a request's content (SHA-256): what tells a replay from a conflict.
#[must_use]
pub fn digest_of(content: &[u8]) -> Digest {
    Digest(Sha256::digest(content).into())
}

/// The operation id of the narrow rule "one value per epoch": the same value again is a replay, another value in the
/// same epoch is a conflict. Do not mix it with ids of your own that start with `epoch:`.
///
/// # Panics
/// Never: the text is a valid operation id for every epoch.
#[must_use]
pub fn one_value_per_epoch(epoch: Epoch) -> OperationId {
    #[expect(clippy::expect_used, reason = "short, not empty, without control characters")]
    OperationId::new(format!("epoch:{epoch}")).expect("a valid operation id")
}
