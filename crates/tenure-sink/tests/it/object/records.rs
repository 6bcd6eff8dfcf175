//! Operations that are too many for the manifest.

use super::{Shop, operation, sent, stale, written};
use crate::token;
use tenure_core::{Replayed, Verdict};
use tenure_sink::Lookup;
use tenure_sink::conformance::answered;
use tenure_sink::object::Fate;

/// However many follow, an operation is effective once; and the manifest does not grow with them.
#[test]
fn an_operation_is_remembered_for_ever() {
    let shop = Shop::in_memory();
    shop.seal(&token(1));
    let order = |n: u32| operation(&format!("order-{n}"), "paid");
    for n in 0..200 {
        let write = shop.sink.write(&token(1)).remove("none").once(&order(n));
        assert_eq!(sent(write).unwrap(), written(), "{n}");
    }
    let (_, manifest) = shop.manifest();
    let kept = manifest["operations"].as_array().unwrap().len();
    assert!(kept <= 64, "{kept} operations stand in the manifest");
    assert_eq!(shop.keys("operations").len(), 200 - kept);
    assert_eq!(manifest["spilled"], 200 - kept);
    shop.seal(&token(2));
    let other = shop.another();
    for n in (0..200).step_by(7) {
        let replayed = Replayed { epoch: token(1).epoch, outcome: order(n).outcome };
        let again = other.sink.write(&token(2)).put("value", "twice").once(&order(n));
        assert_eq!(sent(again).unwrap(), Fate::Judged(Verdict::Replay(replayed)), "{n}");
        let found = answered(other.sink.lookup(&token(2), &order(n).id)).unwrap().unwrap();
        assert!(matches!(found, Lookup::Found(found) if found.epoch == token(1).epoch), "{n}");
        let content = operation(&format!("order-{n}"), "other");
        let other_content = other.sink.write(&token(2)).put("value", "other").once(&content);
        assert_eq!(sent(other_content).unwrap(), Fate::Judged(Verdict::Conflict { current: token(1).epoch }), "{n}");
        // The token comes before the replay.
        let late = shop.sink.write(&token(1)).put("value", "late").once(&order(n));
        assert_eq!(sent(late).unwrap(), stale(&token(1), &token(2)));
    }
    assert_eq!(shop.value(), None);
}

/// A record of another operation, or a damaged one, is not taken for an absence.
#[test]
fn a_record_that_no_sink_wrote_is_damage() {
    let shop = Shop::in_memory();
    shop.seal(&token(1));
    for n in 0..100 {
        let write = shop.sink.write(&token(1)).remove("none").once(&operation(&format!("order-{n}"), "paid"));
        assert_eq!(sent(write).unwrap(), written());
    }
    let mut records = shop.keys("operations");
    let (first, body) = records.remove(0);
    let text = String::from_utf8(body.to_vec()).unwrap();
    let name: serde_json::Value = serde_json::from_str(&text).unwrap();
    let name = crate::operation(name["operation"].as_str().unwrap());
    for bad in [text.replace("\"schema\":1", "\"schema\":2"), text.replace("order-", "other-"), "{".to_owned()] {
        shop.plant(&first, bad.clone());
        let looked = answered(shop.another().sink.lookup(&token(1), &name));
        assert!(looked.is_err(), "{bad}: {looked:?}");
        let write = shop.another().sink.write(&token(1)).put("value", "x").once(&operation(name.as_str(), "paid"));
        assert!(sent(write).is_err(), "{bad}");
    }
    assert_eq!(shop.value(), None);
}
