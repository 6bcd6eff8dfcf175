//! Many callers and many processes on one store.

use super::{fresh, fresh_on, made};
use crate::world::{ManualClock, Worker, grant};
use std::collections::BTreeSet;
use std::sync::Barrier;
use std::time::Duration;
use tenure_authority::HistoryQuery;
use tenure_authority::conformance::block_on;
use tenure_core::record::Event;
use tenure_servers::Etcd;

const CALLERS: u64 = 64;

/// Callers that come together share transactions: each one is one revision.
#[test]
fn callers_that_come_together_share_transactions() {
    let server = Etcd::start();
    let store = made(&fresh_on(&server.url(), ""), ManualClock::at(Duration::from_secs(1)).clock());
    let worker = Worker::open(store.clone(), 1, false);
    let before = server.revision();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let worker = std::sync::Arc::new(worker);
    runtime.block_on(async {
        let acquire = |n| {
            let worker = std::sync::Arc::clone(&worker);
            tokio::spawn(async move { worker.authority.execute(&worker.acquiring(&format!("r{n}"), grant(n))).await })
        };
        for task in (0..CALLERS).map(acquire).collect::<Vec<_>>() {
            let answer = task.await.expect("no panic");
            assert!(matches!(answer, Ok(Ok(_))), "{answer:?}");
        }
    });
    let transactions = server.revision() - before;
    assert!((4..=16).contains(&transactions), "{CALLERS} swaps took {transactions} transactions");
    assert_eq!(block_on(store.grants(worker.session)).expect("the grants").len(), 64);
}

/// A renewal is one key, however much stands on the session, and touches neither the history nor anybody's grant.
#[test]
fn a_renewal_writes_one_key() {
    let server = Etcd::start();
    let worker =
        Worker::open(made(&fresh_on(&server.url(), ""), ManualClock::at(Duration::from_secs(1)).clock()), 1, false);
    for n in 0..20 {
        worker.acquire(&format!("r{n}"), grant(n));
    }
    let before = server.revision();
    worker.renew(0).expect("a renewal");
    assert_eq!(server.revision(), before + 1);
    let found = server.ctl(&["get", "", "--prefix", "-w", "json"]);
    assert_eq!(found.matches(&format!("\"mod_revision\":{},", before + 1)).count(), 1, "{found}");
}

/// Four processes on one history: each step gets the next number, and each epoch is given once.
#[test]
fn processes_that_contend_for_the_head_leave_no_gap() {
    let url = fresh("");
    let clock = ManualClock::at(Duration::from_secs(1));
    let start = Barrier::new(4);
    let epochs: Vec<u64> = std::thread::scope(|scope| {
        let (url, clock, start) = (&url, &clock, &start);
        let cycle = move |process: u64| {
            let worker = Worker::open(made(url, clock.clock()), process, false);
            start.wait();
            let cycles = (0..10).map(|n| {
                let own = worker.acquire(&format!("own-{process}"), grant(process * 1_000 + n));
                let token = worker.acquire("shared", grant(process * 1_000 + 500 + n));
                worker.release(&token);
                worker.release(&own);
                assert_eq!(own.epoch.get(), n + 1);
                token.epoch.get()
            });
            cycles.collect::<Vec<_>>()
        };
        let all: Vec<_> = (0..4).map(|process| scope.spawn(move || cycle(process))).collect();
        all.into_iter().flat_map(|process| process.join().expect("no panic")).collect()
    });
    assert_eq!(epochs.iter().copied().collect::<BTreeSet<_>>(), (1..=40).collect());
    let store = made(&url, clock.clock());
    let rows = block_on(store.history(HistoryQuery::default())).expect("the history");
    assert_eq!(rows.iter().map(|row| row.number).collect::<Vec<_>>(), (1..=164).collect::<Vec<_>>());
    assert_eq!(rows.iter().filter(|row| row.transition.event == Event::Granted).count(), 80);
}
