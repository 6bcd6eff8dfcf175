//! A wish that is dropped leaves no lease behind for longer than one request, wherever it was dropped.

use crate::faults::{Call, Fault, Faults, Hang, XorShift};
use crate::receivers::Receivers;
use crate::stage::{RESOURCE, Stage, TTL, timing};
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::decide::Request;
use tenure::core::record::{Event, Phase, Transition};
use tenure::sink::Sink;
use tenure::{Lease, Tenure};

/// What the interrupted call does once the wish is gone.
#[derive(Clone, Copy, Debug)]
enum Interrupted {
    /// It goes on.
    BeforeIsDone,
    /// It was done already, and answers.
    AfterIsDone,
    /// It fails, done or not.
    Fails { done: bool },
}

const WAYS: [Interrupted; 4] = [
    Interrupted::BeforeIsDone,
    Interrupted::AfterIsDone,
    Interrupted::Fails { done: false },
    Interrupted::Fails { done: true },
];

/// One worker with a receiver; with `anchor`, a lease on another resource keeps its session alive, so that it is not the
/// session's end that frees what is left behind.
struct Case {
    stage: Stage,
    faults: Arc<Faults>,
    worker: Tenure,
    sink: Arc<dyn Sink>,
    anchor: Option<Lease>,
    _receivers: Receivers,
}

impl Case {
    async fn new(anchor: bool) -> Self {
        let ((stage, faults), receivers) = (Stage::faulty(), Receivers::new());
        let (worker, sink) = (stage.worker("a").await, faults.sink(receivers.sqlite()));
        let anchor = if anchor { Some(worker.acquire("tenant-8").await.unwrap()) } else { None };
        Self { stage, faults, worker, sink, anchor, _receivers: receivers }
    }

    fn wish(&self) -> impl Future<Output = Result<Lease, tenure::AcquireError>> + use<> {
        self.worker.acquire(RESOURCE).sink(Arc::clone(&self.sink)).into_future()
    }

    /// Everything that a wish calls when nothing goes wrong.
    async fn calls(anchor: bool) -> Vec<Call> {
        let case = Self::new(anchor).await;
        let before = case.faults.calls().len();
        let _lease = case.wish().await.unwrap();
        case.faults.calls().split_off(before)
    }

    /// Drops the wish while its call number `at` is under way.
    async fn interrupted(&self, at: usize, how: Interrupted) {
        let (hang, gate) = Hang::new();
        let fault = match how {
            Interrupted::BeforeIsDone => Fault::HangBefore(gate),
            Interrupted::AfterIsDone => Fault::HangAfter(gate),
            Interrupted::Fails { done } => Fault::HangThenFail(gate, done),
        };
        self.faults.on(|_| true, at, 1, fault);
        let mut wish = Box::pin(self.wish());
        tokio::select! {
            _ = &mut wish => panic!("call {at} was not held"),
            () = hang.arrived() => {}
        }
        drop(wish);
        self.stage.let_keepers_run().await;
        hang.release();
    }

    /// The same, while another wish of the same process waits behind it: its turn comes soon.
    async fn interrupted_before_another(&self, at: usize, how: Interrupted) {
        let (hang, gate) = Hang::new();
        let fault = match how {
            Interrupted::BeforeIsDone => Fault::HangBefore(gate),
            Interrupted::AfterIsDone => Fault::HangAfter(gate),
            Interrupted::Fails { done } => Fault::HangThenFail(gate, done),
        };
        self.faults.on(|_| true, at, 1, fault);
        let wish = tokio::spawn(self.wish());
        hang.arrived().await;
        let next = tokio::spawn(self.wish());
        self.stage.let_keepers_run().await;
        let began = self.stage.now();
        wish.abort();
        self.stage.let_keepers_run().await;
        hang.release();
        let lease = self.stage.drive("the turn is handed on", next).await.unwrap().unwrap();
        let waited = self.stage.now() - began;
        assert!(waited < timing().attempt() * 2, "the turn stayed behind for {waited:?}");
        lease.ensure_owned().await.unwrap();
        lease.release().await.unwrap();
    }

    /// Somebody else gets the resource soon, without waiting for a session to end, and afterwards nobody holds it and
    /// nobody renews.
    async fn leaves_nothing_behind(mut self) {
        let (stage, began) = (&self.stage, self.stage.now());
        let rival = stage.rival("b").await;
        let wish = rival.acquire(RESOURCE).sink(Arc::clone(&self.sink)).wait(TTL * 2).into_future();
        let lease = stage.drive("the resource is free again", wish).await.unwrap();
        let waited = stage.now() - began;
        assert!(waited < timing().attempt() * 2, "a lease stayed behind for {waited:?}");
        lease.release().await.unwrap();
        if let Some(anchor) = self.anchor.take() {
            anchor.ensure_owned().await.unwrap();
            stage.live_through(timing().renew_every()).await;
            anchor.ensure_owned().await.unwrap();
            anchor.release().await.unwrap();
        }
        stage.live_through(timing().renew_every() + Duration::from_secs(5)).await;
        assert!(!stage.is_held().await);
        let history = stage.history().await;
        grants_stand_one_at_a_time(&history);
        let granted = history.iter().filter(|row| row.event == Event::Granted).count();
        assert!(granted <= 3, "granted {granted} times");
        // A keeper that gets little of the machine may close its session late. One that renews never leaves off.
        let mut calls = Vec::new();
        for _ in 0..5 {
            let before = self.faults.calls().len();
            stage.live_through(timing().renew_every() * 2).await;
            calls = self.faults.calls().split_off(before);
            if calls.is_empty() {
                return;
            }
        }
        panic!("somebody still renews: {calls:?}");
    }
}

/// Epochs rise by one, and none begins while another one stands.
fn grants_stand_one_at_a_time(history: &[Transition]) {
    let mut standing = None;
    let mut latest = 0;
    for row in history {
        let epoch = row.epoch.unwrap().get();
        match row.event {
            Event::Granted => {
                assert_eq!(epoch, latest + 1);
                assert_eq!(standing, None, "epoch {epoch} was granted beside another one");
                (latest, standing) = (epoch, Some(epoch));
            }
            Event::Released | Event::Revoked | Event::Refused => standing = None,
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_wish_that_was_never_polled() {
    let case = Case::new(true).await;
    let before = case.faults.calls();
    drop(case.wish());
    case.stage.let_keepers_run().await;
    assert_eq!(case.faults.calls(), before, "nothing was asked for");
    case.leaves_nothing_behind().await;
}

#[tokio::test]
async fn a_wish_that_was_polled_once() {
    let case = Case::new(true).await;
    let mut wish = Box::pin(case.wish());
    tokio::select! { biased; _ = &mut wish => panic!("at once"), () = std::future::ready(()) => {} }
    drop(wish);
    case.leaves_nothing_behind().await;
}

#[tokio::test]
async fn a_lease_that_was_granted_and_not_fetched() {
    let case = Case::new(true).await;
    let mut wish = Box::pin(case.wish());
    tokio::select! { biased; _ = &mut wish => panic!("at once"), () = std::future::ready(()) => {} }
    let announced = || async { case.stage.record().await.is_some_and(|lease| lease.phase == Phase::Held) };
    case.stage.until("the takeover is announced", announced).await;
    case.stage.let_keepers_run().await;
    drop(wish);
    case.leaves_nothing_behind().await;
}

#[tokio::test]
async fn a_wish_that_is_dropped_at_each_call_on_a_living_session() {
    dropped_at_each_call(true).await;
}

#[tokio::test]
async fn a_wish_that_is_dropped_at_each_call_with_a_session_of_its_own() {
    dropped_at_each_call(false).await;
}

async fn dropped_at_each_call(anchor: bool) {
    let calls = Case::calls(anchor).await;
    let swaps = [Event::Granted, Event::Bound, Event::Sealed, Event::Announced].map(Call::Swap);
    let expected = swaps.iter().chain(&[Call::Describe, Call::Seal]);
    assert!(expected.clone().all(|call| calls.contains(call)), "{calls:?}");
    assert_eq!(calls.contains(&Call::Swap(Event::Opened)), !anchor, "{calls:?}");
    // Side by side: each has a stage of its own, and they mostly wait.
    let mut cases = Vec::new();
    for (at, call) in calls.into_iter().enumerate() {
        for how in WAYS {
            let case = tokio::spawn(async move {
                let case = Case::new(anchor).await;
                case.interrupted(at, how).await;
                case.leaves_nothing_behind().await;
            });
            cases.push((format!("dropped at call {at}, {call:?}: {how:?}"), case));
        }
    }
    for (name, case) in cases {
        case.await.expect(&name);
    }
}

/// Whoever is dropped hands its turn on, wherever it was dropped.
#[tokio::test]
async fn a_wish_that_is_dropped_at_each_call_lets_the_next_one_of_its_process_go_on() {
    for anchor in [true, false] {
        let mut cases = Vec::new();
        for (at, call) in Case::calls(anchor).await.into_iter().enumerate() {
            for how in WAYS {
                let case = tokio::spawn(async move {
                    let case = Case::new(anchor).await;
                    case.interrupted_before_another(at, how).await;
                    case.leaves_nothing_behind().await;
                });
                cases.push((format!("dropped at call {at}, {call:?}: {how:?}"), case));
            }
        }
        for (name, case) in cases {
            case.await.expect(&name);
        }
    }
}

/// The wish was dropped while no session could be opened; when the store came back the resource was acquired for nobody,
/// and other workers were refused meanwhile.
#[tokio::test]
async fn nothing_is_asked_for_after_the_wish_was_dropped() {
    let case = Case::new(false).await;
    case.interrupted(0, Interrupted::BeforeIsDone).await;
    case.stage.live_through(Duration::from_secs(10)).await;
    assert_eq!(case.stage.count(Event::Granted).await, 0);
}

/// A receiver that never answers held the grant of a wish that nobody waited for, for as long as the session was renewed.
#[tokio::test]
async fn a_receiver_that_never_answers_does_not_hold_the_resource() {
    for call in [Call::Describe, Call::Seal] {
        let case = Case::new(true).await;
        let (_hang, gate) = Hang::new();
        case.faults.on(move |other| other == call, 0, usize::MAX, Fault::HangBefore(gate));
        let wish = case.wish();
        let error = case.stage.drive("the wish ends", wish).await.unwrap_err();
        assert!(matches!(error, tenure::AcquireError::Sink { .. }), "{error}");
        case.faults.heal();
        case.leaves_nothing_behind().await;
    }
}

#[tokio::test]
async fn one_holder_is_left_after_any_script_of_faults() {
    // Some side by side, which makes no difference to any of them.
    for seeds in (0..200_u64).collect::<Vec<_>>().chunks(20) {
        let scripts: Vec<_> = seeds.iter().map(|seed| (*seed, tokio::spawn(after_script(*seed)))).collect();
        for (seed, script) in scripts {
            script.await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
    }
}

async fn after_script(seed: u64) {
    let ((stage, faults), mut dice) = (Stage::faulty(), XorShift::new(seed));
    let worker = stage.worker("a").await;
    let anchor = worker.acquire("tenant-8").await.unwrap();
    faults.by_chance(seed);
    let mut leases = Vec::new();
    for _ in 0..3 {
        let wish = worker.acquire(RESOURCE).wait(Duration::from_secs(dice.below(3))).into_future();
        let patience = stage.ticks(dice.below(12));
        tokio::select! {
            taken = stage.drive("the wish ends", wish) => leases.extend(taken),
            () = patience => {}
        }
        if dice.below(2) == 0 {
            leases.clear();
        }
    }
    faults.heal();
    let held: Vec<_> = leases.iter().filter(|lease| lease.ensure_local().is_ok()).collect();
    assert!(held.len() <= 1, "two leases of one resource");
    let rival = stage.rival("b").await;
    let token = match held.first() {
        Some(lease) => {
            lease.ensure_owned().await.unwrap();
            rival.acquire(RESOURCE).wait(Duration::ZERO).await.unwrap_err();
            let token = lease.token().clone();
            leases.clear();
            Some(token)
        }
        None => None,
    };
    // The other lease keeps the session alive, so that what was left behind must be given up one by one.
    let wish = rival.acquire(RESOURCE).wait(TTL).into_future();
    let next = stage.drive("the resource is free again", wish).await.unwrap();
    next.ensure_owned().await.unwrap();
    if let Some(token) = token {
        assert!(token.epoch < next.epoch());
        stage.ask(Request::Release { token }).await.unwrap_err();
    }
    next.ensure_owned().await.unwrap();
    grants_stand_one_at_a_time(&stage.history().await);
    anchor.ensure_owned().await.unwrap();
}
