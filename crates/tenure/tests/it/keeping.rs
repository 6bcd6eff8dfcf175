//! What the keeper must get right when the authority answers late, or not at all.

use crate::faults::{Call, Fault, Hang};
use crate::stage::{RESOURCE, Stage, timing};
use std::future::IntoFuture;
use std::time::Duration;
use tenure::core::record::{Event, Phase};
use tenure::{AcquireError, FinishError, Loss};

/// A lease that was lost while its completion was under way left its session twice: the session of another lease then
/// counted as unused and was closed under it.
#[tokio::test]
async fn a_completion_that_is_answered_after_the_loss_takes_no_other_lease_with_it() {
    let (stage, faults) = Stage::faulty();
    let worker = stage.worker("a").await;
    let other = worker.acquire("tenant-8").await.unwrap();
    let lease = worker.acquire(RESOURCE).progress_within(Duration::from_secs(10)).await.unwrap();
    let (hang, gate) = Hang::new();
    faults.next(Call::Swap(Event::Completed), Fault::HangAfter(gate));
    let completion = tokio::spawn(lease.complete("done"));
    hang.arrived().await;
    stage.advance(Duration::from_secs(10));
    stage.until("the lease is lost", || async { worker.losses().of(Loss::Stalled) == 1 }).await;
    hang.release();
    completion.await.unwrap().unwrap();
    stage.live_through(timing().renew_every() * 3).await;
    other.ensure_owned().await.unwrap();
    assert!(matches!(stage.record().await.unwrap().phase, Phase::Completed { .. }));
}

/// A release that failed was counted as if the grant were held still. So the authority's account and the holder's
/// agreed, and the grant stood for as long as the session was renewed for other leases.
#[tokio::test]
async fn a_release_that_failed_is_made_up_for_at_the_next_renewal() {
    let (stage, faults) = Stage::faulty();
    let worker = stage.worker("a").await;
    let other = worker.acquire("tenant-8").await.unwrap();
    let lease = worker.acquire(RESOURCE).await.unwrap();
    faults.next(Call::Swap(Event::Released), Fault::Final);
    let released = lease.release().await;
    assert!(matches!(released, Err(FinishError::Unknown { .. })), "{released:?}");
    assert!(stage.is_held().await);
    stage.live_through(timing().renew_every() + Duration::from_secs(5)).await;
    assert!(!stage.is_held().await);
    other.ensure_owned().await.unwrap();
}

/// The renewals waited for a listing that was only there to compare accounts.
#[tokio::test]
async fn a_listing_that_is_never_answered_stops_no_renewal() {
    let (stage, faults) = Stage::faulty();
    let worker = stage.worker("a").await;
    let other = worker.acquire("tenant-8").await.unwrap();
    let lease = worker.acquire(RESOURCE).await.unwrap();
    let hang = faults.hang(Call::Grants);
    stage.revoke(lease.token()).await;
    stage.live_through(timing().renew_every()).await;
    hang.arrived().await;
    stage.live_through(timing().renew_every() * 3).await;
    other.ensure_owned().await.unwrap();
    // The next listing tells what the first one was asked for.
    assert_eq!(lease.lost().await.loss, Loss::Revoked);
}

/// A wish waited for ever for a look at a resource that only served to clear up after it.
#[tokio::test]
async fn a_wish_whose_store_falls_silent_ends() {
    let (stage, faults) = Stage::faulty();
    let worker = stage.worker("a").await;
    let _other = worker.acquire("tenant-8").await.unwrap();
    let granting = faults.hang(Call::Swap(Event::Granted));
    let wish = tokio::spawn(worker.acquire(RESOURCE).wait(Duration::ZERO).into_future());
    granting.arrived().await;
    let looking = faults.hang(Call::Read);
    let error = stage.drive("the wish ends", wish).await.unwrap().unwrap_err();
    assert!(looking.has_arrived());
    assert!(matches!(error, AcquireError::Unanswered { .. }), "{error}");
    let again = stage.drive("the next wish", worker.acquire(RESOURCE).into_future()).await.unwrap();
    again.ensure_owned().await.unwrap();
}

/// Wishes that came while the first session was being opened opened one each: many rows to renew instead of one.
#[tokio::test]
async fn wishes_that_come_together_stand_on_one_session() {
    let (stage, faults) = Stage::faulty();
    let worker = stage.worker("a").await;
    let hang = faults.hang(Call::Swap(Event::Opened));
    let mut wishes = tokio::task::JoinSet::new();
    wishes.spawn(worker.acquire("tenant-0").into_future());
    hang.arrived().await;
    for n in 1..16 {
        wishes.spawn(worker.acquire(format!("tenant-{n}")).into_future());
    }
    stage.let_keepers_run().await;
    hang.release();
    let leases: Vec<_> = wishes.join_all().await.into_iter().map(Result::unwrap).collect();
    assert_eq!((leases.len(), stage.count(Event::Opened).await), (16, 1));
}
