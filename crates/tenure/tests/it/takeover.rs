//! Takeovers over many receivers: one that is down, slow, put back or excused, and what becomes of the others.

use crate::faults::{Call, Fault, Faults, Hang};
use crate::receivers::{Receivers, id};
use crate::stage::{RESOURCE, Stage, TTL, timing};
use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure::core::decide::{Refusal, Reply, Request};
use tenure::core::fence::{Rule, Sealing};
use tenure::core::record::{Event, LeaseRecord, Phase};
use tenure::core::{GrantId, Instant, SessionId};
use tenure::sink::{Sink, SqliteFence, SqliteSink};
use tenure::{Acquire, AcquireError, HeedError, Lease, Loss, SealNews, SinkId, Tenure, Token, Verdict, WriteError};

/// Ten databases and a script of faults in front of each.
struct Ten {
    stage: Stage,
    receivers: Receivers,
    sinks: Vec<(Arc<Faults>, Arc<dyn Sink>)>,
}

const DOWN: usize = 7;

fn name(number: usize) -> String {
    format!("shop-{number}")
}

fn down() -> SinkId {
    id(&name(DOWN))
}

impl Ten {
    fn new(count: usize) -> Self {
        let (stage, receivers) = (Stage::new(), Receivers::new());
        let sinks = (0..count).map(|number| {
            let faults = Stage::faulty().1;
            let sink = faults.sink(open(&receivers, number));
            (faults, sink)
        });
        Self { sinks: sinks.collect(), stage, receivers }
    }

    fn faults(&self, number: usize) -> &Arc<Faults> {
        &self.sinks[number].0
    }

    /// A wish with all of them.
    fn wish(&self, worker: &Tenure) -> Acquire {
        self.sinks.iter().fold(worker.acquire(RESOURCE), |wish, (_, sink)| wish.sink(Arc::clone(sink)))
    }

    /// The same past all faults.
    fn plain_wish(&self, worker: &Tenure) -> Acquire {
        let sinks = (0..self.sinks.len()).map(|number| open(&self.receivers, number));
        sinks.fold(worker.acquire(RESOURCE), |wish, sink| wish.sink(Arc::new(sink)))
    }

    /// Writes a row under the token in one of them, in a transaction of its own.
    fn write(&self, number: usize, token: &Token) -> Verdict {
        let mut connection = rusqlite::Connection::open(self.receivers.path(&name(number))).unwrap();
        connection.execute_batch("CREATE TABLE IF NOT EXISTS effect (epoch INTEGER)").unwrap();
        let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
        match SqliteFence::new(Rule::Sealed).admit(&tx, token).unwrap() {
            Ok(_) => {
                tx.execute("INSERT INTO effect VALUES (?1)", [token.epoch.as_i64()]).unwrap();
                tx.commit().unwrap();
                Verdict::Written
            }
            Err(verdict) => verdict,
        }
    }

    async fn row_epoch(&self, number: usize) -> Option<u64> {
        let resource = tenure::ResourceName::new(RESOURCE).unwrap();
        let found = open(&self.receivers, number).describe(&resource).await.unwrap();
        found.row.map(|row| row.epoch.get())
    }

    async fn record(&self) -> LeaseRecord {
        self.stage.record().await.unwrap()
    }

    /// Who is sealed by the authority's record.
    async fn sealed(&self) -> usize {
        let record = self.stage.record().await;
        record.map_or(0, |record| record.sinks.values().filter(|mark| mark.sealed).count())
    }

    /// The reason that stands beside the newest event of this kind.
    async fn why(&self, event: Event) -> Option<String> {
        let history = self.stage.history().await;
        let row = history.iter().rev().find(|row| row.event == event)?;
        row.why.as_ref().map(ToString::to_string)
    }
}

fn open(receivers: &Receivers, number: usize) -> SqliteSink {
    SqliteSink::create(receivers.path(&name(number)), id(&name(number)), Rule::Sealed).unwrap()
}

/// Every call to this receiver fails, as one that is down does.
fn goes_down(faults: &Faults) {
    faults.on(|_| true, 0, usize::MAX, Fault::Before);
}

/// A receiver that failed once ended the wish at once, and broke off the seals of all others.
#[tokio::test]
async fn one_of_ten_is_down_and_the_others_are_sealed_meanwhile() {
    let ten = Ten::new(10);
    goes_down(ten.faults(DOWN));
    let heard: Arc<Mutex<Vec<SealNews>>> = Arc::default();
    let worker = ten.stage.worker("a").await;
    let wish = ten.wish(&worker).wait(TTL / 2).on_seal_news({
        let heard = Arc::clone(&heard);
        move |news| heard.lock().unwrap().push(news.clone())
    });
    let wish = tokio::spawn(wish.into_future());
    ten.stage.drive("the others are sealed", ten.stage.until("nine", async || ten.sealed().await == 9)).await;
    let record = ten.record().await;
    assert_eq!(record.phase, Phase::Sealing, "nothing is announced");
    assert!(!record.sinks[&down()].sealed && !record.sinks[&down()].excused);
    assert!(!wish.is_finished());
    // It is asked again and again, but ever less often.
    let until = ten.stage.now() + Duration::from_secs(20);
    ten.stage.drive("time passes", ten.stage.until("time passes", async || ten.stage.now() >= until)).await;
    let tries = ten.faults(DOWN).count(Call::Describe);
    assert!((5..40).contains(&tries), "asked {tries} times");
    // It comes back, and the takeover goes on by itself.
    ten.faults(DOWN).heal();
    let lease = ten.stage.drive("the takeover is announced", wish).await.unwrap().unwrap();
    assert_eq!(ten.record().await.phase, Phase::Held);
    assert!((0..10).all(|number| ten.write(number, lease.token()) == Verdict::Written));
    let heard = heard.lock().unwrap();
    assert!(matches!(&heard[0], SealNews::Failed { sink, failures: 1, .. } if *sink == down()), "{heard:?}");
    assert_eq!(heard.last(), Some(&SealNews::Sealed { sink: down() }));
}

#[tokio::test]
async fn a_receiver_that_stays_down_ends_the_wish_by_name_and_never_the_announcement() {
    let ten = Ten::new(10);
    goes_down(ten.faults(DOWN));
    let worker = ten.stage.worker("a").await;
    let wish = ten.wish(&worker).wait(Duration::from_secs(20)).into_future();
    let error = ten.stage.drive("the wish ends", wish).await.unwrap_err();
    assert!(matches!(&error, AcquireError::Sink { sink, .. } if *sink == down()), "{error}");
    assert_eq!(ten.stage.count(Event::Announced).await, 0);
    assert_eq!(ten.record().await.phase, Phase::Free, "the grant is given back");
}

/// Rounds were barriers: a receiver that did not answer held up the seals of all others.
#[tokio::test]
async fn one_of_ten_hangs_and_the_others_are_sealed_at_once() {
    for call in [Call::Describe, Call::Seal] {
        let ten = Ten::new(10);
        let hang = ten.faults(DOWN).hang(call);
        let worker = ten.stage.worker("a").await;
        let wish = tokio::spawn(ten.wish(&worker).into_future());
        hang.arrived().await;
        // In steps that are short beside what the disk takes: the one that hangs is given up after 10 s.
        let began = ten.stage.now();
        while ten.sealed().await < 9 {
            let took = ten.stage.now() - began;
            assert!(took < Duration::from_secs(5), "{call:?}: they waited {took:?} for the one that hangs");
            ten.stage.advance(Duration::from_millis(5));
            ten.stage.let_keepers_run().await;
        }
        assert!(!wish.is_finished());
        hang.release();
        let lease = ten.stage.drive("the takeover is announced", wish).await.unwrap().unwrap();
        assert!((0..10).all(|number| ten.write(number, lease.token()) == Verdict::Written));
    }
}

/// What was not answered in time is asked once more, and the first answer, if it comes, changes nothing.
#[tokio::test]
async fn a_receiver_that_hangs_is_asked_again() {
    let ten = Ten::new(2);
    let hang = ten.faults(1).hang(Call::Seal);
    let worker = ten.stage.worker("a").await;
    let wish = tokio::spawn(ten.wish(&worker).into_future());
    hang.arrived().await;
    let lease = ten.stage.drive("it is asked again", wish).await.unwrap().unwrap();
    hang.release();
    ten.stage.let_keepers_run().await;
    assert_eq!(ten.write(1, lease.token()), Verdict::Written);
    lease.ensure_owned().await.unwrap();
}

/// Every answer on the way is lost once: of the authority and of the receivers.
#[tokio::test]
async fn a_takeover_over_three_receivers_survives_each_lost_answer() {
    let steps = [Event::Granted, Event::Bound, Event::Sealed, Event::Announced].map(Call::Swap);
    for call in steps.into_iter().chain([Call::Describe, Call::Seal]) {
        for fault in [|| Fault::Before, || Fault::After] {
            let ten = Ten::new(3);
            let faulty = Stage::faulty();
            let (stage, faults) = (faulty.0, faulty.1);
            let worker = stage.worker("a").await;
            let target = if matches!(call, Call::Swap(_)) { &faults } else { ten.faults(1) };
            target.next(call, fault());
            let wish = ten.sinks.iter().fold(worker.acquire(RESOURCE), |wish, (_, sink)| wish.sink(Arc::clone(sink)));
            let lease = stage.drive("the takeover is announced", wish.into_future()).await.unwrap();
            assert!((0..3).all(|number| ten.write(number, lease.token()) == Verdict::Written), "{call:?}");
            lease.ensure_owned().await.unwrap();
            let record = stage.record().await.unwrap();
            assert!(
                record.phase == Phase::Held && record.sinks.values().all(|mark| mark.sealed),
                "{call:?}: {record:?}"
            );
        }
    }
}

/// A candidate that dies at each step is superseded after its ttl, and whatever it had sealed stays closed to the old holder.
#[tokio::test]
async fn a_candidate_that_dies_at_each_step_is_superseded_after_its_ttl() {
    for steps in 0..5 {
        let ten = Ten::new(3);
        let old = ten.plain_wish(&ten.stage.worker("old").await).await.unwrap();
        let old = old.token().clone();
        ten.stage.advance(TTL);
        let died = die_after(&ten, steps).await;
        let worker = ten.stage.rival("next").await;
        ten.stage.advance(TTL - Duration::from_nanos(1));
        let busy = ten.plain_wish(&worker).wait(Duration::ZERO).await.unwrap_err();
        assert!(matches!(busy, AcquireError::Refused { refusal: Refusal::Busy { sealing: true, .. }, .. }), "{busy}");
        let wish = ten.plain_wish(&worker).wait(Duration::from_secs(5)).into_future();
        let next = ten.stage.drive("it is superseded", wish).await.unwrap();
        assert!(next.epoch() > died.epoch);
        for number in 0..3 {
            let stale = |token: &Token| Verdict::Stale { presented: token.epoch, current: next.epoch() };
            assert_eq!(ten.write(number, &old), stale(&old), "after {steps} steps");
            assert_eq!(ten.write(number, &died), stale(&died), "after {steps} steps");
            assert_eq!(ten.write(number, next.token()), Verdict::Written, "after {steps} steps");
        }
    }
}

/// What a candidate had done when its machine went: granted, bound, sealed at one, sealed at all, marked.
async fn die_after(ten: &Ten, steps: usize) -> Token {
    let resource = tenure::ResourceName::new(RESOURCE).unwrap();
    let (session, grant) = (SessionId::from_bits(77), GrantId::from_bits(77));
    let now = Instant::from_nanos(u64::try_from(ten.stage.now().as_nanos()).unwrap());
    let open_session = Request::Open {
        id: session,
        owner: tenure::core::record::Owner {
            name: "died".parse().unwrap(),
            instance: tenure::core::InstanceId::from_bits(7),
        },
        on_this_host: false,
        ttl: timing().ttl(),
        asked_at: now,
        seen: tenure::core::record::Seen::default(),
    };
    ten.stage.ask(open_session).await.unwrap();
    let sinks: BTreeSet<SinkId> = (0..3).map(|number| id(&name(number))).collect();
    let granted = ten.stage.ask(Request::Acquire { resource, grant, session, sinks: sinks.clone() }).await.unwrap();
    let Reply::Granted(granted) = granted else { panic!("{granted:?}") };
    let token = granted.token;
    let mut generations = std::collections::BTreeMap::new();
    for number in 0..3 {
        let found = open(&ten.receivers, number).describe(&token.resource).await.unwrap();
        generations.insert(id(&name(number)), found.generation);
    }
    if steps >= 1 {
        ten.stage.ask(Request::Bind { token: token.clone(), session, generations: generations.clone() }).await.unwrap();
    }
    let at = [0, 0, 1, 3, 3][steps];
    for number in 0..at {
        let sealed = open(&ten.receivers, number).seal(&token, &generations[&id(&name(number))], &sinks).await.unwrap();
        assert!(matches!(sealed, Sealing::Seal(_)));
    }
    if steps >= 4 {
        ten.stage.ask(Request::Sealed { token: token.clone(), generations }).await.unwrap();
    }
    token
}

/// A living candidate that cannot reach one receiver held the resource for as long as it waited, also against one that could.
#[tokio::test]
async fn a_candidate_that_cannot_seal_within_a_ttl_lets_another_one_try() {
    let ten = Ten::new(3);
    goes_down(ten.faults(1));
    let stuck = ten.stage.worker("stuck").await;
    let stuck = tokio::spawn(ten.wish(&stuck).wait(TTL * 20).into_future());
    ten.stage.until("it is granted", async || ten.stage.record().await.is_some()).await;
    let began = ten.stage.now();
    let reaches = ten.stage.rival("reaches").await;
    let wish = tokio::spawn(ten.plain_wish(&reaches).wait(TTL * 3).into_future());
    ten.stage.live_through(TTL - Duration::from_secs(10)).await;
    assert!(!wish.is_finished(), "the first one has its time");
    let lease = ten.stage.drive("the other one takes over", wish).await.unwrap().unwrap();
    let waited = ten.stage.now() - began;
    assert!(waited <= TTL + Duration::from_secs(10), "{waited:?}");
    assert!((0..3).all(|number| ten.write(number, lease.token()) == Verdict::Written));
    assert!(!stuck.is_finished());
    lease.ensure_owned().await.unwrap();
    stuck.abort();
}

/// Two at once over the same receivers: one holds, and it is the one that all receivers have.
#[tokio::test]
async fn of_two_candidates_at_once_the_receivers_have_the_one_that_holds() {
    let ten = Ten::new(3);
    let (a, b) = (ten.stage.worker("a").await, ten.stage.worker("b").await);
    let (hang, gate) = Hang::new();
    ten.faults(1).on(|call| call == Call::Seal, 0, 1, Fault::HangBefore(gate));
    let first = tokio::spawn(ten.wish(&a).wait(TTL).into_future());
    hang.arrived().await;
    let overtaken = ten.record().await.token();
    ten.stage.revoke(&overtaken).await;
    // The clock stands still, so that the first one is not told before the other one is through.
    let second = ten.plain_wish(&b).wait(TTL).await.unwrap();
    hang.release();
    ten.stage.let_keepers_run().await;
    for number in 0..3 {
        assert_eq!(ten.write(number, second.token()), Verdict::Written);
        let stale = Verdict::Stale { presented: overtaken.epoch, current: second.epoch() };
        assert_eq!(ten.write(number, &overtaken), stale);
    }
    second.release().await.unwrap();
    let third = ten.stage.drive("the first one tries again", first).await.unwrap().unwrap();
    assert!((0..3).all(|number| ten.write(number, third.token()) == Verdict::Written));
}

/// A receiver that is put back between its bind and its seal is of another generation: it is described and bound again.
#[tokio::test]
async fn a_receiver_that_is_put_back_between_bind_and_seal_is_bound_again() {
    let ten = Ten::new(3);
    let hang = ten.faults(1).hang(Call::Seal);
    let worker = ten.stage.worker("a").await;
    let wish = tokio::spawn(ten.wish(&worker).into_future());
    hang.arrived().await;
    let generation = open(&ten.receivers, 1).reopen().await.unwrap();
    hang.release();
    let lease = ten.stage.drive("the takeover is announced", wish).await.unwrap().unwrap();
    assert_eq!(ten.record().await.sinks[&id(&name(1))].bound.as_ref(), Some(&generation));
    assert!((0..3).all(|number| ten.write(number, lease.token()) == Verdict::Written));
}

/// The old holder's token, and a lease that was announced without one receiver.
async fn excused(ten: &Ten) -> (Token, Lease) {
    let old = ten.plain_wish(&ten.stage.worker("old").await).await.unwrap();
    let token = old.token().clone();
    assert!((0..ten.sinks.len()).all(|number| ten.write(number, &token) == Verdict::Written));
    ten.stage.advance(TTL);
    drop(old);
    let worker = ten.stage.rival("new").await;
    let wish = ten.wish(&worker).excuse([down()], Duration::from_secs(5)).into_future();
    (token, ten.stage.drive("the takeover is announced", wish).await.unwrap())
}

#[tokio::test]
async fn a_takeover_without_an_excused_receiver_says_so_and_ends_the_excuse_when_it_is_sealed() {
    let ten = Ten::new(10);
    goes_down(ten.faults(DOWN));
    let (old, lease) = excused(&ten).await;
    // Said wherever it is asked.
    let only = BTreeSet::from([down()]);
    assert_eq!(lease.excused(), only);
    assert_eq!(ten.record().await.excused(), only);
    assert_eq!(ten.why(Event::Announced).await.as_deref(), Some("without shop-7"));
    // Everywhere else the old holder is refused; there it is accepted, and the new one is not.
    for number in (0..10).filter(|number| *number != DOWN) {
        assert_eq!(ten.write(number, &old), Verdict::Stale { presented: old.epoch, current: lease.epoch() });
        assert_eq!(ten.write(number, lease.token()), Verdict::Written);
        assert_eq!(lease.may_write_to(&id(&name(number))).unwrap(), lease.token());
    }
    assert_eq!(ten.write(DOWN, &old), Verdict::Written);
    assert_eq!(ten.write(DOWN, lease.token()), Verdict::Unsealed);
    assert!(matches!(lease.may_write_to(&down()), Err(WriteError::Excused { sink, .. }) if sink == down()));
    assert!(matches!(lease.may_write_to(&id("nobody")), Err(WriteError::NotMine { .. })));
    lease.ensure_owned().await.unwrap();
    // It comes back: sealed without anybody's doing, and the excuse is over.
    ten.faults(DOWN).heal();
    let is_over = async || lease.excused().is_empty();
    ten.stage.drive("it is sealed", ten.stage.until("the excuse is over", is_over)).await;
    assert_eq!(ten.write(DOWN, &old), Verdict::Stale { presented: old.epoch, current: lease.epoch() });
    assert_eq!(ten.write(DOWN, lease.token()), Verdict::Written);
    assert_eq!(lease.may_write_to(&down()).unwrap(), lease.token());
    assert!(ten.record().await.excused().is_empty());
    assert_eq!(ten.why(Event::Sealed).await.as_deref(), Some("not excused any more: shop-7"));
    lease.ensure_owned().await.unwrap();
}

/// Also when it says that asking again is of no use, as a folder that is not mounted does; and also when it says nothing.
#[tokio::test]
async fn a_receiver_is_excused_however_it_fails() {
    for fault in [|| Fault::Final, || Fault::Late, || Fault::Before] {
        let ten = Ten::new(10);
        ten.faults(DOWN).on(|_| true, 0, usize::MAX, fault());
        let (_, lease) = excused(&ten).await;
        assert_eq!(lease.excused(), BTreeSet::from([down()]));
    }
}

#[tokio::test]
async fn only_who_is_named_is_excused_and_not_before_the_time() {
    let ten = Ten::new(10);
    goes_down(ten.faults(DOWN));
    goes_down(ten.faults(2));
    let worker = ten.stage.worker("a").await;
    let wish = ten.wish(&worker).excuse([down()], Duration::from_secs(5)).wait(Duration::from_secs(20)).into_future();
    let error = ten.stage.drive("the wish ends", wish).await.unwrap_err();
    assert!(matches!(&error, AcquireError::Sink { sink, .. } if *sink == id(&name(2))), "{error}");
    assert_eq!(ten.stage.count(Event::Announced).await, 0);
    // In time, but too early to excuse anybody.
    ten.faults(2).heal();
    let wish = ten.wish(&worker).excuse([down()], Duration::from_secs(5)).wait(Duration::from_secs(3)).into_future();
    let error = ten.stage.drive("the wish ends", wish).await.unwrap_err();
    assert!(matches!(&error, AcquireError::Sink { sink, .. } if *sink == down()), "{error}");
    assert_eq!(ten.stage.count(Event::Announced).await, 0);
    // One that works is not excused, however much it may be.
    ten.faults(DOWN).heal();
    // The clock stands still, or a slow disk would look like a receiver that says nothing.
    let lease = ten.wish(&worker).excuse([down()], Duration::ZERO).await.unwrap();
    assert!(lease.excused().is_empty());
    assert_eq!(ten.write(DOWN, lease.token()), Verdict::Written);
    // A name that is none of the wish's receivers is a mistake that would otherwise show at the worst moment.
    let error = ten.wish(&worker).excuse([id("shop-77")], Duration::ZERO).await.unwrap_err();
    assert!(matches!(&error, AcquireError::NotExcusable { sink } if sink.as_str() == "shop-77"), "{error}");
}

/// What an excused receiver shows later may be that somebody newer is there: the lease is lost, and the next epoch is above it.
#[tokio::test]
async fn an_excused_receiver_that_has_something_newer_is_a_loss_that_is_reported() {
    let ten = Ten::new(10);
    goes_down(ten.faults(DOWN));
    let (_, lease) = excused(&ten).await;
    // Another authority has sealed a higher epoch there.
    let newer = Token { epoch: tenure::core::Epoch::new(9).unwrap(), ..lease.token().clone() };
    let there = open(&ten.receivers, DOWN);
    let generation = there.describe(&newer.resource).await.unwrap().generation;
    let sealed = there.seal(&newer, &generation, &BTreeSet::from([down()])).await.unwrap();
    assert!(matches!(sealed, Sealing::Seal(_)));
    ten.faults(DOWN).heal();
    let lost = ten.stage.drive("the lease is lost", lease.lost()).await;
    assert_eq!(lost.loss, Loss::Stale);
    ten.stage.until("it is reported", async || ten.record().await.epoch.get() == 9).await;
    assert!(matches!(lease.may_write_to(&id(&name(1))), Err(WriteError::Lost(_))));
    drop(lease);
}

/// The excuse is of one grant: whoever takes over next seals that receiver as well, and the first holder is out.
#[tokio::test]
async fn the_next_holder_excuses_nobody() {
    let ten = Ten::new(10);
    goes_down(ten.faults(DOWN));
    let (old, lease) = excused(&ten).await;
    let without = lease.token().clone();
    lease.release().await.unwrap();
    assert_eq!(ten.why(Event::Released).await.as_deref(), Some("never sealed: shop-7"));
    assert_eq!(ten.row_epoch(DOWN).await, Some(old.epoch.get()), "nobody has sealed it meanwhile");
    let worker = ten.stage.worker("next").await;
    let next = ten.stage.drive("it is taken over", ten.plain_wish(&worker).into_future()).await.unwrap();
    for former in [&old, &without] {
        let stale = Verdict::Stale { presented: former.epoch, current: next.epoch() };
        assert_eq!(ten.write(DOWN, former), stale);
    }
    assert!(next.excused().is_empty() && ten.record().await.excused().is_empty());
}

/// A write that is refused there may ask at once: what the receiver says is the error, and the lease stands.
#[tokio::test]
async fn heeding_a_refusal_of_an_excused_receiver_seals_it_or_says_why_not() {
    let ten = Ten::new(10);
    ten.faults(DOWN).on(|_| true, 0, usize::MAX, Fault::Final);
    let (_, lease) = excused(&ten).await;
    let error = ten.stage.drive("it is tried", lease.heed(&down(), &Verdict::Unsealed)).await.unwrap_err();
    assert!(matches!(error, HeedError::Sink { .. }), "{error}");
    lease.ensure_owned().await.unwrap();
    ten.faults(DOWN).heal();
    ten.stage.drive("it is sealed", lease.heed(&down(), &Verdict::Unsealed)).await.unwrap();
    assert!(lease.excused().is_empty());
    assert_eq!(ten.write(DOWN, lease.token()), Verdict::Written);
}

/// A resumed lease has the policy of the wish that it came from.
#[tokio::test]
async fn a_lease_that_is_resumed_excuses_whom_its_wish_did() {
    let ten = Ten::new(10);
    goes_down(ten.faults(DOWN));
    let (_, lease) = excused(&ten).await;
    let resumed = ten.stage.drive("it is resumed", lease.resume()).await.unwrap();
    assert_eq!(resumed.lease.excused(), BTreeSet::from([down()]));
}
