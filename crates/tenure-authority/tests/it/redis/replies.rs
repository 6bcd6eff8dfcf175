//! Answers that do not come.

use super::{fresh, grant, open, opened, read, try_read};
use crate::world::{Worker, grant as grant_id};
use std::sync::Arc;
use std::time::Duration;
use tenure_authority::conformance::block_on;
use tenure_authority::{Authority, BootClock, StoreError, SwapOutcome};
use tenure_core::decide::{Keys, Reply};
use tenure_servers::{Proxy, Redis, eventually};

/// The server has made the change, and its answer is lost on the way: nobody can tell, and a reading tells.
#[test]
fn a_lost_answer_is_unknown_and_a_reading_tells() {
    let server = Redis::start();
    let proxy = Proxy::to(server.port());
    let store = open(&fresh(&proxy.url(&server.url()))).expect("an address");
    let (session, _) = opened(&store, 1);
    proxy.drop_answer_to(b"EVALSHA");
    assert_eq!(grant(&store, "r", &session).expect("an outcome"), SwapOutcome::Unknown);
    assert_eq!(proxy.lost(), 1);
    let keys = Keys { resource: Some(crate::world::resource("r")), ..Keys::default() };
    let found = block_on(store.read(&keys)).expect("a read").view;
    assert!(found.lease.is_some(), "it was made");
    assert_eq!(found.history, 2, "once");
}

/// The same through the authority, for a change of each kind: the caller gets its answer, and each is made once.
#[test]
fn a_request_whose_answer_was_lost_is_answered() {
    let server = Redis::start();
    let proxy = Proxy::to(server.port());
    let store = open(&fresh(&proxy.url(&server.url()))).expect("an address");
    let worker = Worker::open(Arc::clone(&store), 1, false);
    for n in 0..4 {
        proxy.drop_answer_to(b"granted");
        let token = worker.acquire("r", grant_id(n));
        assert_eq!(token.epoch.get(), n + 1);
        proxy.drop_answer_to(b"released");
        worker.release(&token);
    }
    assert_eq!(proxy.lost(), 8);
    assert_eq!(read(&store).view.history, 9);
}

/// A server that is stopped answers nothing, and a caller is told so within a bound.
#[test]
fn a_stopped_server_ends_within_a_bound() {
    let server = Redis::start();
    let url = fresh(&format!("{}?timeout=300ms", server.url()));
    let store = open(&url).expect("an address");
    let (session, _) = opened(&store, 1);
    server.pause();
    let begin = BootClock.now_nanos();
    assert_eq!(grant(&store, "r", &session).expect("an outcome"), SwapOutcome::Unknown);
    let error = try_read(&store).expect_err("nobody answers");
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    let took = Duration::from_nanos(BootClock.now_nanos() - begin);
    assert!(took < Duration::from_secs(8), "{took:?}");
    server.resume();
    eventually("the store is read", || try_read(&store).ok());
}

/// Workers go on over a server that is killed and started again, and with what was acknowledged before still there.
#[test]
fn a_restart_in_the_midst_loses_nothing_that_was_acknowledged() {
    let server = Redis::options().appendfsync("always").start();
    let store = open(&fresh(&server.url())).expect("an address");
    let (session, _) = opened(&store, 1);
    let (told, tells) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let (store, session) = (&store, &session);
        let writes = scope.spawn(move || {
            let mut made = Vec::new();
            for n in 0.. {
                let name = "x".repeat(n % 500 + 1);
                match grant(store, &format!("{n}-{name}"), session) {
                    Ok(SwapOutcome::Done) => made.push(format!("{n}-{name}")),
                    Ok(SwapOutcome::Changed) => unreachable!("nobody else changes anything"),
                    Ok(SwapOutcome::Unknown) | Err(StoreError::Unavailable(_)) => return made,
                    Err(error) => unreachable!("{error}"),
                }
                if n == 20 {
                    told.send(()).expect("the test waits");
                }
            }
            made
        });
        tells.recv().expect("twenty were made");
        server.kill();
        let made = writes.join().expect("no panic");
        server.restart();
        eventually("the store is read", || try_read(store).ok());
        for name in &made {
            let keys = Keys { resource: Some(crate::world::resource(name)), ..Keys::default() };
            assert!(block_on(store.read(&keys)).expect("a read").view.lease.is_some(), "{name}");
        }
        let history = read(store).view.history;
        // One more may have been made whose answer was lost.
        assert!((made.len() as u64 + 1..=made.len() as u64 + 2).contains(&history), "{history} {}", made.len());
    });
}

/// Futures that are dropped leave the change done or not done, and the store goes on.
#[test]
fn a_dropped_swap_does_not_stop_the_next_ones() {
    let server = Redis::shared();
    let store = open(&fresh(&server.url())).expect("an address");
    let (session, _) = opened(&store, 1);
    for n in 0..50 {
        let mut swapping = store.swap(super::granting(&"y".repeat(n + 1), &session), None);
        let _ = swapping.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        drop(swapping);
    }
    let authority = Authority::new(Arc::clone(&store));
    let hello = tenure_core::decide::Request::Hello { seen: Default::default() };
    assert!(matches!(block_on(authority.execute(&hello)), Ok(Ok(Reply::Hello { .. }))));
    assert_eq!(grant(&store, "z", &session).expect("a grant"), SwapOutcome::Done);
}
