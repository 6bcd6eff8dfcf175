//! Bugs that others have reported of their own systems, and why they cannot happen here.

use crate::world::{ManualClock, Place, Worker, grant, memory, resource, sqlite};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tenure_authority::conformance::block_on;
use tenure_authority::conformance::faults::{FaultStore, Point, When};
use tenure_authority::{HistoryQuery, Store};
use tenure_core::decide::{Keys, Refusal, Reply, Request, SinkRefusal};
use tenure_core::record::{EndReason, Event, Grant, Holdings};
use tenure_core::{Actor, Epoch};

/// Two stores behave alike: one in memory, one in a file.
fn each(test: impl Fn(Arc<dyn Store>)) {
    test(memory());
    let place = Place::new();
    test(sqlite(&place.path, ManualClock::at(Duration::from_secs(1)).clock()));
}

fn granted_rows(store: &dyn Store) -> usize {
    let rows = block_on(store.history(HistoryQuery::default())).expect("the history");
    rows.iter().filter(|row| row.transition.event == Event::Granted).count()
}

/// A database derived the next epoch as the *number* of epochs plus one. Once the epochs had a gap, the new epoch
/// collided with one that had been given out already, and fencing failed. Here the next epoch is above the highest one
/// that the record or any receiver ever had, however few grants there were.
#[test]
fn report_37_an_epoch_after_a_gap_is_above_everything_that_was_given() {
    each(|store| {
        let worker = Worker::open(Arc::clone(&store), 1, true);
        let first = worker.acquire("r", grant(1));
        let shown = SinkRefusal { epoch: Epoch::new(41).expect("an epoch"), grant: None };
        assert!(matches!(worker.ask(&Request::Refused { token: first, shown }), Ok(Ok(Reply::Learnt))));
        let second = worker.acquire("r", grant(2));
        assert_eq!(second.epoch.get(), 42, "the second grant of this resource");
        worker.release(&second);
        // A forgotten resource leaves a gap as well: the record is gone, and with it every grant.
        let retire = Request::Retire { resource: resource("r"), actor: Actor::new("operator").expect("a name") };
        assert!(matches!(worker.ask(&retire), Ok(Ok(Reply::Retired))));
        assert_eq!(worker.acquire("r", grant(3)).epoch.get(), 43);
        assert_eq!(worker.acquire("never seen", grant(4)).epoch.get(), 43, "the floor is everybody's");
    });
}

/// A lock library's `lock()` future was dropped after the claim had been written: the lock was held by nobody until its
/// ttl ran out. And where the answer to the claim was lost, the caller took it for a failure. Here the claim carries the
/// caller's own id and stands on its session: the same request finds it, and the end of the session ends it.
#[test]
fn report_57_a_claim_whose_answer_was_lost_is_found_or_ends_with_its_session() {
    each(|store| {
        let faults = Arc::new(FaultStore::new(store));
        let worker = Worker::open(Arc::clone(&faults) as Arc<dyn Store>, 1, true);
        // The store fails after it has applied the claim: nobody is misled.
        faults.fail_next(Point::Swap, When::After, 1);
        assert_eq!(worker.acquire("failed", grant(1)).epoch.get(), 1);
        assert_eq!(granted_rows(&*faults), 1);

        // The future is dropped after the claim was written.
        let hang = faults.hang_next(Point::Swap, When::After);
        {
            let request = worker.acquiring("dropped", grant(2));
            let mut acquire = pin!(worker.authority.execute(&request));
            let mut reached = pin!(hang.reached());
            block_on(std::future::poll_fn(|context: &mut Context<'_>| {
                assert!(acquire.as_mut().poll(context).is_pending(), "it is held");
                reached.as_mut().poll(context)
            }));
        }
        hang.release();
        let held: Holdings = [grant(1), grant(2)].map(|id| Grant { epoch: Epoch::FIRST, id }).into_iter().collect();
        match worker.renew(0) {
            Ok(Reply::Renewed { holdings, .. }) => assert_eq!(holdings, held, "the next renewal shows it"),
            other => panic!("{other:?}"),
        }
        assert_eq!(worker.acquire("dropped", grant(2)).epoch.get(), 1, "the same request finds it");
        assert_eq!(granted_rows(&*faults), 2);
        assert!(matches!(worker.ask(&Request::Close { id: worker.session }), Ok(Ok(Reply::Ended))));
        let next = Worker::open(Arc::clone(&faults) as Arc<dyn Store>, 2, true);
        assert_eq!(next.acquire("dropped", grant(3)).epoch.get(), 2, "nobody waits for a ttl");
    });
}

/// A lock request timed out at the caller and was completed at the server later: the lock was then held without anybody
/// knowing. Here the retry carries the same id and gets the same grant, whichever of the two comes first; and one that
/// comes after its session has ended is refused.
#[test]
fn report_59_a_request_that_comes_late_is_the_same_grant_or_none() {
    each(|store| {
        let faults = Arc::new(FaultStore::new(store));
        let worker = Worker::open(Arc::clone(&faults) as Arc<dyn Store>, 1, true);
        let request = worker.acquiring("r", grant(1));
        // The first one is under way when the caller gives up and asks again.
        let late = faults.hang_next(Point::Swap, When::Before);
        let mut first = pin!(worker.authority.execute(&request));
        assert!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(late.is_reached());
        let again = worker.acquire("r", grant(1));
        late.release();
        match block_on(first.as_mut()) {
            Ok(Ok(Reply::Granted(granted))) => assert_eq!(granted.token, again),
            other => panic!("{other:?}"),
        }
        assert_eq!((again.epoch.get(), granted_rows(&*faults)), (1, 1));

        // The first one is under way until after the caller's session has ended.
        let request = worker.acquiring("s", grant(2));
        let late = faults.hang_next(Point::Swap, When::Before);
        let mut first = pin!(worker.authority.execute(&request));
        assert!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(matches!(worker.ask(&Request::Close { id: worker.session }), Ok(Ok(Reply::Ended))));
        late.release();
        let answer = block_on(first.as_mut());
        let Ok(Err(Refusal::SessionEnded { why })) = answer else { panic!("{answer:?}") };
        assert_eq!(why, Some(EndReason::Closed));
        let keys = Keys { resource: Some(resource("s")), ..Keys::default() };
        assert!(block_on(faults.read(&keys)).expect("a read").view.lease.is_none());
    });
}

/// The remaining cases of report 59: the late one comes after the caller has released what the retry got. It is refused;
/// and if others have held the resource since, so that nobody remembers, it is a second grant under which nobody works,
/// and the next renewal shows it.
#[test]
fn report_59_a_late_duplicate_on_a_living_session_is_refused_or_noticed() {
    for others_came in [false, true] {
        each(|store| {
            let faults = Arc::new(FaultStore::new(store));
            let worker = Worker::open(Arc::clone(&faults) as Arc<dyn Store>, 1, true);
            let request = worker.acquiring("r", grant(1));
            let late = faults.hang_next(Point::Swap, When::Before);
            let mut first = pin!(worker.authority.execute(&request));
            assert!(matches!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
            worker.release(&worker.acquire("r", grant(1)));
            if others_came {
                let other = Worker::open(Arc::clone(&faults) as Arc<dyn Store>, 2, true);
                other.release(&other.acquire("r", grant(2)));
            }
            late.release();
            let answer = block_on(first.as_mut());
            let standing = block_on(faults.grants(worker.session)).expect("the grants");
            let holdings = match worker.renew(0) {
                Ok(Reply::Renewed { holdings, .. }) => holdings,
                other => panic!("{other:?}"),
            };
            if others_came {
                assert!(matches!(&answer, Ok(Ok(Reply::Granted(_)))), "{answer:?}");
                assert_ne!(holdings, Holdings::default(), "the caller holds nothing, so this one is to be released");
                worker.release(&standing.first().expect("the grant").token());
            } else {
                assert!(matches!(&answer, Ok(Err(Refusal::NotCurrent { .. }))), "{answer:?}");
                assert_eq!((holdings, standing.len()), (Holdings::default(), 0));
            }
        });
    }
}
