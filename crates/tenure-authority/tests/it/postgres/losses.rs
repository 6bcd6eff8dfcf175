//! Connections that break.

use super::{Other, made, pass, store};
use crate::world::{Worker, grant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure_authority::conformance::block_on;
use tenure_authority::{AuthorityError, HistoryQuery, StoreError, SwapOutcome};
use tenure_core::decide::{Change, Keys, Reply, Swap};
use tenure_core::record::{Event, Transition};
use tenure_servers::{Postgres, Proxy, eventually};

const LONG: Duration = Duration::from_secs(500);

/// The commit was made, and its answer did not come.
#[test]
fn a_change_whose_answer_is_lost_is_unknown_and_is_found_by_reading() {
    let server = Postgres::shared();
    let database = server.database();
    let proxy = Proxy::to(server.port());
    made(&database);
    let store = store(&proxy.url(&database));
    let worker = Worker::open_for(LONG, Arc::clone(&store), 1, false);
    let read = block_on(store.read(&Keys { session: Some(worker.session), ..Keys::default() })).expect("a read");
    let before = read.view.caller.clone().expect("a session");
    let closed = before.ended(tenure_core::record::EndReason::Closed, read.now);
    let transition = Transition {
        at: read.now,
        event: Event::Ended,
        resource: None,
        session: Some(before.id),
        epoch: None,
        grant: None,
        actor: None,
        why: None,
    };
    let swap = Swap { change: Change::Session(closed.clone()), relies_on: None, transition };
    proxy.drop_answer_to(b"put_sessions");
    assert_eq!(block_on(store.swap(swap, read.versions.caller)).expect("no error"), SwapOutcome::Unknown);
    proxy.wait_lost(1);
    let after = eventually("it is read again", || {
        block_on(store.read(&Keys { session: Some(before.id), ..Keys::default() })).ok()
    });
    assert_eq!(after.view.caller, Some(closed), "it was made");
}

/// The same through the authority, which reads then: one grant, and the answer that was lost.
#[test]
fn a_grant_whose_answer_is_lost_is_granted_once() {
    let server = Postgres::shared();
    let database = server.database();
    let proxy = Proxy::to(server.port());
    made(&database);
    let store = store(&proxy.url(&database));
    let worker = Worker::open_for(LONG, Arc::clone(&store), 1, false);
    proxy.drop_answer_to(b"put_leases");
    let token = match worker.ask(&worker.acquiring("r", grant(1))) {
        Ok(Ok(Reply::Granted(granted))) => granted.token,
        other => panic!("{other:?}"),
    };
    proxy.wait_lost(1);
    assert_eq!(token.epoch.get(), 1);
    let rows = block_on(store.history(HistoryQuery::default())).expect("the history");
    assert_eq!(rows.iter().filter(|row| row.transition.event == Event::Granted).count(), 1);
}

/// Nothing was sent: certainly nothing was changed, and it is said how to go on.
#[test]
fn a_server_that_is_gone_is_unavailable() {
    let server = Postgres::start();
    let database = server.database();
    let store = made(&database);
    server.stop();
    let error = eventually("it is noticed", || super::looked(&store).err());
    assert!(matches!(error, StoreError::Unavailable(_)) && error.is_transient(), "{error:?}");
    server.restart();
    eventually("it is there again", || super::looked(&store).ok());
}

/// Four workers go through acquire and release while the server is restarted under them, twice. What was answered is there,
/// and the history has no gap.
#[test]
fn a_restart_in_the_midst_of_traffic_loses_nothing_that_was_answered() {
    let server = Postgres::start();
    let database = server.database();
    let store = made(&database);
    let stop = AtomicBool::new(false);
    let workers: Vec<_> = (0..4).map(|n| Worker::open_for(LONG, Arc::clone(&store), n, false)).collect();
    let epochs: Vec<u64> = std::thread::scope(|scope| {
        let cycling: Vec<_> = (0..)
            .zip(&workers)
            .map(|(n, worker)| {
                let stop = &stop;
                scope.spawn(move || {
                    let (mut epoch, mut grants) = (0, n * 1_000_000..);
                    while !stop.load(Ordering::Acquire) {
                        let id = grant(grants.next().expect("many"));
                        let token = insisting(|| match worker.ask(&worker.acquiring(&format!("r{n}"), id))? {
                            Ok(Reply::Granted(granted)) => Ok(granted.token),
                            other => panic!("{other:?}"),
                        });
                        epoch = token.epoch.get();
                        let release = tenure_core::decide::Request::Release { token };
                        insisting(|| worker.ask(&release)).expect("a release");
                    }
                    epoch
                })
            })
            .collect();
        for _ in 0..2 {
            pass(Duration::from_millis(300));
            server.restart();
        }
        pass(Duration::from_millis(300));
        stop.store(true, Ordering::Release);
        cycling.into_iter().map(|cycling| cycling.join().expect("no panic")).collect()
    });
    let rows = block_on(store.history(HistoryQuery::default())).expect("the history");
    assert_eq!(rows.iter().map(|row| row.number).collect::<Vec<_>>(), (1..=rows.len() as u64).collect::<Vec<_>>());
    for (n, epoch) in (0..).zip(epochs) {
        let name = crate::world::resource(&format!("r{n}"));
        let lease = super::lease(&store, &name).view.lease.expect("a resource");
        let granted = |row: &&tenure_authority::Recorded| {
            row.transition.event == Event::Granted && row.transition.resource.as_ref() == Some(&name)
        };
        assert_eq!((lease.epoch.get(), rows.iter().filter(granted).count() as u64), (epoch, epoch));
    }
}

/// Asks again as long as the server is away.
fn insisting<T>(ask: impl Fn() -> Result<T, AuthorityError>) -> T {
    eventually("an answer", || match ask() {
        Ok(answer) => Some(answer),
        Err(AuthorityError::Unknown | AuthorityError::Contended) => None,
        Err(AuthorityError::Store(error)) if error.is_transient() => None,
        Err(error) => unreachable!("{error}"),
    })
}

/// An operator ended the connection, not the store.
#[test]
fn a_connection_that_was_ended_is_made_again() {
    let database = Postgres::shared().database();
    let store = made(&database);
    let other = Other::at(&database);
    other.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND \
         application_name = 'tenure'",
    );
    eventually("it reads again", || super::looked(&store).ok());
}
