use crate::world::{ManualClock, TTL, Worker, grant, memory, resource};
use std::sync::Arc;
use std::time::Duration;
use tenure_authority::conformance::block_on;
use tenure_authority::conformance::faults::{FaultStore, Point, When};
use tenure_authority::store::memory::MemoryStore;
use tenure_authority::{AuthorityError, HistoryQuery, Store, StoreError, SwapOutcome};
use tenure_core::decide::{Change, Keys, Refusal, Reply, Request, Swap};
use tenure_core::record::{Event, LeaseRecord, Phase, Transition};
use tenure_core::{Outcome, Ttl};

fn worker() -> (Arc<FaultStore>, Worker) {
    let faults = Arc::new(FaultStore::new(memory()));
    let worker = Worker::open(Arc::clone(&faults) as Arc<dyn Store>, 1, true);
    (faults, worker)
}

fn granted_rows(store: &dyn Store) -> usize {
    let rows = block_on(store.history(HistoryQuery::default())).expect("the history");
    rows.iter().filter(|row| row.transition.event == Event::Granted).count()
}

#[test]
fn an_unknown_outcome_is_resolved_by_reading() {
    let (faults, worker) = worker();
    // Made, but not known: the next look finds the grant and answers with it.
    faults.fail_next(Point::Swap, When::After, 1);
    assert_eq!(worker.acquire("made", grant(1)).epoch.get(), 1);
    // Not made, and not known either: the next look finds nothing, and it is made.
    faults.fail_next(Point::Swap, When::Lost, 1);
    assert_eq!(worker.acquire("lost", grant(2)).epoch.get(), 1);
    assert_eq!(granted_rows(&*faults), 2);
    assert_eq!(faults.failed(Point::Swap), 2);
}

#[test]
fn an_outcome_that_stays_unknown_is_told_and_may_be_asked_again() {
    let (faults, worker) = worker();
    faults.fail_next(Point::Swap, When::Lost, 2);
    let calls = faults.calls(Point::Swap);
    let answer = worker.ask(&worker.acquiring("r", grant(1)));
    assert!(matches!(answer, Err(AuthorityError::Unknown)), "{answer:?}");
    assert_eq!(faults.calls(Point::Swap) - calls, 2, "it does not go on for ever");
    assert_eq!(worker.acquire("r", grant(1)).epoch.get(), 1);
    assert_eq!(granted_rows(&*faults), 1);
}

/// A worker completed its work, and no answer came. The next look found its session's time over, and it was told that nothing was
/// accepted; then the first request arrived, and the work was completed all the same.
#[test]
fn what_was_refused_is_not_made_by_a_request_that_was_sent_before() {
    let clock = ManualClock::at(Duration::from_secs(1));
    let store = MemoryStore::new(clock.clock(), Ttl::MAX).expect("a store");
    let faults = Arc::new(FaultStore::new(Arc::new(store)));
    let worker = Worker::open(Arc::clone(&faults) as Arc<dyn Store>, 1, true);
    let token = worker.acquire("r", grant(1));
    let outcome = Outcome::new("done").expect("a short one");
    let complete = Request::Complete { token, session: worker.session, outcome };
    faults.fail_next(Point::Swap, When::Late, 1);
    // The first reading goes through; the second one is held until the session's time is over.
    drop(faults.hang_next(Point::Read, When::Before));
    let second = faults.hang_next(Point::Read, When::Before);
    let answer = std::thread::scope(|scope| {
        let asking = scope.spawn(|| worker.ask(&complete));
        block_on(second.reached());
        clock.set(Duration::from_secs(1) + TTL);
        second.release();
        asking.join().expect("no panic")
    });
    assert!(matches!(answer, Ok(Err(Refusal::SessionEnded { .. }))), "{answer:?}");
    let said = block_on(faults.arrive());
    assert!(matches!(said[..], [Ok(SwapOutcome::Changed)]), "{said:?}");
    let lease = block_on(worker.authority.inspect(&resource("r"))).expect("a read").view.lease;
    assert!(lease.is_some_and(|lease| lease.phase == Phase::Held), "it was completed");
}

/// The change may stand, and the store has gone away since: an error of the store would say that it was not made.
#[test]
fn what_was_unknown_stays_unknown_when_the_store_is_gone() {
    for point in [Point::Read, Point::Swap] {
        let (faults, worker) = worker();
        faults.fail_next(Point::Swap, When::Lost, 1);
        // The first reading goes through.
        drop(faults.hang_next(Point::Read, When::Before));
        faults.fail_next(point, When::Before, 1);
        let answer = worker.ask(&worker.acquiring("r", grant(1)));
        assert!(matches!(answer, Err(AuthorityError::Unknown)), "{point:?}: {answer:?}");
        assert_eq!(faults.failed(point), if point == Point::Swap { 2 } else { 1 });
    }
}

#[test]
fn a_store_that_fails_before_has_done_nothing() {
    let (faults, worker) = worker();
    for point in [Point::Read, Point::Swap] {
        faults.fail_next(point, When::Before, 1);
        let answer = worker.ask(&worker.acquiring("r", grant(1)));
        assert!(matches!(answer, Err(AuthorityError::Store(StoreError::Unavailable(_)))), "{answer:?}");
    }
    assert_eq!(granted_rows(&*faults), 0);
    assert_eq!(worker.acquire("r", grant(1)).epoch.get(), 1);
}

/// Each time the request is about to be executed, somebody else changes the record.
#[test]
fn a_record_that_never_rests_ends_in_contended_after_a_bound() {
    let (faults, worker) = worker();
    let token = worker.acquire("r", grant(1));
    let calls = faults.calls(Point::Swap);
    let answer = std::thread::scope(|scope| {
        let mut hang = Some(faults.hang_next(Point::Swap, When::Before));
        let release = Request::Release { token: token.clone() };
        let asking = scope.spawn({
            let worker = &worker;
            move || worker.ask(&release)
        });
        while let Some(held) = hang.take() {
            block_on(held.reached());
            if faults.calls(Point::Swap) - calls < 64 {
                hang = Some(faults.hang_next(Point::Swap, When::Before));
            }
            touch(&faults);
            held.release();
        }
        asking.join().expect("no panic")
    });
    assert!(matches!(answer, Err(AuthorityError::Contended)), "{answer:?}");
    assert_eq!(faults.calls(Point::Swap) - calls, 64);
    worker.release(&token);
}

/// Changes the record of `r` in the store below, where the faults do not reach: the same record under a new version.
fn touch(faults: &FaultStore) {
    let inner = faults.inner();
    let read = block_on(inner.read(&Keys { resource: Some(resource("r")), ..Keys::default() })).expect("a read");
    let lease: LeaseRecord = read.view.lease.expect("the record");
    let transition = Transition {
        at: read.now,
        event: Event::Bound,
        resource: Some(lease.resource.clone()),
        session: None,
        epoch: None,
        grant: None,
        actor: None,
        why: None,
    };
    let swap = Swap { change: Change::Lease(lease), relies_on: None, transition };
    let outcome = block_on(inner.swap(swap, read.versions.lease)).expect("a swap");
    assert_eq!(outcome, SwapOutcome::Done);
}

#[test]
fn a_request_without_a_change_does_not_swap() {
    let (faults, worker) = worker();
    let token = worker.acquire("r", grant(1));
    let calls = faults.calls(Point::Swap);
    let check = Request::Check { token, session: worker.session };
    assert!(matches!(worker.ask(&check), Ok(Ok(Reply::Stands))));
    assert_eq!(faults.calls(Point::Swap), calls);
}
