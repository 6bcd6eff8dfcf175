//! What a sink never forgets, and what it is told to.

use super::Clause;
use super::world::{World, answered, of, operation, patiently, sinks, stale, token};
use tenure_core::fence::{Forgetting, Sealing};
use tenure_core::{Epoch, ResourceName, Verdict};

pub(super) const BOTH: &[Clause] = &[
    ("a sink that is not there is an error and stays away", missing_stays_missing),
    ("the fence and the records outlive every handle", the_fence_outlives_its_handles),
    ("I9: a forgotten resource is closed up to the cut", forgotten_is_closed),
    ("forgetting is refused above the cut", above_the_cut_it_stays),
    ("a late forgetting with an old cut lowers nothing", a_late_cut_lowers_nothing),
    ("forgetting what was never there raises the floor", forgetting_the_unknown),
    ("an operation is effective once, also after forgetting", once_after_forgetting),
];

pub(super) const SEALED: &[Clause] = &[
    ("a seal repeated is the same seal, and its number grows", a_seal_repeated),
    ("the union of all enrolments is kept and returned", the_union_is_kept),
    ("a seal at or below the floor is refused", no_seal_below_the_floor),
];

fn forget(world: &World, resource: &ResourceName, cut: u64) -> Forgetting {
    let cut = Epoch::new(cut).unwrap_or_else(|error| unreachable!("{error}"));
    patiently(|| answered(world.sut.sink().forget(resource, cut)))
}

fn missing_stays_missing(world: &World) {
    let (error, there) = world.sut.open_missing();
    let error = error.map(|error| error.to_string());
    assert!(error.as_ref().is_some_and(|error| error.contains("is not there")), "{error:?}");
    assert!(!there, "opening has created it");
}

fn the_fence_outlives_its_handles(world: &World) {
    let (first, second) = (token(1), token(2));
    world.grant(&first);
    assert_eq!(world.apply(&first, &operation("one"), "a"), Verdict::Written);
    world.grant(&second);
    assert_eq!(world.write(&second, "b"), Verdict::Written);
    let before = world.describe(&first.resource);
    let after = World::new(world.sut.another());
    assert_eq!(after.describe(&first.resource), before);
    assert_eq!(after.write(&first, "late"), stale(&first, &second));
    assert_eq!(after.apply(&second, &operation("one"), "a").name(), "replay");
    assert_eq!(after.write(&second, "c"), Verdict::Written);
    world.value_is(&second, "c");
}

fn forgotten_is_closed(world: &World) {
    let (held, cut, above) = (token(4), token(5), token(6));
    world.grant(&held);
    assert_eq!(world.write(&held, "a"), Verdict::Written);
    assert_eq!(forget(world, &held.resource, 5), Forgetting::Forget { floor: cut.epoch });
    let described = world.describe(&held.resource);
    assert_eq!((described.row, described.floor), (None, Some(cut.epoch)));
    assert_eq!(world.write(&held, "late"), stale(&held, &cut));
    assert_eq!(world.write(&cut, "late"), stale(&cut, &cut));
    // The floor is the namespace's: a resource of another name learns from the refusal to acquire above it.
    assert_eq!(world.write(&of("other", 5, 1), "late").name(), "stale");
    world.value_is(&held, "a");
    world.grant(&above);
    assert_eq!(world.write(&above, "b"), Verdict::Written);
}

fn above_the_cut_it_stays(world: &World) {
    let held = token(4);
    world.grant(&held);
    assert_eq!(world.write(&held, "a"), Verdict::Written);
    let before = world.describe(&held.resource);
    let refused = Forgetting::Above { epoch: held.epoch, grant: held.grant };
    assert_eq!(forget(world, &held.resource, 3), refused);
    assert_eq!(world.describe(&held.resource), before);
    assert_eq!(world.write(&held, "b"), Verdict::Written);
}

fn a_late_cut_lowers_nothing(world: &World) {
    let (name, nine) = (token(1).resource, token(9).epoch);
    assert_eq!(forget(world, &name, 9), Forgetting::Forget { floor: nine });
    assert_eq!(forget(world, &name, 4), Forgetting::Forget { floor: nine });
    assert_eq!(forget(world, &of("other", 1, 1).resource, 2), Forgetting::Forget { floor: nine });
    assert_eq!(world.describe(&name).floor, Some(nine));
    assert_eq!(world.write(&token(9), "late"), stale(&token(9), &token(9)));
}

fn forgetting_the_unknown(world: &World) {
    assert_eq!(world.describe(&token(1).resource).floor, None);
    let largest = token(Epoch::MAX_VALUE);
    let floor = Forgetting::Forget { floor: largest.epoch };
    assert_eq!(forget(world, &largest.resource, Epoch::MAX_VALUE), floor);
    assert_eq!(forget(world, &largest.resource, Epoch::MAX_VALUE), floor, "repeating it is the same");
    assert_eq!(world.write(&largest, "late"), stale(&largest, &largest));
}

fn once_after_forgetting(world: &World) {
    let (first, third) = (token(1), token(3));
    world.grant(&first);
    assert_eq!(world.apply(&first, &operation("one"), "a"), Verdict::Written);
    assert!(matches!(forget(world, &first.resource, 2), Forgetting::Forget { .. }));
    world.grant(&third);
    assert_eq!(world.apply(&third, &operation("one"), "a").name(), "replay");
}

fn a_seal_repeated(world: &World) {
    let first = token(1);
    for seal_no in 1..=3 {
        let sealing = world.seal(&first);
        assert!(
            matches!(&sealing, Sealing::Seal(row)
                if (row.epoch, row.grant, row.seal_no) == (first.epoch, first.grant, seal_no)),
            "{sealing:?}"
        );
        assert_eq!(world.write(&first, "a"), Verdict::Written);
    }
    assert_eq!(world.write(&first, "b"), Verdict::Written);
    let number = |world: &World| world.describe(&first.resource).row.map(|row| row.seal_no);
    assert_eq!(number(world), Some(3), "a write changed the seal's number");
    world.grant(&token(2));
    assert_eq!(number(world), Some(4));
}

fn the_union_is_kept(world: &World) {
    let generation = world.describe(&token(1).resource).generation;
    let seal = |epoch, names: &[&str]| match world.seal_in(&token(epoch), &generation, &sinks(names)) {
        Sealing::Seal(row) => row.enrolled,
        other => unreachable!("{other:?}"),
    };
    assert_eq!(seal(1, &["a", "ü \"2\""]), sinks(&["a", "ü \"2\""]));
    // A restored authority knows of one receiver only; the sink tells it of the others.
    assert_eq!(seal(2, &["c"]), sinks(&["a", "c", "ü \"2\""]));
    assert_eq!(seal(2, &[]), sinks(&["a", "c", "ü \"2\""]));
    assert_eq!(world.describe(&token(1).resource).row.map(|row| row.enrolled), Some(sinks(&["a", "c", "ü \"2\""])));
}

fn no_seal_below_the_floor(world: &World) {
    let cut = token(5);
    assert!(matches!(forget(world, &cut.resource, 5), Forgetting::Forget { .. }));
    assert_eq!(world.seal(&token(4)), Sealing::BelowFloor { floor: cut.epoch });
    assert_eq!(world.seal(&cut), Sealing::BelowFloor { floor: cut.epoch });
    assert!(matches!(world.seal(&token(6)), Sealing::Seal(_)));
}
