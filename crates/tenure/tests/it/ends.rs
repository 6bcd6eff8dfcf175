use crate::stage::{RESOURCE, Stage, TTL};
use std::time::Duration;
use tenure::core::decide::Refusal;
use tenure::core::record::Phase;
use tenure::{AcquireError, FinishError, Loss};

#[tokio::test]
async fn a_dropped_lease_is_given_up_by_the_keeper() {
    let stage = Stage::new();
    let worker = stage.worker("a").await;
    let lease = worker.acquire(RESOURCE).await.unwrap();
    let checkpoint = lease.checkpoint();
    drop(lease);
    assert_eq!(checkpoint.ensure_local().unwrap_err().loss, Loss::Ended);
    stage.until("the grant is released", || async { !stage.is_held().await }).await;
    assert_eq!(worker.acquire(RESOURCE).await.unwrap().epoch().get(), 2);
    // Giving up is no loss.
    assert_eq!(worker.losses().total(), 0);
}

#[tokio::test]
async fn a_completed_resource_answers_with_its_outcome_and_is_never_granted_again() {
    let stage = Stage::new();
    stage.lease("a").await.complete("version 12").await.unwrap();
    assert!(
        matches!(stage.record().await.unwrap().phase, Phase::Completed { outcome } if outcome.as_str() == "version 12")
    );
    match stage.worker("b").await.acquire(RESOURCE).await.unwrap_err() {
        AcquireError::Refused { refusal: Refusal::Completed { outcome, epoch, .. }, .. } => {
            assert_eq!((outcome.as_str(), epoch.get()), ("version 12", 1));
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_completion_after_the_deadline_is_refused_even_without_a_takeover() {
    let stage = Stage::new();
    let lease = stage.lease("a").await;
    stage.advance(TTL);
    assert!(matches!(lease.complete("late").await, Err(FinishError::Lost(_))));
    assert!(!matches!(stage.record().await.unwrap().phase, Phase::Completed { .. }));
}

#[tokio::test]
async fn a_refusal_says_who_holds_it_since_when_and_for_how_long_still() {
    let stage = Stage::new();
    let _held = stage.lease("builder-1").await;
    stage.advance(Duration::from_secs(20));
    let error = stage.worker("builder-2").await.acquire(RESOURCE).wait(Duration::ZERO).await.unwrap_err();
    let text = error.to_string();
    for part in [
        "tenant-7 was not acquired",
        "held by builder-1 (",
        "under epoch 1",
        "for 20.0 s",
        "free in 100.0 s",
        "wait, or",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[tokio::test]
async fn two_tasks_of_one_process_take_turns() {
    let stage = Stage::new();
    let worker = stage.worker("a").await;
    let first = worker.acquire(RESOURCE).await.unwrap();
    let error = worker.acquire(RESOURCE).wait(Duration::ZERO).await.unwrap_err();
    assert!(matches!(error, AcquireError::HeldHere { epoch: Some(_), .. }), "{error}");
    first.ensure_owned().await.unwrap();
    let (second, released) = tokio::join!(worker.acquire(RESOURCE), first.release());
    released.unwrap();
    assert_eq!(second.unwrap().epoch().get(), 2);
}

#[tokio::test]
async fn a_session_that_nobody_uses_is_closed_instead_of_renewed() {
    let stage = Stage::new();
    let worker = stage.worker("a").await;
    worker.acquire(RESOURCE).await.unwrap().release().await.unwrap();
    stage.live_through(Duration::from_secs(45)).await;
    let session = stage.session().await.unwrap();
    assert_eq!(session.renew_seq, 0);
    assert_ne!(session.state, tenure::core::record::SessionState::Live);
    assert_eq!(worker.acquire(RESOURCE).await.unwrap().epoch().get(), 2);
}

#[tokio::test]
async fn names_and_spans_that_break_a_limit_are_named() {
    let stage = Stage::new();
    let worker = stage.worker("a").await;
    let wish = |name: &str| worker.acquire(name);
    assert!(matches!(wish("").await, Err(AcquireError::Name(_))));
    assert!(matches!(wish("a\nb").await, Err(AcquireError::Name(_))));
    assert!(matches!(wish(&"x".repeat(513)).await, Err(AcquireError::Name(_))));
    assert!(matches!(wish("x").ttl(Duration::ZERO).await, Err(AcquireError::Timing(_))));
    assert!(matches!(wish("x").ttl(TTL).margin(TTL).await, Err(AcquireError::Timing(_))));
    assert!(matches!(wish("x").ttl(Duration::from_secs(999_999)).await, Err(AcquireError::Timing(_))));
    assert!(tenure::Tenure::builder().owner("").over(stage.store()).await.is_err());
}

#[test]
fn the_blocking_front_needs_no_runtime() {
    let stage = Stage::new();
    let builder = tenure::Tenure::builder().owner("plain").clock(stage.clock());
    let worker = tenure::blocking::Tenure::from(tenure::blocking::wait_for(builder.over(stage.store())).unwrap());
    let lease = worker.acquire(worker.wish(RESOURCE)).unwrap();
    lease.ensure_owned().unwrap();
    assert_eq!(lease.token().epoch.get(), 1);
    lease.release().unwrap();
    worker.acquire(worker.wish(RESOURCE)).unwrap().complete("done").unwrap();
}
