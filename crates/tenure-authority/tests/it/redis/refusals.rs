//! What a server refuses certainly was not done, and is told with what to do.

use super::{fresh, grant, granting, made, open, opened, read, try_read};
use std::sync::Arc;
use tenure_authority::conformance::block_on;
use tenure_authority::{Store, StoreError, SwapOutcome};
use tenure_core::decide::Keys;
use tenure_servers::{Redis, eventually};

/// The change is refused for this reason, was not made, and is made once the reason is gone.
fn is_refused(store: &Arc<dyn Store>, right: &str, is_transient: bool, spoil: impl FnOnce(), mend: impl FnOnce()) {
    let (session, _) = opened(store, 1);
    let before = read(store).view.history;
    spoil();
    let error = grant(store, "r", &session).expect_err(right);
    assert!(error.to_string().contains(right), "{error}");
    assert_eq!(error.is_transient(), is_transient, "{error:?}");
    mend();
    eventually("the store is read", || try_read(store).ok());
    assert_eq!(read(store).view.history, before, "nothing of it was done");
    assert_eq!(grant(store, "r", &session).expect("a grant"), SwapOutcome::Done);
}

#[test]
fn a_full_server() {
    let server = Redis::start();
    let store = made(&server.url());
    let set = |to| server.cli(&["config", "set", "maxmemory", to]);
    is_refused(&store, "maxmemory", false, || drop(set("1mb")), || drop(set("0")));
}

/// A full server is read all the same.
#[test]
fn a_full_server_is_read() {
    let server = Redis::start();
    let store = made(&server.url());
    server.cli(&["config", "set", "maxmemory", "1mb"]);
    read(&store);
}

#[test]
fn a_disk_that_takes_nothing() {
    let server = Redis::options().appendonly(false).conf("save 3600 1").start();
    let store = made(&server.url());
    let spoil = || {
        server.cli(&["config", "set", "rdbcompression", "no"]);
        // The folder is not there for whoever saves: the name leads into one that does not exist.
        let folder = server.cli(&["config", "get", "dir"]).lines().nth(1).expect("a folder").to_owned();
        std::fs::create_dir(format!("{folder}/dump.rdb")).expect("a folder in the file's place");
        server.cli(&["bgsave"]);
        eventually("the saving has failed", || {
            server.cli(&["info", "persistence"]).contains("rdb_last_bgsave_status:err").then_some(())
        });
    };
    let mend = || drop(server.cli(&["config", "set", "stop-writes-on-bgsave-error", "no"]));
    is_refused(&store, "disk", false, spoil, mend);
}

#[test]
fn too_few_replicas() {
    let server = Redis::start();
    let store = made(&server.url());
    let set = |to| server.cli(&["config", "set", "min-replicas-to-write", to]);
    is_refused(&store, "min-replicas-to-write", true, || drop(set("1")), || drop(set("0")));
}

#[test]
fn a_server_that_has_forgotten_the_scripts_gets_them_again() {
    let server = Redis::start();
    let store = made(&server.url());
    let (session, _) = opened(&store, 1);
    server.cli(&["script", "flush"]);
    assert_eq!(grant(&store, "r", &session).expect("a grant"), SwapOutcome::Done);
    server.cli(&["script", "flush"]);
    read(&store);
}

#[test]
fn somebody_else_s_long_script() {
    let server = Redis::options().conf("busy-reply-threshold 50").start();
    let store = made(&server.url());
    std::thread::scope(|scope| {
        let spoil = || {
            scope.spawn(|| server.try_cli(&["eval", "while true do end", "0"]).expect_err("it is killed"));
            eventually("the server is busy", || {
                server.try_cli(&["ping"]).is_err_and(|said| said.contains("BUSY")).then_some(())
            });
        };
        is_refused(&store, "script", true, spoil, || drop(server.cli(&["script", "kill"])));
    });
}

#[test]
fn a_right_that_is_missing_is_named() {
    let server = Redis::start();
    server.cli(&["acl", "setuser", "worker", "on", ">word", "~*", "&*", "+@all", "-publish"]);
    let url = fresh(&server.url().replace("redis://", "redis://worker:word@"));
    let store = open(&url).expect("an address");
    let error = try_read(&store).expect_err("a right is missing");
    assert!(matches!(error, StoreError::NotWritable(_)), "{error:?}");
    assert!(error.to_string().contains("PUBLISH") && error.to_string().contains("grant"), "{error}");
    server.cli(&["acl", "setuser", "worker", "resetchannels", "&{*", "+@all", "-@admin", "-@dangerous", "+info"]);
    eventually("the store is there", || try_read(&store).ok());
    let warnings = block_on(store.warnings()).expect("warnings");
    assert!(warnings.iter().any(|warning| warning.contains("CONFIG GET")), "{warnings:?}");
    let (session, _) = opened(&store, 1);
    assert_eq!(grant(&store, "r", &session).expect("a grant"), SwapOutcome::Done);
}

#[test]
fn what_is_not_a_store_is_left_alone() {
    let server = Redis::start();
    for (name, make) in [
        ("text", vec!["set", "{text}:store", "these are my notes"]),
        ("list", vec!["rpush", "{list}:store", "a"]),
        ("hash", vec!["hset", "{hash}:store", "a", "b"]),
        ("history", vec!["set", "{history}:history", "of rome"]),
    ] {
        server.cli(&make);
        let before = server.cli(&["dump", make[1]]);
        let store = open(&format!("{}?create=true&name={name}", server.url())).expect("an address");
        let error = try_read(&store).expect_err(name);
        assert!(matches!(error, StoreError::Foreign(_)), "{name}: {error:?}");
        assert_eq!(server.cli(&["dump", make[1]]), before);
    }
}

#[test]
fn a_store_of_another_version_is_left_alone() {
    let server = Redis::start();
    let url = fresh(&server.url());
    let key = format!("{{{}}}:store", url.rsplit_once("name=").expect("a name").1);
    try_read(&open(&url).expect("an address")).expect("a new store");
    for (version, advice) in [("2", "update this program"), ("0", "create a new store")] {
        server.cli(&["hset", &key, "schema", version]);
        let error = try_read(&open(&url).expect("an address")).expect_err("another version");
        assert!(matches!(error, StoreError::Schema { known: 1, .. }), "{error:?}");
        assert!(error.to_string().contains(advice), "{error}");
    }
}

/// Somebody has written over a key. No change is made by halves: each is refused before its first write.
#[test]
fn a_key_of_another_type_stops_a_change_before_it_begins() {
    for key in ["names", "held", "history"] {
        let server = Redis::start();
        let url = fresh(&server.url());
        let store = open(&url).expect("an address");
        let (session, _) = opened(&store, 1);
        let tag = format!("{{{}}}", url.rsplit_once("name=").expect("a name").1);
        let keys = || server.cli(&["keys", &format!("{tag}*")]).lines().map(ToOwned::to_owned).collect::<Vec<_>>();
        server.cli(&["del", &format!("{tag}:{key}")]);
        server.cli(&["set", &format!("{tag}:{key}"), "something else"]);
        let dump = || {
            let mut all: Vec<_> = keys().into_iter().map(|key| (server.cli(&["dump", &key]), key)).collect();
            all.sort();
            all
        };
        let before = dump();
        let outcome = block_on(store.swap(granting("r", &session), None));
        assert!(matches!(outcome, Err(StoreError::Corrupt(_))), "{key}: {outcome:?}");
        assert_eq!(dump(), before, "{key}");
    }
}

#[test]
fn a_damaged_record_is_told() {
    let server = Redis::start();
    let url = fresh(&server.url());
    let store = open(&url).expect("an address");
    let (session, _) = opened(&store, 1);
    let tag = format!("{{{}}}", url.rsplit_once("name=").expect("a name").1);
    for value in ["", "1", "1 1 x {}", "one two three four", "1 1 1 {\"id\":1}"] {
        server.cli(&["hset", &format!("{tag}:store"), &format!("s:{}", session.id), value]);
        let found = block_on(store.read(&Keys { session: Some(session.id), ..Keys::default() }));
        assert!(matches!(found, Err(StoreError::Corrupt(_))), "{value:?}: {found:?}");
    }
}

/// A right is taken away while the store is in use. A change that meets it breaks off; from then on nothing is begun, and
/// no version is given twice.
#[test]
fn a_right_that_is_taken_away_stops_the_store() {
    let server = Redis::start();
    server.cli(&["acl", "setuser", "worker", "on", ">word", "~*", "&*", "+@all"]);
    let url = fresh(&server.url().replace("redis://", "redis://worker:word@"));
    let tag = format!("{{{}}}", url.rsplit_once("name=").expect("a name").1);
    let store = open(&url).expect("an address");
    let (session, _) = opened(&store, 1);
    let newest = || server.cli(&["hget", &format!("{tag}:store"), "newest"]).parse::<u64>().expect("a number");
    let before = newest();
    server.cli(&["acl", "setuser", "worker", "-zadd"]);
    assert_eq!(grant(&store, "r", &session).expect("an outcome"), SwapOutcome::Unknown);
    assert!(newest() > before, "the versions of what was begun are used up");
    let used = newest();
    let error = grant(&store, "rr", &session).expect_err("a right is missing");
    assert!(matches!(error, StoreError::NotWritable(_)) && error.to_string().contains("ZADD"), "{error:?}");
    assert_eq!(newest(), used, "nothing was begun");
    server.cli(&["acl", "setuser", "worker", "+zadd"]);
    eventually("the store is there", || try_read(&store).ok());
    assert_eq!(grant(&store, "rrr", &session).expect("a grant"), SwapOutcome::Done);
}

/// A server that evicts keys, or somebody who removes them, takes a part of the store away. What is left must not be taken
/// for a store in which nobody holds anything.
#[test]
fn a_key_that_is_gone_is_noticed() {
    let server = Redis::start();
    for key in ["names", "held", "live", "former", "ended", "history"] {
        let url = fresh(&server.url());
        let store = open(&url).expect("an address");
        let (session, _) = opened(&store, 1);
        assert_eq!(grant(&store, "r", &session).expect("a grant"), SwapOutcome::Done);
        let tag = format!("{{{}}}", url.rsplit_once("name=").expect("a name").1);
        assert_eq!(server.cli(&["del", &format!("{tag}:{key}")]), "1", "{key}");
        let read = try_read(&store).expect_err(key);
        // A grant does not touch the lists of sessions.
        let is_touched = !matches!(key, "live" | "former" | "ended");
        let change = is_touched.then(|| grant(&store, "rr", &session).expect_err(key));
        for error in [Some(read), change].into_iter().flatten() {
            assert!(matches!(error, StoreError::Corrupt(_)), "{key}: {error:?}");
            assert!(error.to_string().contains("maxmemory-policy"), "{error}");
        }
    }
}

#[test]
fn a_node_of_a_cluster_is_refused() {
    let server = Redis::options().conf("cluster-enabled yes").start();
    server.cli(&["cluster", "addslotsrange", "0", "16383"]);
    eventually("it serves", || server.cli(&["cluster", "info"]).contains("cluster_state:ok").then_some(()));
    let error = try_read(&open(&fresh(&server.url())).expect("an address")).expect_err("a node of a cluster");
    assert!(matches!(error, StoreError::Address { .. }) && error.to_string().contains("Cluster"), "{error:?}");
    assert_eq!(server.cli(&["dbsize"]), "0");
}
