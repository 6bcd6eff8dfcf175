//! Which store this is: what a restart, a promotion and a clock that was set back do.

use super::{fresh, grant, made, open, opened, read, try_read};
use crate::world::{Worker, grant as grant_id};
use std::sync::Arc;
use tenure_authority::{AuthorityError, Store, StoreError, SwapOutcome};
use tenure_core::SessionId;
use tenure_core::decide::{Refusal, Reply};
use tenure_core::record::{EndReason, Event};
use tenure_servers::{Redis, eventually};

/// The session of the n-th worker.
fn session_id(n: u64) -> SessionId {
    SessionId::from_bits(u128::from(n) + 1)
}

fn quarantine(store: &Arc<dyn Store>) {
    let before = read(store).view;
    assert_ne!(before.observed, before.authority.identity);
    let worker = Worker { authority: tenure_authority::Authority::new(Arc::clone(store)), session: session_id(1) };
    assert_eq!(worker.renew(0), Err(Refusal::SessionEnded { why: Some(EndReason::Restored) }));
    let after = read(store).view;
    assert_eq!((&after.authority.identity, after.authority.incarnation), (&before.observed, 2));
    assert!(after.authority.quarantined_until.is_some());
    let rows = tenure_authority::conformance::block_on(store.history(Default::default())).expect("the history");
    assert_eq!(rows.last().map(|row| row.transition.event), Some(Event::Quarantined));
    let refused = worker.ask(&worker.acquiring("another", grant_id(7)));
    assert!(matches!(refused, Ok(Err(Refusal::Quarantined { .. } | Refusal::SessionEnded { .. }))), "{refused:?}");
}

/// A server that was started again may have been given older files: that cannot be told from one that was not.
#[test]
fn a_restart_quarantines() {
    let server = Redis::options().appendfsync("always").start();
    let store = made(&server.url());
    let worker = Worker::open(Arc::clone(&store), 1, false);
    worker.acquire("r", grant_id(1));
    let swap_of_before = super::granting("other", &opened(&store, 2).0);
    server.restart();
    eventually("the store is read", || try_read(&store).ok());
    // What was decided before the restart is not made after it.
    let outcome = tenure_authority::conformance::block_on(store.swap(swap_of_before, None));
    assert!(matches!(outcome, Ok(SwapOutcome::Changed)), "{outcome:?}");
    quarantine(&store);
}

#[test]
fn a_replica_is_not_asked_and_a_promoted_one_quarantines() {
    let primary = Redis::start();
    let replica = primary.replica();
    let url = fresh(&primary.url());
    let store = open(&url).expect("an address");
    let worker = Worker::open(Arc::clone(&store), 1, false);
    worker.acquire("r", grant_id(1));
    let (session, _) = opened(&store, 2);
    primary.wait_for(1);
    let other = open(&url.replace(&primary.port().to_string(), &replica.port().to_string())).expect("an address");
    let error = try_read(&other).expect_err("a replica");
    assert!(matches!(error, StoreError::Unavailable(_)) && error.to_string().contains("replica"), "{error}");
    // While its connection stays, a server is made a replica and back: each is noticed.
    primary.cli(&["replicaof", "127.0.0.1", "1"]);
    let error = grant(&store, "s", &session).expect_err("a replica");
    assert!(matches!(error, StoreError::Unavailable(_)) && error.to_string().contains("replica"), "{error}");
    let error = try_read(&store).expect_err("a replica");
    assert!(error.to_string().contains("replica"), "{error}");
    replica.promote();
    eventually("the promoted one is asked", || try_read(&other).ok());
    quarantine(&other);
}

#[test]
fn a_store_that_was_removed_is_not_made_again_by_whoever_had_it() {
    let server = Redis::start();
    let url = fresh(&server.url());
    let store = open(&url).expect("an address");
    let (session, version) = opened(&store, 1);
    server.cli(&["flushall"]);
    assert!(matches!(try_read(&store), Err(StoreError::Missing(_))));
    assert!(matches!(grant(&store, "r", &session), Err(StoreError::Missing(_))));
    // Another one that may make it does. No version of the former store comes back.
    let other = open(&url).expect("an address");
    let (_, again) = opened(&other, 1);
    assert!(again > version, "{again:?} {version:?}");
}

/// The server's clock cannot be set here; the store's memory of it can.
#[test]
fn a_clock_that_was_set_back() {
    let server = Redis::start();
    let url = fresh(&server.url());
    let key = format!("{{{}}}:store", url.rsplit_once("name=").expect("a name").1);
    let store = open(&url).expect("an address");
    let (session, _) = opened(&store, 1);
    let ahead = |micros: u64| {
        let now = read(&store).now.as_nanos() / 1_000;
        server.cli(&["hset", &key, "clock", &(now + micros).to_string()]);
        now + micros
    };
    // By a little: it stands still, and never goes back.
    let stood = ahead(900_000);
    let now = read(&store).now.as_nanos() / 1_000;
    assert!(now >= stood, "{now} {stood}");
    assert_eq!(grant(&store, "r", &session).expect("a grant"), SwapOutcome::Done);
    // By more: nothing is done until it has caught up.
    let url = fresh(&server.url());
    let key = format!("{{{}}}:store", url.rsplit_once("name=").expect("a name").1);
    let store = open(&url).expect("an address");
    let (session, _) = opened(&store, 1);
    let now = read(&store).now.as_nanos() / 1_000;
    server.cli(&["hset", &key, "clock", &(now + 3_600_000_000).to_string()]);
    for error in [try_read(&store).expect_err("back"), grant(&store, "r", &session).expect_err("back")] {
        assert!(matches!(error, StoreError::ClockWentBack { by } if by.as_secs() > 3_500), "{error:?}");
    }
    // A server that was started again is another one: its clock is no reason to wait for ever.
    server.restart();
    eventually("the store is read", || try_read(&store).ok());
    quarantine(&store);
    let worker = Worker { authority: tenure_authority::Authority::new(Arc::clone(&store)), session: session_id(1) };
    let hello = worker.ask(&tenure_core::decide::Request::Hello { seen: Default::default() });
    assert!(matches!(hello, Ok(Ok(Reply::Hello { .. })) | Err(AuthorityError::Contended)), "{hello:?}");
}

/// A failover loses the last changes, and with them the count of versions. None that was given comes back.
#[test]
fn versions_do_not_come_back_after_lost_changes() {
    let server = Redis::start();
    let url = fresh(&server.url());
    let key = format!("{{{}}}:store", url.rsplit_once("name=").expect("a name").1);
    let store = open(&url).expect("an address");
    read(&store);
    let before = server.cli(&["hget", &key, "newest"]);
    let (_, lost) = opened(&store, 1);
    server.cli(&["hset", &key, "newest", &before]);
    let (_, next) = opened(&store, 2);
    assert!(next > lost, "{next:?} {lost:?}");
}
