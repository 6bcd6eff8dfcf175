//! Takeovers with real receivers: sealed before announced, and the old holder refused from then on.

use crate::faults::{Call, Fault, Faults, Hang};
use crate::receivers::{Receivers, id};
use crate::stage::{RESOURCE, Stage, TTL};
use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;
use tenure::authority::HistoryQuery;
use tenure::core::decide::Refusal;
use tenure::core::record::{Event, Phase};
use tenure::sink::{FileSink, Sink};
use tenure::{AcquireError, Loss, Tenure, Token, Verdict};

const NOW: Duration = Duration::ZERO;

/// Two workers over one SQLite authority, on the stage's clock.
async fn over_sqlite(stage: &Stage, receivers: &Receivers, name: &str) -> Tenure {
    let url = format!("sqlite:{}?create=true", receivers.path("authority.sqlite").display());
    Tenure::builder().owner(name).clock(stage.clock()).connect(&url).await.unwrap()
}

fn into_file(files: &FileSink, token: &Token) -> Verdict {
    files.write(token, None, "report.txt", token.to_string().as_bytes()).unwrap()
}

async fn phase(worker: &Tenure, token: &Token) -> Phase {
    worker.authority().inspect(&token.resource).await.unwrap().view.lease.unwrap().phase
}

#[tokio::test]
async fn a_takeover_is_sealed_at_every_receiver_before_it_is_announced() {
    let (stage, receivers) = (Stage::new(), Receivers::new());
    let files = receivers.files();
    let old = over_sqlite(&stage, &receivers, "a").await;
    let lease = old.acquire(RESOURCE).sink(Arc::new(receivers.sqlite())).sink(Arc::new(files.clone())).await.unwrap();
    let token = lease.token().clone();
    assert_eq!(receivers.write(&token), Verdict::Written);
    assert_eq!(into_file(&files, &token), Verdict::Written);
    // The old holder is stopped past its deadline, and knows nothing of it.
    stage.advance(TTL);

    let (_, faults) = Stage::faulty();
    let (hang, gate) = Hang::new();
    let (first, second) = (faults.sink(receivers.sqlite()), faults.sink(files.clone()));
    faults.on(|call| call == Call::Seal, 0, 2, Fault::HangBefore(gate));
    let new = over_sqlite(&stage, &receivers, "b").await;
    let takeover = tokio::spawn(new.acquire(RESOURCE).sink(first).sink(second).into_future());
    hang.arrived().await;
    // Granted, not announced, and not sealed yet: a late write is accepted, and nothing has been promised.
    assert_eq!(phase(&new, &token).await, Phase::Sealing);
    assert!(!takeover.is_finished());
    assert_eq!(receivers.write(&token), Verdict::Written);
    assert_eq!(into_file(&files, &token), Verdict::Written);
    hang.release();
    let taken = stage.drive("the takeover is announced", takeover).await.unwrap().unwrap();

    assert_eq!(taken.epoch().get(), 2);
    for _ in 0..2 {
        let stale = Verdict::Stale { presented: token.epoch, current: taken.epoch() };
        assert_eq!(receivers.write(&token), stale);
        assert_eq!(into_file(&files, &token), stale);
        assert_eq!(receivers.write(taken.token()), Verdict::Written);
        assert_eq!(into_file(&files, taken.token()), Verdict::Written);
    }
    assert_eq!(files.read("report.txt").unwrap().unwrap(), taken.token().to_string().as_bytes());
    assert_eq!(lease.ensure_local().unwrap_err().loss, Loss::DeadlinePassed);
    taken.ensure_owned().await.unwrap();

    let history = new.authority().store().history(HistoryQuery::default()).await.unwrap();
    let of_taken = history.into_iter().map(|row| row.transition).filter(|row| row.grant == Some(taken.token().grant));
    let mut events: Vec<_> = of_taken.map(|row| row.event).collect();
    // Two seals that are far apart in time are marked one by one.
    events.dedup();
    assert_eq!(events, [Event::Granted, Event::Bound, Event::Sealed, Event::Announced]);
}

#[tokio::test]
async fn one_receiver_that_cannot_be_sealed_keeps_the_takeover_from_being_announced() {
    let (stage, receivers) = (Stage::new(), Receivers::new());
    let worker = over_sqlite(&stage, &receivers, "a").await;
    let (_, faults) = Stage::faulty();
    // One of the two, whichever comes second, is full.
    faults.on(|call| call == Call::Seal, 1, 1, Fault::Final);
    let wish = worker.acquire(RESOURCE).sink(faults.sink(receivers.sqlite())).sink(faults.sink(receivers.files()));
    let error = stage.drive("the wish ends", wish.into_future()).await.unwrap_err();
    assert!(matches!(error, AcquireError::Sink { .. }), "{error}");
    let history = worker.authority().store().history(HistoryQuery::default()).await.unwrap();
    assert!(history.iter().all(|row| row.transition.event != Event::Announced));
    assert!(history.iter().any(|row| row.transition.event == Event::Released), "the grant is given back");
}

#[tokio::test]
async fn a_receiver_that_the_authority_remembers_must_have_an_adapter() {
    let (stage, receivers) = (Stage::new(), Receivers::new());
    let sinks = |wish: tenure::Acquire| wish.sink(Arc::new(receivers.sqlite())).sink(Arc::new(receivers.files()));
    sinks(stage.worker("a").await.acquire(RESOURCE)).await.unwrap().release().await.unwrap();
    let worker = stage.worker("b").await;
    let error = worker.acquire(RESOURCE).sink(Arc::new(receivers.sqlite())).wait(NOW).await.unwrap_err();
    assert!(error.to_string().contains("the receiver files is enrolled"), "{error}");
    sinks(worker.acquire(RESOURCE)).await.unwrap().ensure_owned().await.unwrap();
}

/// The authority was lost with all that it knew; the receiver remembers who belongs together.
#[tokio::test]
async fn a_receiver_that_only_another_receiver_remembers_must_have_an_adapter() {
    let receivers = Receivers::new();
    let lease = async |stage: &Stage| {
        let worker = stage.worker("a").await;
        worker.acquire(RESOURCE).sink(Arc::new(receivers.sqlite())).sink(Arc::new(receivers.files())).await.unwrap()
    };
    let before = Stage::new();
    let old = lease(&before).await;
    let token = old.token().clone();

    let after = Stage::new();
    let worker = after.worker("b").await;
    let error = worker.acquire(RESOURCE).sink(Arc::new(receivers.sqlite())).wait(NOW).await.unwrap_err();
    match &error {
        AcquireError::Refused { refusal: Refusal::NoAdapter { sink }, .. } => assert_eq!(sink.as_str(), "files"),
        other => panic!("{other}"),
    }
    assert!(error.to_string().contains("the receiver files is enrolled"), "{error}");
    assert_eq!(after.count(Event::Announced).await, 0);
    after.until("the grant is given back", async || !after.is_held().await).await;
    assert_eq!(receivers.write(&token), Verdict::Written, "nothing was sealed");
}

#[tokio::test]
async fn a_candidate_that_loses_a_race_of_seals_takes_a_higher_epoch() {
    let ((stage, faults), receivers) = (Stage::faulty(), Receivers::new());
    let slow = stage.worker("slow").await;
    let hang = faults.hang(Call::Seal);
    let wish = slow.acquire(RESOURCE).sink(faults.sink(receivers.sqlite())).wait(TTL);
    let wish = tokio::spawn(wish.into_future());
    hang.arrived().await;
    // Its grant is taken away while its seal is under way, and another candidate is through first.
    let first = stage.record().await.unwrap().token();
    stage.revoke(&first).await;
    let quick = stage.rival("quick").await.acquire(RESOURCE).sink(Arc::new(receivers.sqlite())).await.unwrap();
    assert_eq!(quick.epoch().get(), 2);
    hang.release();
    // The late seal is refused, and takes nothing from the winner.
    stage.let_keepers_run().await;
    assert_eq!(receivers.write(quick.token()), Verdict::Written);
    quick.ensure_owned().await.unwrap();
    quick.release().await.unwrap();
    let taken = stage.drive("the slow one tries again", wish).await.unwrap().unwrap();
    assert_eq!(taken.epoch().get(), 3);
    assert_eq!(receivers.write(taken.token()), Verdict::Written);
    let stale = Verdict::Stale { presented: first.epoch, current: taken.epoch() };
    assert_eq!(receivers.write(&first), stale);
    // What was lost on the way was never in anybody's hands.
    assert_eq!(slow.losses().total(), 0);
}

async fn enrolled(sink: &dyn Sink, token: &Token) -> BTreeSet<tenure::SinkId> {
    sink.describe(&token.resource).await.unwrap().row.unwrap().enrolled
}

/// When a receiver was sealed again the whole list of the lease's receivers went with it, also those under the rule
/// `high-water`. They were enrolled from then on, can never be sealed, and no takeover succeeded any more.
#[tokio::test]
async fn receivers_under_high_water_are_not_enrolled_also_when_others_are_sealed_again() {
    let (stage, receivers) = (Stage::new(), Receivers::new());
    let (sealed, high_water) = (Arc::new(receivers.sqlite()), Arc::new(receivers.high_water()));
    let wish = |worker: &Tenure| worker.acquire(RESOURCE).sink(sealed.clone()).sink(high_water.clone()).wait(NOW);
    let lease = wish(&stage.worker("a").await).await.unwrap();
    let only = BTreeSet::from([id("shop")]);
    let at_authority = async || stage.record().await.unwrap().sinks.into_keys().collect::<BTreeSet<_>>();
    assert_eq!(at_authority().await, only);
    assert_eq!(enrolled(&*sealed, lease.token()).await, only);
    sealed.reopen().await.unwrap();
    lease.heed(sealed.id(), &Verdict::Unsealed).await.unwrap();
    assert_eq!(at_authority().await, only);
    assert_eq!(enrolled(&*sealed, lease.token()).await, only);
    lease.release().await.unwrap();
    let next = wish(&stage.worker("b").await).await.unwrap();
    assert_eq!(receivers.write(next.token()), Verdict::Written);
    assert_eq!(high_water.describe(&next.token().resource).await.unwrap().row, None);
}

/// A wish that names only receivers under high water seals nothing, and is held at once.
#[tokio::test]
async fn a_lease_with_high_water_receivers_alone_is_held_at_once() {
    let (stage, receivers) = (Stage::new(), Receivers::new());
    let faults: Arc<Faults> = Stage::faulty().1;
    let lease = stage.worker("a").await.acquire(RESOURCE).sink(faults.sink(receivers.high_water())).await.unwrap();
    lease.ensure_owned().await.unwrap();
    assert!(faults.calls().is_empty(), "{:?}", faults.calls());
    assert!(stage.record().await.unwrap().sinks.is_empty());
}
