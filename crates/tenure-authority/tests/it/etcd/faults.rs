//! What goes wrong between here and there, and what is said of it.

use super::{fresh, fresh_on, made};
use crate::world::{ManualClock, Worker, grant, resource};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use tenure_authority::conformance::block_on;
use tenure_authority::{Clock, HistoryQuery, StoreError, SwapOutcome, connect};
use tenure_core::Epoch;
use tenure_core::decide::{Change, Keys, Swap};
use tenure_core::record::{Event, LeaseRecord, Phase, Transition};
use tenure_servers::{Etcd, Proxy};

fn clock() -> Clock {
    ManualClock::at(Duration::from_secs(1)).clock()
}

/// What the first look at a store says.
fn refused(url: &str) -> StoreError {
    match connect(url, clock()) {
        Ok(store) => block_on(store.read(&Keys::default())).expect_err("there is nothing to read"),
        Err(error) => error,
    }
}

pub(super) fn granting(worker: &Worker, name: &str, n: u64) -> Swap {
    let read = block_on(worker.authority.store().read(&Keys { session: Some(worker.session), ..Keys::default() }));
    let read = read.expect("a read");
    let session = read.view.caller.expect("a session");
    let lease = LeaseRecord {
        resource: resource(name),
        epoch: Epoch::FIRST,
        grant: grant(n),
        session: session.id,
        owner: session.owner,
        since: read.now,
        phase: Phase::Held,
        sinks: Default::default(),
    };
    let transition = Transition {
        at: read.now,
        event: Event::Granted,
        resource: Some(lease.resource.clone()),
        session: Some(lease.session),
        epoch: Some(lease.epoch),
        grant: Some(lease.grant),
        actor: None,
        why: None,
    };
    Swap { change: Change::Lease(lease), relies_on: Some(session.id), transition }
}

/// The answer to a grant is lost on its way. It is unknown, never an error; and the same request again finds the one
/// grant, by reading.
#[test]
fn a_lost_answer_is_unknown_and_is_resolved_by_reading() {
    let server = Etcd::shared();
    let proxy = Proxy::to(server.endpoints()[0].port());
    let worker = Worker::open(made(&fresh_on(&proxy.url(&server.url()), ""), clock()), 1, false);
    let swap = granting(&worker, "r", 1);
    proxy.drop_answer_to(b"request_put");
    let outcome = block_on(worker.authority.store().swap(swap, None));
    assert!(matches!(outcome, Ok(SwapOutcome::Unknown)), "{outcome:?}");
    assert_eq!(proxy.lost(), 1);
    let read = block_on(worker.authority.inspect(&resource("r"))).expect("a read");
    assert_eq!(read.view.lease.map(|lease| lease.grant), Some(grant(1)), "it was made");
    proxy.drop_answer_to(b"request_put");
    assert_eq!(worker.acquire("s", grant(2)).grant, grant(2));
    assert_eq!(proxy.lost(), 2);
    let rows = block_on(worker.authority.store().history(HistoryQuery::default())).expect("the history");
    assert_eq!(rows.iter().filter(|row| row.transition.event == Event::Granted).count(), 2);
}

/// Nobody is there: certainly nothing was done, and it may be tried again.
#[test]
fn a_server_that_is_gone_is_unavailable() {
    let server = Etcd::start();
    let worker = Worker::open(made(&fresh_on(&server.url(), ""), clock()), 1, false);
    let swap = granting(&worker, "r", 1);
    server.kill(0);
    let outcome = block_on(worker.authority.store().swap(swap.clone(), None));
    assert!(
        matches!(&outcome, Err(error) if error.is_transient()) || matches!(outcome, Ok(SwapOutcome::Unknown)),
        "{outcome:?}"
    );
    let read = block_on(worker.authority.store().read(&Keys::default()));
    assert!(matches!(&read, Err(error) if error.is_transient()), "{read:?}");
    server.restart(0);
    let outcome = block_on(worker.authority.store().swap(swap, None));
    assert!(matches!(outcome, Ok(SwapOutcome::Done)), "{outcome:?}");
}

/// A member that is stopped in its tracks takes connections and never answers. Another one is asked soon.
#[test]
fn a_stopped_member_is_left_for_another() {
    let cluster = Etcd::cluster();
    let store = made(&fresh_on(&cluster.url(), ""), clock());
    block_on(store.read(&Keys::default())).expect("a read");
    let leader = cluster.leader();
    let follower = (0..3).find(|member| *member != leader).expect("a follower");
    // The one that answered first may be either: stop both in turn.
    for member in [follower, leader] {
        cluster.pause(member);
        // Whoever stays with it has no answer, and gets an error in the end.
        block_on(store.read(&Keys::default())).expect("another one answers");
        cluster.resume(member);
    }
}

/// A caller with a short ttl gives up long before a silent member counts as one, and asks again. The others are asked all
/// the same: what was given up goes on, and finds that out.
#[test]
fn a_silent_member_is_left_though_nobody_waits_that_long() {
    let cluster = Etcd::cluster();
    let store = made(&fresh_on(&cluster.url(), ""), clock());
    block_on(store.read(&Keys::default())).expect("a read");
    // It is asked first.
    cluster.lead(1);
    cluster.pause(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    tenure_servers::eventually("another one answers", || {
        let keys = Keys::default();
        let read = async { tokio::time::timeout(Duration::from_millis(300), store.read(&keys)).await };
        matches!(runtime.block_on(read), Ok(Ok(_))).then_some(())
    });
    cluster.resume(0);
}

#[test]
fn what_is_not_there_is_not_made_and_what_is_foreign_is_left_alone() {
    let server = Etcd::start();
    let url = server.url();
    assert!(matches!(refused(&url), StoreError::Missing(_)));
    server.ctl(&["put", "taken/of-somebody-else", "x"]);
    assert!(matches!(refused(&format!("{url}?name=taken&create=true")), StoreError::Foreign(_)));
    assert_eq!(server.ctl(&["get", "taken/", "--prefix", "--keys-only"]).trim(), "taken/of-somebody-else");
    let store = made(&format!("{url}?create=true&max_ttl=3m"), clock());
    let read = block_on(store.read(&Keys::default())).expect("a read");
    assert_eq!(read.view.authority.max_ttl.get(), Duration::from_mins(3));
    let cluster: u64 = server.cluster_id().parse().expect("a number");
    assert_eq!(read.view.authority.identity.as_str(), format!("etcd:{cluster:x}"));
    assert!(matches!(refused(&format!("{url}?max_ttl=4m")), StoreError::Address { .. }));
    server.ctl(&["put", "tenure/charter", r#"{"schema":2}"#]);
    assert!(matches!(refused(&url), StoreError::Schema { found: 2, known: 1, .. }));
    assert!(matches!(refused("etcd://127.0.0.1:1"), StoreError::Unavailable(_)));
}

/// A store that is full refuses, says what to do, and goes on when there is room.
#[test]
fn a_full_store_says_what_to_do() {
    let server = Etcd::start();
    let store = made(&fresh_on(&server.url(), ""), clock());
    let worker = Worker::open(store.clone(), 1, false);
    let swap = granting(&worker, "r", 1);
    post(server.endpoints()[0], "/v3/maintenance/alarm", r#"{"action":"ACTIVATE","alarm":"NOSPACE"}"#);
    let outcome = block_on(store.swap(swap.clone(), None));
    assert!(
        matches!(&outcome, Err(StoreError::NotWritable(why)) if why.contains("etcdctl alarm disarm")),
        "{outcome:?}"
    );
    let warned = block_on(store.warnings()).expect("the warnings");
    assert!(warned.iter().any(|warning| warning.contains("NOSPACE")), "{warned:?}");
    assert!(warned.iter().any(|warning| warning.contains("one member")), "{warned:?}");
    assert!(block_on(worker.authority.inspect(&resource("r"))).expect("a read").view.lease.is_none());
    server.ctl(&["alarm", "disarm"]);
    assert!(matches!(block_on(store.swap(swap, None)), Ok(SwapOutcome::Done)));
}

/// A user and a password, and a token that the server forgets.
#[test]
fn whoever_asks_says_who_they_are() {
    let server = Etcd::start();
    server.ctl(&["user", "add", "root:se@cret"]);
    server.ctl(&["user", "grant-role", "root", "root"]);
    server.ctl(&["auth", "enable"]);
    let at = server.endpoints()[0];
    let store = made(&format!("etcd://root:se%40cret@{at}?create=true"), clock());
    let worker = Worker::open(store.clone(), 1, false);
    worker.acquire("r", grant(1));
    server.restart(0);
    worker.acquire("s", grant(2));
    for url in [format!("etcd://root:wrong@{at}"), format!("etcd://{at}")] {
        let error = refused(&url);
        assert!(matches!(error, StoreError::Address { .. }), "{error:?}");
        assert!(!error.to_string().contains("wrong"), "{error}");
    }
}

fn post(at: SocketAddr, path: &str, body: &str) {
    let mut stream = TcpStream::connect(at).expect("a connection");
    let length = body.len();
    write!(stream, "POST {path} HTTP/1.0\r\ncontent-length: {length}\r\n\r\n{body}").expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.contains("200 OK"), "{answer}");
}

/// A record that is as large as they come.
#[test]
fn a_large_record_fits() {
    let store = made(&fresh(""), clock());
    let worker = Worker::open(store.clone(), 1, false);
    let token = worker.acquire("r", grant(1));
    let outcome = tenure_core::Outcome::new("x".repeat(65_536)).expect("within the limit");
    let complete = tenure_core::decide::Request::Complete { token, session: worker.session, outcome: outcome.clone() };
    worker.ask(&complete).expect("an answer").expect("it is accepted");
    let lease = block_on(worker.authority.inspect(&resource("r"))).expect("a read").view.lease;
    assert_eq!(lease.map(|lease| lease.phase), Some(Phase::Completed { outcome }));
}
