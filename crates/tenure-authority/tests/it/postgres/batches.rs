//! What many ask for at once goes together.

use super::{Other, made, recalled, renewal, session};
use crate::world::{Worker, grant};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tenure_authority::conformance::block_on;
use tenure_authority::{HistoryQuery, RecallOutcome, SwapOutcome};
use tenure_core::decide::{Change, Swap};
use tenure_core::record::{Event, LeaseRecord, Phase, SessionRecord, Transition};
use tenure_core::{Epoch, Instant};
use tenure_servers::{Postgres, eventually};

const CALLERS: u64 = 64;
const LONG: Duration = Duration::from_secs(500);

fn granting(to: &SessionRecord, n: u64) -> Swap {
    let lease = LeaseRecord {
        resource: crate::world::resource(&format!("r{n}")),
        epoch: Epoch::FIRST,
        grant: grant(n),
        session: to.id,
        owner: to.owner.clone(),
        since: Instant::from_nanos(1),
        phase: Phase::Held,
        sinks: Default::default(),
    };
    let transition = Transition {
        at: Instant::from_nanos(1),
        event: Event::Granted,
        resource: Some(lease.resource.clone()),
        session: Some(to.id),
        epoch: Some(lease.epoch),
        grant: Some(lease.grant),
        actor: None,
        why: None,
    };
    Swap { change: Change::Lease(lease), relies_on: Some(to.id), transition }
}

/// While a first change waits for the lock that another process holds, 64 more come.
#[test]
fn changes_that_wait_together_take_one_transaction() {
    let database = Postgres::shared().database();
    let store = made(&database);
    let worker = Worker::open_for(LONG, Arc::clone(&store), 1, false);
    let other = Other::at(&database);
    let lock = "SELECT pg_advisory_xact_lock(1415933554, 'tenure.history'::regclass::oid::int)";
    other.run(&format!("BEGIN; {lock}"));
    let watcher = Other::at(&database);
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'";
    let holder = session(&store, worker.session).view.caller.expect("a session");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| worker.acquire("first", grant(1_000)));
        eventually("the first one waits", || (watcher.number(waits) == 1).then_some(()));
        let mut waiting: Vec<_> = (0..CALLERS).map(|n| store.swap(granting(&holder, n), None)).collect();
        for swapping in &mut waiting {
            assert!(matches!(swapping.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
        }
        other.run("ROLLBACK");
        first.join().expect("no panic");
        for swapping in waiting {
            assert_eq!(block_on(swapping).expect("an outcome"), SwapOutcome::Done);
        }
    });
    // A transaction's rows of the history have the number of the transaction that wrote them.
    let transactions = "SELECT count(DISTINCT xmin::text) FROM tenure.history WHERE event = 'granted'";
    let transactions = watcher.number(transactions);
    assert!(transactions <= 6, "{} changes took {transactions} transactions", CALLERS + 1);
    let rows = block_on(store.history(HistoryQuery::default())).expect("the history");
    assert_eq!(rows.iter().map(|row| row.number).collect::<Vec<_>>(), (1..=CALLERS + 2).collect::<Vec<_>>());
    let grants = block_on(store.grants(worker.session)).expect("the grants");
    let expected = grants.iter().filter_map(LeaseRecord::holding).map(|(_, grant)| grant).collect();
    assert_eq!(session(&store, worker.session).view.holdings, expected, "the grants of one batch are all in it");
}

/// Of two changes of one record that wait together, the second one is judged by what the first one left.
#[test]
fn of_two_changes_of_one_version_in_one_batch_one_is_made() {
    let database = Postgres::shared().database();
    let store = made(&database);
    let worker = Worker::open_for(LONG, Arc::clone(&store), 1, false);
    for round in 0..10 {
        let read = session(&store, worker.session);
        let before = read.view.caller.clone().expect("a session");
        let made: Vec<_> = std::thread::scope(|scope| {
            let asked: Vec<_> = (0..8).map(|_| scope.spawn(|| recalled(&store, renewal(&before, &read)))).collect();
            asked.into_iter().map(|asked| asked.join().expect("no panic").expect("an answer")).collect()
        });
        let done = made.iter().filter(|made| matches!(made, RecallOutcome::Done(_))).count();
        assert_eq!(done, 1, "round {round}: {made:?}");
    }
}

/// A renewal writes the row of its session and nothing else, however much the session holds.
#[test]
fn a_renewal_writes_one_row() {
    let database = Postgres::shared().database();
    let store = made(&database);
    let worker = Worker::open_for(LONG, Arc::clone(&store), 1, false);
    for n in 0..20 {
        worker.acquire(&format!("r{n}"), grant(n));
    }
    let other = Other::at(&database);
    let all = "SELECT hashtext(string_agg(t, ' ' ORDER BY t))::bigint FROM (SELECT l::text || l.xmin FROM tenure.lease l \
               UNION ALL SELECT h::text || h.xmin FROM tenure.history h UNION ALL SELECT f::text || f.xmin FROM \
               tenure.holding f UNION ALL SELECT m::text || m.xmin FROM tenure.meta m) q (t)";
    let before = other.number(all);
    worker.renew(0).expect("a renewal");
    assert_eq!(other.number(all), before);
    assert_eq!(other.number("SELECT renew_seq FROM tenure.session"), 1);
}
