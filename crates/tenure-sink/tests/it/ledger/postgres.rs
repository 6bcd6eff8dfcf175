//! The ledger in PostgreSQL: it passes the suite, directly and at every isolation level, and what is its own beside it.

use super::intent;
use crate::{id, operation, seal, token};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::fence::{Rule, Sealing};
use tenure_core::ledger::Looked;
use tenure_core::operation::Attempt;
use tenure_core::{OperationId, Outcome, Reason, Token};
use tenure_servers::{PgBouncer, Postgres};
use tenure_sink::conformance::{LedgerUnderTest, answered, run_ledger};
use tenure_sink::ledger::{AttemptRecord, Intended, Intent, Ledger, Marked, NoEffect, Probe, Refused, Which};
use tenure_sink::postgres::ledger_script;
use tenure_sink::{PostgresFence, PostgresLedger, PostgresSink, Sink, SinkError, digest_of};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, IsolationLevel, NoTls, Transaction};

#[test]
fn postgres_passes_the_suite_of_ledgers() {
    run_ledger(|| Box::new(Database::create(IsolationLevel::ReadCommitted)));
}

#[test]
fn postgres_passes_the_suite_of_ledgers_when_serializable() {
    run_ledger(|| Box::new(Database::create(IsolationLevel::Serializable)));
}

#[test]
fn postgres_passes_the_suite_of_ledgers_behind_a_pooler() {
    let bouncer = PgBouncer::with_pool(Postgres::shared(), 12);
    run_ledger(|| {
        let url = bouncer.url_of(&Postgres::shared().database());
        Box::new(Database::at(url, IsolationLevel::ReadCommitted))
    });
}

/// One handle: a sealing side, and a connection of its own.
struct Database {
    url: String,
    level: IsolationLevel,
    sink: PostgresSink,
    ledger: PostgresLedger,
    runtime: Arc<Runtime>,
    client: Mutex<Client>,
}

impl Database {
    fn create(level: IsolationLevel) -> Self {
        Self::at(Postgres::shared().database(), level)
    }

    fn at(url: String, level: IsolationLevel) -> Self {
        let sink = PostgresSink::create(&url, id(), Rule::Sealed).unwrap();
        answered(sink.ready()).unwrap();
        let database = Self::open(url, level);
        database.within(async |client| PostgresLedger::default().install(client).await).unwrap();
        database
    }

    fn open(url: String, level: IsolationLevel) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let sink = PostgresSink::open(&url, id(), Rule::Sealed).unwrap().with_wait(Duration::from_millis(900));
        let client = runtime.block_on(connect(&url));
        let ledger = PostgresLedger::default();
        Self { url, level, sink, ledger, runtime: Arc::new(runtime), client: Mutex::new(client) }
    }

    fn within<T>(&self, work: impl AsyncFnOnce(&mut Client) -> T) -> T {
        self.runtime.block_on(work(&mut self.client.lock().unwrap()))
    }

    /// One call in a transaction of its own, committed unless it is refused.
    fn call<T>(
        &self,
        work: impl AsyncFnOnce(&PostgresLedger, &Transaction<'_>) -> Result<Result<T, Refused>, SinkError>,
    ) -> Result<Result<T, Refused>, SinkError> {
        self.within(async |client| {
            let tx = client.build_transaction().isolation_level(self.level).start().await.unwrap();
            let done = work(&self.ledger, &tx).await?;
            let ended = if done.is_ok() { tx.commit().await } else { tx.rollback().await };
            match ended {
                Ok(()) => Ok(done),
                Err(error) => Err(SinkError::Repeat { place: "the test".into(), why: error.to_string() }),
            }
        })
    }

    fn run(&self, sql: &str) {
        self.within(async |client| client.batch_execute(sql).await).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    client
}

impl LedgerUnderTest for Database {
    fn sink(&self) -> &dyn Sink {
        &self.sink
    }

    fn ledger(&self) -> &dyn Ledger {
        &self.sink
    }

    fn another(&self) -> Box<dyn LedgerUnderTest> {
        Box::new(Self::open(self.url.clone(), self.level))
    }

    fn intent(&self, token: &Token, intent: &Intent) -> Result<Result<Intended, Refused>, SinkError> {
        self.call(async |ledger, tx| ledger.intent(tx, token, intent).await)
    }

    fn intent_rolled_back(&self, token: &Token, intent: &Intent) {
        self.within(async |client| {
            let tx = client.transaction().await.unwrap();
            assert_eq!(self.ledger.intent(&tx, token, intent).await.unwrap(), Ok(Intended::Written));
            tx.rollback().await.unwrap();
        });
    }

    fn sent(&self, token: &Token, operation: &OperationId) -> Result<Result<Marked, Refused>, SinkError> {
        self.within(async |client| {
            let tx = client.build_transaction().isolation_level(self.level).start().await.unwrap();
            self.ledger.sent(tx, token, operation).await
        })
    }

    fn done(
        &self,
        token: &Token,
        operation: &OperationId,
        outcome: &Outcome,
    ) -> Result<Result<Attempt, Refused>, SinkError> {
        self.call(async |ledger, tx| ledger.done(tx, token, operation, outcome).await)
    }

    fn failed(
        &self,
        token: &Token,
        operation: &OperationId,
        proof: NoEffect,
        why: &Reason,
    ) -> Result<Result<Attempt, Refused>, SinkError> {
        self.call(async |ledger, tx| ledger.failed(tx, token, operation, proof, why).await)
    }

    fn unknown(
        &self,
        token: &Token,
        operation: &OperationId,
        why: &Reason,
    ) -> Result<Result<Attempt, Refused>, SinkError> {
        self.call(async |ledger, tx| ledger.unknown(tx, token, operation, why).await)
    }

    fn lookup(&self, token: &Token, operation: &OperationId) -> Result<Result<Vec<AttemptRecord>, Refused>, SinkError> {
        self.call(async |ledger, tx| ledger.lookup(tx, token, operation).await)
    }
}

fn sealed() -> Database {
    let database = Database::create(IsolationLevel::ReadCommitted);
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    database
}

#[test]
fn a_sink_from_before_the_ledger_says_so_and_gets_one_beside_it() {
    let url = Postgres::shared().database();
    let sink = PostgresSink::create(&url, id(), Rule::Sealed).unwrap();
    answered(sink.ready()).unwrap();
    let database = Database::open(url, IsolationLevel::ReadCommitted);
    assert!(matches!(seal(&sink, &token(1)), Ok(Sealing::Seal(_))));
    let errors = [
        answered(sink.list(Which::All, None, None, 10)).unwrap_err(),
        answered(sink.settle(&token(1))).unwrap_err(),
        database.intent(&token(1), &intent("one")).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, SinkError::NoLedger { .. }), "{error:?}");
    }
    // By hand, and then once more by the program.
    database.run(&ledger_script("tenure").unwrap());
    database.within(async |client| PostgresLedger::default().install(client).await).unwrap();
    assert_eq!(database.intent(&token(1), &intent("one")).unwrap(), Ok(Intended::Written));
    assert!(matches!(ledger_script("no; schema"), Err(SinkError::Address { .. })));
}

#[test]
fn another_version_of_the_tables_is_refused_with_advice() {
    let database = sealed();
    database.run("INSERT INTO tenure.ledger_migration (number, name) VALUES (2, 'later')");
    let errors = [
        database.intent(&token(1), &intent("one")).unwrap_err(),
        answered(database.sink.list(Which::All, None, None, 10)).unwrap_err(),
        answered(database.sink.attempts(&operation("one"))).unwrap_err(),
        answered(database.sink.settle(&token(1))).unwrap_err(),
        database.within(async |client| PostgresLedger::default().install(client).await).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, SinkError::Schema { found: 2, known: 1, .. }), "{error:?}");
        assert!(error.to_string().contains("newer version"), "{error}");
    }
}

/// Without seals, what a takeover settles may be moved by the old holder after it.
#[test]
fn a_ledger_in_postgres_needs_the_sealed_rule() {
    let url = Postgres::shared().database();
    answered(PostgresSink::create(&url, id(), Rule::HighWater).unwrap().ready()).unwrap();
    let database = Database::open(url, IsolationLevel::ReadCommitted);
    let error = database.within(async |client| PostgresLedger::default().install(client).await).unwrap_err();
    assert!(error.to_string().contains("a ledger needs its seals"), "{error}");
    let by_hand = database.within(async |client| client.batch_execute(&ledger_script("tenure").unwrap()).await);
    assert!(format!("{by_hand:?}").contains("a ledger needs its seals"), "{by_hand:?}");
}

/// It was advised to ask for the right to seal, which does not open the book.
#[test]
fn whoever_may_not_read_the_ledger_is_told_what_lets_it() {
    let database = sealed();
    let role = format!("reader_{}", database.url.rsplit('_').next().unwrap());
    database.run(&format!("CREATE ROLE {role} LOGIN; SELECT tenure.allow('{role}', 'seal')"));
    let url = database.url.replace("postgres@", &format!("{role}@"));
    let sink = PostgresSink::open(&url, id(), Rule::Sealed).unwrap();
    let error = answered(sink.list(Which::All, None, None, 10)).unwrap_err().to_string();
    // Roles belong to the server, which other tests share.
    database.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    assert!(error.contains("GRANT SELECT ON tenure.ledger_migration"), "{error}");
}

/// The server is stopped where it is. A call waited for it for as long as the connection stood.
#[test]
fn a_server_that_does_not_answer_ends_a_call_of_the_ledger_in_time() {
    let server = Postgres::options().unsynced().start();
    let database = Database::at(server.database(), IsolationLevel::ReadCommitted);
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    server.pause();
    let settled = answered(database.sink.settle(&token(1)));
    server.resume();
    let error = settled.unwrap_err();
    assert!(matches!(error, SinkError::Unreachable { .. }) && error.is_transient(), "{error}");
    assert!(answered(database.sink.settle(&token(1))).unwrap().is_ok());
}

/// The session does not wait for its commits; the mark does.
#[test]
fn l5_a_mark_waits_for_its_commit_also_where_the_session_does_not() {
    let database = sealed();
    database.run("SET synchronous_commit = off");
    assert_eq!(database.intent(&token(1), &intent("one")).unwrap(), Ok(Intended::Written));
    // A trigger that fires at the commit itself writes down what holds then.
    database.run(
        "CREATE TABLE seen (level text);
         CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER see AFTER UPDATE ON tenure.ledger_attempt DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION see()",
    );
    assert!(database.sent(&token(1), &operation("one")).unwrap().is_ok());
    let outcome = "paid".parse().unwrap();
    assert_eq!(database.done(&token(1), &operation("one"), &outcome).unwrap(), Ok(Attempt::Done));
    let levels: Vec<String> = database.within(async |client| {
        let rows = client.query("SELECT level FROM seen", &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    });
    assert_eq!(levels, ["on", "off"], "the mark, and the answer");
}

#[test]
fn v5_a_fenced_sink_in_postgres_is_its_own_probe() {
    let (book, shop) = (sealed(), sealed());
    for name in ["landed", "late"] {
        assert_eq!(book.intent(&token(1), &intent(name)).unwrap(), Ok(Intended::Written));
        assert!(book.sent(&token(1), &operation(name)).unwrap().is_ok());
    }
    shop.within(async |client| {
        let mut tx = client.transaction().await.unwrap();
        let effect = async |_: &Transaction<'_>| Ok::<_, ()>(Outcome::new("sold").unwrap());
        let fence = PostgresFence::default();
        let verdict = fence.apply(&mut tx, &token(1), &operation("landed"), &digest_of(b"x"), effect).await.unwrap();
        assert!(verdict.stands());
        tx.commit().await.unwrap();
    });
    assert!(matches!(seal(&book.sink, &token(2)), Ok(Sealing::Seal(_))));
    assert!(answered(book.sink.settle(&token(2))).unwrap().is_ok());
    let unknown = answered(book.sink.list(Which::Unknown, None, None, 10)).unwrap();
    let look = |at: usize| answered(shop.sink.look(&token(2), &unknown[at]));
    assert!(look(1).unwrap_err().to_string().contains("unsealed"));
    assert!(matches!(seal(&shop.sink, &token(2)), Ok(Sealing::Seal(_))));
    assert_eq!(look(0), Ok(Looked::Found(Outcome::new("sold").unwrap())));
    assert_eq!(look(1), Ok(Looked::AbsentForGood));
}
