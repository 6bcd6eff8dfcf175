use super::{Options, SqliteStore, file};
use crate::conformance::block_on;
use crate::store::{HistoryQuery, Import, Page, Source, SwapOutcome};
use crate::{Authority, AuthorityError, Clock, Store, StoreError};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tenure_core::decide::{Keys, Reply, Request};
use tenure_core::record::{Owner, Seen};
use tenure_core::{Actor, GrantId, InstanceId, Instant, OwnerName, ResourceName, SessionId, Ttl};

fn options() -> Options {
    Options { create: true, ..Options::new(Clock::Manual(Arc::new(AtomicU64::new(1)))) }
}

/// A store whose file may grow to so many pages.
fn limited(path: &Path, pages: i64) -> Result<SqliteStore, StoreError> {
    let (connection, file) = file::writer(path, &options())?;
    connection.pragma_update(None, "max_page_count", pages).expect("a limit");
    SqliteStore::over(connection, file)
}

fn open(authority: &Authority) -> SessionId {
    let id = SessionId::from_bits(7);
    let request = Request::Open {
        id,
        owner: Owner { name: OwnerName::new("worker").expect("a name"), instance: InstanceId::from_bits(1) },
        on_this_host: true,
        ttl: Ttl::DEFAULT,
        asked_at: Instant::from_nanos(1),
        seen: Seen::default(),
    };
    block_on(authority.execute(&request)).expect("an answer").expect("a session");
    id
}

fn acquire(session: SessionId, n: u32) -> Request {
    Request::Acquire {
        resource: ResourceName::new(format!("{n}/{}", "x".repeat(400))).expect("a name"),
        grant: GrantId::from_bits(u128::from(n) + 1),
        session,
        sinks: BTreeSet::new(),
    }
}

#[test]
fn a_full_file_refuses_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tenure.db");
    let store: Arc<dyn Store> = Arc::new(limited(&path, 40).expect("a store"));
    let authority = Authority::new(Arc::clone(&store));
    let session = open(&authority);
    let mut given = 0;
    let error = loop {
        match block_on(authority.execute(&acquire(session, given))) {
            Ok(answer) => assert!(matches!(answer, Ok(Reply::Granted(_)))),
            Err(error) => break error,
        }
        given += 1;
        assert!(given < 1_000, "the limit does nothing");
    };
    assert!(matches!(error, AuthorityError::Store(StoreError::NotWritable(_))), "{error:?}");
    assert!(error.to_string().contains("free space"), "{error}");
    assert!(given > 10);
    // A smaller change of what is there goes through all the same, and everything that was given is there.
    drop((authority, store));
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path, &options()).expect("the same store"));
    let grants = block_on(store.grants(session)).expect("the grants");
    assert_eq!(grants.len(), usize::try_from(given).expect("few"));
    let answer = block_on(Authority::new(store).execute(&acquire(session, given)));
    assert!(matches!(answer, Ok(Ok(Reply::Granted(_)))), "with space again: {answer:?}");
}

/// A full disk in the middle of an import leaves the store as empty as it was, and the same import goes through later.
#[test]
fn an_import_that_finds_no_space_has_done_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let source: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path().join("source.db"), &options()).expect("one"));
    let authority = Authority::new(Arc::clone(&source));
    let session = open(&authority);
    for n in 0..100 {
        block_on(authority.execute(&acquire(session, n))).expect("an answer").expect("a grant");
    }
    let own = block_on(source.read(&Keys::default())).expect("a read").view.authority;
    let from = Source {
        identity: own.identity,
        incarnation: own.incarnation,
        floor: own.floor,
        max_ttl: own.max_ttl,
        belief: None,
    };
    let rows = block_on(source.history(HistoryQuery::default())).expect("the history");
    let page = Page { after: None, limit: 1_000 };
    let leases = block_on(source.leases(page)).expect("the resources").into_iter().map(|listed| listed.lease);
    let content = Import::new(from, rows, leases.collect(), Actor::new("mover").expect("a name")).expect("it fits");
    let path = folder.path().join("tenure.db");
    let store = limited(&path, 40).expect("a store");
    let error = block_on(store.import(content.clone())).expect_err("no space");
    assert!(matches!(error, StoreError::NotWritable(_)), "{error:?}");
    drop(store);
    let store = SqliteStore::open(&path, &options()).expect("the same store");
    let view = block_on(store.read(&Keys::default())).expect("a read").view;
    assert_eq!((view.history, view.authority.incarnation), (0, 1));
    assert_eq!(block_on(store.import(content)).expect("an answer"), SwapOutcome::Done);
    drop(store);
    let store = SqliteStore::open(&path, &options()).expect("the same store");
    assert_eq!(block_on(store.read(&Keys::default())).expect("a read").view.history, 102);
}

#[test]
fn the_engine_has_the_fix() {
    assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
}
