//! Whose turn it is: every verdict on a token.

use super::Clause;
use super::world::{World, of, operation, stale, token};
use crate::SinkError;
use std::collections::BTreeSet;
use tenure_core::fence::Sealing;
use tenure_core::{Epoch, Verdict};

pub(super) const BOTH: &[Clause] = &[
    ("a write of the holder lands", a_write_of_the_holder_lands),
    ("I1: an older epoch is stale and changes nothing", an_older_epoch_is_stale),
    ("I3: the same epoch with another grant is a conflict", another_grant_is_a_conflict),
    ("resources do not share epochs", resources_do_not_share_epochs),
    ("resource names of any form are kept apart", names_are_kept_apart),
    ("the largest epochs are ordered like all others", the_largest_epochs),
];

pub(super) const SEALED: &[Clause] = &[
    ("I11: a sink without a row accepts nothing", without_a_row_nothing),
    ("a newer token is unsealed until it is sealed", newer_is_unsealed),
    ("I2: the gap is closed by the seal", the_gap_is_closed),
    ("a seal of an older or another token is refused", old_seals_are_refused),
];

pub(super) const HIGH_WATER: &[Clause] = &[
    ("a high-water sink is never sealed", high_water_is_never_sealed),
    ("high water has the gap", high_water_has_the_gap),
    ("the row is raised once and not written again", the_row_is_raised_once),
];

fn a_write_of_the_holder_lands(world: &World) {
    let first = token(1);
    assert_eq!(world.sut.value(&first.resource), None);
    world.grant(&first);
    assert_eq!(world.write(&first, "a"), Verdict::Written);
    world.value_is(&first, "a");
    assert_eq!(world.write(&first, "b"), Verdict::Written);
    world.value_is(&first, "b");
}

fn an_older_epoch_is_stale(world: &World) {
    let (first, second) = (token(1), token(2));
    world.grant(&first);
    assert_eq!(world.write(&first, "old"), Verdict::Written);
    world.grant(&second);
    assert_eq!(world.write(&second, "new"), Verdict::Written);
    assert_eq!(world.write(&first, "late"), stale(&first, &second));
    world.value_is(&first, "new");
    assert_eq!(world.write(&second, "newer"), Verdict::Written);
}

fn another_grant_is_a_conflict(world: &World) {
    let (mine, other) = (token(3), of("r", 3, 99));
    world.grant(&mine);
    assert_eq!(world.write(&mine, "mine"), Verdict::Written);
    assert_eq!(world.write(&other, "other"), Verdict::Conflict { current: mine.epoch });
    world.value_is(&mine, "mine");
}

fn resources_do_not_share_epochs(world: &World) {
    let (high, low) = (of("one", 9, 1), of("two", 1, 2));
    world.grant(&high);
    world.grant(&low);
    assert_eq!(world.write(&high, "one"), Verdict::Written);
    assert_eq!(world.write(&low, "two"), Verdict::Written);
    world.value_is(&high, "one");
    world.value_is(&low, "two");
}

fn names_are_kept_apart(world: &World) {
    let long = "ü".repeat(256);
    let longer_by_case = format!("{}Ü", "ü".repeat(255));
    let names = ["a/b", "a\\b", "..", "../r", ".", "A/B", "a%2Fb", "a@1:2", "'; --", &long, &longer_by_case];
    for (name, epoch) in names.iter().zip(1..) {
        let token = of(name, epoch, 1);
        world.grant(&token);
        assert_eq!(world.write(&token, name), Verdict::Written, "{name:?}");
    }
    for (name, epoch) in names.iter().zip(1..) {
        world.value_is(&of(name, epoch, 1), name);
    }
}

fn the_largest_epochs(world: &World) {
    let (largest, before) = (token(Epoch::MAX_VALUE), token(Epoch::MAX_VALUE - 1));
    world.grant(&before);
    assert_eq!(world.write(&before, "before"), Verdict::Written);
    world.grant(&largest);
    assert_eq!(world.write(&largest, "largest"), Verdict::Written);
    assert_eq!(world.write(&before, "late"), stale(&before, &largest));
    world.value_is(&largest, "largest");
    assert_eq!(world.describe(&largest.resource).row.map(|row| row.epoch), Some(largest.epoch));
}

fn without_a_row_nothing(world: &World) {
    assert_eq!(world.write(&token(1), "a"), Verdict::Unsealed);
    assert_eq!(world.write(&token(Epoch::MAX_VALUE), "a"), Verdict::Unsealed);
    assert_eq!(world.sut.value(&token(1).resource), None);
    assert_eq!(world.describe(&token(1).resource).row, None, "a refused write registered something");
}

fn newer_is_unsealed(world: &World) {
    world.grant(&token(1));
    assert_eq!(world.write(&token(2), "early"), Verdict::Unsealed);
    assert_eq!(world.write(&token(1), "a"), Verdict::Written, "the early write has raised the fence");
    world.grant(&token(2));
    assert_eq!(world.write(&token(2), "b"), Verdict::Written);
}

fn the_gap_is_closed(world: &World) {
    let (old, new) = (token(1), token(2));
    world.grant(&old);
    world.grant(&new);
    assert_eq!(world.write(&old, "late"), stale(&old, &new));
    assert_eq!(world.sut.value(&old.resource), None);
    assert_eq!(world.write(&new, "new"), Verdict::Written);
    assert_eq!(world.write(&old, "later"), stale(&old, &new));
    world.value_is(&new, "new");
}

fn old_seals_are_refused(world: &World) {
    let current = token(5);
    world.grant(&current);
    let row = world.describe(&current.resource).row;
    assert_eq!(world.seal(&token(4)), Sealing::Stale { epoch: current.epoch, grant: current.grant });
    assert_eq!(world.seal(&of("r", 5, 1)), Sealing::Conflict { epoch: current.epoch, grant: current.grant });
    assert_eq!(world.describe(&current.resource).row, row, "a refused seal changed the row");
    assert_eq!(world.write(&current, "a"), Verdict::Written);
}

fn high_water_is_never_sealed(world: &World) {
    let first = token(1);
    let generation = world.describe(&first.resource).generation;
    let sealed = super::answered(world.sut.sink().seal(&first, &generation, &BTreeSet::new()));
    assert!(matches!(sealed, Err(SinkError::NeverSealed { .. })), "{sealed:?}");
    assert_eq!(world.describe(&first.resource).row, None);
}

fn high_water_has_the_gap(world: &World) {
    // Epoch 2 is granted from here on, and the sink has not heard of it.
    let (old, new) = (token(1), token(2));
    assert_eq!(world.write(&old, "late"), Verdict::Written);
    world.value_is(&old, "late");
    assert_eq!(world.write(&new, "new"), Verdict::Written);
    assert_eq!(world.write(&old, "later"), stale(&old, &new));
    world.value_is(&new, "new");
}

fn the_row_is_raised_once(world: &World) {
    let first = token(1);
    assert_eq!(world.write(&first, "a"), Verdict::Written);
    let raised = world.describe(&first.resource).row;
    assert_eq!(raised.as_ref().map(|row| (row.epoch, row.grant, row.seal_no)), Some((first.epoch, first.grant, 1)));
    assert_eq!(world.write(&first, "b"), Verdict::Written);
    assert_eq!(world.apply(&first, &operation("op"), "c"), Verdict::Written);
    assert_eq!(world.describe(&first.resource).row, raised);
    assert_eq!(world.write(&token(4), "d"), Verdict::Written);
    assert_eq!(world.describe(&first.resource).row.map(|row| row.seal_no), Some(2));
}
