//! Databases that are something else, damaged, of another version, read-only or full.

use crate::{id, operation, seal, token};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;
use tenure_core::fence::{Rule, Sealing};
use tenure_core::{Digest, Outcome};
use tenure_sink::{ApplyError, SinkError, SqliteFence, SqliteSink};

fn database() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("shop.sqlite");
    let sink = SqliteSink::create(&path, id(), Rule::Sealed).unwrap();
    assert!(matches!(seal(&sink, &token(1)), Ok(Sealing::Seal(_))));
    (folder, path)
}

fn open(path: &PathBuf) -> SinkError {
    SqliteSink::open(path, id(), Rule::Sealed).unwrap_err()
}

#[test]
fn a_file_that_is_no_database_is_left_as_it_is() {
    let (_folder, path) = database();
    let text = "Dear diary, ".repeat(1000);
    fs::write(&path, &text).unwrap();
    for error in [open(&path), SqliteSink::create(&path, id(), Rule::Sealed).unwrap_err()] {
        assert!(matches!(error, SinkError::Foreign { .. }), "{error:?}");
        assert!(!error.is_transient());
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

/// It was too long for SQLite's driver, which panicked.
#[test]
fn the_longest_wait_is_a_wait() {
    let (_folder, path) = database();
    let sink = SqliteSink::open(&path, id(), Rule::Sealed).unwrap().with_wait(std::time::Duration::MAX);
    assert!(matches!(seal(&sink, &token(2)), Ok(Sealing::Seal(_))));
}

#[test]
fn a_truncated_database_is_refused() {
    let (_folder, path) = database();
    let whole = fs::read(&path).unwrap();
    for length in [10, 100, 4096, whole.len() - 4096] {
        fs::write(&path, &whole[..length]).unwrap();
        let error = open(&path);
        let refused =
            matches!(error, SinkError::Foreign { .. } | SinkError::Corrupt { .. } | SinkError::NotInstalled { .. });
        assert!(refused, "{length} of {} bytes: {error:?}", whole.len());
    }
}

#[test]
fn a_database_without_a_fence_is_not_given_one_by_opening_it() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("shop.sqlite");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE shop (item)").unwrap();
    assert!(matches!(open(&path), SinkError::NotInstalled { .. }));
    let mut connection = Connection::open(&path).unwrap();
    let tx = connection.transaction().unwrap();
    let error = SqliteFence::new(Rule::Sealed).admit(&tx, &token(1)).unwrap_err();
    assert!(matches!(error, SinkError::NotInstalled { .. }), "{error:?}");
    drop(tx);
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 1);
}

#[test]
fn another_schema_version_is_refused_with_advice() {
    for (version, advice) in [(2, "newer version"), (0, "older program")] {
        let (_folder, path) = database();
        let connection = Connection::open(&path).unwrap();
        connection.execute("UPDATE tenure_sink_namespace SET schema_version = ?1", [version]).unwrap();
        let error = open(&path);
        assert!(matches!(error, SinkError::Schema { found, known: 1, .. } if found == version), "{error:?}");
        assert!(error.to_string().contains(advice), "{error}");
        // Also when the other version has other columns.
        connection.execute_batch("ALTER TABLE tenure_sink_namespace RENAME COLUMN floor TO ground").unwrap();
        let error = open(&path);
        assert!(matches!(error, SinkError::Schema { found, .. } if found == version), "{error:?}");
    }
}

#[test]
fn a_table_of_the_same_name_is_not_taken_for_a_fence() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("shop.sqlite");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE tenure_sink_namespace (item)").unwrap();
    assert!(matches!(open(&path), SinkError::Foreign { .. }));
    let error = SqliteSink::create(&path, id(), Rule::Sealed).unwrap_err();
    assert!(matches!(error, SinkError::Foreign { .. }), "{error:?}");
}

#[test]
fn another_rule_is_refused_everywhere() {
    // A database that was sealed under one rule and written under the other would have the gap, unseen.
    let (_folder, path) = database();
    for error in [
        SqliteSink::open(&path, id(), Rule::HighWater).unwrap_err(),
        SqliteSink::create(&path, id(), Rule::HighWater).unwrap_err(),
        SqliteFence::new(Rule::HighWater).install(&Connection::open(&path).unwrap()).unwrap_err(),
    ] {
        assert!(matches!(&error, SinkError::Rule { found, .. } if found == "sealed"), "{error:?}");
    }
    let mut connection = Connection::open(&path).unwrap();
    let tx = connection.transaction().unwrap();
    let error = SqliteFence::new(Rule::HighWater).admit(&tx, &token(9)).unwrap_err();
    assert!(matches!(error, SinkError::Rule { .. }), "{error:?}");
}

#[test]
fn a_damaged_row_is_refused_and_named() {
    for (damage, named) in [
        ("UPDATE tenure_sink_fence SET grant_id = 'x'", "32 hexadecimal digits"),
        ("UPDATE tenure_sink_fence SET enrolled = '{'", "line 1"),
        ("UPDATE tenure_sink_namespace SET floor = -4", "positive"),
        ("UPDATE tenure_sink_fence SET generation = ''", "empty"),
    ] {
        let (_folder, path) = database();
        let mut connection = Connection::open(&path).unwrap();
        connection.execute(damage, []).unwrap();
        let tx = connection.transaction().unwrap();
        let error = SqliteFence::new(Rule::Sealed).admit(&tx, &token(1)).unwrap_err();
        assert!(matches!(error, SinkError::Corrupt { .. }) && error.to_string().contains(named), "{error}");
    }
}

#[test]
fn epochs_that_are_no_epochs_do_not_get_into_the_table() {
    let (_folder, path) = database();
    let connection = Connection::open(&path).unwrap();
    for epoch in ["0", "-1", "1.5", "'one'", "9223372036854775808", "NULL"] {
        let set = format!("UPDATE tenure_sink_fence SET epoch = {epoch}");
        assert!(connection.execute(&set, []).is_err(), "{epoch} was taken");
    }
}

#[test]
fn a_connection_that_may_only_read_is_told_so() {
    let (_folder, path) = database();
    let mut connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let tx = connection.transaction().unwrap();
    let error = SqliteFence::new(Rule::Sealed).admit(&tx, &token(1)).unwrap_err();
    assert!(matches!(error, SinkError::NotWritable { .. }) && !error.is_transient(), "{error:?}");
}

#[test]
fn a_full_database_changes_nothing_and_says_what_to_do() {
    let (_folder, path) = database();
    let mut connection = Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE shop (item)").unwrap();
    let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let fence = SqliteFence::new(Rule::Sealed);
    let apply = |connection: &mut Connection, outcome: &str| {
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        let outcome = Outcome::new(outcome).unwrap();
        let done = fence.apply(&tx, &token(1), &operation("one"), &Digest([1; 32]), |tx| {
            tx.execute("INSERT INTO shop VALUES ('book')", []).map(|_| outcome)
        });
        if done.is_ok() {
            tx.commit().unwrap();
        }
        done
    };
    let _: i64 = connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |row| row.get(0)).unwrap();
    let full = apply(&mut connection, &"long ".repeat(10_000));
    assert!(matches!(full, Err(ApplyError::Sink(SinkError::Full { .. }))), "{full:?}");
    assert!(full.unwrap_err().to_string().contains("Make room"));
    let items = |connection: &Connection| -> i64 {
        connection.query_row("SELECT count(*) FROM shop", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(items(&connection), 0);
    let _: i64 = connection.query_row("PRAGMA max_page_count = 100000", [], |row| row.get(0)).unwrap();
    assert_eq!(apply(&mut connection, &"long ".repeat(10_000)).unwrap().name(), "written");
    assert_eq!(items(&connection), 1);
}

#[test]
fn a_database_in_memory_is_no_sink() {
    for path in ["", ":memory:"] {
        let error = SqliteSink::create(path, id(), Rule::Sealed).unwrap_err();
        assert!(matches!(error, SinkError::BadName { .. }), "{error:?}");
    }
}

#[test]
fn a_sink_whose_file_goes_away_is_missing_and_does_not_come_back() {
    let (folder, path) = database();
    let sink = SqliteSink::open(&path, id(), Rule::Sealed).unwrap();
    for entry in fs::read_dir(folder.path()).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let error = seal(&sink, &token(2)).unwrap_err();
    assert!(matches!(error, SinkError::Missing { .. }), "{error:?}");
    assert!(!path.exists());
    let nowhere = folder.path().join("no/such/folder/shop.sqlite");
    let error = SqliteSink::create(&nowhere, id(), Rule::Sealed).unwrap_err();
    assert!(!error.is_transient() && error.to_string().contains("no/such/folder"), "{error}");
}
