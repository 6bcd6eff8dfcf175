//! What a server forgets, and what the sink makes of it: it refuses until it is sealed again.

use super::{Shop, open, stale, unsealed, written};
use crate::token;
use std::time::Duration;
use tenure_core::fence::Rule;
use tenure_servers::{Redis, Sentinels};
use tenure_sink::conformance::answered;
use tenure_sink::{Sink, SinkError};

/// The newest seal and the writes under it never reach the replica that takes over. There the old token is the registered
/// one, and whoever compared tokens alone would let the old worker go on beside the new one.
#[test]
fn the_primary_dies_with_the_newest_seal_and_nobody_is_accepted_until_the_next() {
    let primary = Redis::start();
    let replica = primary.replica();
    let sentinels = Sentinels::start(3, &primary, 2, Duration::from_secs(1), Duration::from_secs(3));
    let hosts: Vec<_> = sentinels.addrs().iter().map(ToString::to_string).collect();
    let shop = Shop::create(&format!("redis+sentinel://{}/{}", hosts.join(","), Sentinels::NAME), Rule::Sealed);
    let (old, new) = (token(1), token(2));
    shop.seal(&old);
    assert_eq!(shop.write(&primary, &old, "old"), written());
    primary.wait_for(1);
    primary.leave_behind(&replica);
    shop.seal(&new);
    assert_eq!(shop.write(&primary, &old, "late"), stale(&old, &new));
    assert_eq!(shop.write(&primary, &new, "new"), written());
    let before = sentinels.primary();
    primary.kill();
    replica.resume();
    assert_eq!(sentinels.wait_for_change(before), replica.addr());
    let there = answered(shop.sink.describe(&old.resource)).unwrap();
    assert_eq!(
        there.row.as_ref().map(|row| row.epoch),
        Some(old.epoch),
        "the newest seal is not lost, so this shows nothing"
    );
    assert_eq!(shop.write(&replica, &old, "back"), unsealed());
    assert_eq!(shop.write(&replica, &new, "new"), unsealed());
    assert_eq!(shop.value(&replica), "old");
    shop.seal(&new);
    assert_eq!(shop.write(&replica, &new, "newer"), written());
    assert_eq!(shop.write(&replica, &old, "back"), stale(&old, &new));
    assert_eq!(shop.value(&replica), "newer");
}

#[test]
fn after_a_restart_it_refuses_until_it_is_sealed() {
    let server = Redis::options().appendfsync("always").start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    assert_eq!(shop.write(&server, &token(1), "a"), written());
    let before = answered(shop.sink.describe(&token(1).resource)).unwrap();
    server.kill();
    server.restart();
    let after = answered(shop.sink.describe(&token(1).resource)).unwrap();
    assert_eq!(after.row, before.row, "the fence is still there");
    assert_ne!(after.generation, before.generation);
    assert_eq!(shop.write(&server, &token(1), "b"), unsealed());
    let sealed = answered(shop.sink.seal(&token(1), &before.generation, &Default::default())).unwrap();
    assert!(matches!(sealed, tenure_core::fence::Sealing::WrongGeneration { .. }), "{sealed:?}");
    shop.seal(&token(1));
    assert_eq!(shop.write(&server, &token(1), "b"), written());
}

/// It was the primary, followed another one for a while, lost nothing that shows in its keys, and is the primary again: its
/// Lua state is the same all the time. The other one may have been sealed meanwhile, without a word of it arriving here.
#[test]
fn a_primary_that_followed_another_for_a_while_refuses() {
    let (server, other) = (Redis::start(), Redis::start());
    other.replica_of(&server);
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    assert_eq!(shop.write(&server, &token(1), "a"), written());
    server.wait_for(1);
    other.promote();
    server.replica_of(&other);
    assert_eq!(shop.write_error(&server), "replica");
    server.promote();
    assert_eq!(shop.value(&server), "a");
    assert_eq!(shop.write(&server, &token(1), "b"), unsealed());
    shop.seal(&token(1));
    assert_eq!(shop.write(&server, &token(1), "b"), written());
}

/// Nothing is lost by it, but the id does not say so.
#[test]
fn the_first_replica_ends_the_generation() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    let _first = server.replica();
    assert_eq!(shop.write(&server, &token(1), "a"), unsealed());
    shop.seal(&token(1));
    let _second = server.replica();
    assert_eq!(shop.write(&server, &token(1), "a"), written());
}

/// A replica that takes writes would take them into a copy that is thrown away.
#[test]
fn a_replica_that_takes_writes_is_refused() {
    let primary = Redis::start();
    let shop = Shop::on(&primary);
    let replica = Redis::options().conf("replica-read-only no").start();
    replica.replica_of(&primary);
    shop.seal(&token(1));
    primary.wait_for(1);
    assert_eq!(shop.write_error(&replica), "replica");
    assert_eq!(shop.write(&primary, &token(1), "a"), written());
}

#[test]
fn a_server_that_kept_nothing_has_no_sink() {
    let server = Redis::options().appendonly(false).start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    server.restart();
    let error = answered(shop.sink.describe(&token(1).resource)).unwrap_err();
    assert!(matches!(error, SinkError::Missing { .. }), "{error}");
    let error = shop.fence().set(&token(1), "k", "v").send_blocking(&mut open(&server)).unwrap_err();
    assert!(error.to_string().contains("is not there"), "{error}");
    // Made again, it has no row and so accepts nothing.
    tenure_sink::RedisSink::open(&format!("{}&create=true", shop.url)).unwrap();
    assert_eq!(shop.write(&server, &token(1), "late"), unsealed());
}

/// Somebody empties the server, and the next worker makes the sink anew. The server's id is the same, and what was bound for an old
/// token before would have sealed it in the new sink, which remembers nobody.
#[test]
fn a_sink_that_is_made_again_is_of_another_generation() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    let before = answered(shop.sink.describe(&token(1).resource)).unwrap().generation;
    shop.seal(&token(2));
    server.cli(&["flushall"]);
    tenure_sink::RedisSink::open(&format!("{}&create=true", shop.url)).unwrap();
    let late = answered(shop.sink.seal(&token(1), &before, &Default::default())).unwrap();
    assert!(matches!(late, tenure_core::fence::Sealing::WrongGeneration { .. }), "{late:?}");
    assert_eq!(shop.write(&server, &token(1), "late"), unsealed());
    shop.seal(&token(2));
    assert_eq!(shop.write(&server, &token(2), "a"), written());
}

#[test]
fn a_server_that_is_away_is_named_and_may_come_back() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    server.kill();
    let error = answered(shop.sink.describe(&token(1).resource)).unwrap_err();
    assert!(matches!(error, SinkError::Unreachable { .. }) && error.is_transient(), "{error}");
    assert!(error.to_string().contains(&server.port().to_string()), "{error}");
    server.restart();
    shop.seal(&token(1));
    server.pause();
    let error = answered(shop.sink.describe(&token(1).resource)).unwrap_err();
    server.resume();
    assert!(error.is_transient() && error.to_string().contains("in time"), "{error}");
    answered(shop.sink.describe(&token(1).resource)).unwrap();
}

impl Shop {
    /// `replica` when the server says that it is one.
    fn write_error(&self, server: &Redis) -> &'static str {
        let error = self.fence().set(&token(1), self.key("value"), "x").send_blocking(&mut open(server)).unwrap_err();
        assert!(error.to_string().contains("is a replica now"), "{error}");
        "replica"
    }
}
