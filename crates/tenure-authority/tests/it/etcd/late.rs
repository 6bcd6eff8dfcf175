//! What a server does late, or says wrongly.

use super::between::{Between, answered};
use super::contract::wait;
use super::{fresh, fresh_on, made};
use crate::world::{ManualClock, Worker, grant, resource};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure_authority::conformance::block_on;
use tenure_authority::{BootClock, Clock, HistoryQuery, Import, Page, Source, Store, SwapOutcome};
use tenure_core::Actor;
use tenure_core::decide::Keys;
use tenure_servers::Etcd;

fn exported(store: &dyn Store, belief: Option<Duration>) -> Import {
    let authority = block_on(store.read(&Keys::default())).expect("a read").view.authority;
    let source = Source {
        identity: authority.identity,
        incarnation: authority.incarnation,
        floor: authority.floor,
        max_ttl: authority.max_ttl,
        belief,
    };
    let rows = block_on(store.history(HistoryQuery::default())).expect("the history");
    let leases = block_on(store.leases(Page { after: None, limit: 100 })).expect("the resources");
    let leases = leases.into_iter().map(|listed| listed.lease).collect();
    Import::new(source, rows, leases, Actor::new("mover").expect("a name")).expect("it fits together")
}

/// A member holds what an import has written aside, and sends it on when the store has moved there and has granted anew.
/// The records must not go back.
#[test]
fn what_an_import_wrote_is_not_made_a_second_time() {
    let clock = ManualClock::at(Duration::from_secs(1));
    let source = Worker::open(made(&fresh(""), clock.clock()), 1, false);
    for n in 1..5 {
        source.acquire(&format!("r{n}"), grant(n));
    }
    let server = Etcd::start();
    let between = Between::new(&server, |_, answer| answer);
    let store = made(&fresh_on(&between.url(), ""), clock.clock());
    let content = exported(&**source.authority.store(), None);
    assert!(matches!(block_on(store.import(content)), Ok(SwapOutcome::Done)));
    let heard = between.heard();
    let writes: Vec<_> = heard.iter().filter(|said| String::from_utf8_lossy(said).contains("request_put")).collect();
    assert!(writes.len() >= 3, "{} requests wrote", writes.len());
    clock.set(Duration::from_hours(1));
    let worker = Worker::open(store.clone(), 2, false);
    let token = worker.acquire("r1", grant(9));
    let before = server.revision();
    for said in writes {
        let answer = between.repeat(said);
        assert!(answer.contains("200 OK") && !answer.contains("\"succeeded\":true"), "{answer}");
    }
    assert_eq!(server.revision(), before, "nothing was written");
    let lease = block_on(worker.authority.inspect(&resource("r1"))).expect("a read").view.lease.expect("a lease");
    assert_eq!((lease.grant, lease.epoch), (grant(9), token.epoch));
}

/// A server says that it is full of a write that it has made: the write crossed the limit. Nobody may be told that it was
/// not made.
#[test]
fn a_server_that_is_full_may_have_made_it() {
    let server = Etcd::start();
    let full = AtomicUsize::new(0);
    let between = Between::new(&server, move |request, answer| {
        let is_grant =
            String::from_utf8_lossy(request).contains("request_put") && full.fetch_add(1, Ordering::SeqCst) == 2;
        let body = r#"{"error":"etcdserver: mvcc: database space exceeded","code":8}"#;
        if is_grant { answered("429 Too Many Requests", body) } else { answer }
    });
    let clock = ManualClock::at(Duration::from_secs(1));
    // The first write makes the store, the second one opens the session.
    let worker = Worker::open(made(&fresh_on(&between.url(), ""), clock.clock()), 1, false);
    let swap = super::faults::granting(&worker, "r", 1);
    let outcome = block_on(worker.authority.store().swap(swap, None));
    assert!(matches!(outcome, Ok(SwapOutcome::Unknown)), "{outcome:?}");
    let lease = block_on(worker.authority.inspect(&resource("r"))).expect("a read").view.lease;
    assert_eq!(lease.map(|lease| lease.grant), Some(grant(1)), "it was made");
}

/// What is taken over is so much, or the server so slow, that the quarantine is over before all is written. It is taken over
/// all the same, and nobody waits once more.
#[test]
fn an_import_may_take_longer_than_its_quarantine() {
    let belief = Duration::from_secs(1);
    let source = Worker::open(made(&fresh(""), ManualClock::at(Duration::from_secs(1)).clock()), 1, false);
    source.acquire("r", grant(1));
    let server = Etcd::start();
    let writes = AtomicUsize::new(0);
    let between = Between::new(&server, move |request, answer| {
        // The first one makes the store, and the second one fills it.
        let is_write = String::from_utf8_lossy(request).contains("request_put");
        if is_write && writes.fetch_add(1, Ordering::SeqCst) == 1 {
            // Longer than a lease of etcd for the quarantine would last.
            wait(3 * belief);
        }
        answer
    });
    let url = fresh_on(&between.url(), "");
    let store = made(&url, Clock::Boot(BootClock));
    let content = exported(&**source.authority.store(), Some(belief));
    let outcome = block_on(store.import(content));
    assert!(matches!(outcome, Ok(SwapOutcome::Done)), "{outcome:?}");
    for store in [store, made(&url, Clock::Boot(BootClock))] {
        let read = block_on(store.read(&Keys::default())).expect("a read");
        assert_eq!(read.view.authority.quarantine(read.now), None);
    }
}
