//! The rule `held` beside an authority in one schema: what it reads, when, and what it leaves alone.

use super::database::{Database, Open, connect};
use crate::authority::InPostgres;
use crate::{id, operation, seal, token};
use std::time::Duration;
use tenure_core::fence::{Rule, Sealing};
use tenure_core::record::EndReason;
use tenure_core::{Ending, Verdict};
use tenure_servers::postgres::psql;
use tenure_servers::{Postgres, eventually};
use tenure_sink::conformance::{Held, SetAuthority, SinkUnderTest, answered};
use tenure_sink::ledger::{Intended, Intent, Ledger, Refused, Settled};
use tenure_sink::{PostgresFence, PostgresLedger, PostgresSink, SinkError, digest_of};
use tokio_postgres::IsolationLevel;

/// Epoch 1 is granted and sealed.
fn granted() -> Database {
    let database = Database::create(Rule::Held);
    database.authority().unwrap().grants(&token(1)).unwrap();
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    database
}

fn why(verdict: Result<Verdict, SinkError>) -> Ending {
    match verdict {
        Ok(Verdict::Over(over)) => over.why,
        other => panic!("{other:?}"),
    }
}

/// A check that read the authority before it waited for the fence would believe what was true before the wait.
#[test]
fn h1_a_check_that_waits_for_the_fence_reads_the_authority_afterwards() {
    let database = granted();
    let (other, writer) = (database.anew(), database.anew());
    let mut client = other.connect();
    let generation = answered(tenure_sink::Sink::describe(&database.sink, &token(1).resource)).unwrap().generation;
    let runtime = other.runtime;
    let written = runtime.block_on(async {
        // Sealed once more, and not committed yet: whoever checks waits.
        let tx = client.transaction().await.unwrap();
        let again = format!("SELECT tenure.seal('r', 1, '{}', '{generation}')", token(1).grant);
        tx.batch_execute(&again).await.unwrap();
        let writing = runtime.spawn_blocking(move || writer.write(&token(1), None, "late"));
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'
                     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let url = database.url.clone();
        let waiting = move || eventually("it waits", || (psql(&url, waits).as_deref() == Ok("1")).then_some(()));
        runtime.spawn_blocking(waiting).await.unwrap();
        tokio::task::block_in_place(|| database.authority().unwrap().reaches_the_deadline());
        tx.commit().await.unwrap();
        writing.await.unwrap()
    });
    assert_eq!(why(written), Ending::Session(EndReason::Expired));
    assert_eq!(database.value(&token(1).resource), None);
}

#[test]
fn a_ledger_beside_it_takes_what_the_holder_says_until_the_deadline() {
    let database = granted();
    let ledger = PostgresLedger::default();
    database.transaction(async |client| ledger.install(client).await.unwrap());
    let begin = |name: &str| {
        let intent = Intent {
            operation: operation(name),
            digest: digest_of(name.as_bytes()),
            system: "bank".parse().unwrap(),
            owner: "alice".parse().unwrap(),
        };
        database.transaction(async |client| {
            let tx = client.transaction().await.unwrap();
            let intended = ledger.intent(&tx, &token(1), &intent).await.unwrap();
            tx.commit().await.unwrap();
            intended
        })
    };
    assert_eq!(begin("one"), Ok(Intended::Written));
    database.authority().unwrap().reaches_the_deadline();
    assert!(matches!(begin("two"), Err(Refused::Token(Verdict::Over(_)))));
    let next = token(2);
    database.authority().unwrap().grants(&next).unwrap();
    assert!(matches!(seal(&database.sink, &next), Ok(Sealing::Seal(_))));
    assert_eq!(answered(database.sink.settle(&next)).unwrap(), Ok(Settled { unknown: 0, not_applied: 1 }));
}

/// Locking what it reads would keep the holder's own renewals waiting until it commits.
#[test]
fn a_check_locks_nothing_of_the_authority() {
    let database = granted();
    let held = Box::new(Open::begin(&database, &token(1)));
    database.run(
        "BEGIN; SET LOCAL lock_timeout = '1ms';
         SELECT FROM tenure.session, tenure.lease, tenure.meta FOR UPDATE NOWAIT;
         UPDATE tenure.session SET deadline_ns = deadline_ns + 1000000000, renew_seq = 1, version = 2; COMMIT",
    );
    assert_eq!(held.finish("in time"), Ok(Verdict::Written));
}

#[test]
fn a_transaction_with_an_old_snapshot_is_refused_in_words() {
    let database = granted();
    let (fence, mut client) = (PostgresFence::default(), database.connect());
    for level in [IsolationLevel::RepeatableRead, IsolationLevel::Serializable] {
        database.runtime.block_on(async {
            let tx = client.build_transaction().isolation_level(level).start().await.unwrap();
            let error = fence.admit(&tx, &token(1)).await.unwrap_err();
            let said = error.to_string();
            assert!(said.contains("BEGIN ISOLATION LEVEL READ COMMITTED") && !error.is_transient(), "{said}");
            tx.rollback().await.unwrap();
        });
    }
    assert_eq!(database.write(&token(1), None, "a").unwrap(), Verdict::Written);
}

/// The psql door: the refusal as a person sees it.
#[test]
fn psql_is_told_who_since_when_and_what_to_do() {
    let database = granted();
    let late = format!(
        "\\set VERBOSITY verbose\nBEGIN; SELECT tenure.admit('r', 1, '{}');\nINSERT INTO shop VALUES ('r', 'late');\nCOMMIT",
        token(1).grant
    );
    let tries = |what: &str| {
        let mut psql = std::process::Command::new("psql");
        psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", &database.url]).stdin(std::process::Stdio::piped());
        psql.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut psql = psql.spawn().unwrap();
        std::io::Write::write_all(&mut psql.stdin.take().unwrap(), what.as_bytes()).unwrap();
        let output = psql.wait_with_output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    database.authority().unwrap().reaches_the_deadline();
    let (done, said) = tries(&late);
    assert!(!done);
    for part in [
        "TN106",
        "over: epoch 1 of 'r' was shown, and the authority says that its deadline passed",
        "The newest grant is epoch 1 of 'alice'",
        "It has been so for 0.",
        "stop this worker",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(database.value(&token(1).resource), None);
}

#[test]
fn a_schema_without_an_authority_is_refused_by_name_and_nothing_is_made_in_it() {
    let url = Postgres::shared().database();
    let error = answered(PostgresSink::create(&url, id(), Rule::Held).unwrap().ready()).unwrap_err();
    assert!(matches!(error, SinkError::NoAuthority { .. }) && !error.is_transient(), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("no authority is in the schema tenure") && said.contains("take the rule sealed"), "{said}");
    assert_eq!(psql(&url, "SELECT count(*) FROM pg_namespace WHERE nspname = 'tenure'").unwrap(), "0");
    // One that goes away later closes the fence, for writes and for seals.
    let database = granted();
    database.run("ALTER VIEW tenure.held RENAME TO gone");
    assert!(database.write(&token(1), None, "late").is_err());
    let sealed = seal(&database.sink, &token(2)).unwrap_err();
    assert!(matches!(sealed, SinkError::NoAuthority { .. }), "{sealed:?}");
    assert_eq!(database.value(&token(1).resource), None);
}

/// The authority's tables are somebody else's: the sink's owner reads what it offers, and nothing beside it.
#[test]
fn a_right_that_is_missing_is_named_with_the_statement_that_gives_it() {
    let url = Postgres::shared().database();
    InPostgres::create(&url);
    let (database, owner) = (url.rsplit('/').next().unwrap(), format!("owner_{}", url.rsplit('_').next().unwrap()));
    psql(&url, &format!("CREATE ROLE {owner} LOGIN; GRANT USAGE, CREATE ON SCHEMA tenure TO {owner}")).unwrap();
    let sink = PostgresSink::create(&url.replace("postgres@", &format!("{owner}@")), id(), Rule::Held).unwrap();
    let said = answered(sink.ready()).unwrap_err().to_string();
    let statement = format!("GRANT SELECT ON tenure.held TO {owner}");
    assert!(said.contains(&statement), "{said}");
    psql(&url, &statement).unwrap();
    InPostgres::at(&url).grants(&token(1)).unwrap();
    let sink = sink.with_wait(Duration::from_millis(900));
    assert!(matches!(seal(&sink, &token(1)), Ok(Sealing::Seal(_))));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut client = connect(&url).await;
        let tx = client.transaction().await.unwrap();
        assert_eq!(PostgresFence::default().admit(&tx, &token(1)).await.unwrap().unwrap().epoch(), token(1).epoch);
    });
    // Its connection ends with it.
    drop(runtime);
    // Roles belong to the server, which other tests share.
    psql(&url, &format!("DROP OWNED BY {owner} CASCADE; DROP ROLE {owner}"))
        .unwrap_or_else(|e| panic!("{database}: {e}"));
}
