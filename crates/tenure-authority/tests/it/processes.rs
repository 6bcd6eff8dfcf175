use crate::world::{Place, Worker, child, child_of, existing, grant, sqlite};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use tenure_authority::conformance::block_on;
use tenure_authority::{BootClock, Clock, HistoryQuery, Page, Store, random_bits};
use tenure_core::record::Event;
use tenure_core::{GrantId, Ttl};

fn clock() -> Clock {
    Clock::Boot(BootClock)
}

/// Acquires and releases one resource so often, and says each epoch once its release is durable.
fn cycles(path: &Path, worker: u64, name: &str, times: u64) -> Vec<u64> {
    // Nobody renews here, however long a busy machine takes.
    let worker_of = Worker::open_for(Ttl::MAX.get(), sqlite(path, clock()), worker, true);
    let mut epochs = Vec::new();
    for _ in 0..times {
        // Drawn, since a process that comes after a killed one must not come with its ids.
        let grant = GrantId::from_bits(random_bits().expect("random bits"));
        let token = worker_of.acquire(name, grant);
        worker_of.release(&token);
        epochs.push(token.epoch.get());
        println!("epoch {}", token.epoch);
        std::io::stdout().flush().expect("somebody listens");
    }
    epochs
}

fn start(test: &str, path: &Path) -> (Child, impl Iterator<Item = u64> + use<>) {
    let mut child = child("processes", test, path).stdout(Stdio::piped()).spawn().expect("a child");
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let epochs = lines.filter_map(|line| line.ok()?.strip_prefix("epoch ")?.parse().ok());
    (child, epochs)
}

#[test]
fn what_was_granted_is_there_after_reopening() {
    let place = Place::new();
    let store = sqlite(&place.path, clock());
    let worker = Worker::open(store.clone(), 1, true);
    let token = worker.acquire("r", grant(1));
    worker.renew(0).expect("a renewal");
    let rows = block_on(store.history(HistoryQuery::default())).expect("the history");
    let identity = block_on(store.read(&Default::default())).expect("a read").view.authority.identity;
    drop((worker, store));
    assert_eq!(
        place.files(),
        ["tenure.db".to_owned(), "tenure.db-witness".to_owned()].into(),
        "the last one out tidies up"
    );
    let store: Arc<dyn Store> = Arc::new(existing(&place.path, clock()).expect("the same store"));
    let again = block_on(store.read(&Default::default())).expect("a read").view.authority.identity;
    assert_eq!(again, identity);
    assert_eq!(block_on(store.history(HistoryQuery::default())).expect("the history"), rows);
    let worker = Worker::open(store, 1, true);
    assert_eq!(worker.acquire("r", grant(2)), token, "the same session holds it still");
}

#[test]
fn two_processes_share_a_file() {
    const TEST: &str = "two_processes_share_a_file";
    const TIMES: u64 = 100;
    if let Some(path) = child_of(TEST) {
        cycles(&path, 2, "r", TIMES);
        return;
    }
    let place = Place::new();
    // Made first, so that neither waits for the other's making.
    sqlite(&place.path, clock());
    let (mut child, theirs) = start(TEST, &place.path);
    let ours = cycles(&place.path, 1, "r", TIMES);
    let theirs: Vec<_> = theirs.collect();
    assert!(child.wait().expect("it ends").success());
    assert_eq!((ours.len(), theirs.len()), (100, 100));
    let all: BTreeSet<_> = ours.into_iter().chain(theirs).collect();
    assert_eq!(all, (1..=2 * TIMES).collect(), "each epoch once");
}

#[test]
fn two_processes_make_the_file_together() {
    const TEST: &str = "two_processes_make_the_file_together";
    if let Some(path) = child_of(TEST) {
        cycles(&path, 2, "theirs", 1);
        return;
    }
    for _ in 0..10 {
        let place = Place::new();
        let (mut child, theirs) = start(TEST, &place.path);
        assert_eq!(cycles(&place.path, 1, "ours", 1), [1]);
        assert_eq!(theirs.collect::<Vec<_>>(), [1]);
        assert!(child.wait().expect("it ends").success());
        let store = existing(&place.path, clock()).expect("one store");
        assert_eq!(block_on(store.leases(Page { after: None, limit: 10 })).expect("both").len(), 2);
    }
}

/// Whatever a process was told is durable, and whatever it was not told is whole.
#[test]
fn a_process_that_is_killed_in_the_middle_of_writing_loses_nothing_it_was_told() {
    const TEST: &str = "a_process_that_is_killed_in_the_middle_of_writing_loses_nothing_it_was_told";
    if let Some(path) = child_of(TEST) {
        cycles(&path, 2, "theirs", u64::MAX);
        return;
    }
    let place = Place::new();
    sqlite(&place.path, clock());
    for round in 0..5 {
        let (mut child, mut theirs) = start(TEST, &place.path);
        let first = theirs.next().expect("it works");
        // We write at the same time, and go on after it is dead.
        cycles(&place.path, 10 + round, "ours", 20);
        child.kill().expect("it lives");
        let told = theirs.last().unwrap_or(first);
        child.wait().expect("it is dead");
        cycles(&place.path, 20 + round, "ours", 20);

        let check = rusqlite::Connection::open(&place.path).expect("a connection");
        let answer: String = check.query_row("PRAGMA integrity_check", (), |row| row.get(0)).expect("a check");
        assert_eq!(answer, "ok");
        let store = existing(&place.path, clock()).expect("the same store");
        let leases = block_on(store.leases(Page { after: None, limit: 10 })).expect("the resources");
        let [ours, theirs] = leases.as_slice() else { panic!("{leases:?}") };
        assert!(theirs.lease.epoch.get() >= told, "it was told epoch {told}, the store has {}", theirs.lease.epoch);
        assert_eq!(ours.lease.epoch.get(), 40 * (round + 1));
        let rows = block_on(store.history(HistoryQuery::default())).expect("the history");
        let granted = |name: &str| {
            let of = |row: &&tenure_core::record::Transition| {
                row.event == Event::Granted && row.resource.as_ref().is_some_and(|of| of.as_str() == name)
            };
            rows.iter().map(|row| &row.transition).filter(of).count() as u64
        };
        assert_eq!(granted("theirs"), theirs.lease.epoch.get(), "each grant has its row, and each row its grant");
        assert_eq!(granted("ours"), ours.lease.epoch.get());
        // The next round's child comes with the same session and goes on where this one was killed.
    }
}
