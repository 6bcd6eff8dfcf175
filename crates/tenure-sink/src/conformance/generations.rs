//! A sink that may have forgotten.

use super::Clause;
use super::world::{World, answered, of, operation, patiently, sinks, stale, token};
use tenure_core::Verdict;
use tenure_core::fence::Sealing;

pub(super) const SEALED: &[Clause] = &[
    ("I3: after a reopening nothing is sealed", after_a_reopening_nothing_is_sealed),
    ("a seal bound to another generation is refused", another_generation_is_refused),
    ("each reopening starts a generation of its own", each_reopening_is_new),
];

fn after_a_reopening_nothing_is_sealed(world: &World) {
    let (first, second) = (token(1), token(2));
    world.grant(&first);
    world.grant(&second);
    assert_eq!(world.apply(&second, &operation("one"), "a"), Verdict::Written);
    let before = world.describe(&first.resource);
    let generation = patiently(|| answered(world.sut.sink().reopen()));
    assert_ne!(generation, before.generation);
    let after = world.describe(&first.resource);
    assert_eq!((after.generation, after.row), (generation, before.row), "the row is kept, in its own generation");
    assert_eq!(world.write(&second, "b"), Verdict::Unsealed);
    assert_eq!(world.apply(&second, &operation("one"), "a"), Verdict::Unsealed, "the token comes before the replay");
    assert_eq!(world.write(&first, "late"), stale(&first, &second));
    world.value_is(&second, "a");
    world.grant(&second);
    assert_eq!(world.write(&second, "b"), Verdict::Written);
}

fn another_generation_is_refused(world: &World) {
    let (first, second) = (token(1), token(2));
    world.grant(&first);
    let old = world.describe(&first.resource).generation;
    let current = patiently(|| answered(world.sut.sink().reopen()));
    let row = world.describe(&first.resource).row;
    let sealing = world.seal_in(&second, &old, &sinks(&["a"]));
    assert_eq!(sealing, Sealing::WrongGeneration { current: current.clone() });
    assert_eq!(world.describe(&first.resource).row, row, "a refused seal changed the row");
    assert!(matches!(world.seal_in(&second, &current, &sinks(&[])), Sealing::Seal(_)));
    assert_eq!(world.write(&second, "a"), Verdict::Written);
}

fn each_reopening_is_new(world: &World) {
    let mut seen = vec![world.describe(&of("r", 1, 1).resource).generation];
    for _ in 0..3 {
        let generation = patiently(|| answered(world.sut.sink().reopen()));
        assert!(!seen.contains(&generation), "{generation} came again");
        assert_eq!(World::new(world.sut.another()).describe(&of("r", 1, 1).resource).generation, generation);
        seen.push(generation);
    }
}
