use crate::world::{ManualClock, Place, TTL, Worker, existing, grant, sqlite};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tenure_authority::conformance::block_on;
use tenure_authority::{AuthorityError, Clock, FileClock, HistoryQuery, Store, StoreError};
use tenure_core::decide::{Keys, Refusal, Reply, Request};
use tenure_core::record::{EndReason, Event, Seen, SessionState};
use tenure_core::{Instant, SessionId};

/// A clock with a beginning of its own: two of them are as two boots of one machine.
fn boot(folder: &Path, name: &str, millis: u64) -> (Clock, PathBuf) {
    let path = folder.join(name);
    FileClock::set_millis(&path, millis).expect("a clock");
    (Clock::File(FileClock::open(&path).expect("a clock")), path)
}

fn session(store: &dyn Store, id: SessionId) -> tenure_core::record::SessionRecord {
    let read = block_on(store.read(&Keys { session: Some(id), ..Keys::default() })).expect("a read");
    read.view.caller.expect("a session")
}

#[test]
fn a_reboot_ends_local_sessions_and_gives_remote_ones_one_ttl_more() {
    let place = Place::new();
    let (before, _) = boot(place.folder.path(), "first", 5_000_000);
    let store = sqlite(&place.path, before);
    let (local, remote) = (Worker::open(store.clone(), 1, true), Worker::open(store.clone(), 2, false));
    let closed = Worker::open(store.clone(), 3, false);
    assert!(closed.ask(&Request::Close { id: closed.session }).is_ok());
    local.acquire("of the local", grant(1));
    let kept = remote.acquire("of the remote", grant(2));
    let ids = [local.session, remote.session, closed.session];
    drop((local, remote, closed, store));

    // The new clock reads far less than the old one did.
    let (after, driver) = boot(place.folder.path(), "second", 30_000);
    let store: Arc<dyn Store> = Arc::new(existing(&place.path, after).expect("the same store"));
    let now = Instant::from_nanos(30_000_000_000);
    let [local, remote, closed] = ids;
    assert_eq!(session(&*store, local).state, SessionState::Ended { why: EndReason::Rebooted, at: now });
    assert_eq!(session(&*store, remote).state, SessionState::Live);
    assert_eq!(session(&*store, remote).deadline, now.after(TTL));
    assert_eq!(session(&*store, closed).state, SessionState::Ended { why: EndReason::Closed, at: now });
    let rows = block_on(store.history(HistoryQuery::default())).expect("the history");
    let last = &rows.last().expect("rows").transition;
    assert_eq!((last.event, last.session, last.at), (Event::Ended, Some(local), now));
    assert_eq!(last.why.as_ref().map(tenure_core::Reason::as_str), Some("the host was rebooted"));

    let next = Worker::open(Arc::clone(&store), 4, true);
    assert_eq!(next.acquire("of the local", grant(4)).epoch.get(), 2, "nobody can hold it any more");
    let busy = next.ask(&next.acquiring("of the remote", grant(5))).expect("an answer");
    match busy {
        Err(Refusal::Busy { epoch, held_for, remaining, .. }) => {
            assert_eq!((epoch, held_for, remaining), (kept.epoch, Duration::ZERO, TTL));
        }
        other => panic!("a remote holder may still believe: {other:?}"),
    }
    FileClock::set_millis(driver, 40_000).expect("the clock moves");
    let next = Worker::open(Arc::clone(&store), 5, true);
    assert_eq!(next.acquire("of the remote", grant(6)).epoch.get(), 2, "after one more ttl it may not");
}

#[test]
fn a_reboot_prolongs_a_quarantine_but_brings_none_back() {
    for over in [false, true] {
        let place = Place::new();
        let (clock, driver) = boot(place.folder.path(), "first", 1_000_000);
        let store = sqlite(&place.path, clock);
        let worker = Worker::open(store.clone(), 1, false);
        let claim = Request::Hello { seen: Seen { incarnation: 1, number: 1_000 } };
        assert!(worker.ask(&claim).is_ok());
        let max_ttl = Duration::from_hours(24);
        if over {
            FileClock::set_millis(driver, 1_000_000 + 86_400_000).expect("the clock moves");
            Worker::open(store.clone(), 2, false);
        }
        drop((worker, store));
        let (clock, _) = boot(place.folder.path(), "second", 30_000);
        let store = existing(&place.path, clock).expect("the same store");
        let read = block_on(store.read(&Keys::default())).expect("a read");
        assert_eq!(read.view.authority.quarantine(read.now), (!over).then_some(max_ttl), "over before: {over}");
    }
}

#[test]
fn a_process_on_another_clock_does_not_go_on() {
    let place = Place::new();
    let (clock, _) = boot(place.folder.path(), "first", 1_000_000);
    let worker = Worker::open(sqlite(&place.path, clock), 1, false);
    let (clock, _) = boot(place.folder.path(), "second", 1_000_000);
    let _second = existing(&place.path, clock).expect("the same store");
    match worker.ask(&worker.acquiring("r", grant(1))) {
        Err(AuthorityError::Store(error @ StoreError::Unavailable(_))) => {
            assert!(error.to_string().contains("another clock"), "{error}");
        }
        other => panic!("its deadlines mean nothing any more: {other:?}"),
    }
}

#[test]
fn a_clock_that_went_back_grants_nothing_until_it_has_caught_up() {
    let place = Place::new();
    let clock = ManualClock::at(Duration::from_secs(100));
    let store = sqlite(&place.path, clock.clock());
    let worker = Worker::open(store, 1, false);
    clock.set(Duration::from_secs(105));
    let token = worker.acquire("r", grant(1));
    clock.set(Duration::from_secs(104));
    let went_back = |answer: Result<Result<Reply, Refusal>, AuthorityError>| match answer {
        Err(AuthorityError::Store(StoreError::ClockWentBack { by })) => assert_eq!(by, Duration::from_secs(1)),
        other => panic!("{other:?}"),
    };
    went_back(worker.ask(&worker.acquiring("s", grant(2))));
    went_back(worker.ask(&Request::Release { token: token.clone() }));
    clock.set(Duration::from_secs(105));
    worker.release(&token);
}

/// A renewal leaves no row in the history, and is remembered all the same.
#[test]
fn a_clock_that_went_back_while_the_store_was_closed_is_noticed() {
    for renewed in [false, true] {
        let place = Place::new();
        let clock = ManualClock::at(Duration::from_secs(100));
        let worker = Worker::open(sqlite(&place.path, clock.clock()), 1, false);
        if renewed {
            clock.set(Duration::from_secs(103));
            worker.renew(0).expect("a renewal");
        }
        drop(worker);
        clock.set(Duration::from_secs(99));
        let by = Duration::from_secs(if renewed { 4 } else { 1 });
        match existing(&place.path, clock.clock()) {
            Err(error @ StoreError::ClockWentBack { .. }) => {
                assert!(error.to_string().contains(&format!("{by:?}")), "{error}");
                assert!(error.is_transient());
            }
            other => panic!("{other:?}"),
        }
        clock.set(Duration::from_secs(103));
        existing(&place.path, clock.clock()).expect("it has caught up");
    }
}
