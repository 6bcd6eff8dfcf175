//! SQLite passes the suite in transactions of sqlx's.

use crate::conformance_sqlite::Database;
use sha2::{Digest as _, Sha256};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};
use std::time::Duration;
use tenure_core::fence::Rule;
use tenure_core::{Digest, OperationId, Outcome, ResourceName, Token, Verdict};
use tenure_sink::conformance::{Capabilities, Held, SetAuthority, SinkUnderTest, run_all};
use tenure_sink::sqlx::SqlxSqliteFence;
use tenure_sink::{ApplyError, Lookup, Sink, SinkError};
use tokio::runtime::Runtime;

#[test]
fn sqlx_passes_the_suite_on_sqlite_under_the_sealed_rule() {
    run_all(|| Box::new(ThroughSqlx::of(Database::create(Rule::Sealed))));
}

#[test]
fn sqlx_passes_the_suite_on_sqlite_under_the_high_water_rule() {
    run_all(|| Box::new(ThroughSqlx::of(Database::create(Rule::HighWater))));
}

#[test]
fn sqlx_passes_the_suite_on_sqlite_under_the_held_rule() {
    run_all(|| Box::new(ThroughSqlx::of(Database::create(Rule::Held))));
}

/// The same database, written to through sqlx.
struct ThroughSqlx {
    database: Database,
    runtime: Runtime,
    fence: SqlxSqliteFence,
}

/// What comes of a transaction that could not even begin, or was the later one.
fn busy(error: &sqlx::Error) -> SinkError {
    assert!(error.to_string().contains("locked"), "{error:?}");
    SinkError::Busy { place: "the test".into(), waited: Duration::from_millis(20) }
}

impl ThroughSqlx {
    fn of(database: Database) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let fence = SqlxSqliteFence::new(database.sink().rule());
        Self { database, runtime, fence }
    }

    fn work<T>(&self, work: impl AsyncFnOnce(&mut SqliteConnection) -> T) -> T {
        let options =
            SqliteConnectOptions::new().filename(self.database.path()).busy_timeout(Duration::from_millis(20));
        self.runtime.block_on(async { work(&mut options.connect().await.unwrap()).await })
    }
}

async fn set(tx: &mut SqliteConnection, resource: &ResourceName, value: &str) -> Result<Outcome, sqlx::Error> {
    let put = "INSERT INTO shop VALUES (?1, ?2) ON CONFLICT (resource) DO UPDATE SET value = excluded.value";
    sqlx::query(put).bind(resource.as_str()).bind(value).execute(tx).await?;
    Ok(Outcome::new(format!("wrote {value}")).unwrap())
}

impl SinkUnderTest for ThroughSqlx {
    fn sink(&self) -> &dyn Sink {
        self.database.sink()
    }

    fn capabilities(&self) -> Capabilities {
        self.database.capabilities()
    }

    fn another(&self) -> Box<dyn SinkUnderTest> {
        Box::new(Self::of(self.database.anew()))
    }

    fn open_missing(&self) -> (Option<SinkError>, bool) {
        self.database.open_missing()
    }

    fn write(&self, token: &Token, operation: Option<&OperationId>, value: &str) -> Result<Verdict, SinkError> {
        self.work(async |connection| {
            let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.map_err(|error| busy(&error))?;
            let verdict = match operation {
                None => match self.fence.admit(&mut tx, token).await? {
                    Err(verdict) => verdict,
                    Ok(admitted) => {
                        assert_eq!(admitted.epoch(), token.epoch);
                        set(&mut tx, &token.resource, value).await.unwrap();
                        Verdict::Written
                    }
                },
                Some(operation) => {
                    let digest = Digest(Sha256::digest(value).into());
                    let effect = async |tx: &mut SqliteConnection| set(tx, &token.resource, value).await;
                    let applied = self.fence.apply(&mut tx, token, operation, &digest, effect).await;
                    applied.map_err(|error| match error {
                        ApplyError::Sink(error) => error,
                        ApplyError::Effect(error) => panic!("the effect failed: {error}"),
                    })?
                }
            };
            tx.commit().await.unwrap();
            Ok(verdict)
        })
    }

    fn write_failing(&self, token: &Token, operation: Option<&OperationId>) {
        self.work(async |connection| {
            let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.unwrap();
            let Some(operation) = operation else {
                let _ = self.fence.admit(&mut tx, token).await.unwrap().unwrap();
                set(&mut tx, &token.resource, "half").await.unwrap();
                return tx.rollback().await.unwrap();
            };
            let effect = async |tx: &mut SqliteConnection| {
                set(tx, &token.resource, "half").await.unwrap();
                Err::<Outcome, _>("the effect's own reason")
            };
            let failed = self.fence.apply(&mut tx, token, operation, &Digest([0; 32]), effect).await;
            assert!(matches!(failed, Err(ApplyError::Effect("the effect's own reason"))), "{failed:?}");
            // Committing shows that nothing of it was left in the transaction.
            tx.commit().await.unwrap();
        });
    }

    fn lookup(&self, token: &Token, operation: &OperationId) -> Result<Result<Lookup, Verdict>, SinkError> {
        self.work(async |connection| {
            let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.map_err(|error| busy(&error))?;
            let found = self.fence.lookup(&mut tx, token, operation).await?;
            tx.commit().await.unwrap();
            Ok(found)
        })
    }

    fn value(&self, resource: &ResourceName) -> Option<String> {
        self.database.value(resource)
    }

    fn hold(&self, token: &Token) -> Box<dyn Held + '_> {
        self.database.hold(token)
    }

    fn authority(&self) -> Option<&dyn SetAuthority> {
        self.database.authority()
    }
}

/// A deferred transaction that had read before another one wrote may not be believed.
#[test]
fn a_snapshot_that_is_too_old_is_a_transient_error() {
    let through = ThroughSqlx::of(Database::create(Rule::Sealed));
    let sealed = crate::seal(through.sink(), &crate::token(1));
    assert!(matches!(sealed, Ok(tenure_core::fence::Sealing::Seal(_))));
    through.work(async |connection| {
        let mut tx = connection.begin().await.unwrap();
        sqlx::query("SELECT * FROM shop").fetch_all(&mut *tx).await.unwrap();
        let other = through.database.anew();
        assert_eq!(other.write(&crate::token(1), None, "between").unwrap(), Verdict::Written);
        let error = through.fence.admit(&mut tx, &crate::token(1)).await.unwrap_err();
        assert!(matches!(error, SinkError::Snapshot { .. }) && error.is_transient(), "{error}");
    });
}
