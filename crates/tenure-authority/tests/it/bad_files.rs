use crate::world::{ManualClock, Place, Worker, existing, grant, sqlite};
use std::path::Path;
use std::time::Duration;
use tenure_authority::conformance::block_on;
use tenure_authority::store::sqlite::{Options, SqliteStore};
use tenure_authority::{AuthorityError, Clock, HistoryQuery, Page, Store, StoreError, connect};
use tenure_core::decide::Keys;
use tenure_core::{TimingError, Ttl};

fn clock() -> Clock {
    ManualClock::at(Duration::from_secs(1)).clock()
}

/// A store with some grants, closed.
fn filled() -> Place {
    let place = Place::new();
    let worker = Worker::open(sqlite(&place.path, clock()), 1, true);
    for n in 0..200 {
        worker.acquire(&format!("resource number {n}"), grant(n));
    }
    place
}

#[test]
fn a_missing_file_is_an_error_and_stays_missing() {
    let place = Place::new();
    let error = existing(&place.path, clock()).expect_err("there is none");
    assert!(matches!(error, StoreError::Missing(_)), "{error:?}");
    assert!(error.to_string().contains("create=true"), "{error}");
    assert!(place.files().is_empty(), "{:?}", place.files());
    let url = format!("sqlite:{}", place.path.display());
    assert!(matches!(connect(&url, clock()), Err(StoreError::Missing(_))));
    assert!(place.files().is_empty(), "{:?}", place.files());
    connect(&format!("{url}?create=true&max_ttl=1h"), clock()).expect("a new one");
    connect(&url, clock()).expect("the same one");
}

#[test]
fn a_missing_folder_is_named() {
    let place = Place::new();
    let path = place.folder.path().join("not/there/tenure.db");
    let error = SqliteStore::open(&path, &Options { create: true, ..Options::new(clock()) }).expect_err("no folder");
    assert!(matches!(error, StoreError::NotWritable(_)), "{error:?}");
    assert!(error.to_string().contains("make it first"), "{error}");
    assert!(place.files().is_empty());
}

#[test]
fn what_is_not_a_store_is_left_alone() {
    let other_program = {
        let place = Place::new();
        let connection = rusqlite::Connection::open(&place.path).expect("a database");
        connection
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1)")
            .expect("SQL");
        drop(connection);
        std::fs::read(&place.path).expect("the file")
    };
    for content in [b"these are my notes\n".repeat(100), vec![0; 8192], b"x".to_vec(), other_program] {
        for create in [false, true] {
            let place = Place::new();
            std::fs::write(&place.path, &content).expect("a file");
            let error =
                SqliteStore::open(&place.path, &Options { create, ..Options::new(clock()) }).expect_err("foreign");
            assert!(matches!(error, StoreError::Foreign(_)), "{error:?}");
            assert!(error.to_string().contains("left alone"), "{error}");
            assert_eq!(std::fs::read(&place.path).expect("the file"), content);
            assert_eq!(place.files().len(), 1, "{:?}", place.files());
        }
    }
    let place = Place::new();
    assert!(matches!(existing(place.folder.path(), clock()), Err(StoreError::Foreign(_))), "a folder is no store");
}

#[test]
fn a_store_of_another_version_is_left_alone() {
    for (version, advice) in [(2, "update this program"), (0, "create a new store")] {
        let place = filled();
        let other = rusqlite::Connection::open(&place.path).expect("a connection");
        other.pragma_update(None, "user_version", version).expect("a version");
        drop(other);
        let before = std::fs::read(&place.path).expect("the file");
        let error = existing(&place.path, clock()).expect_err("another version");
        assert!(matches!(error, StoreError::Schema { found, known: 1, .. } if found == version), "{error:?}");
        assert!(error.to_string().contains(advice), "{error}");
        assert_eq!(std::fs::read(&place.path).expect("the file"), before);
    }
}

#[test]
fn a_damaged_store_is_told_and_does_not_panic() {
    let whole = std::fs::read(&filled().path).expect("the file");
    assert!(whole.len() > 60_000, "{}", whole.len());
    let use_it = |path: &Path| -> Result<(), StoreError> {
        let store = existing(path, clock())?;
        block_on(store.read(&Keys::default()))?;
        block_on(store.leases(Page { after: None, limit: 1_000 }))?;
        block_on(store.history(HistoryQuery::default()))?;
        Ok(())
    };
    for (what, content) in [
        ("empty", Vec::new()),
        ("within the header", whole[..50].to_vec()),
        ("the first page only", whole[..4096].to_vec()),
        ("within a page", whole[..whole.len() / 2 + 77].to_vec()),
        ("a page less", whole[..whole.len() - 4096].to_vec()),
        ("garbage in the middle", [&whole[..4096], &[0xa5; 32_768], &whole[36_864..]].concat()),
    ] {
        let place = Place::new();
        std::fs::write(&place.path, content).expect("a file");
        let error = use_it(&place.path).expect_err(what);
        assert!(matches!(error, StoreError::Corrupt(_)), "{what}: {error:?}");
        assert!(error.to_string().contains("restore a backup"), "{what}: {error}");
    }
    let place = Place::new();
    std::fs::write(&place.path, &whole).expect("a file");
    use_it(&place.path).expect("the whole one is one");
}

#[test]
fn another_process_that_holds_the_file_is_named() {
    let place = filled();
    let store = existing(&place.path, clock()).expect("a store");
    let worker = Worker::open(std::sync::Arc::new(store), 2, true);
    let other = rusqlite::Connection::open(&place.path).expect("another connection");
    other.execute_batch("BEGIN IMMEDIATE").expect("the file is free");
    let answer = worker.ask(&worker.acquiring("r", grant(9)));
    let Err(AuthorityError::Store(error)) = answer else { panic!("{answer:?}") };
    assert!(matches!(error, StoreError::Unavailable(_)) && error.is_transient(), "{error:?}");
    assert!(error.to_string().contains("another process has held"), "{error}");
    assert!(matches!(existing(&place.path, clock()), Err(StoreError::Unavailable(_))));
    // Nobody holds up a reader.
    assert!(block_on(worker.authority.store().read(&Keys::default())).is_ok());
    other.execute_batch("ROLLBACK").expect("a rollback");
    assert_eq!(worker.acquire("r", grant(9)).epoch.get(), 1);
}

#[test]
fn another_max_ttl_than_the_store_s_is_refused() -> Result<(), TimingError> {
    let place = filled();
    let with = |max_ttl| SqliteStore::open(&place.path, &Options { max_ttl, ..Options::new(clock()) });
    let hour = Ttl::new(Duration::from_hours(1))?;
    let message = with(Some(hour)).expect_err("it is fixed").to_string();
    assert!(message.contains("86400s") && message.contains("leave max_ttl out"), "{message}");
    assert!(with(Some(Ttl::MAX)).is_ok());
    assert!(with(None).is_ok());
    Ok(())
}
