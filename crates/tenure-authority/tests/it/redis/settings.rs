//! Settings that weaken what the store promises, by name; and changes that replicas must have.

use super::{fresh, grant, made, open, opened, read, try_read};
use tenure_authority::conformance::block_on;
use tenure_authority::{Durability, Scope, StoreError, SwapOutcome, TimeSource};
use tenure_servers::{Proxy, Redis};

#[test]
fn it_says_what_it_is() {
    let is = made(&Redis::shared().url()).capabilities();
    assert_eq!((is.scope, is.durability, is.clock), (Scope::Network, Durability::MayLose, TimeSource::Server));
    assert!(is.wakes);
}

#[test]
fn settings_that_weaken_it_are_named() {
    let server = Redis::options().appendfsync("always").start();
    let store = made(&server.url());
    let named = || block_on(store.warnings()).expect("warnings").join("\n");
    assert_eq!(named(), "", "all is well");
    let set = |name: &str, value: &str| server.cli(&["config", "set", name, value]);
    set("appendfsync", "everysec");
    assert!(named().starts_with("appendfsync is everysec:"), "{}", named());
    set("maxmemory-policy", "allkeys-lru");
    assert!(!named().contains("maxmemory-policy"), "without a limit nothing is evicted: {}", named());
    set("maxmemory", "100mb");
    set("maxmemory-policy", "volatile-lru");
    assert!(!named().contains("maxmemory-policy"), "no key of the store has a time to live: {}", named());
    set("maxmemory-policy", "allkeys-lru");
    assert!(named().starts_with("maxmemory-policy is allkeys-lru:"), "{}", named());
    set("maxmemory", "0");
    set("appendonly", "no");
    set("save", "3600 1");
    assert!(named().starts_with("appendonly is no:"), "{}", named());
    set("save", "");
    assert!(named().starts_with("appendonly is no and save is empty:"), "{}", named());
    let asked = made(&format!("{}?replicas=0", server.url()));
    assert!(!block_on(asked.warnings()).expect("warnings").join("\n").contains("min-replicas"));
}

/// A change counts once the replicas have it. One that they have not is unknown, and nobody reads it before they have.
#[test]
fn replicas_must_have_a_change_when_that_is_asked_for() {
    let primary = Redis::start();
    let replica = primary.replica();
    let url = fresh(&format!("{}?replicas=1&timeout=1s", primary.url()));
    let store = open(&url).expect("an address");
    let (session, _) = opened(&store, 1);
    assert!(block_on(store.warnings()).expect("warnings").join("\n").contains("min-replicas-to-write is 0"));
    assert_eq!(grant(&store, "r", &session).expect("a grant"), SwapOutcome::Done);
    replica.pause();
    assert_eq!(grant(&store, "rr", &session).expect("an outcome"), SwapOutcome::Unknown);
    let error = try_read(&store).expect_err("it may be lost");
    assert!(matches!(error, StoreError::Unavailable(_)) && error.to_string().contains("replicas=1"), "{error}");
    replica.resume();
    assert_eq!(tenure_servers::eventually("it is read", || try_read(&store).ok()).view.history, 3);
    assert_eq!(read(&store).view.history, 3);
}

/// The answer to a change is lost, and no replica has it: nobody may take for made what a failover would undo.
#[test]
fn a_lost_answer_is_not_read_before_the_replicas_have_the_change() {
    let primary = Redis::start();
    let replica = primary.replica();
    let proxy = Proxy::to(primary.port());
    let url = fresh(&format!("{}?replicas=1&timeout=1s", proxy.url(&primary.url())));
    let store = open(&url).expect("an address");
    let (session, _) = opened(&store, 1);
    replica.pause();
    proxy.drop_answer_to(b"granted");
    assert_eq!(grant(&store, "r", &session).expect("an outcome"), SwapOutcome::Unknown);
    assert_eq!(proxy.lost(), 1);
    let error = try_read(&store).expect_err("it may be lost");
    assert!(error.to_string().contains("replicas=1"), "{error}");
    // Many that read at once wait together, not one after the other.
    std::thread::scope(|scope| {
        let reads: Vec<_> = (0..12).map(|_| scope.spawn(|| try_read(&store).expect_err("it may be lost"))).collect();
        for read in reads {
            let error = read.join().expect("no panic");
            assert!(error.to_string().contains("replicas=1"), "{error}");
        }
    });
    replica.resume();
    assert_eq!(tenure_servers::eventually("it is read", || try_read(&store).ok()).view.history, 2);
}
