use crate::stage::{RESOURCE, Stage, TTL};
use std::time::Duration;
use tenure::core::decide::Request;
use tenure::{Loss, Outcome, Token};

/// Verify, then fail, then the store looks right again. Nothing may bring the worker back.
#[tokio::test]
async fn ownership_loss_is_sticky_and_cancels_every_later_checkpoint() {
    let stage = Stage::new();
    let worker = stage.worker("a").await;
    let lease = worker.acquire(RESOURCE).await.unwrap();
    lease.ensure_owned().await.unwrap();
    // The authority's word is gone for a moment: revoked, and acquired again by the same worker.
    let revoke = Request::Revoke {
        resource: lease.token().resource.clone(),
        only: None,
        actor: "operator".parse().unwrap(),
        reason: "test".parse().unwrap(),
    };
    worker.authority().execute(&revoke).await.unwrap().unwrap();
    assert_eq!(lease.ensure_owned().await.unwrap_err().loss, Loss::CheckRefused);
    let again = stage.worker("a").await.acquire(RESOURCE).await.unwrap();
    again.ensure_owned().await.unwrap();
    // The store is well, a worker of the same name holds: the old lease stays dead at every checkpoint.
    for _ in 0..3 {
        assert_eq!(lease.ensure_owned().await.unwrap_err().loss, Loss::CheckRefused);
        assert_eq!(lease.ensure_local().unwrap_err().loss, Loss::CheckRefused);
    }
    assert!(lease.cancellation().is_cancelled());
    assert!(lease.guard(async { panic!("a step after a failed checkpoint was started") }).await.is_err());
    assert!(lease.complete("late").await.is_err());
    assert_eq!(worker.losses().of(Loss::CheckRefused), 1);
    assert_eq!(worker.losses().total(), 1);
}

#[tokio::test]
async fn a_step_after_a_failed_checkpoint_never_starts() {
    let stage = Stage::new();
    let lease = stage.lease("a").await;
    stage.advance(TTL);
    let mut started = false;
    let step = lease.guard(async { started = true }).await;
    assert_eq!(step.unwrap_err().loss, Loss::DeadlinePassed);
    assert!(!started);
}

#[tokio::test]
async fn guarded_work_is_dropped_on_loss() {
    struct SetOnDrop(std::sync::Arc<std::sync::atomic::AtomicBool>);
    impl Drop for SetOnDrop {
        fn drop(&mut self) {
            self.0.store(true, std::sync::atomic::Ordering::Release);
        }
    }
    let stage = Stage::new();
    let lease = stage.lease("a").await;
    let dropped = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let on_drop = SetOnDrop(std::sync::Arc::clone(&dropped));
    let work = lease.guard(async move {
        let _on_drop = on_drop;
        std::future::pending::<()>().await;
    });
    stage.advance(TTL);
    assert_eq!(work.await.unwrap_err().loss, Loss::DeadlinePassed);
    assert!(dropped.load(std::sync::atomic::Ordering::Acquire));
}

#[tokio::test]
async fn a_late_old_holder_can_neither_renew_nor_release_the_successors_lease() {
    let stage = Stage::new();
    let old = stage.worker("same-name").await;
    let lease = old.acquire(RESOURCE).await.unwrap();
    let (token, session): (Token, _) = (lease.token().clone(), stage.session().await.unwrap().id);
    stage.advance(TTL);
    let new = stage.worker("same-name").await;
    let successor = new.acquire(RESOURCE).await.unwrap();
    assert_eq!(successor.epoch().get(), token.epoch.get() + 1);
    let authority = old.authority();
    let renewed = authority.execute(&Request::Renew { id: session, n: 0, seen: Default::default() }).await.unwrap();
    assert!(renewed.is_err(), "{renewed:?}");
    let released = authority.execute(&Request::Release { token: token.clone() }).await.unwrap();
    assert!(released.is_err(), "{released:?}");
    let outcome = Outcome::new("late").unwrap();
    let completed = authority.execute(&Request::Complete { token, session, outcome }).await.unwrap();
    assert!(completed.is_err(), "{completed:?}");
    successor.ensure_owned().await.unwrap();
    assert_eq!(lease.ensure_local().unwrap_err().loss, Loss::DeadlinePassed);
    // Dropping the old handle must not give up the new lease either.
    drop(lease);
    stage.let_keepers_run().await;
    successor.ensure_owned().await.unwrap();
}

#[tokio::test]
async fn a_holder_that_renews_keeps_its_lease_and_its_epoch() {
    let stage = Stage::new();
    let lease = stage.lease("a").await;
    stage.live_through(Duration::from_secs(600)).await;
    lease.ensure_owned().await.unwrap();
    assert_eq!(lease.epoch().get(), 1);
    assert!(stage.session().await.unwrap().renew_seq >= 10);
}

#[tokio::test]
async fn resume_takes_a_new_epoch_and_says_whether_somebody_came_in_between() {
    let stage = Stage::new();
    let lease = stage.lease("a").await;
    stage.advance(TTL);
    let resumed = lease.resume().await.unwrap();
    assert!(resumed.uninterrupted);
    assert_eq!(resumed.lease.epoch().get(), 2);
    stage.advance(TTL);
    stage.lease("b").await.release().await.unwrap();
    let resumed = resumed.lease.resume().await.unwrap();
    assert!(!resumed.uninterrupted);
    assert_eq!(resumed.lease.epoch().get(), 4);
}
