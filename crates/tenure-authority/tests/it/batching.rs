use crate::world::{ManualClock, Place, Worker, grant, resource, sqlite};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tenure_authority::conformance::block_on;
use tenure_authority::store::Answer;
use tenure_authority::{Store, StoreError, SwapOutcome, Version};
use tenure_core::decide::{Change, Keys, Swap};
use tenure_core::record::{Event, LeaseRecord, Phase, Transition};
use tenure_core::{Epoch, Instant};

const CALLERS: u64 = 64;

fn granting(worker: &Worker, n: u64) -> Swap {
    let read = block_on(worker.authority.store().read(&Keys { session: Some(worker.session), ..Keys::default() }));
    let session = read.expect("a read").view.caller.expect("a session");
    let lease = LeaseRecord {
        resource: resource(&format!("r{n}")),
        epoch: Epoch::FIRST,
        grant: grant(n),
        session: session.id,
        owner: session.owner,
        since: Instant::from_nanos(1),
        phase: Phase::Held,
        sinks: Default::default(),
    };
    let transition = Transition {
        at: Instant::from_nanos(1),
        event: Event::Granted,
        resource: Some(lease.resource.clone()),
        session: Some(lease.session),
        epoch: Some(lease.epoch),
        grant: Some(lease.grant),
        actor: None,
        why: None,
    };
    Swap { change: Change::Lease(lease), relies_on: Some(session.id), transition }
}

type Swapping<'a> = Answer<'a, Result<SwapOutcome, StoreError>>;

/// Hands every swap over while somebody else holds the file, so that all of them wait together.
fn together<'a>(
    path: &std::path::Path,
    store: &'a dyn Store,
    swaps: impl Iterator<Item = (Swap, Option<Version>)>,
) -> Vec<Result<SwapOutcome, StoreError>> {
    let other = rusqlite::Connection::open(path).expect("another connection");
    other.execute_batch("BEGIN IMMEDIATE").expect("the file is free");
    let mut waiting: Vec<Swapping<'a>> = swaps.map(|(swap, expected)| store.swap(swap, expected)).collect();
    for swapping in &mut waiting {
        assert!(matches!(swapping.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
    }
    other.execute_batch("ROLLBACK").expect("a rollback");
    waiting.into_iter().map(block_on).collect()
}

#[test]
fn swaps_that_wait_together_share_a_commit() {
    let place = Place::new();
    let store = sqlite(&place.path, ManualClock::at(Duration::from_secs(1)).clock());
    let worker = Worker::open(store.clone(), 1, true);
    let before = store.commits();
    let outcomes = together(&place.path, &*store, (0..CALLERS).map(|n| (granting(&worker, n), None)));
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(SwapOutcome::Done))), "{outcomes:?}");
    // The first one may have been taken alone.
    let commits = store.commits() - before;
    assert!((1..=2).contains(&commits), "{CALLERS} swaps took {commits} commits");
    assert_eq!(block_on(store.grants(worker.session)).expect("the grants").len(), 64);
}

#[test]
fn each_swap_of_a_batch_is_judged_alone() {
    let place = Place::new();
    let store = sqlite(&place.path, ManualClock::at(Duration::from_secs(1)).clock());
    let worker = Worker::open(store.clone(), 1, true);
    // One resource is there already, and the row of another one is damaged.
    worker.acquire("r5", grant(1_000));
    worker.acquire("r9", grant(1_001));
    let other = rusqlite::Connection::open(&place.path).expect("another connection");
    other.execute("UPDATE lease SET phase = 'upside down' WHERE resource = 'r9'", ()).expect("an update");
    let outcomes = together(&place.path, &*store, (0..CALLERS).map(|n| (granting(&worker, n), None)));
    for (n, outcome) in (0..CALLERS).zip(&outcomes) {
        match n {
            5 => assert!(matches!(outcome, Ok(SwapOutcome::Changed)), "{n}: {outcome:?}"),
            9 => assert!(matches!(outcome, Err(StoreError::Corrupt(_))), "{n}: {outcome:?}"),
            _ => assert!(matches!(outcome, Ok(SwapOutcome::Done)), "{n}: {outcome:?}"),
        }
    }
    let count: i64 =
        other.query_row("SELECT count(*) FROM lease WHERE epoch = 1", (), |row| row.get(0)).expect("a count");
    assert_eq!(count, 64);
    let history: i64 =
        other.query_row("SELECT count(*) FROM history WHERE event = 'granted'", (), |row| row.get(0)).expect("a count");
    assert_eq!(history, 64, "62 of the batch and the two before");
}

#[test]
fn a_renewal_writes_one_row() {
    let place = Place::new();
    let clock = ManualClock::at(Duration::from_secs(1));
    let store = sqlite(&place.path, clock.clock());
    let worker = Worker::open(store.clone(), 1, true);
    for n in 0..100 {
        worker.acquire(&format!("r{n}"), grant(n));
    }
    let other = rusqlite::Connection::open(&place.path).expect("another connection");
    let table = |sql| -> Vec<String> {
        let mut statement = other.prepare(sql).expect("a statement");
        let rows = statement.query_map((), |row| row.get(0)).expect("rows");
        rows.collect::<Result<_, _>>().expect("rows")
    };
    let all = [
        "SELECT json_array(resource, hex(grant_id), version) FROM lease ORDER BY resource",
        "SELECT json_array(number, event) FROM history ORDER BY number",
        "SELECT json_array(version, origin_after, versions_dropped) FROM meta",
    ];
    let before = all.map(table);
    clock.set(Duration::from_secs(2));
    let commits = store.commits();
    worker.renew(0).expect("a renewal");
    assert_eq!(store.commits() - commits, 1);
    assert_eq!(all.map(table), before);
    let renewed = table("SELECT json_array(renew_seq, deadline_ns) FROM session");
    assert_eq!(renewed, ["[1,12000000000]"]);
}

/// A runtime of one thread, whose tasks could each write for themselves as soon as they are polled.
#[test]
fn the_tasks_of_one_thread_share_commits_as_well() {
    let place = Place::new();
    let store = sqlite(&place.path, ManualClock::at(Duration::from_secs(1)).clock());
    let worker = std::sync::Arc::new(Worker::open(store.clone(), 1, true));
    let before = store.commits();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let tasks: Vec<_> = (0..CALLERS)
            .map(|n| {
                let worker = std::sync::Arc::clone(&worker);
                tokio::spawn(
                    async move { worker.authority.execute(&worker.acquiring(&format!("r{n}"), grant(n))).await },
                )
            })
            .collect();
        for task in tasks {
            let answer = task.await.expect("no panic");
            assert!(matches!(answer, Ok(Ok(_))), "{answer:?}");
        }
    });
    let commits = store.commits() - before;
    assert!(commits <= 4, "{CALLERS} tasks took {commits} commits");
    assert_eq!(block_on(store.grants(worker.session)).expect("the grants").len(), 64);
}
