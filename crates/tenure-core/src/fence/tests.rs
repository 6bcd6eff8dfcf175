use super::*;
use crate::ResourceName;

fn token(epoch: u64, grant: u128) -> Token {
    Token {
        resource: ResourceName::new("r").unwrap(),
        epoch: Epoch::new(epoch).unwrap(),
        grant: GrantId::from_bits(grant),
    }
}

fn generation(name: &str) -> Generation {
    Generation::new(name).unwrap()
}

fn sealed(token: &Token) -> FenceRow {
    match seal(None, None, &generation("g"), token, &generation("g"), &BTreeSet::new()) {
        Sealing::Seal(row) => row,
        other => panic!("{other:?}"),
    }
}

fn verdict(admission: Admission) -> Verdict {
    match admission {
        Admission::Admit | Admission::Raise(_) => Verdict::Written,
        Admission::Refuse(verdict) => verdict,
    }
}

#[test]
fn i3_the_sealed_rule_takes_the_registered_token_and_nothing_else() {
    let g = generation("g");
    let row = sealed(&token(2, 20));
    let judge = |token: &Token, g: &Generation| verdict(admit(Rule::Sealed, Some(&row), None, g, token));
    assert_eq!(judge(&token(2, 20), &g), Verdict::Written);
    assert_eq!(judge(&token(1, 10), &g).name(), "stale");
    assert_eq!(judge(&token(2, 21), &g).name(), "conflict");
    assert_eq!(judge(&token(3, 30), &g), Verdict::Unsealed);
    assert_eq!(judge(&token(2, 20), &generation("h")), Verdict::Unsealed);
}

/// A row that somebody has damaged is judged like any other: counting on overflowed.
#[test]
fn the_largest_number_of_a_seal_is_no_panic() {
    let g = generation("g");
    let row = FenceRow { seal_no: u64::MAX, ..sealed(&token(2, 20)) };
    let sealing = seal(Some(&row), None, &g, &token(3, 30), &g, &BTreeSet::new());
    assert!(matches!(sealing, Sealing::Seal(FenceRow { seal_no: u64::MAX, .. })), "{sealing:?}");
    let raised = admit(Rule::HighWater, Some(&row), None, &g, &token(3, 30));
    assert!(matches!(raised, Admission::Raise(FenceRow { seal_no: u64::MAX, .. })), "{raised:?}");
}

#[test]
fn i11_a_sink_without_a_row_accepts_nothing() {
    let g = generation("g");
    assert_eq!(verdict(admit(Rule::Sealed, None, None, &g, &token(1, 1))), Verdict::Unsealed);
    let floor = Epoch::new(5).ok();
    assert_eq!(verdict(admit(Rule::Sealed, None, floor, &g, &token(5, 1))).name(), "stale");
    assert_eq!(verdict(admit(Rule::Sealed, None, floor, &g, &token(6, 1))), Verdict::Unsealed);
}

#[test]
fn the_high_water_rule_has_the_gap() {
    let g = generation("g");
    let Admission::Raise(first) = admit(Rule::HighWater, None, None, &g, &token(1, 1)) else { panic!("refused") };
    // Epoch 2 is granted, but the sink has not heard of it: the old write is accepted.
    assert_eq!(admit(Rule::HighWater, Some(&first), None, &g, &token(1, 1)), Admission::Admit);
    let Admission::Raise(second) = admit(Rule::HighWater, Some(&first), None, &g, &token(2, 2)) else {
        panic!("refused")
    };
    assert_eq!(verdict(admit(Rule::HighWater, Some(&second), None, &g, &token(1, 1))).name(), "stale");
    assert_eq!(verdict(admit(Rule::HighWater, Some(&second), None, &g, &token(2, 3))).name(), "conflict");
}

#[test]
fn a_seal_keeps_the_union_of_the_enrolments_and_counts() {
    let g = generation("g");
    let (a, b) = (SinkId::new("a").unwrap(), SinkId::new("b").unwrap());
    let first = seal(None, None, &g, &token(1, 1), &g, &BTreeSet::from([a.clone()]));
    let Sealing::Seal(first) = first else { panic!("refused") };
    let second = seal(Some(&first), None, &g, &token(2, 2), &g, &BTreeSet::from([b.clone()]));
    let Sealing::Seal(second) = second else { panic!("refused") };
    assert_eq!((second.seal_no, second.enrolled), (2, BTreeSet::from([a, b])));
}

#[test]
fn a_seal_is_refused_by_what_is_newer_by_the_floor_and_by_another_generation() {
    let (g, none) = (generation("g"), BTreeSet::new());
    let row = sealed(&token(2, 20));
    assert!(matches!(seal(Some(&row), None, &g, &token(1, 1), &g, &none), Sealing::Stale { .. }));
    assert!(matches!(seal(Some(&row), None, &g, &token(2, 1), &g, &none), Sealing::Conflict { .. }));
    assert!(matches!(
        seal(Some(&row), None, &g, &token(3, 1), &generation("old"), &none),
        Sealing::WrongGeneration { .. }
    ));
    assert!(matches!(seal(None, Epoch::new(3).ok(), &g, &token(3, 1), &g, &none), Sealing::BelowFloor { .. }));
}

#[test]
fn i9_forgetting_raises_the_floor_and_never_drops_a_row_above_the_cut() {
    let row = sealed(&token(4, 1));
    assert!(matches!(forget(Some(&row), None, Epoch::new(3).unwrap()), Forgetting::Above { .. }));
    assert_eq!(forget(Some(&row), None, Epoch::new(4).unwrap()), Forgetting::Forget { floor: Epoch::new(4).unwrap() });
    // A late one with an old cut lowers nothing.
    assert_eq!(
        forget(None, Epoch::new(9).ok(), Epoch::new(4).unwrap()),
        Forgetting::Forget { floor: Epoch::new(9).unwrap() }
    );
}
