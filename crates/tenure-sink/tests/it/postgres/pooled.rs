//! PostgreSQL passes the suite in transactions of sqlx's.

use super::database::{Database, Open, digest};
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use tenure_core::fence::Rule;
use tenure_core::{Digest, OperationId, Outcome, ResourceName, Token, Verdict};
use tenure_sink::conformance::{Capabilities, Held, SetAuthority, SinkUnderTest, run_all};
use tenure_sink::sqlx::SqlxPostgresFence;
use tenure_sink::{ApplyError, Lookup, Sink, SinkError};

#[test]
fn sqlx_passes_the_suite_on_postgres_under_the_sealed_rule() {
    run_all(|| Box::new(ThroughSqlx(Database::create(Rule::Sealed))));
}

#[test]
fn sqlx_passes_the_suite_on_postgres_under_the_high_water_rule() {
    run_all(|| Box::new(ThroughSqlx(Database::create(Rule::HighWater))));
}

#[test]
fn sqlx_passes_the_suite_on_postgres_under_the_held_rule() {
    run_all(|| Box::new(ThroughSqlx(Database::create(Rule::Held))));
}

/// The same database, written to through sqlx.
struct ThroughSqlx(Database);

impl ThroughSqlx {
    fn work<T>(&self, work: impl AsyncFnOnce(&mut PgConnection) -> T) -> T {
        self.0.runtime.block_on(async {
            let mut connection = PgConnection::connect(&self.0.url).await.unwrap();
            work(&mut connection).await
        })
    }
}

async fn set(tx: &mut PgConnection, resource: &ResourceName, value: &str) -> Result<Outcome, sqlx::Error> {
    let put = "INSERT INTO shop VALUES ($1, $2) ON CONFLICT (resource) DO UPDATE SET value = excluded.value";
    sqlx::query(put).bind(resource.as_str()).bind(value).execute(tx).await?;
    Ok(Outcome::new(format!("wrote {value}")).unwrap())
}

fn repeated(error: &sqlx::Error) -> SinkError {
    let code = error.as_database_error().and_then(|error| error.code().map(|code| code.into_owned()));
    match code.as_deref() {
        Some("40001" | "40P01") => SinkError::Repeat { place: "the test".into(), why: error.to_string() },
        _ => panic!("{error:?}"),
    }
}

impl SinkUnderTest for ThroughSqlx {
    fn sink(&self) -> &dyn Sink {
        &self.0.sink
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn another(&self) -> Box<dyn SinkUnderTest> {
        Box::new(Self(self.0.anew()))
    }

    fn open_missing(&self) -> (Option<SinkError>, bool) {
        self.0.open_missing()
    }

    fn write(&self, token: &Token, operation: Option<&OperationId>, value: &str) -> Result<Verdict, SinkError> {
        let fence = SqlxPostgresFence::default();
        self.work(async |connection| {
            let mut tx = connection.begin().await.unwrap();
            let verdict = match operation {
                None => match fence.admit(&mut tx, token).await? {
                    Err(verdict) => verdict,
                    Ok(admitted) => {
                        assert_eq!(admitted.epoch(), token.epoch);
                        set(&mut tx, &token.resource, value).await.map_err(|error| repeated(&error))?;
                        Verdict::Written
                    }
                },
                Some(operation) => {
                    let effect = async |tx: &mut PgConnection| set(tx, &token.resource, value).await;
                    let applied = fence.apply(&mut tx, token, operation, &digest(value), effect).await;
                    applied.map_err(|error| match error {
                        ApplyError::Sink(error) => error,
                        ApplyError::Effect(error) => repeated(&error),
                    })?
                }
            };
            tx.commit().await.map_err(|error| repeated(&error))?;
            Ok(verdict)
        })
    }

    fn write_failing(&self, token: &Token, operation: Option<&OperationId>) {
        let fence = SqlxPostgresFence::default();
        self.work(async |connection| {
            let mut tx = connection.begin().await.unwrap();
            let Some(operation) = operation else {
                let _ = fence.admit(&mut tx, token).await.unwrap().unwrap();
                set(&mut tx, &token.resource, "half").await.unwrap();
                return tx.rollback().await.unwrap();
            };
            let effect = async |tx: &mut PgConnection| {
                set(tx, &token.resource, "half").await.unwrap();
                Err::<Outcome, _>("the effect's own reason")
            };
            let failed = fence.apply(&mut tx, token, operation, &Digest([0; 32]), effect).await;
            assert!(matches!(failed, Err(ApplyError::Effect("the effect's own reason"))), "{failed:?}");
            // Committing shows that nothing of it was left in the transaction.
            tx.commit().await.unwrap();
        });
    }

    fn lookup(&self, token: &Token, operation: &OperationId) -> Result<Result<Lookup, Verdict>, SinkError> {
        self.work(async |connection| {
            let mut tx = connection.begin().await.unwrap();
            let found = SqlxPostgresFence::default().lookup(&mut tx, token, operation).await?;
            tx.commit().await.map_err(|error| repeated(&error))?;
            Ok(found)
        })
    }

    fn value(&self, resource: &ResourceName) -> Option<String> {
        self.0.value(resource)
    }

    fn hold(&self, token: &Token) -> Box<dyn Held + '_> {
        Box::new(Open::begin(&self.0, token))
    }

    fn authority(&self) -> Option<&dyn SetAuthority> {
        self.0.authority()
    }
}

/// A transaction of a pool that was given up half-way carries nothing into the next one of the same connection.
#[test]
fn a_transaction_that_was_dropped_admits_nothing_later() {
    let database = Database::create(Rule::Sealed);
    database.run("SELECT tenure.protect('shop', 'resource')");
    assert!(matches!(crate::seal(&database.sink, &crate::token(1)), Ok(tenure_core::fence::Sealing::Seal(_))));
    database.runtime.block_on(async {
        let mut connection = PgConnection::connect(&database.url).await.unwrap();
        let mut tx = connection.begin().await.unwrap();
        let _ = SqlxPostgresFence::default().admit(&mut tx, &crate::token(1)).await.unwrap().unwrap();
        drop(tx);
        let written = set(&mut connection, &crate::token(1).resource, "stray").await;
        assert!(written.as_ref().is_err_and(|error| error.to_string().contains("is protected")), "{written:?}");
    });
}
