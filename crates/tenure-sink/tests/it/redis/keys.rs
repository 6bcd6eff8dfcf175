//! The keys of a sink, in the hands of others.

use super::{Shop, connect, judged, open, operation, written};
use crate::token;
use tenure_core::fence::Rule;
use tenure_core::{Epoch, Verdict};
use tenure_servers::Redis;
use tenure_sink::conformance::answered;
use tenure_sink::redis::RedisFence;
use tenure_sink::{ApplyError, RedisSink, Sink, SinkError};

/// What a write says that carries an operation.
fn error(shop: &Shop, server: &Redis) -> SinkError {
    let write = shop.fence().set(&token(1), shop.key("value"), "x").once(&operation("order", "x"));
    match write.send_blocking(&mut open(server)) {
        Err(ApplyError::Sink(error)) => error,
        other => panic!("it was answered: {other:?}"),
    }
}

#[test]
fn a_key_of_another_type_is_named_and_left_alone() {
    let server = Redis::start();
    for key in ["fences", "operations"] {
        let shop = Shop::on(&server);
        shop.seal(&token(1));
        server.cli(&["set", &shop.key(key), "mine"]);
        let error = error(&shop, &server);
        assert!(matches!(error, SinkError::Foreign { .. }), "{key}: {error}");
        assert_eq!(server.cli(&["get", &shop.key(key)]), "mine");
        assert_eq!(server.cli(&["exists", &shop.key("value")]), "0");
    }
    let shop = Shop::on(&server);
    server.cli(&["del", &shop.key("fences")]);
    server.cli(&["hset", &shop.key("fences"), "a", "b"]);
    assert!(matches!(error(&shop, &server), SinkError::Foreign { .. }));
    let error = RedisSink::open(&format!("{}&create=true", shop.url)).unwrap_err();
    assert!(matches!(error, SinkError::Foreign { .. }), "{error}");
}

/// A record that is lost would let an operation run twice, and so nobody takes lost ones for none.
#[test]
fn a_key_that_is_gone_is_noticed_and_closes_the_sink() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    server.cli(&["del", &shop.key("operations")]);
    let said = error(&shop, &server);
    assert!(matches!(&said, SinkError::Corrupt { what, .. } if what.contains("operations is gone")), "{said}");
    assert_eq!(server.cli(&["exists", &shop.key("value")]), "0");

    let shop = Shop::on(&server);
    shop.seal(&token(1));
    server.cli(&["zrem", &shop.key("names"), "r"]);
    let said = answered(shop.sink.rows(None, 10)).unwrap_err();
    assert!(matches!(&said, SinkError::Corrupt { what, .. } if what.contains("names is gone")), "{said}");

    let shop = Shop::on(&server);
    shop.seal(&token(1));
    server.cli(&["del", &shop.key("fences")]);
    assert!(matches!(error(&shop, &server), SinkError::Missing { .. }));
    // What is left of it shows that there was one.
    let said = RedisSink::open(&format!("{}&create=true", shop.url)).unwrap_err();
    assert!(matches!(&said, SinkError::Corrupt { what, .. } if what.contains("fences is gone")), "{said}");
}

#[test]
fn a_fence_that_no_sink_wrote_is_damage() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    server.cli(&["hset", &shop.key("fences"), "r", "anything"]);
    assert!(matches!(error(&shop, &server), SinkError::Corrupt { .. }));
    let said = answered(shop.sink.describe(&token(1).resource)).unwrap_err();
    assert!(matches!(said, SinkError::Corrupt { .. }), "{said}");
    assert!(answered(shop.sink.forget(&token(1).resource, Epoch::FIRST)).is_err());
    assert!(crate::seal(&shop.sink, &token(1)).is_err());
    assert_eq!(server.cli(&["hget", &shop.key("fences"), "r"]), "anything");
}

#[test]
fn a_newer_schema_is_refused() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    server.cli(&["hset", &shop.key("fences"), "", "2 sealed 0 -"]);
    let said = error(&shop, &server);
    assert!(matches!(said, SinkError::Schema { found: 2, known: 1, .. }), "{said}");
    assert!(said.to_string().contains("newer version of this program"), "{said}");
}

#[test]
fn a_time_to_live_is_named_and_the_next_seal_takes_it_away() {
    let server = Redis::options().appendfsync("always").start();
    let shop = Shop::on(&server);
    assert_eq!(answered(shop.sink.warnings()).unwrap(), Vec::<String>::new());
    for key in ["fences", "names", "operations"] {
        server.cli(&["expire", &shop.key(key), "1000"]);
        let warnings = answered(shop.sink.warnings()).unwrap();
        assert!(warnings.len() == 1 && warnings[0].starts_with(&shop.key(key)), "{warnings:?}");
        shop.seal(&token(1));
        assert_eq!(server.cli(&["ttl", &shop.key(key)]), "-1");
    }
    server.cli(&["config", "set", "maxmemory-policy", "allkeys-lru"]);
    server.cli(&["config", "set", "appendfsync", "no"]);
    let _replica = server.replica();
    let warnings = answered(shop.sink.warnings()).unwrap().join("\n");
    for name in ["maxmemory-policy is allkeys-lru", "appendfsync is no", "min-replicas-to-write is 0"] {
        assert!(warnings.contains(name), "{warnings}");
    }
}

#[test]
fn a_sink_has_one_rule() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    for url in [shop.url.replace("sealed", "high-water"), shop.url.replace("sealed", "high-water&create=true")] {
        let said = RedisSink::open(&url).unwrap_err();
        assert!(matches!(&said, SinkError::Rule { found, wanted: "high-water", .. } if found == "sealed"), "{said}");
    }
    shop.seal(&token(1));
    let fence = RedisFence::new(&shop.name, Rule::HighWater).unwrap();
    let said = fence.set(&token(2), shop.key("value"), "x").send_blocking(&mut open(&server)).unwrap_err();
    assert!(matches!(said, ApplyError::Sink(SinkError::Rule { wanted: "high-water", .. })), "{said}");
    let fence = RedisFence::new(&shop.name, Rule::Sealed).unwrap();
    let said = fence.set(&token(1), shop.key("value"), "x").send_blocking(&mut open(&server)).unwrap();
    assert_eq!(said, written());
}

#[test]
fn keys_and_values_of_any_bytes_come_through() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    let mut connection = open(&server);
    let fence = shop.fence();
    for key in [&b"a b"[..], b"'; --", b"\"", b"\0", b"\n", b"\r\n", b"\xff\xfe", b"{", b"", b"]]"] {
        let put = fence.set(&token(1), key, key).once(&operation(&format!("set {key:?}"), "x"));
        assert_eq!(put.send_blocking(&mut connection).unwrap(), written());
        let found: Vec<u8> = redis::cmd("GET").arg(key).query(&mut connection).unwrap();
        assert_eq!(found, key);
        assert_eq!(fence.del(&token(1), [key]).send_blocking(&mut connection).unwrap(), written());
        assert_eq!(
            fence.hset(&token(1), key, [(key, key), (b"b", key)]).send_blocking(&mut connection).unwrap(),
            written()
        );
        let found: Vec<u8> = redis::cmd("HGET").arg(key).arg(key).query(&mut connection).unwrap();
        assert_eq!(found, key);
    }
    let both = [&b"{"[..], b"]]"];
    assert_eq!(fence.del(&token(1), both).send_blocking(&mut connection).unwrap(), written());
    let left: i64 = redis::cmd("EXISTS").arg(&both).query(&mut connection).unwrap();
    assert_eq!(left, 0);
    let push = fence.command(&token(1), "RPUSH", [shop.key("list")], ["a", "b", "c"]);
    assert_eq!(push.send_blocking(&mut connection).unwrap(), written());
    assert_eq!(server.cli(&["llen", &shop.key("list")]), "3");
}

#[test]
fn a_write_that_is_too_long_is_refused_before_it_is_sent() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    let mut connection = open(&server);
    let write = |fields: usize| {
        let fields: Vec<_> = (0..fields).map(|n| (n.to_string(), "x")).collect();
        shop.fence().hset(&token(1), shop.key("hash"), fields)
    };
    assert_eq!(write(1_999).send_blocking(&mut connection).unwrap(), written());
    let said = write(2_000).send_blocking(&mut connection).unwrap_err().to_string();
    assert!(said.contains("make several of it"), "{said}");
    assert_eq!(server.cli(&["hlen", &shop.key("hash")]), "1999");
}

/// A right that is missing is named at the opening, and costs no record in the middle of a write.
#[test]
fn a_missing_right_is_named_and_nothing_is_half_done() {
    let server = Redis::start();
    let shop = Shop::on(&server);
    shop.seal(&token(1));
    server.cli(&["acl", "setuser", "worker", "on", ">word", "~*", "+@all", "-hset"]);
    let url = server.url().replace("redis://", "redis://worker:word@");
    let said = RedisSink::open(&shop.url.replace(&server.url(), &url)).unwrap_err().to_string();
    assert!(said.contains("lacks a right") && said.contains("HSET") && !said.contains("word@"), "{said}");
    let write = shop.fence().set(&token(1), shop.key("value"), "x");
    assert_eq!(write.send_blocking(&mut connect(&url)).unwrap(), written());
    let write = shop.fence().set(&token(1), shop.key("value"), "y").once(&operation("order", "y"));
    let said = write.send_blocking(&mut connect(&url)).unwrap_err().to_string();
    assert!(said.contains("lacks a right"), "{said}");
    assert_eq!(shop.value(&server), "x", "an effect without its record");
    server.cli(&["acl", "setuser", "blind", "on", ">word", "~*", "+@all", "-info"]);
    let url = server.url().replace("redis://", "redis://blind:word@");
    let said = shop.fence().set(&token(1), shop.key("value"), "z").send_blocking(&mut connect(&url)).unwrap_err();
    assert!(said.to_string().contains("lacks a right"), "{said}");
    assert_eq!(shop.value(&server), "x", "without the id of the server nobody may write");
}

#[test]
fn a_listing_is_whole_however_many_there_are() {
    let server = Redis::start();
    let shop = Shop::create(&server.url(), Rule::HighWater);
    let mut connection = open(&server);
    for n in 0..2_100_u32 {
        let mut mine = token(1);
        mine.resource = tenure_core::ResourceName::new(format!("r{n:05}")).unwrap();
        assert_eq!(shop.fence().del(&mine, ["none"]).send_blocking(&mut connection).unwrap(), judged(Verdict::Written));
    }
    assert_eq!(answered(shop.sink.rows(None, usize::MAX)).unwrap().rows.len(), 2_100);
    let last = tenure_core::ResourceName::new("r01049").unwrap();
    let page = answered(shop.sink.rows(Some(&last), 1_050)).unwrap().rows;
    assert_eq!((page.len(), page[0].0.as_str(), page[1_049].0.as_str()), (1_050, "r01050", "r02099"));
}
