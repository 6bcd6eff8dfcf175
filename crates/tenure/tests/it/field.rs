//! Reports from the field, each with its story.

use crate::faults::{Call, Fault, Hang};
use crate::stage::{RESOURCE, Stage, TTL, timing};
use std::future::IntoFuture;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;
use tenure::authority::SwapOutcome;
use tenure::core::decide::{Refusal, Reply, Request};
use tenure::core::record::{Event, Phase, Transition};
use tenure::{AcquireError, GrantId, Loss};

/// A member of a cluster acted as its head for 48 minutes after its disk hung: the disk was gone, but the connection over
/// which it renewed was well.
#[tokio::test]
async fn renewals_alone_prove_no_progress_of_the_work() {
    let stage = Stage::new();
    let worker = stage.worker("a").await;
    let _healthy = worker.acquire("tenant-8").await.unwrap();
    let hung = worker.acquire(RESOURCE).progress_within(Duration::from_mins(1)).await.unwrap();
    stage.live_through(Duration::from_secs(55)).await;
    assert_eq!(stage.session().await.unwrap().renew_seq, 1, "the renewals are well");
    assert!(stage.is_held().await);
    stage.live_through(Duration::from_secs(10)).await;
    assert_eq!(hung.lost().await.loss, Loss::Stalled);
    // The session lives on, and the resource is free all the same.
    let next = stage.worker("b").await.acquire(RESOURCE).wait(Duration::ZERO).await.unwrap();
    assert_eq!(next.epoch().get(), 2);
    stage.live_through(TTL).await;
    assert!(stage.is_held().await);
}

/// A pod that was stopped no longer renewed, and no longer noticed either: the task that should have noticed was stopped
/// with it. A fence that nobody is alive to apply is no fence.
#[tokio::test]
async fn a_checkpoint_fails_at_the_deadline_although_the_keeper_stands_still() {
    let (stage, faults) = Stage::faulty();
    let lease = stage.lease("a").await;
    let barrier = Arc::new(Barrier::new(2));
    faults.next(Call::Read, Fault::Block(Arc::clone(&barrier)));
    stage.advance(timing().renew_every());
    barrier.wait(); // the keeper's thread is inside the store now, and nothing else runs there
    lease.ensure_local().unwrap();
    stage.advance(timing().belief() - timing().renew_every() - Duration::from_nanos(1));
    lease.ensure_local().unwrap();
    stage.advance(Duration::from_nanos(1));
    assert_eq!(lease.ensure_local().unwrap_err().loss, Loss::DeadlinePassed);
    assert_eq!(lease.ensure_owned().await.unwrap_err().loss, Loss::DeadlinePassed);
    assert_eq!(lease.lost().await.loss, Loss::DeadlinePassed);
    barrier.wait();
}

/// A lock was kept alive for ever after it was unlocked: the renewal was scheduled while it was being cancelled.
#[tokio::test]
async fn after_a_thousand_releases_and_drops_nobody_renews() {
    let (stage, faults) = Stage::faulty();
    let worker = stage.worker("a").await;
    for round in 0..1000 {
        let lease = worker.acquire(RESOURCE).await.unwrap();
        // Renewals fall due in the midst of it.
        if round % 100 == 0 {
            let renewals = faults.count(Call::Swap(Event::Renewed));
            stage.advance(timing().renew_every());
            stage.until("a renewal", || async { faults.count(Call::Swap(Event::Renewed)) > renewals }).await;
        }
        if round % 2 == 0 {
            lease.release().await.unwrap();
        }
    }
    stage.until("the last one is given up", || async { !stage.is_held().await }).await;
    stage.live_through(timing().renew_every() * 2).await;
    let (opened, ended) = (stage.count(Event::Opened).await, stage.count(Event::Ended).await);
    assert!(opened >= 1 && opened == ended, "{opened} sessions opened, {ended} ended");
    let calls = faults.calls().len();
    stage.live_through(TTL * 2).await;
    assert_eq!(faults.calls()[calls..], []);
    assert_eq!(stage.record().await.unwrap().epoch.get(), 1000);
}

/// A machine was busy to the last core, and the timer that renewed the locks was among the threads that did not get on.
#[test]
fn renewals_go_on_while_every_thread_of_the_runtime_is_blocked() {
    let busy = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let stage = Stage::new();
    let worker = busy.block_on(stage.worker("a"));
    // Acquired by a task of that runtime, as a job would.
    let job = async move { worker.acquire(RESOURCE).await.unwrap() };
    let lease = busy.block_on(busy.spawn(job)).unwrap();
    let blocked = Arc::new(Barrier::new(3));
    for _ in 0..2 {
        let blocked = Arc::clone(&blocked);
        busy.spawn(async move {
            blocked.wait();
            blocked.wait();
        });
    }
    blocked.wait(); // no thread of that runtime gets on from here
    let calm = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    calm.block_on(async {
        stage.live_through(TTL * 3).await;
        lease.ensure_owned().await.unwrap();
        assert!(stage.session().await.unwrap().renew_seq >= 8);
    });
    blocked.wait();
}

/// The thread that worked was dead, and the one that renewed kept its lock alive for ever.
#[tokio::test]
async fn a_worker_that_panics_gives_its_lease_up() {
    let stage = Stage::new();
    let worker = stage.worker("a").await;
    let _other = worker.acquire("tenant-8").await.unwrap();
    let lease = worker.acquire(RESOURCE).await.unwrap();
    let job = tokio::spawn(async move {
        let _lease = lease;
        panic!("the work has a bug");
    });
    assert!(job.await.unwrap_err().is_panic());
    stage.until("the grant is given up", || async { !stage.is_held().await }).await;
    assert_eq!(worker.losses().total(), 0);
}

/// After a lock was lost and taken again its renewal never started: an entry of the lost one was in the way.
#[tokio::test]
async fn a_lease_that_was_lost_and_taken_again_is_renewed() {
    let stage = Stage::new();
    let mut lease = stage.lease("a").await;
    for epoch in 2..5 {
        stage.advance(TTL);
        lease = lease.resume().await.unwrap().lease;
        assert_eq!(lease.epoch().get(), epoch);
        stage.live_through(TTL * 2).await;
        lease.ensure_owned().await.unwrap();
        assert!(stage.session().await.unwrap().renew_seq >= 5);
    }
}

/// A heartbeat that was under way brought a released lock back to life.
#[tokio::test]
async fn a_release_that_races_a_renewal_stays_a_release() {
    for (renewal, done) in [(true, false), (true, true), (false, false), (false, true)] {
        let (stage, faults) = Stage::faulty();
        let worker = stage.worker("a").await;
        let other = worker.acquire("tenant-8").await.unwrap();
        let lease = worker.acquire(RESOURCE).await.unwrap();
        let checkpoint = lease.checkpoint();
        let held_back = Call::Swap(if renewal { Event::Renewed } else { Event::Released });
        let (hang, gate) = Hang::new();
        faults.next(held_back, if done { Fault::HangAfter(gate) } else { Fault::HangBefore(gate) });
        if renewal {
            stage.advance(timing().renew_every());
            hang.arrived().await;
            lease.release().await.unwrap();
            hang.release();
        } else {
            let release = tokio::spawn(lease.release());
            hang.arrived().await;
            stage.advance(timing().renew_every());
            let renewed = || async { stage.session().await.unwrap().renew_seq == 1 };
            stage.until("the renewal is through", renewed).await;
            stage.let_keepers_run().await;
            hang.release();
            // A try that was held for too long is repeated, with the same answer.
            stage.drive("the release is answered", release).await.unwrap().unwrap();
        }
        stage.live_through(timing().renew_every() * 2).await;
        assert_eq!(stage.record().await.unwrap().phase, Phase::Free);
        assert_eq!(checkpoint.ensure_local().unwrap_err().loss, Loss::Ended);
        other.ensure_owned().await.unwrap();
    }
}

/// An expired lock could be extended: the script set the key again.
#[tokio::test]
async fn a_renewal_at_the_deadline_is_none_whether_or_not_somebody_came() {
    for taken in [false, true] {
        let (stage, faults) = Stage::faulty();
        let lease = stage.lease("a").await;
        let id = stage.session().await.unwrap().id;
        // What the worker itself would send is held back, so that the late one comes first.
        let _hang = faults.hang(Call::Read);
        stage.advance(TTL);
        let next = if taken { Some(stage.rival("b").await.acquire(RESOURCE).await.unwrap()) } else { None };
        for n in [0, 1] {
            let late = stage.ask(Request::Renew { id, n, seen: Default::default() }).await;
            assert!(matches!(late, Err(Refusal::SessionEnded { .. })), "{late:?}");
        }
        assert_eq!(lease.ensure_local().unwrap_err().loss, Loss::DeadlinePassed);
        assert_eq!(stage.is_held().await, taken);
        if let Some(next) = next {
            next.ensure_owned().await.unwrap();
        }
    }
}

/// After long retries a lock was handed out that had expired already: its validity was counted from the first try.
#[tokio::test]
async fn a_grant_that_arrives_too_late_is_not_handed_out() {
    let (stage, faults) = Stage::faulty();
    let worker = stage.worker("a").await;
    let time = stage.time();
    let late = Fault::Then(Box::new(move || pass(&time, TTL)));
    faults.next(Call::Swap(Event::Granted), late);
    let wish = worker.acquire(RESOURCE).wait(TTL * 3).into_future();
    let lease = stage.drive("the wish is granted", wish).await.unwrap();
    // The first grant stands in the history; what was handed out is another one, with its time still before it.
    assert_eq!(lease.epoch().get(), 2);
    lease.ensure_owned().await.unwrap();
    stage.live_through(TTL).await;
    lease.ensure_owned().await.unwrap();
}

fn pass(time: &AtomicU64, span: Duration) {
    time.fetch_add(u64::try_from(span.as_nanos()).unwrap(), Ordering::AcqRel);
}

/// The same with no time left to try again: an error, and nothing is held.
#[tokio::test]
async fn a_grant_that_arrives_too_late_is_an_error_when_the_wait_is_over() {
    let (stage, faults) = Stage::faulty();
    let worker = stage.worker("a").await;
    let time = stage.time();
    let late = Fault::Then(Box::new(move || pass(&time, TTL)));
    faults.next(Call::Swap(Event::Granted), late);
    let wish = worker.acquire(RESOURCE).wait(Duration::ZERO).into_future();
    let error = stage.drive("the wish ends", wish).await.unwrap_err();
    assert!(matches!(error, AcquireError::LostAtOnce { .. }), "{error}");
    assert_eq!(stage.rival("b").await.acquire(RESOURCE).wait(Duration::ZERO).await.unwrap().epoch().get(), 2);
}

/// Asking again raised the token, so that the outer frame of the same work was fenced out by its inner one.
#[tokio::test]
async fn asking_again_on_the_same_session_moves_no_epoch() {
    let stage = Stage::new();
    let worker = stage.worker("a").await;
    let outer = worker.acquire(RESOURCE).await.unwrap();
    let session = stage.session().await.unwrap().id;
    let resource = outer.token().resource.clone();
    for grant in [outer.token().grant, GrantId::from_bits(7)] {
        let again = Request::Acquire { resource: resource.clone(), grant, session, sinks: Default::default() };
        match stage.ask(again).await.unwrap() {
            Reply::Granted(granted) => assert_eq!(granted.token, *outer.token()),
            other => panic!("{other:?}"),
        }
    }
    let inner = worker.acquire(RESOURCE).wait(Duration::ZERO).await.unwrap_err();
    assert!(matches!(inner, AcquireError::HeldHere { epoch: Some(epoch), .. } if epoch == outer.epoch()), "{inner}");
    outer.ensure_owned().await.unwrap();
    assert_eq!(stage.count(Event::Granted).await, 1);
}

/// A worker that was done late unlocked what another one had locked meanwhile, who then lost it to a third one.
#[tokio::test]
async fn a_late_release_takes_nothing_from_the_next_holder() {
    let stage = Stage::new();
    let first = stage.lease("a").await;
    stage.advance(TTL);
    let second = stage.lease("b").await;
    let late = first.token().clone();
    drop(first);
    let refusal = stage.ask(Request::Release { token: late }).await.unwrap_err();
    assert!(
        matches!(&refusal, Refusal::NotCurrent { owner: Some(owner), .. } if owner.name.as_str() == "b"),
        "{refusal}"
    );
    stage.let_keepers_run().await;
    second.ensure_owned().await.unwrap();
    let of_second = |row: &Transition| row.grant == Some(second.token().grant) && row.event == Event::Released;
    assert!(!stage.history().await.iter().any(of_second));
    let third = stage.worker("c").await.acquire(RESOURCE).wait(Duration::ZERO).await.unwrap_err();
    assert!(matches!(third, AcquireError::Refused { refusal: Refusal::Busy { .. }, .. }), "{third}");
}

/// Two containers were both process 1 on hosts of one name, took each other for themselves, and both went in.
#[tokio::test]
async fn two_workers_of_one_name_are_two() {
    let stage = Stage::new();
    let (one, two) = (stage.worker("host-1/pid-1").await, stage.worker("host-1/pid-1").await);
    assert_eq!(one.owner().name, two.owner().name);
    assert_ne!(one.owner(), two.owner());
    let lease = one.acquire(RESOURCE).await.unwrap();
    let error = two.acquire(RESOURCE).wait(Duration::ZERO).await.unwrap_err();
    match error {
        AcquireError::Refused { refusal: Refusal::Busy { owner, .. }, .. } => assert_eq!(owner, *one.owner()),
        other => panic!("{other}"),
    }
    lease.ensure_owned().await.unwrap();
}

/// The future that locked was dropped after the row was written, and nobody held the lock until it expired.
#[tokio::test]
async fn a_wish_that_is_dropped_after_the_grant_was_written_leaves_none() {
    let (stage, faults) = Stage::faulty();
    let worker = stage.worker("a").await;
    let _other = worker.acquire("tenant-8").await.unwrap();
    let (hang, gate) = Hang::new();
    faults.next(Call::Swap(Event::Granted), Fault::HangAfter(gate));
    let mut wish = worker.acquire(RESOURCE).into_future();
    tokio::select! {
        _ = &mut wish => panic!("the grant is held back"),
        () = hang.arrived() => {}
    }
    assert!(stage.is_held().await, "the grant is written");
    drop(wish);
    hang.release();
    stage.until("the grant is given back", || async { !stage.is_held().await }).await;
    assert_eq!(stage.rival("b").await.acquire(RESOURCE).wait(Duration::ZERO).await.unwrap().epoch().get(), 2);
}

/// A request to lock timed out, was executed later all the same, and the lock was held by nobody who knew of it.
#[tokio::test]
async fn a_request_that_timed_out_and_is_executed_later_is_given_back() {
    let (stage, faults) = Stage::faulty();
    let worker = stage.worker("a").await;
    let other = worker.acquire("tenant-8").await.unwrap();
    faults.next(Call::Swap(Event::Granted), Fault::Late);
    let wish = worker.acquire(RESOURCE).wait(Duration::ZERO).into_future();
    let error = stage.drive("the wish ends", wish).await.unwrap_err();
    assert!(matches!(error, AcquireError::Unanswered { .. }), "{error}");
    assert!(!stage.is_held().await);
    assert_eq!(faults.land().await, [SwapOutcome::Done]);
    assert!(stage.is_held().await, "now it stands, and nobody has asked for it");
    stage.live_through(timing().renew_every()).await;
    stage.until("a renewal has shown it", || async { !stage.is_held().await }).await;
    other.ensure_owned().await.unwrap();
}

/// A try that was repeated under the same id gets the grant of the first one, not a second grant.
#[tokio::test]
async fn a_try_whose_answer_was_lost_gets_the_same_grant_again() {
    let (stage, faults) = Stage::faulty();
    let worker = stage.worker("a").await;
    let (_hang, gate) = Hang::new();
    faults.next(Call::Swap(Event::Granted), Fault::HangAfter(gate));
    let wish = worker.acquire(RESOURCE).wait(TTL).into_future();
    let lease = stage.drive("the repeat is answered", wish).await.unwrap();
    assert_eq!(lease.epoch().get(), 1);
    assert_eq!(stage.count(Event::Granted).await, 1);
    lease.ensure_owned().await.unwrap();
}

/// A lock was held for long while others tried to get it again and again, and each try left an entry until the memory
/// was full.
#[tokio::test]
async fn polling_for_a_held_resource_leaves_nothing() {
    let stage = Stage::new();
    let _held = stage.lease("a").await;
    let poller = stage.worker("b").await;
    let own = poller.acquire("tenant-8").await.unwrap();
    let poll = || async { poller.acquire(RESOURCE).wait(Duration::ZERO).await.unwrap_err() };
    poll().await;
    let before = stage.all_history().await.len();
    for _ in 0..10_000 {
        poll().await;
    }
    assert_eq!(stage.all_history().await.len(), before, "the store has grown");
    assert_eq!(stage.count(Event::Opened).await, 2);
    // Nothing counts as under way any more: the very next renewal settles what it shows.
    stage.revoke(own.token()).await;
    stage.live_through(timing().renew_every()).await;
    assert_eq!(own.ensure_local().unwrap_err().loss, Loss::Revoked);
}
