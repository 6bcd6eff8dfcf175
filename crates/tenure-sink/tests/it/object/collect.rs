//! What is removed, and what is not.

use super::{Shop, sent, stale, written};
use crate::token;
use object_store::memory::InMemory;
use std::sync::Arc;
use tenure_core::Verdict;
use tenure_core::fence::Rule;
use tenure_sink::conformance::answered;
use tenure_sink::object::Collected;

fn collect(shop: &Shop, epoch: u64) -> Collected {
    answered(shop.sink.collect(&token(epoch))).unwrap().unwrap()
}

/// An old writer has uploaded and is stopped; its successor collects; the old one wakes. It must neither name what is gone, nor
/// may what it uploads afterwards stay for ever.
#[test]
fn an_old_writer_that_wakes_finds_its_object_gone_and_is_refused() {
    for rule in [Rule::Sealed, Rule::HighWater] {
        let shop = Shop::create(Arc::new(InMemory::new()), rule);
        let old = shop.another();
        let grant = |shop: &Shop, epoch| {
            if rule == Rule::Sealed {
                shop.seal(&token(epoch));
            }
        };
        grant(&shop, 1);
        assert_eq!(old.put(&token(1), "kept"), written());
        let mut upload = answered(old.sink.upload(&token(1))).unwrap().unwrap();
        answered(upload.write("stopped")).unwrap();
        let staged = answered(upload.finish()).unwrap();
        let mut second = answered(old.sink.upload(&token(1))).unwrap().unwrap();
        answered(second.write("on its way")).unwrap();
        grant(&shop, 2);
        assert_eq!(collect(&shop, 2), Collected { removed: 1, bytes: 7, kept: 1 });
        assert_eq!(shop.value().as_deref(), Some("kept"), "what a name stands for was removed");
        assert_eq!(sent(old.sink.write(&token(1)).place("value", staged)).unwrap(), stale(&token(1), &token(2)));
        // It was on its way when the collection was made, and nobody will ever name it.
        let late = answered(second.finish()).unwrap();
        assert_eq!(sent(old.sink.write(&token(1)).place("value", late)).unwrap(), stale(&token(1), &token(2)));
        assert_eq!(collect(&shop, 2), Collected { removed: 1, bytes: 10, kept: 1 });
        assert_eq!(shop.value().as_deref(), Some("kept"));
    }
}

#[test]
fn what_this_epoch_uploads_stays_and_what_it_has_replaced_goes() {
    let shop = Shop::in_memory();
    shop.seal(&token(1));
    for value in ["a", "bb", "ccc"] {
        assert_eq!(shop.put(&token(1), value), written());
    }
    let mut upload = answered(shop.sink.upload(&token(1))).unwrap().unwrap();
    answered(upload.write("on its way")).unwrap();
    let staged = answered(upload.finish()).unwrap();
    assert_eq!(shop.keys("objects").len(), 4);
    assert_eq!(collect(&shop, 1), Collected { removed: 2, bytes: 3, kept: 2 });
    assert_eq!(collect(&shop, 1), Collected { removed: 0, bytes: 0, kept: 2 });
    assert_eq!(sent(shop.sink.write(&token(1)).place("value", staged)).unwrap(), written());
    assert_eq!(shop.value().as_deref(), Some("on its way"));
    assert_eq!(sent(shop.sink.write(&token(1)).remove("value")).unwrap(), written());
    assert_eq!(collect(&shop, 1), Collected { removed: 2, bytes: 13, kept: 0 });
    assert!(shop.keys("objects").is_empty());
}

/// More was replaced in one epoch than the manifest remembers: the next epoch finds it by listing.
#[test]
fn what_the_manifest_does_not_remember_is_found_by_listing() {
    let shop = Shop::in_memory();
    shop.seal(&token(1));
    for n in 0..300 {
        assert_eq!(shop.put(&token(1), &format!("{n}")), written());
    }
    assert_eq!(collect(&shop, 1).kept, 300 - 256);
    shop.seal(&token(2));
    assert_eq!(collect(&shop, 2).kept, 1);
    assert_eq!(shop.value().as_deref(), Some("299"));
}

#[test]
fn a_collector_is_a_writer_like_others() {
    let shop = Shop::in_memory();
    shop.seal(&token(1));
    for value in ["a", "b"] {
        assert_eq!(shop.put(&token(1), value), written());
    }
    let collect = |epoch| answered(shop.sink.collect(&token(epoch))).unwrap();
    assert_eq!(collect(2), Err(Verdict::Unsealed));
    shop.seal(&token(2));
    let late = Verdict::Stale { presented: token(1).epoch, current: token(2).epoch };
    assert_eq!(collect(1), Err(late));
    answered(tenure_sink::Sink::reopen(&shop.sink)).unwrap();
    assert_eq!(collect(2), Err(Verdict::Unsealed));
    assert_eq!(shop.keys("objects").len(), 2, "somebody without the right has removed something");
}

/// What was uploaded under one epoch may be collected under the next, and so only that epoch may name it.
#[test]
fn an_upload_is_named_by_its_own_epoch_alone() {
    let shop = Shop::in_memory();
    shop.seal(&token(1));
    let staged = || {
        let mut upload = answered(shop.sink.upload(&token(1))).unwrap().unwrap();
        answered(upload.write("old")).unwrap();
        answered(upload.finish()).unwrap()
    };
    let (old, elsewhere) = (staged(), staged());
    shop.seal(&token(2));
    let said = sent(shop.sink.write(&token(2)).place("value", old)).unwrap_err().to_string();
    assert!(said.contains("epoch 1") && said.contains("upload it again"), "{said}");
    let mut other = token(2);
    other.resource = tenure_core::ResourceName::new("other").unwrap();
    let said = sent(shop.sink.write(&other).place("value", elsewhere)).unwrap_err().to_string();
    assert!(said.contains("upload it there"), "{said}");
}

/// Whatever else lies there is somebody else's.
#[test]
fn what_is_no_object_of_the_sink_stays() {
    let shop = Shop::in_memory();
    shop.seal(&token(1));
    assert_eq!(shop.put(&token(1), "a"), written());
    let (key, _) = shop.keys("objects").remove(0);
    let mine = object_store::path::Path::from(format!("{}/mine.txt", key.parent().unwrap()));
    shop.plant(&mine, "somebody's");
    shop.seal(&token(2));
    collect(&shop, 2);
    assert_eq!(shop.keys("objects").len(), 2);
}
