//! Waiting for a resource: whose turn it is, when a waiter looks, and how often.

use crate::faults::{Call, Fault, Faults, Hang};
use crate::stage::{RESOURCE, Stage, TTL};
use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tenure::authority::store::{Hint, Wakes};
use tenure::core::decide::{Refusal, Reply, Request};
use tenure::core::record::{Owner, Seen};
use tenure::core::{GrantId, InstanceId, OwnerName, SessionId};
use tenure::{AcquireError, ConnectError, Lease, ResourceName, Tenure, Ttl};
use tokio::task::JoinHandle;

/// Those who are told of a change look within this.
const WINDOW: Duration = Duration::from_millis(250);

/// No look that nobody asked for comes earlier, where the store tells of changes.
const UNTOLD: Duration = Duration::from_millis(2500);

type Wish = JoinHandle<Result<Lease, AcquireError>>;

fn resource() -> ResourceName {
    RESOURCE.parse().unwrap()
}

/// A wish that has been sent: it has its place in its process's queue.
async fn sent(stage: &Stage, worker: &Tenure, wait: Duration) -> Wish {
    let wish = tokio::spawn(worker.acquire(RESOURCE).wait(wait).into_future());
    stage.let_keepers_run().await;
    wish
}

/// All waiters were woken, and whoever ran first had the lease: one could wait for ever while others came and went.
#[tokio::test]
async fn tasks_of_one_process_are_served_in_the_order_in_which_they_came() {
    let stage = Stage::new();
    let worker = stage.worker("a").await;
    let mut lease = worker.acquire(RESOURCE).await.unwrap();
    let mut wishes = Vec::new();
    for _ in 0..20 {
        wishes.push(sent(&stage, &worker, TTL * 10).await);
    }
    // Some go before their turn, the first one and the last one among them.
    for at in [19, 10, 0] {
        wishes.remove(at).abort();
    }
    while !wishes.is_empty() {
        stage.let_keepers_run().await;
        assert!(wishes.iter().all(|wish| !wish.is_finished()), "served before its turn");
        lease.release().await.unwrap();
        lease = stage.drive("the turn of whoever came first", wishes.remove(0)).await.unwrap().unwrap();
    }
    assert_eq!(lease.epoch().get(), 18);
}

#[tokio::test]
async fn a_wish_whose_time_is_over_says_who_has_the_resource_and_takes_no_turn_with_it() {
    let stage = Stage::new();
    let worker = stage.worker("a").await;
    let lease = worker.acquire(RESOURCE).await.unwrap();
    let (short, long) = (sent(&stage, &worker, Duration::from_secs(2)).await, sent(&stage, &worker, TTL).await);
    let began = stage.now();
    let error = stage.drive("its time is over", short).await.unwrap().unwrap_err();
    assert!(matches!(error, AcquireError::HeldHere { epoch: Some(epoch), .. } if epoch == lease.epoch()), "{error}");
    assert!(stage.now() - began >= Duration::from_millis(1900));
    lease.release().await.unwrap();
    stage.drive("the next one's turn", long).await.unwrap().unwrap().ensure_owned().await.unwrap();
}

/// A process whose tasks hand a resource on to each other at once held it for ever, as seen from the others.
#[tokio::test]
async fn a_process_with_a_queue_of_its_own_lets_others_have_a_turn() {
    let stage = Stage::new();
    let (busy, other) = (stage.worker("a").await, stage.worker("b").await);
    let first = busy.acquire(RESOURCE).await.unwrap();
    let (turns, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            let (busy, turns, over) = (busy.clone(), Arc::clone(&turns), Arc::clone(&over));
            tokio::spawn(async move {
                while !over.load(Ordering::Acquire) {
                    let lease = busy.acquire(RESOURCE).wait(TTL * 100).await.unwrap();
                    turns.fetch_add(1, Ordering::AcqRel);
                    lease.release().await.unwrap();
                }
            })
        })
        .collect();
    let wish = tokio::spawn(other.acquire(RESOURCE).wait(TTL * 100).into_future());
    stage.live_through(Duration::from_secs(10)).await;
    first.release().await.unwrap();
    let lease = stage.drive("the other process has a turn", wish).await.unwrap().unwrap();
    over.store(true, Ordering::Release);
    // A chance after each sixteen turns, which is better than even.
    let turns = turns.load(Ordering::Acquire);
    assert!(turns < 16 * 30, "{turns} turns went by");
    lease.release().await.unwrap();
    for task in tasks {
        stage.drive("the tasks end", task).await.unwrap();
    }
}

/// Somebody else holds the resource, past all faults; `waiters` of one process wait, and only the test tells of changes.
struct Waiting {
    stage: Stage,
    faults: Arc<Faults>,
    wakes: Wakes,
    holder: Lease,
    worker: Tenure,
    wishes: Vec<Wish>,
}

impl Waiting {
    /// They wait, and have looked twice: before and after they asked to be told.
    async fn new(waiters: usize) -> Self {
        let (stage, faults) = Stage::faulty();
        let wakes = faults.tell_by_hand().clone();
        let holder = stage.rival("b").await.acquire(RESOURCE).await.unwrap();
        let worker = stage.worker("a").await;
        let before = faults.count(Call::Read);
        let wishes = (0..waiters).map(|_| tokio::spawn(worker.acquire(RESOURCE).wait(TTL).into_future())).collect();
        // The time, the session, and two looks.
        stage.creep(WINDOW, "two looks", || faults.count(Call::Read) == before + 4).await;
        stage.let_keepers_run().await;
        Self { stage, faults, wakes, holder, worker, wishes }
    }

    fn looks(&self) -> usize {
        self.faults.count(Call::Read)
    }

    fn tell(&self, hint: Hint) {
        self.wakes.tell(&resource(), hint);
    }

    /// Gives the resource up, and tells nobody.
    async fn release(&mut self) {
        self.stage.ask(Request::Release { token: self.holder.token().clone() }).await.unwrap();
    }

    async fn serves_within(mut self, within: Duration) {
        let wish = self.wishes.pop().unwrap();
        self.stage.creep(within, "the waiter is served", || wish.is_finished()).await;
        wish.await.unwrap().unwrap().ensure_owned().await.unwrap();
    }
}

/// Each task of a process asked for itself, five times a second.
#[tokio::test]
async fn only_the_first_of_a_queue_talks_with_the_authority() {
    let (one, many) = (Waiting::new(1).await, Waiting::new(100).await);
    assert_eq!(one.faults.calls(), many.faults.calls());
    drop(many.worker);
}

#[tokio::test]
async fn a_waiter_that_is_told_nothing_asks_nothing_for_seconds() {
    let waiting = Waiting::new(1).await;
    let looks = waiting.looks();
    for _ in 0..20 {
        waiting.stage.advance(Duration::from_millis(100));
        waiting.stage.let_keepers_run().await;
    }
    assert_eq!(waiting.looks(), looks);
}

#[tokio::test]
async fn a_waiter_that_is_told_looks_within_the_window() {
    for hint in [Hint::Free, Hint::Unknown] {
        let mut waiting = Waiting::new(1).await;
        waiting.release().await;
        waiting.tell(hint);
        waiting.serves_within(WINDOW * 2).await;
    }
}

/// Every waiter looked after every change: five hundred waiters, five hundred questions for one hand-over.
#[tokio::test]
async fn a_waiter_that_hears_that_somebody_else_was_granted_it_spares_its_look() {
    let waiting = Waiting::new(1).await;
    let looks = waiting.looks();
    waiting.tell(Hint::Free);
    waiting.stage.let_keepers_run().await;
    waiting.tell(Hint::Taken);
    waiting.stage.let_keepers_run().await;
    for _ in 0..20 {
        waiting.stage.advance(Duration::from_millis(50));
        waiting.stage.let_keepers_run().await;
    }
    assert_eq!(waiting.looks(), looks, "it looked all the same");
    waiting.tell(Hint::Free);
    waiting.stage.creep(WINDOW * 2, "it looks at the next news", || waiting.looks() == looks + 1).await;
}

/// A change that came after a look had read, and before its answer was there, was told to a waiter that did not listen
/// yet. It waited until it looked by itself.
#[tokio::test]
async fn a_change_in_the_midst_of_a_look_is_not_missed() {
    // The first look is before it asks to be told, the second one after.
    for look in [3, 4] {
        let (stage, faults) = Stage::faulty();
        let holder = stage.rival("b").await.acquire(RESOURCE).await.unwrap();
        let worker = stage.worker("a").await;
        let (hang, gate) = Hang::new();
        faults.on(|call| call == Call::Read, look - 1, 1, Fault::HangAfter(gate));
        let wish = tokio::spawn(worker.acquire(RESOURCE).wait(TTL).into_future());
        stage.creep(WINDOW, "the look is held", || hang.has_arrived()).await;
        holder.release().await.unwrap();
        hang.release();
        stage.creep(UNTOLD - WINDOW, "it is served without a look by itself", || wish.is_finished()).await;
        wish.await.unwrap().unwrap().ensure_owned().await.unwrap();
    }
}

/// Nobody tells of a deadline that passes.
#[tokio::test]
async fn a_waiter_looks_when_the_holders_time_is_over() {
    let (stage, faults) = Stage::faulty();
    faults.tell_by_hand();
    let ttl = Duration::from_secs(2);
    held_by_the_dead(&stage, ttl).await;
    let deadline = stage.now() + ttl;
    let worker = stage.worker("a").await;
    let wish = tokio::spawn(worker.acquire(RESOURCE).wait(TTL).into_future());
    stage.creep(WINDOW, "two looks", || faults.count(Call::Read) == 5).await;
    stage.advance(deadline - stage.now() - Duration::from_millis(5));
    stage.let_keepers_run().await;
    assert!(!wish.is_finished(), "before the deadline");
    stage.creep(WINDOW * 2, "the waiter is served", || wish.is_finished()).await;
    wish.await.unwrap().unwrap().ensure_owned().await.unwrap();
}

/// Somebody acquires the resource, and is not heard of again.
async fn held_by_the_dead(stage: &Stage, ttl: Duration) {
    let hello = stage.ask(Request::Hello { seen: Seen::default() }).await.unwrap();
    let Reply::Hello { now: asked_at, seen, .. } = hello else { panic!("{hello:?}") };
    let session = SessionId::from_bits(7);
    let owner = Owner { name: OwnerName::new("dead").unwrap(), instance: InstanceId::from_bits(8) };
    let ttl = Ttl::new(ttl).unwrap();
    stage.ask(Request::Open { id: session, owner, on_this_host: true, ttl, asked_at, seen }).await.unwrap();
    let (grant, sinks) = (GrantId::from_bits(9), [].into());
    stage.ask(Request::Acquire { resource: resource(), grant, session, sinks }).await.unwrap();
}

/// A waiter that met an outage asked again and again without a pause, or gave up.
#[tokio::test]
async fn a_waiter_outlives_an_outage_and_asks_little_meanwhile() {
    let mut waiting = Waiting::new(1).await;
    let looks = waiting.looks();
    waiting.release().await;
    waiting.faults.on(|call| call == Call::Read, 0, usize::MAX, Fault::Before);
    waiting.tell(Hint::Free);
    for _ in 0..200 {
        waiting.stage.advance(Duration::from_millis(100));
        waiting.stage.let_keepers_run().await;
    }
    let asked = waiting.looks() - looks;
    assert!((5..60).contains(&asked), "{asked} questions in 20 s of outage");
    waiting.faults.heal();
    waiting.serves_within(Duration::from_secs(4)).await;
}

/// An opening that was refused as too old was asked for again at once, as fast as the store answered.
#[tokio::test]
async fn an_opening_that_is_always_too_old_is_paused_and_bounded() {
    let (stage, faults) = Stage::faulty();
    let worker = stage.worker("a").await;
    stage.advance(Duration::from_hours(1));
    faults.tell_time_late(Duration::from_hours(1));
    let before = faults.count(Call::Read);
    let wish = worker.acquire(RESOURCE).wait(Duration::from_secs(10)).into_future();
    let error = stage.drive("the wish ends", wish).await.unwrap_err();
    let refused = matches!(&error, AcquireError::Refused { refusal: Refusal::OpeningTooOld, .. });
    assert!(refused, "{error}");
    let asked = faults.count(Call::Read) - before;
    assert!((4..60).contains(&asked), "{asked} questions in 10 s");
}

/// A program whose authority did not answer hung at its start, without a word.
#[tokio::test]
async fn an_authority_that_is_silent_at_the_start_is_given_up_with_a_clear_word() {
    let (stage, faults) = Stage::faulty();
    let hang = faults.hang(Call::Read);
    let began = stage.now();
    let error = stage.drive("the connection is given up", stage.worker_or_not("a")).await.unwrap_err();
    assert!(hang.has_arrived());
    assert!(matches!(error, ConnectError::Silent { .. }), "{error}");
    let waited = stage.now() - began;
    assert!((9..20).contains(&waited.as_secs()), "{waited:?}");
    assert!(error.to_string().contains("did not answer within 10s"), "{error}");
}

/// Many processes wait for one resource. Each change woke all of them, and all of them asked. The clock goes slowly
/// here, as seen from the keepers: in the time in which a waiter hears of a change it moves by little. The bench `waiting`
/// measures five hundred in real time.
#[tokio::test]
async fn a_hand_over_among_many_processes_costs_few_looks() {
    const WAITERS: usize = 100;
    const HAND_OVERS: usize = 3;
    let (stage, faults) = Stage::faulty();
    let holder = stage.worker("holder").await;
    let mut lease = holder.acquire(RESOURCE).await.unwrap();
    let (mut workers, mut wishes) = (Vec::new(), Vec::new());
    for at in 0..WAITERS {
        let worker = stage.worker(&format!("waiter-{at}")).await;
        wishes.push(tokio::spawn(worker.acquire(RESOURCE).wait(TTL).into_future()));
        workers.push(worker);
    }
    // Each has connected, opened a session, and looked twice; the holder once.
    let all = 4 + WAITERS * 5;
    stage.creep(WINDOW, "all of them wait", || faults.count(Call::Read) == all).await;
    stage.let_keepers_run().await;
    let asked = |before| faults.count(Call::Read) - before;
    let mut costs = Vec::new();
    for _ in 0..HAND_OVERS {
        let before = asked(0);
        lease.release().await.unwrap();
        stage.creep(WINDOW * 2, "one of them is served", || wishes.iter().any(Wish::is_finished)).await;
        let served = wishes.iter().position(Wish::is_finished).unwrap();
        lease = wishes.swap_remove(served).await.unwrap().unwrap();
        // To the end of everybody's window.
        for _ in 0..WINDOW.as_millis() / 5 {
            stage.advance(Duration::from_millis(5));
            stage.let_keepers_run().await;
        }
        costs.push(asked(before));
    }
    let cost: usize = costs.iter().sum();
    assert!(cost < HAND_OVERS * WAITERS / 3, "{costs:?}");
    assert_eq!(lease.epoch().get(), 1 + HAND_OVERS as u64);
}
