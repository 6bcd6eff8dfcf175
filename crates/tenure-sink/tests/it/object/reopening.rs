//! A sink that may have forgotten.

use super::wire::{Gate, Trouble};
use super::{Shop, resource, sent, written};
use crate::token;
use std::sync::Arc;
use tenure_core::Verdict;
use tenure_core::fence::Sealing;
use tenure_sink::conformance::answered;
use tenure_sink::object::Fate;
use tenure_sink::{Sink, SinkError};

fn unsealed() -> Fate {
    Fate::Judged(Verdict::Unsealed)
}

/// A write was judged in the old generation, and its put arrives after the reopening has returned. Nothing that a later seal
/// does not know of may land behind it.
#[test]
fn a_write_that_was_judged_before_a_reopening_does_not_land_after_it() {
    let (shop, wire) = Shop::wired();
    shop.seal(&token(1));
    assert_eq!(shop.put(&token(1), "first"), written());
    let gate = Gate::closed();
    wire.plan("manifests", Trouble::Gate(Arc::clone(&gate)));
    let other = shop.another();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| shop.put(&token(1), "late"));
        gate.wait();
        answered(other.sink.reopen()).unwrap();
        gate.open();
        assert_eq!(writer.join().unwrap(), unsealed());
    });
    assert_eq!(shop.value().as_deref(), Some("first"));
    assert_eq!(shop.put(&token(1), "later"), unsealed());
    shop.seal(&token(1));
    assert_eq!(shop.put(&token(1), "again"), written());
}

/// The same for a seal: of a resource that has a fence, and of one that was never seen. What it was bound to is over.
#[test]
fn a_seal_that_was_judged_before_a_reopening_is_refused() {
    for is_known in [true, false] {
        let (shop, wire) = Shop::wired();
        if is_known {
            shop.seal(&token(1));
        }
        let gate = Gate::closed();
        if !is_known {
            // The put that only makes the manifest.
            let open = Gate::closed();
            open.open();
            wire.plan("manifests", Trouble::Gate(open));
        }
        wire.plan("manifests", Trouble::Gate(Arc::clone(&gate)));
        let other = shop.another();
        std::thread::scope(|scope| {
            let sealer = scope.spawn(|| crate::seal(&shop.sink, &token(2)).unwrap());
            gate.wait();
            let current = answered(other.sink.reopen()).unwrap();
            gate.open();
            assert_eq!(sealer.join().unwrap(), Sealing::WrongGeneration { current });
        });
        assert_eq!(shop.put(&token(2), "late"), unsealed(), "known: {is_known}");
    }
}

/// Somebody puts the sink's own record back, and leaves the manifests, or the other way round.
#[test]
fn a_record_that_was_put_back_is_noticed_and_a_reopening_mends_it() {
    let shop = Shop::in_memory();
    shop.seal(&token(1));
    let (key, old) = shop.keys("").into_iter().find(|(key, _)| key.filename() == Some("sink.json")).unwrap();
    let first = answered(shop.sink.describe(&resource())).unwrap().generation;
    answered(shop.sink.reopen()).unwrap();
    shop.seal(&token(2));
    shop.plant(&key, old);
    let error = crate::seal(&shop.sink, &token(3)).unwrap_err();
    assert!(matches!(&error, SinkError::Corrupt { what, .. } if what.contains("reopen the sink")), "{error:?}");
    assert!(answered(shop.sink.describe(&resource())).is_err());
    let third = answered(shop.sink.reopen()).unwrap();
    assert_ne!(third, first);
    assert_eq!(answered(shop.sink.describe(&resource())).unwrap().generation, third);
    assert_eq!(shop.put(&token(2), "late"), unsealed());
    shop.seal(&token(3));
    assert_eq!(shop.put(&token(3), "new"), written());
}

/// The whole sink is put back, twice. Each time it is reopened, and no generation comes again: a seal of a time that is lost
/// would count otherwise.
#[test]
fn a_generation_does_not_come_again_after_a_restore() {
    let shop = Shop::in_memory();
    shop.seal(&token(1));
    let backup = shop.keys("");
    let mut seen = vec![answered(shop.sink.describe(&resource())).unwrap().generation];
    for _ in 0..3 {
        let generation = answered(shop.sink.reopen()).unwrap();
        assert!(!seen.contains(&generation), "{generation} came again");
        seen.push(generation);
        shop.seal(&token(9));
        for (key, body) in &backup {
            shop.plant(key, body.clone());
        }
        assert_eq!(
            answered(shop.another().sink.describe(&resource())).unwrap().row.map(|row| row.epoch),
            Some(token(1).epoch)
        );
    }
}

#[test]
fn a_reopening_reaches_every_resource() {
    let shop = Shop::in_memory();
    let tokens: Vec<_> = (0..300)
        .map(|n| {
            let mut token = token(1);
            token.resource = tenure_core::ResourceName::new(format!("r{n}")).unwrap();
            shop.seal(&token);
            token
        })
        .collect();
    answered(shop.sink.reopen()).unwrap();
    for token in tokens {
        assert_eq!(sent(shop.sink.write(&token).put("value", "x")).unwrap(), unsealed());
    }
}
