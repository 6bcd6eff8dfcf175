//! Answers that do not come, come late, or belong to another attempt.

use super::wire::{Gate, Trouble, Wire};
use super::{Shop, failed, operation, sent, stale, written};
use crate::token;
use object_store::memory::InMemory;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::fence::{Rule, Sealing};
use tenure_core::{Replayed, Verdict};
use tenure_sink::conformance::answered;
use tenure_sink::object::Fate;
use tenure_sink::{Lookup, SinkError};

/// A store that repeats by itself what was not answered is told that the condition does not hold: by its own first attempt.
/// Whoever took that for a lost race would call a write that stands refused.
#[test]
fn a_refusal_of_the_second_attempt_is_no_refusal_of_the_first() {
    let (shop, wire) = Shop::wired();
    shop.seal(&token(1));
    for trouble in [Trouble::Twice, Trouble::LoseAnswer, Trouble::LoseRequest] {
        let value = format!("{trouble:?}");
        wire.plan("manifests", trouble);
        assert_eq!(shop.put(&token(1), &value), written(), "{value}");
        assert!(wire.is_done());
        assert_eq!(shop.value(), Some(value));
    }
    wire.plan("manifests", Trouble::LoseAnswer);
    let sealing = crate::seal(&shop.sink, &token(2)).unwrap();
    assert!(matches!(&sealing, Sealing::Seal(row) if row.seal_no == 2), "sealed twice: {sealing:?}");
    assert_eq!(shop.put(&token(1), "late"), stale(&token(1), &token(2)));
}

/// The same, and then the look for it failed once: it was said that nothing was written and nothing would be, while the new
/// content stood.
#[test]
fn a_refusal_that_cannot_be_looked_into_is_no_refusal() {
    let (shop, wire) = Shop::wired();
    let brief = shop.sink.clone().with_wait(Duration::from_millis(200));
    shop.seal(&token(1));
    // The first look is the write's own, the second one is for what became of it.
    wire.plan("manifests", Trouble::Twice);
    wire.blind([false, true]);
    assert_eq!(shop.put(&token(1), "found after all"), written());
    assert_eq!(shop.value().as_deref(), Some("found after all"));
    wire.plan("manifests", Trouble::Twice);
    wire.blind(std::iter::once(false).chain([true; 1000]));
    let fate = sent(brief.write(&token(1)).put("value", "out of sight"));
    assert!(matches!(fate, Ok(Fate::Unknown { .. })), "{fate:?}");
    wire.see();
    assert_eq!(shop.value().as_deref(), Some("out of sight"));
}

/// The same while somebody else's seal comes in between: the write stood, and the answer is that it stood.
#[test]
fn a_lost_answer_is_found_behind_another_s_change() {
    let (shop, wire) = Shop::wired();
    shop.seal(&token(1));
    let gate = Gate::closed();
    wire.plan("manifests", Trouble::Gate(Arc::clone(&gate)));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| shop.put(&token(1), "first"));
        gate.wait();
        // Before the write that waits at the gate, and so not before the seal is it lost.
        shop.another().seal(&token(2));
        gate.open();
        assert_eq!(writer.join().unwrap(), stale(&token(1), &token(2)));
    });
    assert_eq!(shop.value(), None);
    // And now behind the write, while the writer has not looked for its answer yet.
    let gate = Gate::closed();
    wire.plan("manifests", Trouble::LoseAnswer);
    wire.hold_reads(Arc::clone(&gate));
    let other = shop.another();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| other.put(&token(2), "second"));
        gate.wait();
        shop.seal(&token(3));
        gate.open();
        assert_eq!(writer.join().unwrap(), written());
    });
    assert_eq!(shop.value().as_deref(), Some("second"));
}

#[test]
fn a_write_that_nobody_can_tell_of_is_unknown_and_a_look_up_finds_it() {
    let (shop, wire) = Shop::wired();
    let sink = shop.sink.clone().with_wait(Duration::from_millis(200));
    shop.seal(&token(1));
    let order = operation("order-17", "paid");
    let write = sink.write(&token(1)).put("value", "paid").once(&order);
    wire.plan("manifests", Trouble::Late);
    let fate = sent(write).unwrap();
    assert!(matches!(&fate, Fate::Unknown { why } if why.contains("the connection broke")), "{fate:?}");
    wire.dark(false);
    assert_eq!(wire.release(), [true]);
    shop.seal(&token(2));
    let found = answered(shop.sink.lookup(&token(2), &order.id)).unwrap().unwrap();
    assert!(matches!(&found, Lookup::Found(found) if found.epoch == token(1).epoch && found.digest == order.digest));
    let again = shop.sink.write(&token(2)).put("value", "paid").once(&order);
    let replayed = Replayed { epoch: token(1).epoch, outcome: order.outcome };
    assert_eq!(sent(again).unwrap(), Fate::Judged(Verdict::Replay(replayed)));
}

/// A look-up under the *same* token said that the effect was absent, the operation was sent anew under another id, and then
/// the first request arrived after all.
#[test]
fn what_a_look_up_has_not_found_cannot_arrive_any_more() {
    let (shop, wire) = Shop::wired();
    let sink = shop.sink.clone().with_wait(Duration::from_millis(200));
    shop.seal(&token(1));
    let order = operation("order-18", "paid");
    wire.plan("manifests", Trouble::Late);
    let fate = sent(sink.write(&token(1)).put("value", "paid").once(&order)).unwrap();
    assert!(matches!(fate, Fate::Unknown { .. }), "{fate:?}");
    wire.dark(false);
    assert_eq!(answered(shop.sink.lookup(&token(1), &order.id)).unwrap(), Ok(Lookup::Absent));
    assert_eq!(wire.release(), [false], "it has landed behind the look-up");
    assert_eq!(shop.value(), None);
    let again = shop.sink.write(&token(1)).put("value", "paid").once(&order);
    assert_eq!(sent(again).unwrap(), written());
}

/// The same for a bare write, whose successor seals instead of looking.
#[test]
fn what_arrives_behind_a_seal_is_refused() {
    let (shop, wire) = Shop::wired();
    let sink = shop.sink.clone().with_wait(Duration::from_millis(200));
    shop.seal(&token(1));
    wire.plan("manifests", Trouble::Late);
    let fate = sent(sink.write(&token(1)).put("value", "late")).unwrap();
    assert!(matches!(fate, Fate::Unknown { .. }), "{fate:?}");
    wire.dark(false);
    shop.another().seal(&token(2));
    assert_eq!(wire.release(), [false]);
    assert_eq!(shop.value(), None);
}

/// So many changes followed that the manifest does not name the lost one any more. With an operation its record tells; a bare
/// write stays unknown. After a refusal that was one of the write itself, it was written a second time, over what had followed.
#[test]
fn what_is_too_long_ago_is_told_by_the_operation_alone() {
    let order = || Some(operation("order-19", "paid"));
    for (order, is_refused, is_blind) in [
        (order(), false, false),
        (None, false, false),
        (order(), true, false),
        (None, true, false),
        // Nor is it an error where the record cannot be looked for.
        (order(), false, true),
    ] {
        let (shop, wire) = Shop::wired();
        shop.seal(&token(1));
        let other = shop.another();
        let gate = Gate::closed();
        // The put is lost on its way back; the look for it waits until twenty others have come.
        wire.plan("manifests", if is_refused { Trouble::Twice } else { Trouble::LoseAnswer });
        let follow = || {
            for n in 0..20 {
                assert_eq!(other.put(&token(1), &format!("other {n}")), written());
            }
        };
        let mut write = shop.sink.write(&token(1)).put("value", "paid");
        if let Some(order) = &order {
            write = write.once(order);
        }
        wire.hold_reads(Arc::clone(&gate));
        let fate = std::thread::scope(|scope| {
            let writer = scope.spawn(|| sent(write).unwrap());
            gate.wait();
            follow();
            wire.blind(is_blind.then_some(true));
            gate.open();
            writer.join().unwrap()
        });
        assert_eq!(shop.value().as_deref(), Some("other 19"));
        match (order.filter(|_| !is_blind), fate) {
            (Some(order), Fate::Judged(Verdict::Replay(replayed))) => assert_eq!(replayed.outcome, order.outcome),
            (None, Fate::Unknown { .. }) => {}
            (_, other) => panic!("{other:?}"),
        }
    }
}

/// A store that names versions by a digest of the body takes A, B, A for unchanged. A seal has read a blank manifest and the
/// sink's record; a reopening touches the manifest, which says nothing new in it; then the seal's put arrives.
#[test]
fn no_two_bodies_are_equal_so_that_a_reopening_is_not_overlooked() {
    let wire = Wire::hashed(Arc::new(InMemory::new()));
    let shop = Shop::create(wire.clone(), Rule::Sealed);
    let other = shop.another();
    let gate = Gate::closed();
    let generation = answered(tenure_sink::Sink::describe(&shop.sink, &super::resource())).unwrap().generation;
    // The first put makes the blank one; the second is the seal's.
    let (blank, seal) = (Gate::closed(), Arc::clone(&gate));
    wire.plan("manifests", Trouble::Gate(Arc::clone(&blank)));
    wire.plan("manifests", Trouble::Gate(seal));
    blank.open();
    let sealing = std::thread::scope(|scope| {
        let sealer = scope.spawn(|| crate::seal(&shop.sink, &token(1)).unwrap());
        gate.wait();
        let reopened = answered(tenure_sink::Sink::reopen(&other.sink)).unwrap();
        assert_ne!(reopened, generation);
        gate.open();
        (sealer.join().unwrap(), reopened)
    });
    assert_eq!(sealing.0, Sealing::WrongGeneration { current: sealing.1 });
    assert_eq!(shop.put(&token(1), "late"), Fate::Judged(Verdict::Unsealed));
}

#[test]
fn a_refusal_of_the_store_is_certain() {
    let (shop, wire) = Shop::wired();
    shop.seal(&token(1));
    for key in ["manifests", "objects"] {
        wire.plan(key, Trouble::Refuse);
        let error = failed(shop.sink.write(&token(1)).put("value", "paid"));
        assert!(matches!(error, SinkError::Failed { .. }), "{error:?}");
        assert!(error.to_string().contains("docs/object-sink.md"), "{error}");
        assert!(wire.is_done());
        assert_eq!(shop.value(), None);
    }
    assert_eq!(shop.put(&token(1), "paid"), written());
}

/// Nothing is lost with an upload: the manifest was not asked yet.
#[test]
fn an_upload_that_fails_is_no_unknown() {
    let (shop, wire) = Shop::wired();
    shop.seal(&token(1));
    wire.plan("objects", Trouble::LoseAnswer);
    let error = failed(shop.sink.write(&token(1)).put("value", "paid"));
    assert!(error.is_transient(), "{error}");
    assert_eq!(shop.value(), None);
    assert_eq!(shop.put(&token(1), "paid"), written());
    assert_eq!(shop.keys("objects").len(), 2);
}
