//! Whoever waits is woken.

use super::{Other, made, store};
use crate::world::{Worker, grant, resource};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;
use tenure_authority::Wake;
use tenure_servers::{PgBouncer, Postgres, eventually, within};

const LONG: Duration = Duration::from_secs(500);

/// Whether the wake was told of something since it was asked last.
fn is_told(wake: &mut Wake) -> bool {
    let mut told = false;
    while pin!(wake.changed()).poll(&mut Context::from_waker(Waker::noop())).is_ready() {
        told = true;
    }
    told
}

/// Waits until nothing new comes: a store that has begun to listen tells of that as of a change.
fn settled(wake: &mut Wake) {
    eventually("it listens", || is_told(wake).then_some(()));
    quiet(wake);
}

/// Takes in all that it was told.
fn quiet(wake: &mut Wake) {
    while within(Duration::from_millis(300), || is_told(wake).then_some(())).is_some() {}
}

#[test]
fn a_waiter_is_woken_by_another_process() {
    let database = Postgres::shared().database();
    let (here, there) = (made(&database), made(&database));
    let worker = Worker::open_for(LONG, Arc::clone(&there), 1, false);
    let token = worker.acquire("r", grant(1));
    let mut wake = here.watch(&resource("r")).expect("this store can");
    let mut beside = here.watch(&resource("s")).expect("this store can");
    settled(&mut wake);
    settled(&mut beside);
    worker.release(&token);
    eventually("the release", || is_told(&mut wake).then_some(()));
    worker.acquire("r", grant(2));
    eventually("the grant", || is_told(&mut wake).then_some(()));
    assert!(!is_told(&mut beside), "nothing happened to it");
    // The end of the session on which it is held.
    worker.ask(&tenure_core::decide::Request::Close { id: worker.session }).expect("an answer").expect("closed");
    eventually("the end of the session", || is_told(&mut wake).then_some(()));
}

/// A notification takes a lock that the whole cluster shares: nobody pays for it as long as nobody waits.
#[test]
fn nothing_is_told_while_nobody_waits() {
    let database = Postgres::shared().database();
    let store = made(&database);
    let worker = Worker::open_for(LONG, Arc::clone(&store), 1, false);
    let wake = store.watch(&resource("other")).expect("this store can");
    let other = Other::at(&database);
    eventually("the server is told", || (other.number("SELECT count(*) FROM tenure.waiter") == 1).then_some(()));
    other.run("LISTEN tenure_tenure");
    for n in 0..5 {
        let token = worker.acquire("r", grant(n));
        worker.release(&token);
    }
    worker.acquire("other", grant(9));
    eventually("the one that is waited for", || (other.heard() > 0).then_some(()));
    assert_eq!(other.heard(), 1, "of eleven changes");
    drop(wake);
}

/// The pooler gives a connection to each transaction anew, so nobody listens: whoever waits is told again and again that
/// something may have happened, though nothing has. Everything else works.
#[test]
fn behind_a_pooler_a_waiter_is_told_to_look_and_nothing_breaks() {
    let server = Postgres::shared();
    let database = server.database();
    let pooler = PgBouncer::start(server);
    made(&database);
    let store = store(&pooler.url_of(&database));
    let mut wake = store.watch(&resource("r")).expect("it tries to");
    let worker = Worker::open_for(LONG, Arc::clone(&store), 1, false);
    // Once would be that it listens.
    for _ in 0..3 {
        eventually("it is told that it may have missed something", || is_told(&mut wake).then_some(()));
    }
    for n in 0..20 {
        let token = worker.acquire("r", grant(n));
        worker.release(&token);
    }
}

/// A connection that breaks may have missed something: whoever waits is told of that, and of what comes later.
#[test]
fn a_waiter_is_told_when_the_connection_breaks_and_hears_again() {
    let server = Postgres::start();
    let database = server.database();
    let store = made(&database);
    let mut wake = store.watch(&resource("r")).expect("this store can");
    settled(&mut wake);
    server.restart();
    settled(&mut wake);
    let worker = eventually("it is there again", || {
        super::looked(&store).ok().map(|_| Worker::open_for(LONG, Arc::clone(&store), 1, false))
    });
    let listens = "select count(*) from pg_stat_activity where query like 'LISTEN%'";
    eventually("it listens again", || (tenure_servers::postgres::psql(&database, listens).ok()? == "1").then_some(()));
    quiet(&mut wake);
    worker.acquire("r", grant(1));
    eventually("the grant", || is_told(&mut wake).then_some(()));
}
