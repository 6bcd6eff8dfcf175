//! The fence inside transactions of every kind that a caller may bring.

use crate::{id, operation, seal, token};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::time::Duration;
use tempfile::TempDir;
use tenure_core::fence::{Rule, Sealing};
use tenure_core::{Digest, Outcome, Verdict};
use tenure_sink::{ApplyError, SinkError, SqliteFence, SqliteSink};

struct Shop {
    folder: TempDir,
    sink: SqliteSink,
}

impl Shop {
    fn create(rule: Rule) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("shop.sqlite");
        let sink = SqliteSink::create(path, id(), rule).unwrap().with_wait(Duration::from_millis(100));
        let shop = Self { folder, sink };
        shop.connect().execute_batch("CREATE TABLE shop (item TEXT UNIQUE)").unwrap();
        shop
    }

    fn connect(&self) -> Connection {
        let connection = Connection::open(self.folder.path().join("shop.sqlite")).unwrap();
        connection.busy_timeout(Duration::from_millis(100)).unwrap();
        connection
    }

    fn count(&self, table: &str) -> i64 {
        self.connect().query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }
}

fn sell(tx: &Transaction<'_>) -> rusqlite::Result<Outcome> {
    tx.execute("INSERT INTO shop VALUES ('book')", [])?;
    Ok(Outcome::new("sold").unwrap())
}

#[test]
fn a_deferred_transaction_that_read_before_the_seal_is_told_to_begin_immediate() {
    let shop = Shop::create(Rule::Sealed);
    assert!(matches!(seal(&shop.sink, &token(1)), Ok(Sealing::Seal(_))));
    let mut connection = shop.connect();
    let tx = connection.transaction_with_behavior(TransactionBehavior::Deferred).unwrap();
    let _: i64 = tx.query_row("SELECT count(*) FROM shop", [], |row| row.get(0)).unwrap();
    assert!(matches!(seal(&shop.sink, &token(2)), Ok(Sealing::Seal(_))));
    // To this transaction epoch 1 is still registered.
    let error = shop.sink.fence().admit(&tx, &token(1)).unwrap_err();
    assert!(matches!(error, SinkError::Snapshot { .. }) && error.is_transient(), "{error:?}");
    assert!(error.to_string().contains("BEGIN IMMEDIATE"), "{error}");
    tx.rollback().unwrap();
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    assert_eq!(shop.sink.fence().admit(&tx, &token(1)).unwrap().unwrap_err().name(), "stale");
}

#[test]
fn i10_a_deferred_transaction_holds_off_the_seal_from_its_check_on() {
    let shop = Shop::create(Rule::Sealed);
    assert!(matches!(seal(&shop.sink, &token(1)), Ok(Sealing::Seal(_))));
    let mut connection = shop.connect();
    let tx = connection.transaction_with_behavior(TransactionBehavior::Deferred).unwrap();
    let admitted = shop.sink.fence().admit(&tx, &token(1)).unwrap().unwrap();
    assert_eq!((admitted.epoch(), admitted.seal_no()), (token(1).epoch, 1));
    assert!(matches!(seal(&shop.sink, &token(2)), Err(SinkError::HeldBy { .. })));
    tx.commit().unwrap();
    assert!(matches!(seal(&shop.sink, &token(2)), Ok(Sealing::Seal(_))));
}

#[test]
fn a_busy_database_is_a_transient_error_that_says_so() {
    let shop = Shop::create(Rule::Sealed);
    let (mut one, mut two) = (shop.connect(), shop.connect());
    let held = one.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let tx = two.transaction_with_behavior(TransactionBehavior::Deferred).unwrap();
    let error = shop.sink.fence().admit(&tx, &token(1)).unwrap_err();
    assert!(matches!(error, SinkError::HeldBy { waited, .. } if waited == Duration::from_millis(100)), "{error:?}");
    assert!(error.to_string().contains(&format!("Process {} ", std::process::id())), "{error}");
    drop(held);
}

#[test]
fn an_effect_that_ends_the_transaction_leaves_no_record_behind() {
    // A statement with OR ROLLBACK, or a full disk, ends the whole transaction. A record written after that would commit
    // by itself, and every repeat would be told that the effect stands.
    let shop = Shop::create(Rule::HighWater);
    shop.connect().execute("INSERT INTO shop VALUES ('book')", []).unwrap();
    let mut connection = shop.connect();
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let swallowed = shop.sink.fence().apply(&tx, &token(1), &operation("one"), &Digest([1; 32]), |tx| {
        let failed = tx.execute("INSERT OR ROLLBACK INTO shop VALUES ('book')", []);
        assert!(failed.is_err());
        Ok::<_, rusqlite::Error>(Outcome::new("sold").unwrap())
    });
    assert!(matches!(swallowed, Err(ApplyError::Sink(SinkError::NoTransaction { .. }))), "{swallowed:?}");
    let again = shop.sink.fence().admit(&tx, &token(1));
    assert!(matches!(again, Err(SinkError::NoTransaction { .. })), "{again:?}");
    drop(tx);
    assert_eq!((shop.count("tenure_sink_operation"), shop.count("tenure_sink_fence")), (0, 0));
}

#[test]
fn an_effect_that_panics_leaves_nothing_even_when_the_panic_is_caught() {
    let shop = Shop::create(Rule::HighWater);
    let mut connection = shop.connect();
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    tx.execute("INSERT INTO shop VALUES ('before')", []).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        shop.sink.fence().apply(&tx, &token(1), &operation("one"), &Digest([1; 32]), |tx| {
            sell(tx).unwrap();
            assert!(tx.is_autocommit(), "the effect's own panic");
            Ok::<_, rusqlite::Error>(Outcome::new("sold").unwrap())
        })
    }));
    assert!(panicked.is_err());
    tx.commit().unwrap();
    assert_eq!((shop.count("shop"), shop.count("tenure_sink_operation"), shop.count("tenure_sink_fence")), (1, 0, 0));
}

#[test]
fn a_failed_operation_leaves_the_rest_of_the_transaction_as_it_was() {
    let shop = Shop::create(Rule::Sealed);
    assert!(matches!(seal(&shop.sink, &token(1)), Ok(Sealing::Seal(_))));
    let mut connection = shop.connect();
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let fence = shop.sink.fence();
    assert_eq!(fence.apply(&tx, &token(1), &operation("one"), &Digest([1; 32]), sell).unwrap(), Verdict::Written);
    let failed = fence.apply(&tx, &token(1), &operation("two"), &Digest([2; 32]), sell);
    assert!(matches!(failed, Err(ApplyError::Effect(_))), "the item is unique: {failed:?}");
    tx.commit().unwrap();
    assert_eq!((shop.count("shop"), shop.count("tenure_sink_operation")), (1, 1));
}

#[test]
fn an_admitted_token_writes_nothing_to_the_fence() {
    // Writing the row for every effect made sixteen writers wait for each other, five times slower.
    for rule in [Rule::Sealed, Rule::HighWater] {
        let shop = Shop::create(rule);
        let mut connection = shop.connect();
        if rule == Rule::Sealed {
            assert!(matches!(seal(&shop.sink, &token(1)), Ok(Sealing::Seal(_))));
        } else {
            let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
            assert!(shop.sink.fence().admit(&tx, &token(1)).unwrap().is_ok());
            tx.commit().unwrap();
        }
        let before = connection.total_changes();
        for behavior in [TransactionBehavior::Immediate, TransactionBehavior::Deferred] {
            let tx = connection.transaction_with_behavior(behavior).unwrap();
            assert!(shop.sink.fence().admit(&tx, &token(1)).unwrap().is_ok());
            tx.commit().unwrap();
        }
        assert_eq!(connection.total_changes(), before, "{rule:?}");
    }
}

#[test]
fn the_fence_is_installed_beside_the_callers_tables_and_with_their_migration() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("shop.sqlite");
    let mut connection = Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE shop (item); INSERT INTO shop VALUES ('book')").unwrap();
    let migration = connection.transaction().unwrap();
    SqliteFence::new(Rule::Sealed).install(&migration).unwrap();
    migration.rollback().unwrap();
    assert!(matches!(SqliteSink::open(&path, id(), Rule::Sealed), Err(SinkError::NotInstalled { .. })));
    let migration = connection.transaction().unwrap();
    SqliteFence::new(Rule::Sealed).install(&migration).unwrap();
    migration.commit().unwrap();
    let sink = SqliteSink::open(&path, id(), Rule::Sealed).unwrap();
    assert!(matches!(seal(&sink, &token(1)), Ok(Sealing::Seal(_))));
    // Again, in every way there is: the identity and the seal stay.
    SqliteFence::new(Rule::Sealed).install(&connection).unwrap();
    SqliteSink::create(&path, id(), Rule::Sealed).unwrap();
    let tx = connection.transaction().unwrap();
    assert!(SqliteFence::new(Rule::Sealed).admit(&tx, &token(1)).unwrap().is_ok());
    let items: i64 = tx.query_row("SELECT count(*) FROM shop", [], |row| row.get(0)).unwrap();
    assert_eq!(items, 1);
}
