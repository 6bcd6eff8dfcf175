//! The ledger in SQLite: it passes the suite, and what is its own is tested beside it.

mod crashes;
mod postgres;
mod sqlite;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tenure_core::fence::Rule;
use tenure_core::operation::Attempt;
use tenure_core::{OperationId, Outcome, Reason, SinkId, Token};
use tenure_sink::conformance::{LedgerUnderTest, run_ledger};
use tenure_sink::ledger::{AttemptRecord, Intended, Intent, Ledger, Marked, NoEffect, Refused};
use tenure_sink::{Sink, SinkError, SqliteLedger, SqliteSink, digest_of};

#[test]
fn sqlite_passes_the_suite_of_ledgers() {
    run_ledger(|| Box::new(Database::create()));
}

/// A database with a fence and a ledger.
struct Database {
    folder: Arc<TempDir>,
    sink: SqliteSink,
}

impl Database {
    fn create() -> Self {
        let folder = Arc::new(TempDir::new().unwrap());
        let path = folder.path().join("shop.sqlite");
        let sink = SqliteSink::create(&path, crate::id(), Rule::Sealed).unwrap().with_wait(Duration::from_millis(300));
        let database = Self { folder, sink };
        SqliteLedger::new().install(&database.connect()).unwrap();
        database
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("shop.sqlite")
    }

    fn connect(&self) -> Connection {
        let connection = Connection::open(self.path()).unwrap();
        // Short turns, which the suite repeats: SQLite's own long pauses would let busy writers pass each other for seconds.
        connection.busy_timeout(Duration::from_millis(20)).unwrap();
        connection
    }

    fn begin<'c>(&self, connection: &'c mut Connection) -> Result<Transaction<'c>, SinkError> {
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| {
            assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy), "{error}");
            SinkError::Busy { place: self.path().display().to_string(), waited: Duration::from_millis(20) }
        })
    }

    /// One call in a transaction of its own, committed unless it is refused.
    fn within<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<Result<T, Refused>, SinkError>,
    ) -> Result<Result<T, Refused>, SinkError> {
        let mut connection = self.connect();
        let tx = self.begin(&mut connection)?;
        let done = work(&tx)?;
        if done.is_ok() {
            tx.commit().unwrap();
        }
        Ok(done)
    }
}

impl LedgerUnderTest for Database {
    fn sink(&self) -> &dyn Sink {
        &self.sink
    }

    fn ledger(&self) -> &dyn Ledger {
        &self.sink
    }

    fn another(&self) -> Box<dyn LedgerUnderTest> {
        let sink = SqliteSink::open(self.path(), crate::id(), Rule::Sealed).unwrap();
        Box::new(Self { folder: Arc::clone(&self.folder), sink: sink.with_wait(Duration::from_millis(300)) })
    }

    fn intent(&self, token: &Token, intent: &Intent) -> Result<Result<Intended, Refused>, SinkError> {
        self.within(|tx| SqliteLedger.intent(tx, token, intent))
    }

    fn intent_rolled_back(&self, token: &Token, intent: &Intent) {
        let mut connection = self.connect();
        let tx = self.begin(&mut connection).unwrap();
        assert_eq!(SqliteLedger.intent(&tx, token, intent).unwrap(), Ok(Intended::Written));
        tx.rollback().unwrap();
    }

    fn sent(&self, token: &Token, operation: &OperationId) -> Result<Result<Marked, Refused>, SinkError> {
        let mut connection = self.connect();
        let tx = self.begin(&mut connection)?;
        SqliteLedger.sent(tx, token, operation)
    }

    fn done(
        &self,
        token: &Token,
        operation: &OperationId,
        outcome: &Outcome,
    ) -> Result<Result<Attempt, Refused>, SinkError> {
        self.within(|tx| SqliteLedger.done(tx, token, operation, outcome))
    }

    fn failed(
        &self,
        token: &Token,
        operation: &OperationId,
        proof: NoEffect,
        why: &Reason,
    ) -> Result<Result<Attempt, Refused>, SinkError> {
        self.within(|tx| SqliteLedger.failed(tx, token, operation, proof, why))
    }

    fn unknown(
        &self,
        token: &Token,
        operation: &OperationId,
        why: &Reason,
    ) -> Result<Result<Attempt, Refused>, SinkError> {
        self.within(|tx| SqliteLedger.unknown(tx, token, operation, why))
    }

    fn lookup(&self, token: &Token, operation: &OperationId) -> Result<Result<Vec<AttemptRecord>, Refused>, SinkError> {
        self.within(|tx| SqliteLedger.lookup(tx, token, operation))
    }
}

fn intent(name: &str) -> Intent {
    Intent {
        operation: crate::operation(name),
        digest: digest_of(name.as_bytes()),
        system: SinkId::new("bank").unwrap(),
        owner: "alice".parse().unwrap(),
    }
}
