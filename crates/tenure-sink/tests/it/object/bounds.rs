//! Names of any form, and how much fits.

use super::{Shop, failed, operation, sent, written};
use crate::{id, token};
use object_store::memory::InMemory;
use std::sync::Arc;
use tenure_core::fence::Rule;
use tenure_core::{Outcome, ResourceName, SinkId};
use tenure_sink::conformance::answered;
use tenure_sink::object::ObjectSink;
use tenure_sink::{ApplyError, Sink, SinkError};

#[test]
fn names_of_any_form_are_kept_apart_and_are_never_a_part_of_a_key() {
    let shop = Shop::in_memory();
    shop.seal(&token(1));
    let long = "ü".repeat(512);
    let names = [
        "..",
        "../..",
        "../sink.json",
        "/",
        "//",
        ".",
        "a/b",
        "a%2Fb",
        "a b",
        "'; --",
        "\"",
        "\\",
        "\n",
        "\0",
        "\u{7f}",
        "é",
        "e\u{301}",
        "💾",
        "COM1",
        " ",
        long.as_str(),
    ];
    for name in names {
        assert_eq!(sent(shop.sink.write(&token(1)).put(name, name.to_owned())).unwrap(), written(), "{name:?}");
    }
    for name in names {
        assert_eq!(shop.another().value_of(name).as_deref(), Some(name));
    }
    for (key, _) in shop.keys("") {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '/' | '-' | '.');
        assert!(key.as_ref().chars().all(plain) && !key.as_ref().contains(".."), "{key}");
    }
    for (name, why) in [(String::new(), "at least one byte"), ("x".repeat(1025), "at most 1024 bytes")] {
        let error = failed(shop.sink.write(&token(1)).put(name.clone(), "x"));
        assert!(matches!(error, SinkError::BadName { .. }) && error.to_string().contains(why), "{error}");
        let error = failed(shop.sink.write(&token(1)).remove(name));
        assert!(matches!(error, SinkError::BadName { .. }), "{error}");
    }
}

#[test]
fn a_prefix_is_a_path_and_nothing_else() {
    let create = |prefix: &str| ObjectSink::create(Arc::new(InMemory::new()), prefix, id(), Rule::Sealed);
    for prefix in ["", "a", "a/b/c", "größe"] {
        assert!(create(prefix).is_ok(), "{prefix:?}");
    }
    for prefix in ["..", "a/../b", "a//b", "a/./b", &"x".repeat(513)] {
        let error = create(prefix).unwrap_err();
        assert!(matches!(error, SinkError::Address { .. }), "{prefix:?}: {error:?}");
    }
}

/// The manifest is written anew with each change, so that it has a bound. What is beyond is refused, and all the rest goes on.
#[test]
fn a_full_manifest_takes_no_more_names_and_can_be_emptied() {
    let shop = Shop::in_memory();
    shop.seal(&token(1));
    let mut put = shop.sink.write(&token(1));
    for n in 0..900 {
        put = put.put(format!("{n:01000}"), "");
    }
    assert_eq!(sent(put).unwrap(), written());
    let mut more = shop.sink.write(&token(1));
    for n in 900..1000 {
        more = more.put(format!("{n:01000}"), "");
    }
    let error = sent(more.once(&operation("more", "x"))).unwrap_err();
    assert!(matches!(&error, ApplyError::Effect(why) if why.to_string().contains("1048576 are the most")), "{error}");
    let (_, manifest) = shop.manifest();
    assert_eq!(manifest["names"].as_object().unwrap().len(), 900);
    assert_eq!(manifest["operations"], serde_json::json!([]), "a refused effect was recorded");
    let change = shop.sink.write(&token(1)).put(format!("{:01000}", 1), "other").remove(format!("{:01000}", 2));
    assert_eq!(sent(change).unwrap(), written());
    shop.seal(&token(2));
    assert_eq!(sent(shop.sink.write(&token(2)).put("short", "x")).unwrap(), written());
}

/// Outcomes may have 64 KiB each, and the manifest is not to be made of them.
#[test]
fn long_outcomes_leave_the_manifest_for_records_of_their_own() {
    let shop = Shop::in_memory();
    shop.seal(&token(1));
    for n in 0..8 {
        let mut order = operation(&format!("order-{n}"), "paid");
        order.outcome = Outcome::new("x".repeat(tenure_core::TEXT_BYTES_MAX)).unwrap();
        assert_eq!(sent(shop.sink.write(&token(1)).put("value", "paid").once(&order)).unwrap(), written());
        let bytes = shop.keys("manifests")[0].1.len();
        assert!(bytes < 256 * 1024, "{bytes} bytes");
    }
}

#[test]
fn resources_of_any_name_have_a_manifest_each() {
    let shop = Shop::in_memory();
    for name in ["..", "a/b", "ü", &"x".repeat(512)] {
        let mut mine = token(1);
        mine.resource = ResourceName::new(name).unwrap();
        shop.seal(&mine);
        assert_eq!(sent(shop.sink.write(&mine).put("value", name.to_owned())).unwrap(), written());
    }
    assert_eq!(shop.keys("manifests").len(), 4);
}

/// A manifest that is too long to be read again is not written, or the resource would be closed for good.
#[test]
fn a_seal_that_would_make_a_manifest_unreadable_is_refused() {
    let shop = Shop::in_memory();
    shop.seal(&token(1));
    let many = (0..17_000).map(|n| SinkId::new(format!("{n:0500}")).unwrap()).collect();
    let generation = answered(shop.sink.describe(&super::resource())).unwrap().generation;
    let error = answered(shop.sink.seal(&token(2), &generation, &many)).unwrap_err();
    assert!(matches!(error, SinkError::Full { .. }), "{error:?}");
    assert_eq!(shop.another().put(&token(1), "goes on"), written());
}
