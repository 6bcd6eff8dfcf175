//! Where generations live: the records that decide which of them is read, and the vectors.

pub mod chroma;
pub mod postgres;
pub mod sqlite;

mod catalog;
mod connect;

pub use connect::connect;

use crate::chunk::Chunk;
use crate::manifest::{Making, Manifest, Sum};
use crate::tenant::Tenant;
use async_trait::async_trait;
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use tenure::sink::{Sink, SinkError};
use tenure::{OperationId, Token, Verdict};

/// An index: one alias per tenant, and the generations that it may lead to.
///
/// # Contract
///
/// Each clause is a function of the `conformance` suite.
///
/// 1. **Fenced.** Each call that takes a token checks it in the transaction of its records. A token that is not the newest at
///    the tenant's fence changes nothing there.
/// 2. **One alias, one step.** [`switch`](Self::switch) moves it from the version that the caller saw, and only from there,
///    together with its entry in the audit trail. The same operation again is answered with what it did.
/// 3. **A whole answer.** [`search`](Self::search) reads alias and vectors as of one moment: never two generations in one
///    answer, also while the alias moves and old generations are removed.
/// 4. **Apart.** Nothing that is done for one tenant reads, changes or waits for another one.
/// 5. **Staged.** Until the alias leads to it, a generation is seen by nobody but its builder.
/// 6. **The dead stay dead.** A generation that was condemned can never be switched to. Only condemned ones are removed.
/// 7. **Kept.** A vector that was kept is there under its key for every later round, whoever kept it.
/// 8. **Unknown is not failed.** An answer that was lost is [`WriteError::Unknown`]; repeating the call is safe.
/// 9. **Bounded.** Every call ends in a bounded time, also when the server does not answer.
#[async_trait]
pub trait Index: Send + Sync + fmt::Debug {
    /// For people, without a password.
    fn place(&self) -> &str;

    /// The receiver that a lease on the tenant seals before a round begins. Makes what is missing of the tenant's place.
    ///
    /// # Errors
    /// [`IndexError`].
    async fn sink(&self, tenant: &Tenant) -> Result<Arc<dyn Sink>, IndexError>;

    /// All tenants that have a place here, in the order of their names.
    ///
    /// # Errors
    /// [`IndexError`]: nothing was read.
    async fn tenants(&self) -> Result<Vec<Tenant>, IndexError>;

    /// The version that is live, or `None` before the first one. A place that is not there yet has none.
    ///
    /// # Errors
    /// [`IndexError`]: nothing was read.
    async fn live(&self, tenant: &Tenant) -> Result<Option<Live>, IndexError>;

    /// All generations that are not removed, the oldest first.
    ///
    /// # Errors
    /// [`IndexError`]: nothing was read.
    async fn generations(&self, tenant: &Tenant) -> Result<Vec<Generation>, IndexError>;

    /// The audit trail: each move of the alias, the oldest first.
    ///
    /// # Errors
    /// [`IndexError`]: nothing was read.
    async fn switches(&self, tenant: &Tenant) -> Result<Vec<Moved>, IndexError>;

    /// The rounds that were recorded, the newest first, at most `limit`.
    ///
    /// # Errors
    /// [`IndexError`]: nothing was read.
    async fn rounds(&self, tenant: &Tenant, limit: usize) -> Result<Vec<Round>, IndexError>;

    /// Begins the generation of the token's epoch, empty.
    ///
    /// # Errors
    /// [`WriteError`].
    async fn begin(&self, tenant: &Tenant, token: &Token, making: &Making) -> Result<(), WriteError>;

    /// The vectors that are kept under these keys, in their order.
    ///
    /// # Errors
    /// [`IndexError`]: nothing was read.
    async fn known(&self, tenant: &Tenant, keys: &[Sum]) -> Result<Vec<Option<Vec<f32>>>, IndexError>;

    /// Keeps vectors under their keys. Not fenced: the same key always has the same vector, and what a lost round has paid
    /// for is worth keeping. `epoch` is the round's.
    ///
    /// # Errors
    /// [`IndexError`]: some may be kept.
    async fn keep(&self, tenant: &Tenant, epoch: u64, vectors: &[(Sum, Vec<f32>)]) -> Result<(), IndexError>;

    /// Writes a batch into the generation of the token's epoch. The same again changes nothing.
    ///
    /// # Errors
    /// [`WriteError`].
    async fn write(&self, tenant: &Tenant, token: &Token, entries: &[Entry]) -> Result<(), WriteError>;

    /// Reads the generation of the token's epoch back, after making whatever helps its searches.
    ///
    /// # Errors
    /// [`WriteError`].
    async fn inspect(&self, tenant: &Tenant, token: &Token) -> Result<Inspection, WriteError>;

    /// The nearest chunks within one generation, whether it is live or not: for the probes of a verification.
    ///
    /// # Errors
    /// [`IndexError`]: nothing was read.
    async fn nearest(&self, tenant: &Tenant, epoch: u64, vector: &[f32], limit: usize) -> Result<Vec<Hit>, IndexError>;

    /// Moves the alias.
    ///
    /// # Errors
    /// [`WriteError`]. After [`WriteError::Unknown`] ask [`switched`](Self::switched).
    async fn switch(&self, tenant: &Tenant, token: &Token, switch: &Switch) -> Result<Switched, WriteError>;

    /// What became of a switch, for the holder: only for it an absence is final.
    ///
    /// # Errors
    /// [`WriteError`]: it is not known still.
    async fn switched(
        &self,
        tenant: &Tenant,
        token: &Token,
        operation: &OperationId,
    ) -> Result<Option<u64>, WriteError>;

    /// Records how a round ended. The same round again replaces nothing.
    ///
    /// # Errors
    /// [`WriteError`].
    async fn record(&self, tenant: &Tenant, token: &Token, round: &Round) -> Result<(), WriteError>;

    /// Condemns all generations of older epochs but the live one and the `keep` versions before it, and drops kept vectors
    /// that none of the rest uses. Returns the epochs that are condemned and not removed yet, those of earlier calls too.
    ///
    /// # Errors
    /// [`WriteError`].
    async fn condemn(&self, tenant: &Tenant, token: &Token, keep: usize) -> Result<Vec<u64>, WriteError>;

    /// Removes a condemned generation.
    ///
    /// # Errors
    /// [`WriteError`]; [`WriteError::NotCondemned`] when it may be read still.
    async fn remove(&self, tenant: &Tenant, token: &Token, epoch: u64) -> Result<(), WriteError>;

    /// The nearest chunks of the live version.
    ///
    /// # Errors
    /// [`IndexError`]; [`IndexError::Empty`] before the first version.
    async fn search(&self, tenant: &Tenant, vector: &[f32], limit: usize) -> Result<Answer, IndexError>;
}

/// The version that searches see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Live {
    /// Counts the moves of the alias, from 1.
    pub version: u64,
    /// The generation it leads to.
    pub epoch: u64,
    /// What that was made of.
    pub manifest: Manifest,
    /// When the alias moved here, in milliseconds since 1970, by the clock of the index.
    pub since_ms: i64,
    /// What a rollback has led away from: it is not published again by itself.
    pub rejected: Option<Making>,
    /// Whether the round that moved it here has been recorded.
    pub recorded: bool,
}

/// A generation that exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Generation {
    /// Under which it was built.
    pub epoch: u64,
    /// How it stands.
    pub state: State,
    /// How many chunks its records speak of.
    pub chunks: u64,
    /// When it was begun, in milliseconds since 1970, by the clock of the index.
    pub begun_ms: i64,
}

/// How a generation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Being written, or left by a round that did not end.
    Building,
    /// The alias leads to it, or has led to it and may do so again.
    Published,
    /// Never to be read again.
    Condemned,
}

/// One move of the alias.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// The version that it made.
    pub version: u64,
    /// The generation before, and the one after.
    pub from: Option<u64>,
    /// The generation that it leads to since.
    pub to: u64,
    /// Under which epoch it was moved. Another one than `to` for a rollback.
    pub by: u64,
    /// Why.
    pub why: Why,
    /// When, in milliseconds since 1970, by the clock of the index.
    pub at_ms: i64,
}

/// Why the alias moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// A new generation was published.
    Sync,
    /// Somebody asked for an earlier one.
    Rollback,
}

/// A move of the alias, to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The same for every try.
    pub operation: OperationId,
    /// The version that must be live: 0 before the first one.
    pub from: u64,
    /// The generation to lead to.
    pub to: u64,
    /// Why.
    pub why: Why,
    /// The manifest of that generation, for a new one; a rollback leads to one that has its manifest already.
    pub manifest: Option<Manifest>,
}

/// What became of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "it may not have moved"]
pub enum Switched {
    /// The alias has moved, now or by an earlier try, and this is its version.
    To(u64),
    /// Another version is live than the caller saw. Nothing was changed.
    NotFrom {
        /// The version that is live.
        live: u64,
    },
    /// There is no such generation that can be read. Nothing was changed.
    Gone,
}

/// A chunk with its vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The chunk.
    pub chunk: Chunk,
    /// The key of its vector.
    pub key: Sum,
    /// The vector, of length one.
    pub vector: Vec<f32>,
}

impl Entry {
    /// What stands for it in a generation's digest.
    #[must_use]
    pub fn sum(document: &str, number: u32, key: &Sum) -> Sum {
        Sum::of(&[document.as_bytes(), &number.to_le_bytes(), &key.0])
    }
}

/// What was read back of a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// How many documents.
    pub documents: u64,
    /// How many chunks.
    pub chunks: u64,
    /// Over all of them, by [`Entry::sum`].
    pub digest: Sum,
    /// How many rows bear another tenant or another epoch.
    pub foreign: u64,
}

/// A chunk that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hit {
    /// The chunk.
    #[serde(flatten)]
    pub chunk: Chunk,
    /// The generation that its row bears.
    pub epoch: u64,
    /// The cosine of the angle between it and what was asked: 1 is the same direction.
    pub score: f32,
}

/// What a search found, all of it in one version.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The version.
    pub version: u64,
    /// Its generation.
    pub epoch: u64,
    /// The nearest first.
    pub hits: Vec<Hit>,
}

/// How a round ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Round {
    /// The round's epoch.
    pub epoch: u64,
    /// Under which epoch it was recorded: another one where a later round found the record missing.
    pub recorded_by: u64,
    /// `published`, `rolled-back`, `failed` and so on.
    pub outcome: String,
    /// The version that it made, if it made one.
    pub version: Option<u64>,
    /// What to tell people: counts and times, never a document's text.
    pub note: String,
    /// When it was recorded, in milliseconds since 1970, by the clock of the index. Ignored when it is written.
    pub at_ms: i64,
}

/// Why nothing was written, or nobody knows.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The fence refused the token: show the verdict to the lease, and stop.
    #[error("the index refused it: {0}")]
    Refused(Verdict),
    /// The answer was lost. It stands, or it does not.
    #[error("nobody knows whether it was written: {0}")]
    Unknown(String),
    /// It may be read still.
    #[error("generation {0} is not condemned: it may be read still")]
    NotCondemned(u64),
    /// It was not written.
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// Why the index could not be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The address cannot be understood.
    #[error("{url:?} is no address of an index: {why}")]
    Address {
        /// What was given, without a password.
        url: String,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// There is no version to search yet.
    #[error("{place} has no version of {tenant} yet: run `vector-sync sync --tenant {tenant}` first")]
    Empty {
        /// The index.
        place: String,
        /// Whose.
        tenant: Tenant,
    },
    /// The vector has another length than those in the index.
    #[error("{place} has vectors of {found} numbers, and {asked} were given: use the model that made it")]
    Dimensions {
        /// The index.
        place: String,
        /// In the index.
        found: u32,
        /// In the question.
        asked: u32,
    },
    /// It does not answer now, or is held by somebody else. Repeating the call may help.
    #[error("{place} cannot be reached or used now: {why}")]
    Unreachable {
        /// The index.
        place: String,
        /// What happened.
        why: String,
    },
    /// It is full, gone, damaged, or refuses something else.
    #[error("{doing} in {place} failed: {why}")]
    Failed {
        /// The index.
        place: String,
        /// What was tried.
        doing: &'static str,
        /// What was said, and what to do.
        why: String,
    },
    /// The fence could not be used.
    #[error(transparent)]
    Sink(#[from] SinkError),
}

impl IndexError {
    /// Whether the same call may succeed by being repeated, without anybody doing anything.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Sink(error) => error.is_transient(),
            Self::Address { .. } | Self::Empty { .. } | Self::Dimensions { .. } | Self::Failed { .. } => false,
        }
    }
}
