use super::{Manifest, Object, Opening, Recorded};
use crate::object::nonce::{Key, Nonce};
use crate::{Found, SinkError};
use proptest::collection::{btree_set, vec};
use proptest::prelude::{any, proptest};
use proptest::strategy::Strategy;
use std::collections::BTreeSet;
use tenure_core::fence::{FenceRow, Rule};
use tenure_core::{Digest, Epoch, Generation, GrantId, OperationId, Outcome, ResourceName, SinkId};

fn blank() -> Manifest {
    Manifest::blank(&ResourceName::new("r").unwrap(), Rule::Sealed, nonce())
}

fn nonce() -> Nonce {
    Nonce::draw("a test").unwrap()
}

fn recorded(name: &str, outcome: &str) -> Recorded {
    let (epoch, digest, outcome) = (Epoch::FIRST, Digest([7; 32]), Outcome::new(outcome).unwrap());
    Recorded { id: OperationId::new(name).unwrap(), seal_no: 1, found: Found { epoch, digest, outcome } }
}

/// Versions are digests of the body on S3. Were two bodies equal, a put on the condition of the first would land on the second.
#[test]
fn a_change_that_changes_nothing_has_a_body_of_its_own() {
    let first = blank();
    let (second, third) = (first.next(nonce()), first.next(nonce()));
    let bodies: BTreeSet<Vec<u8>> = [&first, &second, &third].map(|one| one.to_bytes("p").unwrap()).into();
    assert_eq!(bodies.len(), 3);
    let fourth = second.next(nonce());
    assert!(fourth.carries(first.nonce) && fourth.carries(second.nonce) && !fourth.carries(third.nonce));
}

#[test]
fn the_trail_is_bounded_and_says_when_it_is_not_the_whole_story() {
    let first = blank();
    let mut last = first.clone();
    for _ in 0..15 {
        last = last.next(nonce());
    }
    assert!(last.is_whole_story() && last.carries(first.nonce));
    last = last.next(nonce());
    assert!(!last.is_whole_story() && last.carries(first.nonce));
    last = last.next(nonce());
    assert!(!last.carries(first.nonce));
}

/// A record is put before the manifest that has it no more, and so it must be of a change that stands: never of the newest.
#[test]
fn the_newest_operation_is_not_spilled() {
    let mut full = blank();
    full.record(recorded("long", &"x".repeat(tenure_core::TEXT_BYTES_MAX)));
    full.record(recorded("longer", &"x".repeat(tenure_core::TEXT_BYTES_MAX)));
    assert!(full.spill().is_empty());
    full.record(recorded("longest", &"x".repeat(tenure_core::TEXT_BYTES_MAX)));
    let spilled: Vec<_> = full.spill().into_iter().map(|one| one.id.to_string()).collect();
    assert_eq!(spilled, ["long", "longer"]);
    assert!(full.operation(&OperationId::new("longest").unwrap()).is_some());
    assert_eq!(full.spilled, 2);
}

#[test]
fn a_name_that_is_replaced_drops_its_object_and_no_other() {
    let object = |n: u64| Object { key: Key::new(Epoch::new(n).unwrap(), nonce()), bytes: n };
    let (a, b, c) = (object(1), object(2), object(3));
    let mut one = blank();
    one.name("a", a.clone());
    one.name("b", b.clone());
    one.name("a", c.clone());
    one.unname("none");
    assert_eq!(one.dropped().collect::<Vec<_>>(), [a.key]);
    assert_eq!(one.names.values().collect::<Vec<_>>(), [&c, &b]);
    one.unname("b");
    one.removed(&[a.key]);
    assert_eq!(one.dropped().collect::<Vec<_>>(), [b.key]);
}

#[test]
fn a_key_is_read_as_it_is_written_and_no_other_way() {
    let key = Key::new(Epoch::new(Epoch::MAX_VALUE).unwrap(), nonce());
    assert_eq!(key.to_string().parse::<Key>(), Ok(key));
    let good = key.to_string();
    for bad in [
        good.to_uppercase() + "0",
        format!("+{}", &good[1..]),
        good.replace('-', "_"),
        format!("{good}/x"),
        String::new(),
    ] {
        assert!(bad.parse::<Key>().is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn a_manifest_comes_back_as_it_was(
        names in vec(("\\PC{1,20}", any::<u64>(), 1_u64..=Epoch::MAX_VALUE), 0..5),
        operations in vec(("[^\\p{Cc}]{1,20}", ".{0,40}"), 0..5),
        sinks in btree_set("[a-z]{1,8}", 0..4),
        epoch in 1_u64..=Epoch::MAX_VALUE,
        seal_no in any::<u64>(),
        is_registered in any::<bool>(),
        floor in (1_u64..=Epoch::MAX_VALUE).prop_map(|floor| Epoch::new(floor).ok()),
    ) {
        let mut made = blank().next(nonce()).next(nonce());
        made.floor = floor;
        let generation = Generation::new("object:x:1:y").unwrap();
        if is_registered {
            made.opening = Some(Opening { count: seal_no, generation: generation.clone() });
            made.row = Some(FenceRow {
                epoch: Epoch::new(epoch).unwrap(),
                grant: GrantId::from_bits(u128::from(epoch) << 64),
                generation,
                seal_no,
                enrolled: sinks.iter().map(|name| SinkId::new(name).unwrap()).collect(),
            });
        }
        for (name, bytes, epoch) in names {
            made.name(&name, Object { key: Key::new(Epoch::new(epoch).unwrap(), nonce()), bytes });
        }
        for (name, outcome) in operations {
            if let (Ok(id), Ok(_)) = (OperationId::new(&name), Outcome::new(&outcome)) {
                made.record(Recorded { id, ..recorded("x", &outcome) });
            }
        }
        let body = made.to_bytes("p").unwrap();
        assert_eq!(Manifest::parse("p", &made.resource, Rule::Sealed, &body).unwrap(), made);
    }

    /// Whatever stands there, it is refused, and nothing panics.
    #[test]
    fn no_body_makes_it_panic(body in vec(any::<u8>(), 0..200), cut in 0_usize..300, at in 0_usize..300, byte in any::<u8>()) {
        let _ = Manifest::parse_any("p", Rule::Sealed, &body);
        let mut good = blank().next(nonce()).to_bytes("p").unwrap();
        let length = good.len();
        good[at % length] = byte;
        good.truncate(cut);
        let parsed = Manifest::parse_any("p", Rule::Sealed, &good);
        assert!(cut >= length || matches!(parsed, Err(SinkError::Corrupt { .. })), "{parsed:?}");
    }
}
