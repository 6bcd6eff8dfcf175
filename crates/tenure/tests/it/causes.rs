//! One test per cause of a loss. Each is counted under its own reason, and none as a failure of the work.

use crate::faults::{Call, Fault};
use crate::receivers::Receivers;
use crate::stage::{RESOURCE, Stage, timing};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;
use tenure::core::decide::Request;
use tenure::core::record::{Event, Phase};
use tenure::sink::Sink;
use tenure::{Acquire, Checkpoint, GrantId, HeedError, Lease, Loss, Lost, Policy, Tenure, Verdict};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A lease, with everything that must end when it is lost already waiting.
struct Watched {
    worker: Tenure,
    lease: Lease,
    lost: JoinHandle<Lost>,
    guarded: JoinHandle<Result<(), Lost>>,
    cancelled: CancellationToken,
}

impl Watched {
    async fn of(worker: Tenure, wish: impl FnOnce(Acquire) -> Acquire) -> Self {
        let lease = wish(worker.acquire(RESOURCE).wait(Duration::ZERO)).await.unwrap();
        let (waits, works, cancelled) = (lease.checkpoint(), lease.checkpoint(), lease.cancellation());
        let lost = tokio::spawn(async move { waits.lost().await });
        let guarded = tokio::spawn(async move { works.guard(std::future::pending()).await });
        Self { worker, lease, lost, guarded, cancelled }
    }

    fn is_held(&self) -> bool {
        let any_ended = self.cancelled.is_cancelled() || self.lost.is_finished() || self.guarded.is_finished();
        !any_ended && self.worker.losses().total() == 0 && self.lease.ensure_local().is_ok()
    }

    /// Everything ends, without a checkpoint asking, and only this reason is counted, once.
    async fn ends_by(self, stage: &Stage, loss: Loss) {
        let all = || async { self.cancelled.is_cancelled() && self.lost.is_finished() && self.guarded.is_finished() };
        stage.until("everything that waits for the loss ends", all).await;
        assert_eq!(self.lost.await.unwrap().loss, loss);
        assert_eq!(self.guarded.await.unwrap().unwrap_err().loss, loss);
        for _ in 0..2 {
            assert_eq!(self.lease.ensure_local().unwrap_err().loss, loss);
            assert_eq!(self.lease.ensure_owned().await.unwrap_err().loss, loss);
        }
        for (reason, count) in self.worker.losses().iter() {
            assert_eq!(count, u64::from(reason == loss), "{reason:?}");
        }
        assert_eq!(self.worker.losses().total(), 1);
    }
}

#[tokio::test]
async fn a_check_that_is_refused() {
    let stage = Stage::new();
    let watched = Watched::of(stage.worker("a").await, |wish| wish).await;
    stage.revoke(watched.lease.token()).await;
    assert!(watched.is_held());
    assert_eq!(watched.lease.ensure_owned().await.unwrap_err().loss, Loss::CheckRefused);
    watched.ends_by(&stage, Loss::CheckRefused).await;
}

#[tokio::test]
async fn a_check_that_meets_a_read_error() {
    let (stage, faults) = Stage::faulty();
    let watched = Watched::of(stage.worker("a").await, |wish| wish).await;
    watched.lease.ensure_owned().await.unwrap();
    faults.next(Call::Read, Fault::Before);
    // It fails closed, although the store would answer a second question.
    assert_eq!(watched.lease.ensure_owned().await.unwrap_err().loss, Loss::CheckUnanswered);
    watched.ends_by(&stage, Loss::CheckUnanswered).await;
}

#[tokio::test]
async fn a_check_that_is_never_answered() {
    let (stage, faults) = Stage::faulty();
    let watched = Watched::of(stage.worker("a").await, |wish| wish).await;
    let hang = faults.hang(Call::Read);
    let checkpoint = watched.lease.checkpoint();
    let check = tokio::spawn(async move { checkpoint.ensure_owned().await.cloned() });
    hang.arrived().await;
    stage.let_keepers_run().await;
    stage.advance(timing().attempt() - Duration::from_nanos(1));
    stage.let_keepers_run().await;
    assert!(!check.is_finished() && watched.is_held());
    stage.advance(Duration::from_nanos(1));
    stage.until("the check gives up", || async { check.is_finished() }).await;
    assert_eq!(check.await.unwrap().unwrap_err().loss, Loss::CheckUnanswered);
    watched.ends_by(&stage, Loss::CheckUnanswered).await;
}

#[tokio::test]
async fn a_check_that_hangs_to_the_deadline() {
    let (stage, faults) = Stage::faulty();
    let watched = Watched::of(stage.worker("a").await, |wish| wish).await;
    let (hang, gate) = crate::faults::Hang::new();
    faults.on(|call| call == Call::Read, 0, usize::MAX, Fault::HangBefore(gate));
    stage.live_through(Duration::from_secs(100)).await;
    let checkpoint = watched.lease.checkpoint();
    let check = tokio::spawn(async move { checkpoint.ensure_owned().await.cloned() });
    hang.arrived().await;
    stage.let_keepers_run().await;
    assert!(!check.is_finished());
    // 8 s are left of 108, less than a check is waited for.
    stage.advance(Duration::from_secs(8));
    stage.until("the check ends with the belief", || async { check.is_finished() }).await;
    assert!(check.await.unwrap().is_err());
    // Which of the two tasks notices first is open; the lease is lost once.
    let loss = watched.lease.ensure_local().unwrap_err().loss;
    assert!([Loss::CheckUnanswered, Loss::DeadlinePassed].contains(&loss), "{loss:?}");
    watched.ends_by(&stage, loss).await;
}

#[tokio::test]
async fn a_renewal_that_is_refused() {
    let stage = Stage::new();
    let watched = Watched::of(stage.worker("a").await, |wish| wish).await;
    let (actor, reason) = ("operator".parse().unwrap(), "test".parse().unwrap());
    let id = stage.session().await.unwrap().id;
    stage.ask(Request::RevokeSession { id, actor, reason }).await.unwrap();
    stage.let_keepers_run().await;
    assert!(watched.is_held(), "nothing was asked yet");
    stage.advance(timing().renew_every());
    watched.ends_by(&stage, Loss::RenewalRefused).await;
}

#[tokio::test]
async fn one_renewal_that_fails_is_repeated_and_is_no_loss() {
    for fault in [Fault::Before, Fault::After] {
        let (stage, faults) = Stage::faulty();
        let watched = Watched::of(stage.worker("a").await, |wish| wish).await;
        faults.next(Call::Swap(Event::Renewed), fault);
        stage.live_through(Duration::from_secs(70)).await;
        assert_eq!(stage.session().await.unwrap().renew_seq, 1);
        watched.lease.ensure_owned().await.unwrap();
        assert!(watched.is_held());
        // Beyond what the opening alone was good for.
        stage.live_through(Duration::from_secs(60)).await;
        assert!(watched.is_held());
    }
}

#[tokio::test]
async fn a_renewal_that_hangs_is_repeated_under_the_same_number() {
    let (stage, faults) = Stage::faulty();
    let watched = Watched::of(stage.worker("a").await, |wish| wish).await;
    let hang = faults.hang(Call::Swap(Event::Renewed));
    stage.advance(timing().renew_every());
    hang.arrived().await;
    stage.let_keepers_run().await;
    stage.live_through(Duration::from_secs(30)).await;
    assert_eq!(stage.session().await.unwrap().renew_seq, 1);
    assert!(watched.is_held());
}

/// The belief ends with the holder's own deadline, not with the last try that was under way: that one would have ended
/// with the authority's deadline, where the next owner begins.
#[tokio::test]
async fn renewals_that_are_unanswered_to_the_deadline() {
    let (stage, faults) = Stage::faulty();
    let watched = Watched::of(stage.worker("a").await, |wish| wish).await;
    let (_hang, gate) = crate::faults::Hang::new();
    faults.on(|call| call == Call::Read, 0, usize::MAX, Fault::HangBefore(gate));
    stage.live_through(Duration::from_secs(105)).await;
    assert!(faults.count(Call::Read) >= 4, "it was tried again and again: {:?}", faults.calls());
    assert!(watched.is_held());
    stage.advance(timing().belief() - Duration::from_secs(105));
    watched.ends_by(&stage, Loss::DeadlinePassed).await;
    assert!(stage.is_held().await, "the authority's deadline lies later");
}

#[tokio::test]
async fn the_first_renewal_that_fails_under_the_strict_policy() {
    let (stage, faults) = Stage::faulty();
    let watched = Watched::of(stage.worker("a").await, |wish| wish.policy(Policy::Strict)).await;
    faults.next(Call::Swap(Event::Renewed), Fault::Before);
    stage.advance(timing().renew_every() - Duration::from_nanos(1));
    stage.let_keepers_run().await;
    assert!(watched.is_held());
    stage.advance(Duration::from_nanos(1));
    watched.ends_by(&stage, Loss::RenewalUnanswered).await;
}

#[tokio::test]
async fn a_deadline_that_passed() {
    let stage = Stage::new();
    let watched = Watched::of(stage.worker("a").await, |wish| wish).await;
    // The keeper is asleep until its next renewal, by a timer that does not count suspend.
    stage.let_keepers_run().await;
    // In one jump, as after a suspend: no renewal was tried in between.
    stage.advance(timing().belief());
    watched.ends_by(&stage, Loss::DeadlinePassed).await;
}

#[tokio::test]
async fn a_receiver_that_has_seen_a_newer_token() {
    let (stage, receivers) = (Stage::new(), Receivers::new());
    let sink = std::sync::Arc::new(receivers.sqlite());
    let watched = Watched::of(stage.worker("a").await, |wish| wish.sink(sink.clone())).await;
    let token = watched.lease.token().clone();
    assert_eq!(receivers.write(&token), Verdict::Written);
    // Taken away and given to another worker, who has sealed; the old one asks nobody but the receiver.
    stage.revoke(&token).await;
    let next = stage.worker("b").await.acquire(RESOURCE).sink(sink.clone()).await.unwrap();
    let verdict = receivers.write(&token);
    assert!(matches!(verdict, Verdict::Stale { .. }), "{verdict}");
    let heeded = watched.lease.heed(sink.id(), &verdict).await;
    assert!(matches!(heeded, Err(HeedError::Lost(Lost { loss: Loss::Stale, .. }))), "{heeded:?}");
    watched.ends_by(&stage, Loss::Stale).await;
    // What the old one reports about itself takes nothing from the new one.
    next.ensure_owned().await.unwrap();
    assert_eq!(receivers.write(next.token()), Verdict::Written);
}

#[tokio::test]
async fn a_receiver_that_has_another_grant_of_the_same_epoch() {
    let (stage, receivers) = (Stage::new(), Receivers::new());
    let sink = std::sync::Arc::new(receivers.sqlite());
    let watched = Watched::of(stage.worker("a").await, |wish| wish.sink(sink.clone())).await;
    // As after a restore of the receiver from the days of an authority that has lost its memory since.
    let other = GrantId::from_bits(7).to_string();
    let connection = rusqlite::Connection::open(receivers.path("shop.sqlite")).unwrap();
    assert_eq!(connection.execute("UPDATE tenure_sink_fence SET grant_id = ?1", [other]).unwrap(), 1);
    let verdict = receivers.write(watched.lease.token());
    assert!(matches!(verdict, Verdict::Conflict { .. }), "{verdict}");
    let heeded = watched.lease.heed(sink.id(), &verdict).await;
    assert!(matches!(heeded, Err(HeedError::Lost(Lost { loss: Loss::Conflict, .. }))), "{heeded:?}");
    watched.ends_by(&stage, Loss::Conflict).await;
}

#[tokio::test]
async fn a_conflict_of_content_is_no_loss() {
    let (stage, receivers) = (Stage::new(), Receivers::new());
    let sink = std::sync::Arc::new(receivers.sqlite());
    let watched = Watched::of(stage.worker("a").await, |wish| wish.sink(sink.clone())).await;
    let conflict = Verdict::Conflict { current: watched.lease.epoch() };
    watched.lease.heed(sink.id(), &conflict).await.unwrap();
    assert!(watched.is_held());
}

#[tokio::test]
async fn a_receiver_that_was_reopened_is_sealed_again_and_is_no_loss() {
    let (stage, receivers) = (Stage::new(), Receivers::new());
    let sink = std::sync::Arc::new(receivers.sqlite());
    let watched = Watched::of(stage.worker("a").await, |wish| wish.sink(sink.clone())).await;
    sink.reopen().await.unwrap();
    let verdict = receivers.write(watched.lease.token());
    assert_eq!(verdict, Verdict::Unsealed);
    watched.lease.heed(sink.id(), &verdict).await.unwrap();
    assert_eq!(receivers.write(watched.lease.token()), Verdict::Written);
    assert!(watched.is_held());
}

#[tokio::test]
async fn sealing_again_that_is_refused() {
    let (stage, receivers) = (Stage::new(), Receivers::new());
    let sink = std::sync::Arc::new(receivers.sqlite());
    let watched = Watched::of(stage.worker("a").await, |wish| wish.sink(sink.clone())).await;
    sink.reopen().await.unwrap();
    stage.revoke(watched.lease.token()).await;
    let heeded = watched.lease.heed(sink.id(), &Verdict::Unsealed).await;
    assert!(matches!(heeded, Err(HeedError::Lost(Lost { loss: Loss::SealRefused, .. }))), "{heeded:?}");
    // Nothing was sealed for a grant that is gone.
    assert_eq!(receivers.write(watched.lease.token()), Verdict::Unsealed);
    watched.ends_by(&stage, Loss::SealRefused).await;
}

#[tokio::test]
async fn a_grant_that_was_revoked_is_noticed_without_a_checkpoint() {
    let stage = Stage::new();
    let worker = stage.worker("a").await;
    let other = worker.acquire("tenant-8").await.unwrap();
    let watched = Watched::of(worker, |wish| wish).await;
    stage.revoke(watched.lease.token()).await;
    stage.live_through(timing().renew_every() - Duration::from_secs(5)).await;
    assert!(watched.is_held(), "not before the next renewal");
    stage.advance(Duration::from_secs(5));
    watched.ends_by(&stage, Loss::Revoked).await;
    // The other lease of the same session stands.
    other.ensure_owned().await.unwrap();
}

#[tokio::test]
async fn work_that_shows_no_progress() {
    let stage = Stage::new();
    let worker = stage.worker("a").await;
    let other = worker.acquire("tenant-8").await.unwrap();
    let watched = Watched::of(worker, |wish| wish.progress_within(Duration::from_secs(30))).await;
    for _ in 0..3 {
        stage.advance(Duration::from_secs(29));
        stage.let_keepers_run().await;
        watched.lease.ensure_local().unwrap();
    }
    stage.advance(Duration::from_secs(30));
    watched.ends_by(&stage, Loss::Stalled).await;
    stage.until("the grant is given up", || async { !stage.is_held().await }).await;
    other.ensure_owned().await.unwrap();
}

#[tokio::test]
async fn a_process_that_was_forked() {
    let stage = Stage::new();
    let worker = stage.worker("a").await;
    let lease = worker.acquire(RESOURCE).await.unwrap();
    let in_child = |checkpoint: &Checkpoint, worker: &Tenure| {
        let forked = matches!(checkpoint.ensure_local(), Err(Lost { loss: Loss::Forked, .. }));
        let losses = worker.losses();
        let counted = losses.of(Loss::Forked) == 1 && losses.total() == 1 && checkpoint.cancellation().is_cancelled();
        if forked && counted { Ok(()) } else { Err(std::io::Error::from_raw_os_error(95)) }
    };
    let (checkpoint, counts) = (lease.checkpoint(), worker.clone());
    let mut command = Command::new("true");
    #[expect(unsafe_code, reason = "the child looks at its copy of a lease between fork and exec")]
    unsafe {
        command.pre_exec(move || in_child(&checkpoint, &counts));
    }
    let status = command.spawn().expect("the child's copy of the lease is not lost").wait().unwrap();
    assert!(status.success());
    // The parent is the one that holds it, before and after.
    lease.ensure_owned().await.unwrap();
    assert_eq!(worker.losses().total(), 0);
    stage.live_through(timing().belief()).await;
    lease.ensure_owned().await.unwrap();
}

#[tokio::test]
async fn a_clock_that_jumped_back() {
    let stage = Stage::new();
    let watched = Watched::of(stage.worker("a").await, |wish| wish).await;
    stage.back(Duration::from_secs(1));
    watched.ends_by(&stage, Loss::ClockJumped).await;
}

/// It was compared only with the instant of the last step, so that a jump that ended after that one was not seen, and
/// the belief lasted longer by as much.
#[tokio::test]
async fn a_clock_that_jumped_back_between_two_renewals() {
    let stage = Stage::new();
    let watched = Watched::of(stage.worker("a").await, |wish| wish).await;
    stage.advance(Duration::from_secs(30));
    stage.let_keepers_run().await;
    stage.back(Duration::from_secs(20));
    watched.ends_by(&stage, Loss::ClockJumped).await;
}

#[tokio::test]
async fn failures_of_the_work_are_not_counted() {
    let stage = Stage::new();
    let worker = stage.worker("a").await;
    let watched = Watched::of(worker.clone(), |wish| wish).await;
    for _ in 0..3 {
        let work = watched.lease.guard(async { Err::<(), _>("the input is broken") }).await;
        assert_eq!(work.unwrap(), Err("the input is broken"));
    }
    assert!(watched.is_held());
    let Watched { lease, .. } = watched;
    lease.complete("failed: the input is broken").await.unwrap();
    assert_eq!(worker.losses().total(), 0);
    assert!(matches!(stage.record().await.unwrap().phase, Phase::Completed { .. }));
}
