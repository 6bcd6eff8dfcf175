//! Sessions end by watching: no two machines have one clock.

use super::between::Between;
use super::{fresh, fresh_on, made};
use crate::world::{ManualClock, TTL, Worker, grant, resource};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure_authority::conformance::block_on;
use tenure_authority::{BootClock, Clock, Store};
use tenure_core::decide::{Keys, Refusal, Reply};
use tenure_servers::{Etcd, eventually};

const REAL: Clock = Clock::Boot(BootClock);

/// Whether the holder's deadline has passed for whoever reads through this store.
fn is_overdue(store: &dyn Store, name: &str) -> bool {
    let read = block_on(store.read(&Keys { resource: Some(resource(name)), ..Keys::default() })).expect("a read");
    read.now.reached(&read.view.holder.expect("a holder").deadline)
}

/// Two machines whose clocks have nothing in common. The second one sees the first one's session, and counts its ttl
/// from there; a renewal begins the count anew; at the deadline itself it takes over.
#[test]
fn each_machine_counts_on_its_own_clock() {
    let url = fresh("");
    let here = ManualClock::at(Duration::from_hours(100));
    let there = ManualClock::at(Duration::from_secs(7));
    let a = Worker::open(made(&url, here.clock()), 1, false);
    a.acquire("r", grant(1));
    let b = Worker::open_for(Duration::from_mins(9), made(&url, there.clock()), 2, false);
    let remaining = |seconds: u64| {
        there.set(Duration::from_secs(seconds));
        match b.ask(&b.acquiring("r", grant(2))).expect("an answer") {
            Err(Refusal::Busy { remaining, .. }) => Ok(remaining),
            Ok(Reply::Granted(granted)) => Err(granted.token.epoch.get()),
            other => unreachable!("{other:?}"),
        }
    };
    assert_eq!(remaining(7), Ok(TTL), "seen for the first time");
    assert_eq!(remaining(11), Ok(TTL - Duration::from_secs(4)));
    a.renew(0).expect("its own clock stands still");
    assert_eq!(remaining(12), Ok(TTL), "the renewal is seen for the first time");
    assert_eq!(remaining(21), Ok(Duration::from_secs(1)));
    assert_eq!(remaining(22), Err(2), "at the deadline itself");
    assert!(matches!(a.renew(1), Err(Refusal::SessionEnded { .. })), "though its own clock has not moved");
}

/// A server that removes keys in time, whatever its own version is.
const IN_TIME: &str = "3.5.13";

/// A command that has just been started has seen nothing. A key that etcd removes when the holder falls silent tells it
/// that nobody need wait any more; without it, whoever is new would wait for one ttl each time.
#[test]
fn a_dead_holder_is_known_to_whoever_comes_later() {
    let server = Etcd::start();
    let url = fresh_on(&Between::telling_version(&server, IN_TIME).url(), "");
    let short = Worker::open_for(Duration::from_secs(1), made(&url, REAL), 1, false);
    short.acquire("short", grant(1));
    let long = Worker::open_for(Duration::from_mins(1), made(&url, REAL), 2, false);
    long.acquire("long", grant(2));
    assert!(!is_overdue(&*made(&url, REAL), "short"), "its holder may believe still");
    // Each time by one that has never seen it before.
    eventually("etcd has removed the key", || is_overdue(&*made(&url, REAL), "short").then_some(()));
    assert!(!is_overdue(&*made(&url, REAL), "long"));
    let next = Worker::open(made(&url, REAL), 3, false);
    assert_eq!(next.acquire("short", grant(3)).epoch.get(), 2);
}

/// A holder that renews in time keeps its key, and a renewal that comes after etcd has lost the lease makes another
/// one.
#[test]
fn a_renewal_keeps_the_key_and_brings_it_back() {
    let server = Etcd::start();
    let url = fresh_on(&Between::telling_version(&server, IN_TIME).url(), "");
    let a = Worker::open_for(Duration::from_mins(1), made(&url, REAL), 1, false);
    a.acquire("r", grant(1));
    a.renew(0).expect("a renewal");
    assert!(!is_overdue(&*made(&url, REAL), "r"));
    revoke(&server);
    assert!(is_overdue(&*made(&url, REAL), "r"));
    a.renew(1).expect("nobody has ended it");
    assert!(!is_overdue(&*made(&url, REAL), "r"));
}

/// The disk of a leader hung for a ttl, and its order to revoke a lease came after the next leader had kept it alive: the
/// key of a living holder is gone. Where a member's version lets that happen nobody looks at the key.
#[test]
fn a_server_that_may_revoke_too_early_is_not_believed() {
    let server = Etcd::start();
    let url = fresh_on(&Between::telling_version(&server, IN_TIME).url(), "");
    let a = Worker::open_for(Duration::from_mins(1), made(&url, REAL), 1, false);
    a.acquire("r", grant(1));
    revoke(&server);
    assert!(is_overdue(&*made(&url, REAL), "r"));
    let (_, name) = url.split_once('?').expect("a name");
    let old = made(&format!("{}?{name}", Between::telling_version(&server, "3.5.12").url()), REAL);
    assert!(!is_overdue(&*old, "r"), "it has seen nothing for a ttl yet");
    let warned = block_on(old.warnings()).expect("the warnings");
    assert!(warned.iter().any(|warning| warning.contains("etcd 3.5.12") && warning.contains("upgrade")), "{warned:?}");
    // It makes no key of its own either.
    Worker::open_for(Duration::from_mins(1), old, 2, false).acquire("s", grant(2));
    assert!(!server.ctl(&["get", "", "--prefix", "--keys-only"]).contains("/alive/"));
}

/// Revokes the one lease.
fn revoke(server: &Etcd) {
    let leases = server.ctl(&["lease", "list", "-w", "fields"]);
    let lease = leases.lines().find_map(|line| line.trim().strip_prefix("\"ID\" : ")).expect("a lease").to_owned();
    let lease = format!("{:x}", lease.trim().parse::<i64>().expect("a number"));
    server.ctl(&["lease", "revoke", &lease]);
}

/// etcd begins every lease anew when its leader changes, so that a holder that died during a storm of elections would
/// hold for ever. Whoever has watched long enough takes over all the same.
#[test]
fn a_storm_of_elections_does_not_keep_a_dead_holder_alive() {
    let cluster = Etcd::cluster();
    let url = fresh_on(&cluster.url(), "");
    let ttl = Duration::from_secs(6);
    let dead = Worker::open_for(ttl, made(&url, REAL), 1, false);
    dead.acquire("r", grant(1));
    let next = Worker::open_for(Duration::from_mins(5), made(&url, REAL), 2, false);
    let died = BootClock.now_nanos();
    let done = AtomicBool::new(false);
    let (taken, elections) = std::thread::scope(|scope| {
        let storm = scope.spawn(|| {
            let mut elections = 0;
            while !done.load(Ordering::Acquire) {
                let leader = cluster.leader();
                cluster.restart(leader);
                elections += 1;
            }
            elections
        });
        let taken = eventually("it takes over", || match next.ask(&next.acquiring("r", grant(2))) {
            Ok(Ok(Reply::Granted(granted))) => Some(granted.token.epoch.get()),
            Ok(Err(Refusal::Busy { .. })) | Err(_) => None,
            other => unreachable!("{other:?}"),
        });
        done.store(true, Ordering::Release);
        (taken, storm.join().expect("no panic"))
    });
    let after = Duration::from_nanos(BootClock.now_nanos() - died);
    assert_eq!(taken, 2);
    assert!(elections >= 2, "{elections} elections in {after:?} are no storm");
}
