use std::time::Duration;

use tenure_servers::{Redis, Sentinels, eventually, within};

#[test]
fn what_was_written_outlives_a_pause_and_a_kill() {
    let server = Redis::options().appendfsync("always").maxmemory_policy("allkeys-lru").requirepass("word").start();
    assert!(server.cli(&["config", "get", "maxmemory-policy"]).contains("allkeys-lru"));
    assert!(server.url().contains("word"));
    server.pause();
    let said = std::thread::scope(|scope| {
        let said = scope.spawn(|| server.cli(&["set", "key", "1"]));
        assert!(within(Duration::from_millis(200), || said.is_finished().then_some(())).is_none());
        server.resume();
        said.join().unwrap()
    });
    assert_eq!(said, "OK");
    server.kill();
    assert!(server.try_cli(&["ping"]).is_err());
    server.restart();
    assert_eq!(server.cli(&["get", "key"]), "1");
    server.stop();
    server.restart();
    assert_eq!(server.cli(&["get", "key"]), "1");
}

#[test]
fn a_snapshot_that_is_put_back_loses_what_came_after() {
    let server = Redis::options().appendfsync("always").start();
    server.cli(&["set", "key", "1"]);
    let snapshot = server.snapshot();
    server.cli(&["set", "key", "2"]);
    server.restore(&snapshot);
    assert_eq!(server.cli(&["get", "key"]), "1");
}

#[test]
fn without_a_file_nothing_outlives_it() {
    let server = Redis::options().appendonly(false).start();
    server.cli(&["set", "key", "1"]);
    server.restart();
    assert_eq!(server.cli(&["get", "key"]), "");
}

#[test]
fn a_shared_server_gives_each_test_an_empty_database() {
    let (one, two) = (Redis::shared().database(), Redis::shared().database());
    assert_ne!(one, two);
    assert!(one.starts_with(&Redis::shared().url()));
}

#[test]
fn tls_is_vouched_for_by_the_authority() {
    let server = Redis::options().tls().start();
    let ca = server.ca().display().to_string();
    assert_eq!(server.cli(&["-u", &server.tls_url(), "--cacert", &ca, "ping"]), "PONG");
    let other = tenure_servers::Certificates::make().ca().display().to_string();
    assert!(server.try_cli(&["-u", &server.tls_url(), "--cacert", &other, "ping"]).is_err());
}

/// The primary takes a write that its replica never gets, and dies. The Sentinels promote the replica, which does not
/// know of the write; the old primary comes back and forgets it too.
#[test]
fn the_sentinels_promote_a_replica_that_was_left_behind() {
    let primary = Redis::options().requirepass("word").start();
    let replica = primary.replica();
    let sentinels = Sentinels::start(3, &primary, 2, Duration::from_secs(1), Duration::from_secs(1));
    assert_eq!(sentinels.addrs().len(), 3);
    assert_eq!(sentinels.primary(), primary.addr());
    primary.cli(&["set", "key", "1"]);
    primary.wait_for(1);
    primary.leave_behind(&replica);
    primary.cli(&["set", "key", "2"]);
    primary.kill();
    replica.resume();
    assert_eq!(sentinels.wait_for_change(primary.addr()), replica.addr());
    assert_eq!(replica.cli(&["get", "key"]), "1");
    replica.cli(&["set", "key", "3"]);
    primary.restart();
    eventually("the old primary follows", || (primary.cli(&["get", "key"]) == "3").then_some(()));
}
