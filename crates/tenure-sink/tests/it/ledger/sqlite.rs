//! Tables that are missing, older, newer or damaged; durability; the plans of the statements; the probe of a fenced sink.

use super::{Database, intent};
use crate::{id, operation, seal, token};
use rusqlite::{Connection, TransactionBehavior};
use tempfile::TempDir;
use tenure_core::fence::{Rule, Sealing};
use tenure_core::ledger::Looked;
use tenure_core::operation::Attempt;
use tenure_core::{Outcome, Verdict};
use tenure_sink::conformance::{LedgerUnderTest, answered};
use tenure_sink::ledger::{Intended, Ledger, Probe, Refused, Which};
use tenure_sink::{SinkError, SqliteFence, SqliteLedger, SqliteSink, digest_of};

fn sealed() -> Database {
    let database = Database::create();
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    database
}

/// A database that a fence was installed in before there was a ledger.
#[test]
fn a_database_from_before_the_ledger_says_so_and_gets_one_beside_its_fence() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("shop.sqlite");
    let sink = SqliteSink::create(&path, id(), Rule::Sealed).unwrap();
    assert!(matches!(seal(&sink, &token(1)), Ok(Sealing::Seal(_))));
    let error = answered(sink.list(Which::All, None, None, 10)).unwrap_err();
    assert!(matches!(&error, SinkError::NoLedger { .. }) && error.to_string().contains("install"), "{error}");
    let mut connection = Connection::open(&path).unwrap();
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let error = SqliteLedger.intent(&tx, &token(1), &intent("one")).unwrap_err();
    assert!(matches!(error, SinkError::NoLedger { .. }), "{error:?}");
    drop(tx);
    // As part of a migration that fails, it goes back with it.
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    SqliteLedger.install(&tx).unwrap();
    tx.rollback().unwrap();
    assert!(matches!(answered(sink.list(Which::All, None, None, 10)), Err(SinkError::NoLedger { .. })));
    for _ in 0..2 {
        SqliteLedger.install(&connection).unwrap();
    }
    assert_eq!(answered(sink.list(Which::All, None, None, 10)).unwrap(), []);
    // The fence is the same as before, with what is sealed in it.
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    assert_eq!(SqliteLedger.intent(&tx, &token(1), &intent("one")).unwrap(), Ok(Intended::Written));
}

#[test]
fn a_ledger_needs_a_fence_that_is_sealed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("plain.sqlite");
    let connection = Connection::open(&path).unwrap();
    assert!(matches!(SqliteLedger.install(&connection), Err(SinkError::NotInstalled { .. })));
    SqliteFence::new(Rule::HighWater).install(&connection).unwrap();
    assert!(matches!(SqliteLedger.install(&connection), Err(SinkError::Rule { .. })));
}

#[test]
fn another_version_of_the_tables_is_refused_with_advice() {
    for (version, advice) in [(2, "newer version"), (-1, "older program")] {
        let database = sealed();
        database.connect().execute("UPDATE tenure_ledger SET schema_version = ?1", [version]).unwrap();
        let errors = [
            answered(database.sink.list(Which::All, None, None, 10)).unwrap_err(),
            database.intent(&token(1), &intent("one")).unwrap_err(),
            SqliteLedger.install(&database.connect()).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, SinkError::Schema { found, known: 1, .. } if found == version), "{error:?}");
            assert!(error.to_string().contains(advice), "{error}");
        }
    }
}

#[test]
fn a_damaged_row_is_refused_and_named() {
    for (damage, named) in
        [("state = 'perhaps'", "no state of an attempt"), ("owner = ''", "empty"), ("intended_ms = -1", "out of range")]
    {
        let database = sealed();
        assert_eq!(database.intent(&token(1), &intent("one")).unwrap(), Ok(Intended::Written));
        database.connect().execute_batch(&format!("UPDATE tenure_ledger_attempt SET {damage}")).unwrap();
        let error = answered(database.sink.list(Which::All, None, None, 10)).unwrap_err();
        assert!(matches!(error, SinkError::Corrupt { .. }) && error.to_string().contains(named), "{error}");
    }
}

/// `synchronous=NORMAL` in WAL mode: the commit of the mark returns, the power fails, the mark is gone, and the call was made.
#[test]
fn l5_a_mark_that_a_power_failure_could_take_is_refused() {
    let database = sealed();
    assert_eq!(database.intent(&token(1), &intent("one")).unwrap(), Ok(Intended::Written));
    for (level, is_durable) in [("OFF", false), ("NORMAL", false), ("FULL", true)] {
        let mut connection = database.connect();
        connection.pragma_update(None, "synchronous", level).unwrap();
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        match SqliteLedger.sent(tx, &token(1), &operation("one")) {
            Ok(marked) => assert!(is_durable && marked.is_ok(), "{level}: {marked:?}"),
            Err(error) => {
                assert!(!is_durable && matches!(error, SinkError::NotDurable { .. }), "{level}: {error}");
                assert!(error.to_string().contains("Nothing was marked"), "{error}");
            }
        }
        // Whoever looks through another connection sees it, or not.
        let [attempt] = answered(database.sink.list(Which::All, None, None, 10)).unwrap().try_into().unwrap();
        assert_eq!(attempt.state, if is_durable { Attempt::Sent } else { Attempt::Intent }, "{level}");
    }
}

/// The mark and what belongs to it are one commit.
#[test]
fn the_mark_commits_what_the_caller_wrote_with_it_and_a_refused_one_nothing() {
    let database = sealed();
    database.connect().execute_batch("CREATE TABLE shop (item)").unwrap();
    let items = || -> i64 { database.connect().query_row("SELECT count(*) FROM shop", [], |row| row.get(0)).unwrap() };
    assert_eq!(database.intent(&token(1), &intent("one")).unwrap(), Ok(Intended::Written));
    let mark = |token| {
        let mut connection = database.connect();
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        tx.execute("INSERT INTO shop VALUES ('book')", []).unwrap();
        SqliteLedger.sent(tx, &token, &operation("one")).unwrap()
    };
    assert!(mark(token(1)).is_ok());
    assert_eq!(items(), 1);
    assert!(mark(token(1)).is_err(), "it is marked already: one alone may send");
    assert_eq!(items(), 1);
}

#[test]
fn each_statement_finds_its_rows_by_their_key() {
    let database = sealed();
    for number in 0..50 {
        assert_eq!(database.intent(&token(1), &intent(&number.to_string())).unwrap(), Ok(Intended::Written));
    }
    let connection = database.connect();
    let open = "state IN ('intent', 'sent', 'unknown')";
    for (sql, by) in [
        ("SELECT epoch FROM tenure_ledger_attempt WHERE resource = ?1 AND operation = ?2".to_owned(), "SEARCH"),
        (format!("SELECT epoch FROM tenure_ledger_attempt WHERE resource = ?1 AND epoch < ?2 AND {open}"), "SEARCH"),
        (format!("SELECT * FROM tenure_ledger_attempt WHERE {open} AND state = 'unknown'"), "tenure_ledger_open"),
    ] {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let values = vec!["r"; statement.parameter_count()];
        let steps = statement.query_map(rusqlite::params_from_iter(values), |row| row.get(3)).unwrap();
        let steps: Vec<String> = steps.map(Result::unwrap).collect();
        assert!(steps.iter().all(|step| step.contains(by)), "{sql}: {steps:?}");
    }
}

/// The ledger in one database, the effect in another that checks tokens: after the seal of both, one look-up is final.
#[test]
fn v5_a_fenced_sink_is_its_own_probe() {
    let (book, shop) = (sealed(), sealed());
    shop.connect().execute_batch("CREATE TABLE shop (item)").unwrap();
    let apply = |token, name| {
        let mut connection = shop.connect();
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        let verdict = SqliteFence::new(Rule::Sealed)
            .apply(&tx, &token, &operation(name), &digest_of(b"x"), |tx| {
                tx.execute("INSERT INTO shop VALUES ('book')", []).map(|_| Outcome::new("sold").unwrap())
            })
            .unwrap();
        tx.commit().unwrap();
        verdict
    };
    for name in ["landed", "late"] {
        assert_eq!(book.intent(&token(1), &intent(name)).unwrap(), Ok(Intended::Written));
        assert!(book.sent(&token(1), &operation(name)).unwrap().is_ok());
    }
    assert_eq!(apply(token(1), "landed"), Verdict::Written);
    assert!(matches!(seal(&book.sink, &token(2)), Ok(Sealing::Seal(_))));
    assert!(answered(book.sink.settle(&token(2))).unwrap().is_ok());
    let unknown = answered(book.sink.list(Which::Unknown, None, None, 10)).unwrap();
    let look = |at: usize| answered(shop.sink.look(&token(2), &unknown[at]));
    // The shop is not sealed yet: it does not even answer.
    assert!(look(1).unwrap_err().to_string().contains("unsealed"));
    assert!(matches!(seal(&shop.sink, &token(2)), Ok(Sealing::Seal(_))));
    assert_eq!(look(0), Ok(Looked::Found(Outcome::new("sold").unwrap())));
    assert_eq!(look(1), Ok(Looked::AbsentForGood));
    assert!(matches!(apply(token(1), "late"), Verdict::Stale { .. }), "what was absent stays so");
    assert_eq!(
        answered(book.sink.found(&token(1), &unknown[0].key, &look(0).unwrap())).unwrap(),
        Err(Refused::Token(Verdict::Stale { presented: token(1).epoch, current: token(2).epoch }))
    );
}
