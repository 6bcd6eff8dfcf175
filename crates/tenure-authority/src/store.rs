//! Where the records live.

#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub mod memory;

mod address;
#[cfg(feature = "network")]
#[cfg_attr(
    not(all(feature = "etcd", feature = "postgres", feature = "redis")),
    allow(dead_code, reason = "each store uses its part of it")
)]
mod home;
mod import;
#[cfg(any(feature = "etcd", feature = "redis"))]
#[cfg_attr(
    not(all(feature = "etcd", feature = "postgres", feature = "redis")),
    allow(dead_code, reason = "each store uses its part of it")
)]
mod json;
mod recalled;
mod wakes;

#[cfg(feature = "network")]
pub use address::connect_on;
pub use address::{connect, shared, shown};
pub use import::{Import, ImportError, Source};
pub use recalled::{After, RecallOutcome, Recalled};
pub use wakes::{Hint, Wake, Wakes};

use crate::WallTime;
use std::future::Future;
use std::pin::Pin;
use tenure_core::decide::{Keys, Swap, View};
use tenure_core::record::{LeaseRecord, SessionRecord, Transition};
use tenure_core::{AuthorityClock, Instant, ResourceName, SessionId};

/// A boxed future, so that a store can be chosen at run time.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where records live: read, and swap one of them.
///
/// # Contract
///
/// Each clause is a function of the `conformance` suite.
///
/// 1. **Consistent read.** `read` returns the named records, their versions, the history's length and the clock as they
///    stood together at one moment between the call and the return. The clock is read *after* the records.
/// 2. **All or nothing.** `swap` changes the record, adjusts the holdings of the sessions concerned, and appends the
///    history row, in one atomic step, or does none of it.
/// 3. **Versions.** It does so only if the changed record still has the version that was read (`None`: is still absent).
///    Every change gives the record a version that it never had.
/// 4. **Reliance.** And only if the session that the swap relies on is still Live, in the authority's present
///    incarnation. Its deadline is not looked at: a session that is overdue but not ended still stands.
/// 5. **Durable.** When `swap` returns [`SwapOutcome::Done`], a crash of the process or the machine does not undo it.
///    A store that cannot promise it says so in its own documentation.
/// 6. **Unknown is said.** When the store cannot tell whether a swap was applied, it returns [`SwapOutcome::Unknown`],
///    never an error.
/// 7. **Holdings.** The fingerprint of a session is that of the grants in `Sealing` or `Held` that stand on it.
/// 8. **Clock.** The clock never goes back while the store is open; a store that notices that it did refuses with
///    [`StoreError::ClockWentBack`]. It counts the time in suspend.
/// 9. **Cancellation.** Dropping a returned future leaves the swap done or not done, never half.
/// 10. **History.** Its rows have the numbers 1, 2, 3, … in the order in which they were written, and none is ever changed
///     or removed. Each carries the machine's wall-clock time, for people: it decides nothing, and may go back.
/// 11. **Import.** `import` fills a store whose history is empty with all of the given content, in one atomic step that
///     clauses 5, 6 and 9 hold for. A store with a history stays as it is.
/// 12. **Identity.** While the store's own account of which store it is differs from its record's, no swap is made
///     ([`SwapOutcome::Changed`]) but one of that record: what was promoted or put back between a read and a swap is
///     noticed.
/// 13. **Recall.** `swap_recalled`, where there is one, makes the same change as `swap` would, and only under the further
///     conditions of [`Recalled`].
/// 14. **Wakes.** A [`Wake`] that was asked for before a change of its resource is told of the change, or of the fact that
///     changes may have been missed. It may be told without a change. Its hints come in the order of the changes, and the
///     last one is [`Hint::Taken`] only if a grant stood on the resource after the last change that it told of.
/// 15. **In time.** A swap with a [`Swap::made_before`] is made only while the store's clock lies before it; otherwise it is
///     [`SwapOutcome::Changed`]. A store whose time is [`TimeSource::Observed`] cannot tell when it makes a swap: it looks
///     at the clock right before, and counts a quarantine from after its making.
pub trait Store: Send + Sync + std::fmt::Debug {
    /// Reads what a request needs.
    ///
    /// # Errors
    /// [`StoreError`]: nothing was read. The caller may try again when [`StoreError::is_transient`].
    fn read<'a>(&'a self, keys: &'a Keys) -> Answer<'a, Result<Read, StoreError>>;

    /// Makes one change, under the versions that were read.
    ///
    /// # Errors
    /// [`StoreError`]: the change was certainly not made.
    fn swap(&self, swap: Swap, expected: Option<Version>) -> Answer<'_, Result<SwapOutcome, StoreError>>;

    /// The grants that stand on a session.
    ///
    /// # Errors
    /// [`StoreError`]: nothing was read.
    fn grants(&self, session: SessionId) -> Answer<'_, Result<Vec<LeaseRecord>, StoreError>>;

    /// The resources whose names come after `page.after`, in the order of their names, each with its session.
    ///
    /// # Errors
    /// [`StoreError`]: nothing was read.
    fn leases(&self, page: Page<ResourceName>) -> Answer<'_, Result<Vec<Listed>, StoreError>>;

    /// The rows of the history that the query asks for.
    ///
    /// # Errors
    /// [`StoreError`]: nothing was read.
    fn history(&self, query: HistoryQuery) -> Answer<'_, Result<Vec<Recorded>, StoreError>>;

    /// The sessions that are not Live, or whose deadline has passed: what a sweep looks at.
    ///
    /// # Errors
    /// [`StoreError`]: nothing was read.
    fn idle_sessions(&self, limit: usize) -> Answer<'_, Result<Vec<SessionId>, StoreError>>;

    /// Takes over what another store held: its history as it is, each resource as [`Import::leases`] has it, the store's
    /// own record as [`Import::authority`] has it, and last the row [`Import::transition`]. The answer is
    /// [`SwapOutcome::Changed`] when the history is not empty; nothing was changed then.
    ///
    /// # Errors
    /// [`StoreError`]: nothing was changed.
    fn import(&self, content: Import) -> Answer<'_, Result<SwapOutcome, StoreError>>;

    /// What the store can do, and what it cannot promise.
    fn capabilities(&self) -> Capabilities;

    /// What in the store's present settings weakens its promises, a sentence each: what is set, what it may cost, and
    /// what to do. Looked up anew at each call.
    ///
    /// # Errors
    /// [`StoreError`]: nothing was read.
    fn warnings(&self) -> Answer<'_, Result<Vec<String>, StoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Makes a change that was decided on records from memory, in one round trip. `None`: this store reads at once, and
    /// gains nothing by it.
    fn swap_recalled(&self, _recalled: Recalled) -> Option<Answer<'_, Result<RecallOutcome, StoreError>>> {
        None
    }

    /// The store's clock, where reading it takes no round trip. `None`: only a read tells it.
    fn now(&self) -> Option<Instant<AuthorityClock>> {
        None
    }

    /// Watches a resource for changes by anybody. `None`: the store cannot tell; look again after a while.
    fn watch(&self, _resource: &ResourceName) -> Option<Wake> {
        None
    }
}

/// What a store can do, and what it cannot promise. Both are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// From where it can be reached.
    pub scope: Scope,
    /// What `Done` means for the time after a crash.
    pub durability: Durability,
    /// Whether its time comes from this machine's [`Clock`](crate::Clock), so that holders on this machine end with it.
    pub clock: TimeSource,
    /// Whether [`Store::watch`] tells of changes by other processes.
    pub wakes: bool,
}

/// From where a store can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// From this process.
    Process,
    /// From this machine.
    Host,
    /// From every machine that reaches its server.
    Network,
}

/// What a change that was made is worth after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// It is gone with the process.
    Process,
    /// A failover, or a crash under some settings of the server, may undo it; the store notices and quarantines.
    MayLose,
    /// It stays.
    Durable,
}

/// Where a store's time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeSource {
    /// This machine's suspend-aware clock, or the one that a test drives.
    Host,
    /// The server's clock.
    Server,
    /// None is shared: each process watches for how long a session is not renewed, on its own clock.
    Observed,
}

/// A bounded piece of a listing.
#[derive(Clone, Debug)]
pub struct Page<Key> {
    /// Where the last piece ended; `None` for the first one.
    pub after: Option<Key>,
    /// At most so many.
    pub limit: usize,
}

/// Which rows of the history are asked for. The default: all of them, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Only the rows about this resource.
    pub resource: Option<ResourceName>,
    /// In which order they come.
    pub order: Order,
    /// Only the rows that come after the row of this number, in that order; `None` for the first piece.
    pub after: Option<u64>,
    /// At most so many. Fewer come only when there are no more.
    pub limit: usize,
}

impl Default for HistoryQuery {
    fn default() -> Self {
        Self { resource: None, order: Order::default(), after: None, limit: usize::MAX }
    }
}

/// From which end a history is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As things happened.
    #[default]
    OldestFirst,
    /// What happened last comes first.
    NewestFirst,
}

/// A row of the history as it was written down.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Recorded {
    /// Its number: 1 for the first one.
    pub number: u64,
    /// When it was written, by the wall clock of the machine that did. The transition's own instant is on the store's
    /// clock, whose beginning changes when the machine is rebooted or a history is imported.
    pub wall: WallTime,
    /// What happened.
    pub transition: Transition,
}

/// A resource in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The resource.
    pub lease: LeaseRecord,
    /// The session on which its newest grant stands.
    pub holder: Option<SessionRecord>,
    /// The reading of the store's clock.
    pub now: Instant<AuthorityClock>,
}

/// A record's place in the order of its own changes. Never an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

/// What was read, with the versions to swap under.
#[derive(Clone, Debug)]
pub struct Read {
    /// The records.
    pub view: View,
    /// Their versions.
    pub versions: Versions,
    /// The store's clock.
    pub now: Instant<AuthorityClock>,
}

/// The versions of the records of a view; `None` for one that is absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Versions {
    /// Of the store's own record.
    pub authority: Option<Version>,
    /// Of the session that the request names.
    pub caller: Option<Version>,
    /// Of the resource.
    pub lease: Option<Version>,
    /// Of the session on which the resource's grant stands.
    pub holder: Option<Version>,
}

/// What came of a swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a swap that was not done must be decided anew, an unknown one must be read"]
pub enum SwapOutcome {
    /// Made, and durable.
    Done,
    /// Not made: the record or the relied-on session has changed since it was read.
    Changed,
    /// The store cannot tell.
    Unknown,
}

/// Why a store did not do what it was asked. Certainly nothing was changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be reached, or is busy for too long. Try again.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    /// There is nothing at the address, and creation was not asked for.
    #[error("there is no store at {0}: check the address, or create it (`create=true` in the address)")]
    Missing(String),
    /// Something else is there.
    #[error("{0} is not a store of tenure: check the address; what is there was left alone")]
    Foreign(String),
    /// It was made by another version.
    #[error("the store has schema version {found}, this program knows {known}: {advice}")]
    Schema {
        /// What it has.
        found: i64,
        /// What this program knows.
        known: i64,
        /// What to do.
        advice: &'static str,
    },
    /// It cannot be written.
    #[error("the store cannot be written ({0}): free space or give the right to write; nothing was lost")]
    NotWritable(String),
    /// The engine that this program was built with must not be trusted with a store.
    #[error("the store's engine may lose data ({0}): build this program with a newer one")]
    Engine(String),
    /// What it holds does not make sense.
    #[error("the store is damaged ({0}): restore a backup; nothing was changed")]
    Corrupt(String),
    /// Its clock went back.
    #[error(
        "the store's clock went back by {by:?}: nothing is granted until it has caught up, or the machine is rebooted"
    )]
    ClockWentBack {
        /// How far.
        by: std::time::Duration,
    },
    /// There is no time to be had.
    #[error(transparent)]
    Clock(#[from] crate::ClockError),
    /// There are no random bits to be had.
    #[error(transparent)]
    Entropy(#[from] crate::EntropyError),
    /// The address cannot be understood.
    #[error("{url:?} is no address of a store: {why}")]
    Address {
        /// What was given.
        url: String,
        /// What is wrong with it, and what would be right.
        why: String,
    },
}

impl StoreError {
    /// Whether the same call may succeed later without anybody's doing.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::ClockWentBack { .. })
    }
}
