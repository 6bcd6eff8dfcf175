//! Manifests and records in the hands of others: each a clear error, and nothing is written over it.

use super::{Shop, failed, operation, sent, written};
use crate::{id, token};
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use serde_json::{Value, json};
use std::sync::Arc;
use tenure_core::Epoch;
use tenure_core::fence::Rule;
use tenure_sink::conformance::answered;
use tenure_sink::object::ObjectSink;
use tenure_sink::{Sink, SinkError};

/// A sink with one write, and its manifest.
fn shop() -> (Shop, Path, Value) {
    let shop = Shop::in_memory();
    shop.seal(&token(1));
    let order = operation("order-1", "paid");
    assert_eq!(sent(shop.sink.write(&token(1)).put("value", "paid").once(&order)).unwrap(), written());
    let (key, manifest) = shop.manifest();
    (shop, key, manifest)
}

/// What every verb says of what was planted, each as another process that remembers nothing.
fn said(shop: &Shop, key: &Path, body: &[u8]) -> Vec<SinkError> {
    shop.plant(key, body.to_vec());
    let other = || shop.another().sink;
    let errors = vec![
        failed(other().write(&token(1)).put("value", "x")),
        failed(other().write(&token(1)).remove("value")),
        crate::seal(&other(), &token(2)).unwrap_err(),
        answered(other().describe(&super::resource())).unwrap_err(),
        answered(other().forget(&super::resource(), Epoch::FIRST)).unwrap_err(),
        answered(other().lookup(&token(1), &crate::operation("order-1"))).unwrap_err(),
        answered(other().rows(None, 10)).unwrap_err(),
        answered(other().collect(&token(1))).unwrap_err(),
        answered(other().read(&super::resource(), "value")).unwrap_err(),
    ];
    let stands = answered(async { shop.store.get(key).await.unwrap().bytes().await.unwrap() });
    assert_eq!(stands, body, "it was written over");
    assert_eq!(shop.keys("objects").len(), 1, "something was uploaded or removed");
    errors
}

#[test]
fn a_manifest_that_no_sink_wrote_is_damage() {
    let (shop, key, good) = shop();
    let with = |path: &str, value: Value| {
        let mut bad = good.clone();
        *bad.pointer_mut(path).unwrap() = value;
        bad
    };
    let object = good["names"]["value"]["object"].clone();
    let cases = [
        with("/row/epoch", json!(9_223_372_036_854_775_808_u64)),
        with("/row/epoch", json!(0)),
        with("/row/epoch", json!(-1)),
        with("/row/epoch", json!("1")),
        with("/row/grant", json!("no grant")),
        with("/row/seal_no", json!(-1)),
        with("/row/enrolled", json!(["\u{0}"])),
        with("/row/generation", json!("")),
        with("/opening", Value::Null),
        with("/nonce", json!("")),
        with("/trail/0", json!("../../x")),
        with("/floor", json!(9_223_372_036_854_775_808_u64)),
        with("/names/value/object", json!("../../sink.json")),
        with("/names/value/object", json!("0000000000000000001-00")),
        with("/names/value/object", json!("9223372036854775808-00000000000000000000000000000000")),
        with("/names/value/bytes", json!(-1)),
        with("/names", json!({"": {"object": object, "bytes": 4}})),
        with("/operations/0/digest", json!("short")),
        with("/operations/0/operation", json!("")),
        with("/dropped", json!([object])),
        with("/dropped", json!(["../sink.json"])),
        with("/resource", json!("another")),
        with("/spilled", Value::Null),
    ];
    for bad in cases {
        for error in said(&shop, &key, bad.to_string().as_bytes()) {
            assert!(matches!(error, SinkError::Corrupt { .. }), "{bad}: {error:?}");
            assert!(error.to_string().contains(key.filename().unwrap()), "it does not name the key: {error}");
        }
    }
    for bad in [&b""[..], b"\xff\xfe", b"{", b"{\"schema\":1}", &good.to_string().as_bytes()[..200]] {
        for error in said(&shop, &key, bad) {
            assert!(matches!(error, SinkError::Corrupt { .. }), "{bad:?}: {error:?}");
        }
    }
    shop.plant(&key, good.to_string());
    assert_eq!(shop.another().put(&token(1), "again"), written());
}

#[test]
fn json_of_something_else_is_foreign_and_another_version_is_named() {
    let (shop, key, good) = shop();
    for error in said(&shop, &key, br#"{"name": "somebody's"}"#) {
        assert!(matches!(error, SinkError::Foreign { .. }), "{error:?}");
    }
    let mut newer = good.clone();
    newer["schema"] = json!(2);
    for error in said(&shop, &key, newer.to_string().as_bytes()) {
        assert!(matches!(error, SinkError::Schema { found: 2, known: 1, .. }), "{error:?}");
        assert!(error.to_string().contains("newer version of this program"), "{error}");
    }
    let mut other = good;
    other["rule"] = json!("high-water");
    for error in said(&shop, &key, other.to_string().as_bytes()) {
        assert!(matches!(error, SinkError::Rule { .. }), "{error:?}");
    }
}

/// What this process remembers does not help: its put meets another version, and what stands is read.
#[test]
fn a_writer_that_remembers_better_does_not_write_over_it() {
    let (shop, key, _) = shop();
    shop.plant(&key, "{");
    let error = failed(shop.sink.write(&token(1)).put("value", "x"));
    assert!(matches!(error, SinkError::Corrupt { .. }), "{error:?}");
    assert_eq!(shop.keys("manifests")[0].1, "{");
}

#[test]
fn a_manifest_that_is_gone_admits_nothing() {
    let (shop, key, _) = shop();
    answered(shop.store.delete(&key)).unwrap();
    let fate = shop.put(&token(1), "x");
    assert_eq!(fate, tenure_sink::object::Fate::Judged(tenure_core::Verdict::Unsealed));
    assert!(shop.keys("manifests").is_empty());
}

#[test]
fn the_sink_s_own_record_is_looked_at_as_closely() {
    let (shop, _, _) = shop();
    let key = Path::from("shop/sink.json");
    let good: Value = serde_json::from_slice(&shop.keys("")[..].iter().find(|(at, _)| *at == key).unwrap().1).unwrap();
    let open = || ObjectSink::open(Arc::clone(&shop.store), "shop", id(), Rule::Sealed);
    let with = |name: &str, value: Value| {
        let mut bad = good.clone();
        bad[name] = value;
        bad.to_string()
    };
    for bad in [with("floor", json!(0)), with("opening", json!(-1)), with("identity", json!("\n")), "{".to_owned()] {
        shop.plant(&key, bad.clone());
        let error = open().unwrap_err();
        assert!(matches!(error, SinkError::Corrupt { .. }), "{bad}: {error:?}");
        assert!(matches!(crate::seal(&shop.sink, &token(2)), Err(SinkError::Corrupt { .. })), "{bad}");
        assert!(ObjectSink::create(Arc::clone(&shop.store), "shop", id(), Rule::Sealed).is_err());
        assert_eq!(answered(async { shop.store.get(&key).await.unwrap().bytes().await.unwrap() }), bad);
    }
    shop.plant(&key, with("schema", json!(7)));
    assert!(matches!(open(), Err(SinkError::Schema { found: 7, .. })));
    shop.plant(&key, "{\"a\": 1}");
    assert!(matches!(open(), Err(SinkError::Foreign { .. })));
    shop.plant(&key, good.to_string());
    let error = ObjectSink::open(Arc::clone(&shop.store), "shop", id(), Rule::HighWater).unwrap_err();
    assert!(matches!(&error, SinkError::Rule { found, .. } if found == "sealed"), "{error:?}");
    answered(shop.store.delete(&key)).unwrap();
    assert!(matches!(open(), Err(SinkError::Missing { .. })));
    assert!(matches!(crate::seal(&shop.sink, &token(2)), Err(SinkError::Missing { .. })));
}

#[test]
fn an_object_that_is_gone_or_cut_off_is_no_content() {
    let (shop, _, _) = shop();
    let (key, _) = shop.keys("objects").remove(0);
    shop.plant(&key, "pai");
    let error = answered(shop.sink.read(&super::resource(), "value")).unwrap_err();
    assert!(matches!(&error, SinkError::Corrupt { what, .. } if what.contains("3 bytes")), "{error:?}");
    answered(shop.store.delete(&key)).unwrap();
    let error = answered(shop.sink.read(&super::resource(), "value")).unwrap_err();
    assert!(matches!(&error, SinkError::Corrupt { what, .. } if what.contains("not there")), "{error:?}");
    assert_eq!(answered(shop.sink.read(&super::resource(), "other")).unwrap(), None);
}

/// A manifest under the key of another resource would be its fence.
#[test]
fn a_manifest_of_another_resource_is_no_fence() {
    let shop = Shop::create(Arc::new(InMemory::new()), Rule::Sealed);
    shop.seal(&token(1));
    let (first, body) = shop.keys("manifests").remove(0);
    let mut other = token(1);
    other.resource = tenure_core::ResourceName::new("other").unwrap();
    shop.seal(&other);
    let second = shop.keys("manifests").into_iter().find(|(key, _)| *key != first).unwrap().0;
    shop.plant(&second, body);
    let error = failed(shop.another().sink.write(&other).put("value", "x"));
    assert!(matches!(error, SinkError::Corrupt { .. }), "{error:?}");
    assert!(matches!(answered(shop.sink.rows(None, 10)), Err(SinkError::Corrupt { .. })));
}
