//! Connections that break.

use super::{Other, made, store};
use crate::world::{Worker, grant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tenure_authority::conformance::block_on;
use tenure_authority::store::{Import, Source, connect_on};
use tenure_authority::{Authority, AuthorityError, BootClock, Clock, HistoryQuery, Read, StoreError, SwapOutcome};
use tenure_core::Actor;
use tenure_core::decide::{Change, Keys, Refusal, Reply, Swap};
use tenure_core::record::{Event, SessionRecord, Transition};
use tenure_servers::{PgBouncer, Postgres, Proxy, eventually};

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
    let (before, closed, swap) = closing(&read);
    // What happened, as the history names it: the call itself comes by the name of a statement.
    proxy.drop_answer_to(b"ended");
    assert_eq!(block_on(store.swap(swap, read.versions.caller)).expect("no error"), SwapOutcome::Unknown);
    proxy.wait_lost(1);
    let after = eventually("it is read again", || {
        block_on(store.read(&Keys { session: Some(before.id), ..Keys::default() })).ok()
    });
    assert_eq!(after.view.caller, Some(closed), "it was made");
}

/// The end of a session that was read: before, after, and the swap.
fn closing(read: &Read) -> (SessionRecord, SessionRecord, Swap) {
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
    (before, closed, swap)
}

/// A server whose commits can be made to wait for a standby that never comes.
fn without_its_standby() -> (Postgres, String) {
    let server = Postgres::options().conf("synchronous_standby_names = 'nobody'").synchronous_commit("local").start();
    let database = server.database();
    (server, database)
}

/// From now on, commits over new connections to the database wait for it.
fn wait_for_it(server: &Postgres, database: &str) {
    let name = database.rsplit('/').next().expect("a name");
    server.psql(&format!("alter database {name} set synchronous_commit = on"));
}

/// The process of the server that has committed and waits for the standby.
fn committing(server: &Postgres) -> String {
    let sql = "select pid from pg_stat_activity where wait_event = 'SyncRep'";
    eventually("a commit waits", || Some(server.psql(sql)).filter(|pid| !pid.is_empty()))
}

/// The server died after the commit and before the answer, and the pooler lived on: it told of that in words of its own,
/// which were taken for a refusal. The change stood.
#[test]
fn a_server_that_dies_behind_a_pooler_after_the_commit_leaves_it_unknown() {
    let (server, database) = without_its_standby();
    let worker = Worker::open_for(LONG, made(&database), 1, false);
    wait_for_it(&server, &database);
    let pooler = PgBouncer::start(&server);
    let store = store(&pooler.url_of(&database));
    let read = super::session(&store, worker.session);
    let (before, closed, swap) = closing(&read);
    std::thread::scope(|scope| {
        let swapping = scope.spawn(|| block_on(store.swap(swap, read.versions.caller)));
        let killed = std::process::Command::new("kill").args(["-9", &committing(&server)]).status();
        assert!(killed.expect("a command").success());
        assert_eq!(swapping.join().expect("no panic").expect("no error"), SwapOutcome::Unknown);
    });
    let after = eventually("it is read again", || {
        block_on(store.read(&Keys { session: Some(before.id), ..Keys::default() })).ok()
    });
    assert_eq!(after.view.caller, Some(closed), "it was made");
}

/// The runtime of the connections ended while the server committed an import. It was said that nothing was imported.
#[test]
fn an_import_whose_runtime_ends_during_the_commit_is_unknown() {
    let (server, database) = without_its_standby();
    let authority = super::looked(&made(&database)).expect("a read").view.authority;
    wait_for_it(&server, &database);
    let source = Source {
        identity: authority.identity,
        incarnation: authority.incarnation,
        floor: authority.floor,
        max_ttl: authority.max_ttl,
        belief: None,
    };
    let actor = Actor::new("mover").expect("a name");
    let content = Import::new(source, Vec::new(), Vec::new(), actor).expect("it fits together");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let store = connect_on(&database, Clock::Boot(BootClock), runtime.handle()).expect("an address");
    std::thread::scope(|scope| {
        let importing = scope.spawn(|| block_on(store.import(content)));
        committing(&server);
        runtime.shutdown_background();
        assert_eq!(importing.join().expect("no panic").expect("no error"), SwapOutcome::Unknown);
    });
}

/// A dump that was put back into the same cluster, and a copy of the database in its place, had the identity of the store that they
/// were made of: what had been granted since was granted a second time, at once.
#[test]
fn a_store_that_was_put_back_in_its_own_cluster_quarantines() {
    let server = Postgres::shared();
    for is_dump in [true, false] {
        let database = server.database();
        let name = database.rsplit('/').next().expect("a name");
        let alone = |sql: &str| {
            server.psql(&format!(
                "select pg_terminate_backend(pid, 30000) from pg_stat_activity where datname = '{name}'"
            ));
            server.psql(sql);
        };
        let worker = Worker::open_for(LONG, made(&database), 1, false);
        worker.acquire("r", grant(1));
        let file = tempfile::NamedTempFile::new().expect("a file");
        if is_dump {
            let dump = std::process::Command::new("pg_dump").args(["-d", &database, "-f"]).arg(file.path()).status();
            assert!(dump.expect("a command").success());
        } else {
            alone(&format!("create database {name}_copy template {name}"));
        }
        let worker = Worker { authority: Authority::new(store(&database)), ..worker };
        worker.acquire("s", grant(2));
        alone(&format!("drop database {name}"));
        if is_dump {
            server.psql(&format!("create database {name}"));
            let mut load = std::process::Command::new("psql");
            load.args(["-Xq", "-v", "ON_ERROR_STOP=1", "-d", &database, "-f"]).arg(file.path());
            assert!(load.output().expect("a command").status.success());
        } else {
            server.psql(&format!("alter database {name}_copy rename to {name}"));
        }
        let worker = Worker { authority: Authority::new(store(&database)), ..worker };
        let answer = worker.ask(&worker.acquiring("s", grant(3)));
        assert!(matches!(answer, Ok(Err(Refusal::Quarantined { .. }))), "{is_dump}: {answer:?}");
    }
}

/// The server stood still behind a pooler that lived. A process that had just begun looked at the schema, and every call
/// of it waited for that, for good.
#[test]
fn a_first_look_that_is_not_answered_ends() {
    let server = Postgres::start();
    let database = server.database();
    made(&database);
    let pooler = PgBouncer::start(&server);
    let url = pooler.url_of(&database);
    // So that the pooler has a connection.
    tenure_servers::postgres::psql(&url, "select 1").expect("an answer");
    server.pause();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(super::error(&url)));
    let error = told.recv_timeout(Duration::from_secs(40)).expect("an answer in time");
    assert!(matches!(error, StoreError::Unavailable(_)) && error.is_transient(), "{error:?}");
    server.resume();
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
    proxy.drop_answer_to(b"granted");
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
    let cycles = [const { AtomicU64::new(0) }; 4];
    // Each has gone through some more.
    let go_on = || {
        let before = cycles.each_ref().map(|made| made.load(Ordering::Acquire));
        let more = || cycles.iter().zip(before).all(|(made, before)| made.load(Ordering::Acquire) > before + 2);
        let more = || more().then_some(());
        eventually("they go on", more);
    };
    let workers: Vec<_> = (0..4).map(|n| Worker::open_for(LONG, Arc::clone(&store), n, false)).collect();
    let epochs: Vec<u64> = std::thread::scope(|scope| {
        let cycling: Vec<_> = (0..)
            .zip(&workers)
            .map(|(n, worker)| {
                let (stop, made) = (&stop, &cycles[usize::try_from(n).expect("small")]);
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
                        made.fetch_add(1, Ordering::Release);
                    }
                    epoch
                })
            })
            .collect();
        for _ in 0..2 {
            go_on();
            server.restart();
        }
        go_on();
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
