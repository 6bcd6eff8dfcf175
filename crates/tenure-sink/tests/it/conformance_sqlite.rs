//! SQLite passes the suite, under every rule.

use crate::authority::InSqlite;
use crate::id;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use sha2::{Digest as _, Sha256};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tenure_core::fence::Rule;
use tenure_core::{Digest, OperationId, Outcome, ResourceName, Token, Verdict};
use tenure_sink::conformance::{Capabilities, Held, SetAuthority, SinkUnderTest, run_all};
use tenure_sink::{ApplyError, Lookup, Sink, SinkError, SqliteFence, SqliteSink};

#[test]
fn sqlite_passes_the_suite_under_the_sealed_rule() {
    run_all(|| Box::new(Database::create(Rule::Sealed)));
}

#[test]
fn sqlite_passes_the_suite_under_the_high_water_rule() {
    run_all(|| Box::new(Database::create(Rule::HighWater)));
}

#[test]
fn sqlite_passes_the_suite_under_the_held_rule() {
    run_all(|| Box::new(Database::create(Rule::Held)));
}

pub(crate) struct Database {
    folder: Arc<TempDir>,
    sink: SqliteSink,
    authority: Option<InSqlite>,
}

impl Database {
    pub(crate) fn create(rule: Rule) -> Self {
        let folder = Arc::new(TempDir::new().unwrap());
        let path = folder.path().join("shop.sqlite");
        let authority = (rule == Rule::Held).then(|| InSqlite::create(&path));
        let sink = SqliteSink::create(&path, id(), rule).unwrap().with_wait(Duration::from_millis(300));
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE shop (resource TEXT PRIMARY KEY, value)").unwrap();
        Self { folder, sink, authority }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("shop.sqlite")
    }

    /// Another handle, with nothing shared in memory.
    pub(crate) fn anew(&self) -> Self {
        let sink = SqliteSink::open(self.path(), id(), self.sink.rule()).unwrap().with_wait(Duration::from_millis(300));
        let authority = self.authority.as_ref().map(|_| InSqlite::at(&self.path()));
        Self { folder: Arc::clone(&self.folder), sink, authority }
    }

    fn connect(&self) -> Connection {
        let connection = Connection::open(self.path()).unwrap();
        // Short turns, which the suite repeats: SQLite's own long pauses would let busy writers pass each other for seconds.
        connection.busy_timeout(Duration::from_millis(20)).unwrap();
        connection
    }

    fn begin<'c>(&self, connection: &'c mut Connection) -> Result<Transaction<'c>, SinkError> {
        let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        begun.map_err(|error| {
            assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy), "{error}");
            SinkError::Busy { place: self.path().display().to_string(), waited: Duration::from_millis(20) }
        })
    }

    fn fence(&self) -> SqliteFence {
        self.sink.fence()
    }
}

fn set(tx: &Transaction<'_>, resource: &ResourceName, value: &str) -> rusqlite::Result<()> {
    let put = "INSERT INTO shop VALUES (?1, ?2) ON CONFLICT (resource) DO UPDATE SET value = excluded.value";
    tx.execute(put, params![resource.as_str(), value]).map(drop)
}

fn sink_error(error: ApplyError<rusqlite::Error>) -> SinkError {
    match error {
        ApplyError::Sink(error) => error,
        ApplyError::Effect(error) => panic!("the effect failed: {error}"),
    }
}

impl SinkUnderTest for Database {
    fn sink(&self) -> &dyn Sink {
        &self.sink
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { seals_past_a_stopped_writer: false }
    }

    fn another(&self) -> Box<dyn SinkUnderTest> {
        Box::new(self.anew())
    }

    fn open_missing(&self) -> (Option<SinkError>, bool) {
        let path = self.folder.path().join("missing.sqlite");
        let error = SqliteSink::open(&path, id(), self.sink.rule()).err();
        (error, path.exists())
    }

    fn write(&self, token: &Token, operation: Option<&OperationId>, value: &str) -> Result<Verdict, SinkError> {
        let mut connection = self.connect();
        let tx = self.begin(&mut connection)?;
        let verdict = match operation {
            None => match self.fence().admit(&tx, token)? {
                Err(verdict) => verdict,
                Ok(_) => {
                    set(&tx, &token.resource, value).unwrap();
                    Verdict::Written
                }
            },
            Some(operation) => {
                let digest = Digest(Sha256::digest(value).into());
                let outcome = Outcome::new(format!("wrote {value}")).unwrap();
                self.fence()
                    .apply(&tx, token, operation, &digest, |tx| set(tx, &token.resource, value).map(|()| outcome))
                    .map_err(sink_error)?
            }
        };
        tx.commit().unwrap();
        Ok(verdict)
    }

    fn write_failing(&self, token: &Token, operation: Option<&OperationId>) {
        let mut connection = self.connect();
        let tx = self.begin(&mut connection).unwrap();
        let Some(operation) = operation else {
            let admitted = self.fence().admit(&tx, token).unwrap().unwrap();
            assert_eq!(admitted.epoch(), token.epoch);
            set(&tx, &token.resource, "half").unwrap();
            return tx.rollback().unwrap();
        };
        let failed = self.fence().apply(&tx, token, operation, &Digest([0; 32]), |tx| {
            set(tx, &token.resource, "half").unwrap();
            Err::<Outcome, _>("the effect's own reason")
        });
        assert!(matches!(failed, Err(ApplyError::Effect("the effect's own reason"))), "{failed:?}");
        // Committing shows that nothing of it was left in the transaction.
        tx.commit().unwrap();
    }

    fn lookup(&self, token: &Token, operation: &OperationId) -> Result<Result<Lookup, Verdict>, SinkError> {
        let mut connection = self.connect();
        let tx = self.begin(&mut connection)?;
        let found = self.fence().lookup(&tx, token, operation)?;
        tx.commit().unwrap();
        Ok(found)
    }

    fn value(&self, resource: &ResourceName) -> Option<String> {
        let get = "SELECT value FROM shop WHERE resource = ?1";
        self.connect().query_row(get, [resource.as_str()], |row| row.get(0)).optional().unwrap()
    }

    fn hold(&self, token: &Token) -> Box<dyn Held + '_> {
        // A deferred transaction, the one that does not block the seal by itself.
        let connection = self.connect();
        let mut tx = Transaction::new_unchecked(&connection, TransactionBehavior::Deferred).unwrap();
        tx.set_drop_behavior(rusqlite::DropBehavior::Ignore);
        assert_eq!(self.fence().admit(&tx, token).unwrap().unwrap().epoch(), token.epoch);
        drop(tx);
        Box::new(Open { connection, resource: token.resource.clone() })
    }

    fn authority(&self) -> Option<&dyn SetAuthority> {
        self.authority.as_ref().map(|authority| authority as &dyn SetAuthority)
    }
}

/// A transaction that is open on a connection of its own.
struct Open {
    connection: Connection,
    resource: ResourceName,
}

impl Held for Open {
    fn finish(self: Box<Self>, value: &str) -> Result<Verdict, String> {
        let put = "INSERT INTO shop VALUES (?1, ?2) ON CONFLICT (resource) DO UPDATE SET value = excluded.value";
        self.connection
            .execute(put, params![self.resource.as_str(), value])
            .and_then(|_| self.connection.execute_batch("COMMIT"))
            .map(|()| Verdict::Written)
            .map_err(|error| error.to_string())
    }
}
