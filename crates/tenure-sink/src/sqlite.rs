//! Effects in a SQLite database.
//!
//! # What is not guaranteed
//!
//! * **V4 does not hold.** SQLite has one writer. A process that is stopped inside its transaction holds the write lock,
//!   and nothing but resuming or ending that process takes it away. A seal waits for it, at most [`SqliteSink::with_wait`],
//!   and then answers [`SinkError::HeldBy`] with the process that has it, or [`SinkError::Busy`] where the system does not
//!   tell. Keep transactions short.
//! * A database file that was copied back is the same database as before: call [`Sink::reopen`] after
//!   every restore, before any worker starts.
//! * The fence covers the database in which it is installed. Effects in an *attached* database are not atomic with it: in
//!   WAL mode SQLite commits several files one after the other.
//! * Shared cache with `PRAGMA read_uncommitted` is not supported, and neither are network file systems.
//! * SQLite is not fair. It waits in pauses of up to 100 ms, in which writers that never rest pass others for seconds. A
//!   seal waits in short turns and gets in between; the caller's own transactions wait as their `busy_timeout` says.
//! * How durable an effect is says the caller's own `PRAGMA synchronous`: with less than `FULL` a power failure may undo
//!   the newest commits, each of them whole.
//!
//! # How it is used
//!
//! The worker writes through [`SqliteFence`], inside its own transaction. The takeover seals through [`SqliteSink`], on a
//! connection of its own.
//!
//! ```
//! # use tenure_core::{Epoch, GrantId, ResourceName, SinkId, Token, fence::Rule};
//! # use tenure_sink::{SqliteFence, SqliteSink};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("shop.sqlite");
//! let sink = SqliteSink::create(&path, SinkId::new("shop")?, Rule::Sealed)?;
//! let fence = SqliteFence::new(Rule::Sealed);
//! # let token = Token { resource: ResourceName::new("tenant-7")?, epoch: Epoch::FIRST, grant: GrantId::from_bits(7) };
//!
//! let mut connection = rusqlite::Connection::open(&path)?;
//! let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
//! match fence.admit(&tx, &token)? {
//!     Ok(_admitted) => {
//!         // the effect, on `tx`
//!         tx.commit()?;
//!     }
//!     Err(verdict) => println!("refused: {verdict}"), // dropping `tx` rolls it back
//! }
//! # Ok(())
//! # }
//! ```

mod blocker;
mod clock;
mod failure;
mod fence;
mod held;
mod ledger;
mod rows;
mod savepoint;
mod schema;
#[cfg(feature = "sqlx")]
pub(crate) mod sqlx;

pub use fence::{Admitted, SqliteFence};
pub use ledger::SqliteLedger;

use crate::address::WAIT_MAX;
use crate::{Answer, Description, Rows, Sink, SinkError};
use failure::sink_error;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::fence::{Forgetting, Rule, Sealing, forget, seal};
use tenure_core::{Epoch, Generation, ResourceName, SinkId, Token};
#[cfg(feature = "http")]
use {
    crate::{ApplyError, Lookup},
    tenure_core::{Digest, OperationId, Outcome, Verdict},
};

/// How long a call waits for another writer, unless said otherwise.
const WAIT: Duration = Duration::from_secs(5);

/// How long one turn of that wait takes.
const TURN: Duration = Duration::from_millis(5);

/// The sealing side of a SQLite database. Cheap to clone; every call opens the file anew, so that it is always the file
/// that stands at the path now.
#[derive(Clone, Debug)]
pub struct SqliteSink(Arc<Place>);

#[derive(Clone, Debug)]
struct Place {
    path: PathBuf,
    id: SinkId,
    rule: Rule,
    wait: Duration,
}

impl SqliteSink {
    /// Opens the database, creating it and the fence's tables where they are missing. A new database is in WAL mode; one
    /// that was there keeps its mode and all its tables. Under [`Rule::Held`] it must be an authority's own file.
    ///
    /// Blocks; call it outside async code.
    ///
    /// # Errors
    /// [`SinkError`] when the file is something else, of another version or rule, or cannot be written;
    /// [`SinkError::NoAuthority`] under [`Rule::Held`] when no authority is in it.
    pub fn create(path: impl AsRef<Path>, id: SinkId, rule: Rule) -> Result<Self, SinkError> {
        let place = Place::new(path.as_ref(), id, rule)?;
        // An authority makes its file itself.
        let create = if rule == Rule::Held { OpenFlags::empty() } else { OpenFlags::SQLITE_OPEN_CREATE };
        let connection = place.connect(create)?;
        let fail = |error| sink_error(&connection, "creating the fence", error);
        let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).map_err(fail)?;
        if pages == 0 && rule != Rule::Held {
            connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(fail)?;
        }
        SqliteFence::new(rule).install(&connection)?;
        Ok(Self(Arc::new(place)))
    }

    /// Opens a database in which the fence is installed.
    ///
    /// Blocks; call it outside async code.
    ///
    /// # Errors
    /// [`SinkError`]; a database that is not there is one, and is not created.
    pub fn open(path: impl AsRef<Path>, id: SinkId, rule: Rule) -> Result<Self, SinkError> {
        let place = Place::new(path.as_ref(), id, rule)?;
        let connection = place.existing()?;
        rows::namespace(&connection, rule)?;
        held::expect(&connection, rule)?;
        Ok(Self(Arc::new(place)))
    }

    /// Takes the place and looks at nothing: each call finds out whether the fence is there.
    pub(crate) fn later(path: impl AsRef<Path>, id: SinkId, rule: Rule) -> Result<Self, SinkError> {
        Ok(Self(Arc::new(Place::new(path.as_ref(), id, rule)?)))
    }

    /// The same sink with another bound on waiting for another writer: at most an hour, and 5 seconds unless said otherwise.
    #[must_use]
    pub fn with_wait(self, wait: Duration) -> Self {
        Self(Arc::new(Place { wait: wait.min(WAIT_MAX), ..(*self.0).clone() }))
    }

    /// The rule's counterpart for the caller's own transactions.
    #[must_use]
    pub fn fence(&self) -> SqliteFence {
        SqliteFence::new(self.0.rule)
    }

    /// Records an operation that has no effect in this database, in a transaction of its own.
    #[cfg(feature = "http")]
    pub(crate) fn record<'a>(
        &self,
        token: &Token,
        operation: &OperationId,
        digest: &Digest,
        outcome: &Outcome,
    ) -> Answer<'a, Result<Verdict, SinkError>> {
        let (token, operation, digest, outcome) = (token.clone(), operation.clone(), *digest, outcome.clone());
        self.answer(move |place| {
            place.change(|tx| {
                let effect = |_: &Transaction<'_>| Ok::<_, Infallible>(outcome);
                match SqliteFence::new(place.rule).apply(tx, &token, &operation, &digest, effect) {
                    Ok(verdict) => Ok(verdict),
                    Err(ApplyError::Sink(error)) => Err(error),
                    Err(ApplyError::Effect(never)) => match never {},
                }
            })
        })
    }

    /// Looks an operation up, in a transaction of its own.
    #[cfg(feature = "http")]
    pub(crate) fn look_up<'a>(
        &self,
        token: &Token,
        operation: &OperationId,
    ) -> Answer<'a, Result<Result<Lookup, Verdict>, SinkError>> {
        let (token, operation) = (token.clone(), operation.clone());
        self.answer(move |place| place.transact(|tx| SqliteFence::new(place.rule).lookup(tx, &token, &operation)))
    }

    fn answer<'a, T: Send + 'static>(
        &self,
        work: impl FnOnce(&Place) -> Result<T, SinkError> + Send + 'static,
    ) -> Answer<'a, Result<T, SinkError>> {
        let place = Arc::clone(&self.0);
        Box::pin(blocking::unblock(move || work(&place)))
    }
}

impl Sink for SqliteSink {
    fn id(&self) -> &SinkId {
        &self.0.id
    }

    fn rule(&self) -> Rule {
        self.0.rule
    }

    fn describe<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Description, SinkError>> {
        let resource = resource.clone();
        self.answer(move |place| place.describe(&resource))
    }

    fn seal<'a>(
        &'a self,
        token: &'a Token,
        generation: &'a Generation,
        enrolled: &'a BTreeSet<SinkId>,
    ) -> Answer<'a, Result<Sealing, SinkError>> {
        let (token, generation, enrolled) = (token.clone(), generation.clone(), enrolled.clone());
        self.answer(move |place| place.seal(&token, &generation, &enrolled))
    }

    fn forget<'a>(&'a self, resource: &'a ResourceName, cut: Epoch) -> Answer<'a, Result<Forgetting, SinkError>> {
        let resource = resource.clone();
        self.answer(move |place| place.forget(&resource, cut))
    }

    fn rows<'a>(&'a self, after: Option<&'a ResourceName>, limit: usize) -> Answer<'a, Result<Rows, SinkError>> {
        let after = after.cloned();
        self.answer(move |place| rows::list(&place.existing()?, place.rule, after.as_ref(), limit))
    }

    fn reopen(&self) -> Answer<'_, Result<Generation, SinkError>> {
        self.answer(Place::reopen)
    }
}

impl Place {
    fn new(path: &Path, id: SinkId, rule: Rule) -> Result<Self, SinkError> {
        // To SQLite these two are no files, and what is sealed in them is gone with the connection.
        if path.as_os_str().is_empty() || path == Path::new(":memory:") {
            let name = path.display().to_string();
            return Err(SinkError::BadName { name, why: "a sink must outlive its process: give the path of a file" });
        }
        Ok(Self { path: path.to_path_buf(), id, rule, wait: WAIT })
    }

    fn connect(&self, create: OpenFlags) -> Result<Connection, SinkError> {
        let place = self.path.display().to_string();
        if create.is_empty() && !self.path.try_exists().unwrap_or(true) {
            return Err(SinkError::Missing { place });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | create;
        let connection =
            Connection::open_with_flags(&self.path, flags).map_err(|error| failure::open_error(&place, &error))?;
        let fail = |error| sink_error(&connection, "opening", error);
        connection.busy_timeout(self.wait).map_err(fail)?;
        connection.pragma_update(None, "synchronous", "FULL").map_err(fail)?;
        Ok(connection)
    }

    fn describe(&self, resource: &ResourceName) -> Result<Description, SinkError> {
        let connection = self.existing()?;
        let standing = rows::standing(&connection, self.rule, resource)?;
        Ok(Description {
            generation: standing.namespace.generation,
            row: standing.row,
            floor: standing.namespace.floor,
        })
    }

    /// Opens the database for reading, or for one transaction.
    fn existing(&self) -> Result<Connection, SinkError> {
        self.connect(OpenFlags::empty())
    }

    /// Runs the caller's part in a transaction of its own, which is rolled back when that refuses.
    fn transact<T, R>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<Result<T, R>, SinkError>,
    ) -> Result<Result<T, R>, SinkError> {
        let connection = self.existing()?;
        let tx = self.begin(&connection)?;
        let done = work(&tx)?;
        if done.is_ok() {
            tx.commit().map_err(|error| sink_error(&connection, "committing", error))?;
        }
        Ok(done)
    }

    /// Runs one change in a transaction of its own. BEGIN IMMEDIATE waits for whoever has checked an older token.
    fn change<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, SinkError>) -> Result<T, SinkError> {
        let Ok(done) = self.transact(|tx| work(tx).map(Ok::<_, Infallible>))?;
        Ok(done)
    }

    /// SQLite waits in pauses that grow to 100 ms, in which busy writers would pass a seal again and again. So it waits in
    /// many short turns instead.
    fn begin<'c>(&self, connection: &'c Connection) -> Result<Transaction<'c>, SinkError> {
        let fail = |error| sink_error(connection, "beginning a transaction", error);
        let mut left = self.wait;
        loop {
            connection.busy_timeout(left.min(TURN)).map_err(fail)?;
            let begun = Transaction::new_unchecked(connection, TransactionBehavior::Immediate);
            left = left.saturating_sub(TURN);
            let busy = begun.as_ref().is_err_and(|error| error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy));
            if !busy || left.is_zero() {
                connection.busy_timeout(self.wait).map_err(fail)?;
                return begun.map_err(fail);
            }
        }
    }

    fn seal(&self, token: &Token, generation: &Generation, enrolled: &BTreeSet<SinkId>) -> Result<Sealing, SinkError> {
        if self.rule == Rule::HighWater {
            return Err(SinkError::NeverSealed { place: self.path.display().to_string() });
        }
        self.change(|tx| {
            held::expect(tx, self.rule)?;
            let standing = rows::standing(tx, self.rule, &token.resource)?;
            let namespace = &standing.namespace;
            let sealing =
                seal(standing.row.as_ref(), namespace.floor, &namespace.generation, token, generation, enrolled);
            if let Sealing::Seal(row) = &sealing {
                rows::put(tx, &token.resource, row)?;
            }
            Ok(sealing)
        })
    }

    fn forget(&self, resource: &ResourceName, cut: Epoch) -> Result<Forgetting, SinkError> {
        self.change(|tx| {
            let standing = rows::standing(tx, self.rule, resource)?;
            let forgetting = forget(standing.row.as_ref(), standing.namespace.floor, cut);
            if let Forgetting::Forget { floor } = forgetting {
                rows::forget(tx, resource, floor)?;
            }
            Ok(forgetting)
        })
    }

    fn reopen(&self) -> Result<Generation, SinkError> {
        self.change(|tx| {
            rows::namespace(tx, self.rule)?;
            rows::reopen(tx)?;
            Ok(rows::namespace(tx, self.rule)?.generation)
        })
    }
}

#[cfg(test)]
mod tests;
