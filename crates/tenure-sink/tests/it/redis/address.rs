//! Addresses of sinks in Redis.

use super::Shop;
use crate::token;
use std::time::Duration;
use tenure_core::fence::Rule;
use tenure_servers::{Redis, Sentinels};
use tenure_sink::conformance::answered;
use tenure_sink::{RedisSink, Sink, SinkError, connect};

#[test]
fn nonsense_is_refused_and_the_message_says_what_would_be_right() {
    let cases = [
        ("redis://", "write HOST:PORT"),
        ("redis://host:port", "write HOST:PORT"),
        ("redis:host", "// is missing"),
        ("redis://a,b/0", "redis+sentinel://"),
        ("redis://host/x", "no number of a database"),
        ("redis://host?name=a{b", "letters, digits"),
        ("redis://host?name=", "letters, digits"),
        ("redis://host?color=red", "it has id, rule, create, wait, name"),
        ("redis://host?rule=open", "write sealed or high-water"),
        ("redis://host?wait=0s", "at most 1m"),
        ("redis://host?id=", "choose one with id=NAME"),
        ("redis://host?tls_ca=/ca.pem", "write rediss://"),
        ("rediss://host?tls_ca=/not/there.pem", "/not/there.pem cannot be read"),
        ("redis+sentinel://a,b", "PRIMARY"),
        ("redis+sentinel://a:x/main", "write HOST:PORT"),
    ];
    for (url, right) in cases {
        let error = connect(url).expect_err(url);
        assert!(matches!(error, SinkError::Address { .. }), "{url}: {error:?}");
        let message = error.to_string();
        assert!(message.contains(right), "{url}: {message}");
    }
}

#[test]
fn its_usual_id_opens_it_and_holds_no_password() {
    let server = Redis::options().requirepass("s3cret/?@").start();
    let url = format!("redis://:s3cret%2F%3F%40@127.0.0.1:{}/3?name=shop", server.port());
    let sink = RedisSink::open(&format!("{url}&create=true")).unwrap();
    assert_eq!(sink.id().as_str(), format!("redis://127.0.0.1:{}/3?name=shop", server.port()));
    assert!(!format!("{sink:?}").contains("s3cret"), "{sink:?}");
    assert_eq!(connect(&url).unwrap().id(), sink.id());
    let error = connect(sink.id().as_str()).unwrap_err().to_string();
    assert!(error.contains("wants a password"), "{error}");
    for (wrong, right) in [(":wr0ng@", "refuses"), ("somebody:wr0ng@", "refuses")] {
        let error = connect(&format!("redis://{wrong}127.0.0.1:{}", server.port())).unwrap_err();
        assert!(matches!(error, SinkError::Address { .. }) && error.to_string().contains(right), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("wr0ng"), "{error:?}");
    }
    // The host was forgotten: what stands where a port belongs is the password.
    for forgot in
        ["redis://app:s3cret", "redis://:s3cret/0", "rediss://app:s3cret?name=a", "redis+sentinel://h,a:s3cret/p"]
    {
        let error = connect(forgot).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    }
    let error = connect("redis+sentinel://h/p?sentinel_password=s3cret&x=y").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
}

#[test]
fn tls_is_spoken_where_it_is_asked_for() {
    let server = Redis::options().tls().start();
    let url = format!("{}?name=shop&tls_ca={}", server.tls_url(), server.ca().display());
    let sink = RedisSink::open(&format!("{url}&create=true")).unwrap();
    let sealing = crate::seal(&sink, &token(1)).unwrap();
    assert!(matches!(sealing, tenure_core::fence::Sealing::Seal(_)));
    let error = connect(&format!("{}?name=shop", server.tls_url())).unwrap_err().to_string();
    assert!(error.contains("tls_ca=FILE"), "{error}");
}

#[test]
fn what_is_not_there_is_named_and_not_made() {
    let server = Redis::shared();
    let error = connect("redis://127.0.0.1:1/0").unwrap_err();
    assert!(matches!(error, SinkError::Unreachable { .. }) && error.to_string().contains("127.0.0.1:1"), "{error}");
    let error = connect(&format!("{}?name=not-there", server.url())).unwrap_err();
    assert!(matches!(error, SinkError::Missing { .. }) && error.to_string().contains("not-there"), "{error}");
    assert_eq!(server.cli(&["keys", "{not-there}*"]), "");
    let error = connect(&format!("{}/999999", server.url())).unwrap_err();
    assert!(matches!(error, SinkError::Address { .. }) && error.to_string().contains("number"), "{error:?}");
}

#[test]
fn a_node_of_a_cluster_is_refused() {
    let server = Redis::options().conf("cluster-enabled yes").conf("databases 1").start();
    let error = connect(&server.url()).unwrap_err();
    assert!(matches!(error, SinkError::Address { .. }) && error.to_string().contains("Redis Cluster"), "{error:?}");
}

#[test]
fn the_sentinels_name_the_primary_and_need_not_all_answer() {
    let primary = Redis::start();
    let sentinels = Sentinels::start(3, &primary, 2, Duration::from_secs(1), Duration::from_secs(3));
    let hosts: Vec<_> = sentinels.addrs().iter().map(ToString::to_string).collect();
    let url = |hosts: &str, name: &str| format!("redis+sentinel://{hosts}/{name}");
    let shop = Shop::create(&url(&hosts.join(","), Sentinels::NAME), Rule::Sealed);
    shop.seal(&token(1));
    let error = connect(&url(&hosts.join(","), "other")).unwrap_err();
    assert!(matches!(error, SinkError::Address { .. }) && error.to_string().contains("\"other\""), "{error}");
    let error = connect(&url("127.0.0.1:1,127.0.0.1:2", Sentinels::NAME)).unwrap_err();
    assert!(matches!(error, SinkError::Unreachable { .. }), "{error}");
    sentinels.pause(0);
    sentinels.kill(1);
    answered(shop.sink.describe(&token(1).resource)).unwrap();
    sentinels.resume(0);
    // The order in which they are named is no part of the id.
    let mut turned = hosts.clone();
    turned.reverse();
    let query = format!("?name={}", shop.name);
    let one = connect(&format!("{}{query}", url(&hosts.join(","), Sentinels::NAME))).unwrap();
    let other = connect(&format!("{}{query}", url(&turned.join(","), Sentinels::NAME))).unwrap();
    assert_eq!(one.id(), other.id());
}
