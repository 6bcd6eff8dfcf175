use super::records::{TTL, Worker, grant_id, owner, resource, session_id, sink, ttl};
use super::{Subject, block_on};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tenure_core::decide::{Refusal, Reply, Request, SWEEP_AGE};
use tenure_core::record::{EndReason, Event, Phase, Seen};
use tenure_core::{Actor, Generation, Outcome, Token};

pub(super) fn from_opening_to_completion(subject: &Subject) {
    let worker = Worker::open_long(&subject.store, 1).expect("a session");
    let session = worker.session;
    let granted = worker.acquire("r", grant_id(1), &["index", "ledger"]).expect("a grant");
    let token = granted.token;
    assert!(!granted.announced);
    assert_eq!(granted.sinks, [sink("index"), sink("ledger")].into());
    let generations: BTreeMap<_, _> =
        ["index", "ledger"].map(|name| (sink(name), Generation::new(format!("{name}-1")).expect("a name"))).into();
    let announce = Request::Announce { token: token.clone(), session, excused: BTreeSet::new() };
    assert!(matches!(worker.ask(&announce), Err(Refusal::NotAnnounced { waiting }) if waiting.len() == 2));
    let bind = Request::Bind { token: token.clone(), session, generations: generations.clone() };
    assert_eq!(worker.ask(&bind), Ok(Reply::Bound));
    let outcome = Outcome::new("7 files").expect("an outcome");
    let complete = Request::Complete { token: token.clone(), session, outcome: outcome.clone() };
    assert!(matches!(worker.ask(&complete), Err(Refusal::NotAnnounced { .. })));
    assert_eq!(worker.ask(&Request::Sealed { token: token.clone(), generations }), Ok(Reply::Marked));
    assert_eq!(worker.ask(&announce), Ok(Reply::Announced));
    assert_eq!(worker.ask(&Request::Check { token, session }), Ok(Reply::Stands));
    assert_eq!(worker.ask(&complete), Ok(Reply::Completed));
    assert_eq!(worker.ask(&complete), Ok(Reply::Completed), "the same again is the same success");
    let refused = worker.acquire("r", grant_id(2), &["index", "ledger"]);
    assert!(matches!(refused, Err(Refusal::Completed { outcome: stored, .. }) if stored == outcome));
    let events: Vec<_> = subject.history().into_iter().map(|row| row.transition.event).collect();
    let expected = [Event::Opened, Event::Granted, Event::Bound, Event::Sealed, Event::Announced, Event::Completed];
    assert_eq!(events, expected);
}

pub(super) fn a_takeover_happens_at_the_deadline(subject: &Subject) {
    let a = Worker::open(&subject.store, 1).expect("a session");
    let first = a.acquire("r", grant_id(1), &[]).expect("a grant").token;
    a.acquire("s", grant_id(4), &[]).expect("a grant");
    subject.pass(Duration::from_nanos(1));
    let b = Worker::open(&subject.store, 2).expect("a session");
    match b.acquire("r", grant_id(2), &[]) {
        Err(Refusal::Busy { owner: holder, epoch, remaining, .. }) => {
            assert_eq!((holder, epoch.get()), (owner(1), 1));
            assert!(remaining <= TTL);
        }
        other => unreachable!("held by another worker, but {other:?}"),
    }
    if subject.exact {
        subject.pass(TTL - Duration::from_nanos(2));
        assert!(
            matches!(b.acquire("r", grant_id(2), &[]), Err(Refusal::Busy { remaining, .. }) if remaining.as_nanos() == 1)
        );
        subject.pass(Duration::from_nanos(1));
        // Whoever asks ends the session in the way: nobody has to sweep, and its owner need not ask again.
        let taken = b.acquire("s", grant_id(5), &[]).expect("at the deadline itself").token;
        assert_eq!(taken.epoch.get(), 2);
        assert_eq!(a.renew(0), Err(Refusal::SessionEnded { why: Some(EndReason::Expired) }), "at the deadline itself");
    } else {
        subject.pass(TTL);
        let _ = b.renew(0);
    }
    let b = Worker::open(&subject.store, 3).expect("a session");
    let second = b.acquire("r", grant_id(3), &[]).expect("the former session has ended").token;
    assert_eq!(second.epoch.get(), 2);
    let late = Request::Complete { token: first.clone(), session: a.session, outcome: Outcome::new("x").expect("one") };
    assert!(matches!(a.ask(&late), Err(Refusal::NotCurrent { owner: Some(now), .. }) if now == owner(3)));
    assert!(matches!(a.release(&first), Err(Refusal::NotCurrent { .. })), "it cannot release its successor's lease");
    assert_eq!(b.ask(&Request::Check { token: second, session: b.session }), Ok(Reply::Stands));
}

pub(super) fn a_repeated_request_gets_the_same_answer(subject: &Subject) {
    let worker = Worker::open_long(&subject.store, 1).expect("a session");
    let again = Worker::open_long(&subject.store, 1).expect("the same opening again");
    assert_eq!(worker.session, again.session);
    let first = worker.acquire("r", grant_id(1), &[]).expect("a grant");
    assert_eq!(worker.acquire("r", grant_id(1), &[]).as_ref(), Ok(&first));
    let renewed = worker.renew(0).expect("a renewal");
    let deadline = || subject.read_session(worker.session).view.caller.map(|session| session.deadline);
    let before = deadline();
    subject.pass(Duration::from_millis(1));
    assert_eq!(worker.renew(0).as_ref(), Ok(&renewed), "the same renewal again");
    assert_eq!(deadline(), before, "gains nothing");
    assert_eq!(worker.release(&first.token), Ok(Reply::Released));
    assert_eq!(worker.release(&first.token), Ok(Reply::Released));
    assert_eq!(subject.history().len(), 3, "repeats leave no rows");
}

pub(super) fn a_late_opening_revives_nothing(subject: &Subject) {
    if !subject.exact {
        return;
    }
    let worker = Worker::open(&subject.store, 1).expect("a session");
    let (asked_at, _) = worker.hello();
    assert_eq!(worker.ask(&Request::Close { id: worker.session }), Ok(Reply::Ended));
    let opening = Request::Open {
        id: worker.session,
        owner: owner(1),
        on_this_host: false,
        ttl: ttl(),
        asked_at,
        seen: Seen::default(),
    };
    assert_eq!(worker.ask(&opening), Err(Refusal::SessionEnded { why: Some(EndReason::Closed) }));
    subject.pass(SWEEP_AGE);
    assert_eq!(block_on(subject.authority().sweep(10)).expect("a sweep"), 1);
    assert!(subject.read_session(worker.session).view.caller.is_none(), "it was swept");
    assert_eq!(worker.ask(&opening), Err(Refusal::OpeningTooOld));
    assert!(subject.read_session(worker.session).view.caller.is_none());
}

pub(super) fn a_sweep_ends_and_removes(subject: &Subject) {
    if !subject.exact {
        return;
    }
    let worker = Worker::open(&subject.store, 1).expect("a session");
    let token = worker.acquire("r", grant_id(1), &[]).expect("a grant").token;
    subject.pass(TTL);
    let authority = subject.authority();
    assert_eq!(block_on(authority.sweep(10)).expect("a sweep"), 1);
    let ended = subject.read_session(worker.session).view.caller.map(|session| session.state);
    assert!(matches!(ended, Some(tenure_core::record::SessionState::Ended { why: EndReason::Expired, .. })));
    subject.pass(SWEEP_AGE);
    assert_eq!(block_on(authority.sweep(10)).expect("a sweep"), 1);
    assert!(block_on(subject.store.idle_sessions(10)).expect("the idle sessions").is_empty());
    // Its grant still stands in the record, and whoever wants the resource gets it.
    let next = Worker::open(&subject.store, 2).expect("a session").acquire("r", grant_id(2), &[]).expect("a grant");
    assert_eq!(next.token.epoch.get(), token.epoch.get() + 1);
}

pub(super) fn a_resource_is_retired_and_comes_back_above_the_floor(subject: &Subject) {
    let worker = Worker::open_long(&subject.store, 1).expect("a session");
    let cycle = |n| {
        let token = worker.acquire("r", grant_id(n), &["index"]).expect("a grant").token;
        worker.release(&token).expect("a release");
        token
    };
    let (_, last): (Token, Token) = (cycle(1), cycle(2));
    let retire = Request::Retire { resource: resource("r"), actor: Actor::new("operator").expect("a name") };
    match worker.ask(&retire) {
        Ok(Reply::Retiring { cut, waiting }) => {
            assert_eq!((cut, waiting.len()), (last.epoch, 1));
            let forgotten = Request::Forgotten { resource: resource("r"), cut, sink: sink("index") };
            assert!(matches!(worker.acquire("r", grant_id(3), &["index"]), Err(Refusal::Retiring { .. })));
            assert_eq!(worker.ask(&forgotten), Ok(Reply::Retired));
        }
        other => unreachable!("the sink is waited for, but {other:?}"),
    }
    assert!(subject.read_resource("r").view.lease.is_none());
    assert_eq!(subject.read_resource("r").view.authority.floor, Some(last.epoch));
    let again = cycle(4);
    assert_eq!(again.epoch.get(), last.epoch.get() + 1, "an old token stays below");
    assert_eq!(subject.read_resource("r").view.lease.map(|lease| lease.phase), Some(Phase::Free));
    assert_eq!(worker.session, session_id(1));
}
