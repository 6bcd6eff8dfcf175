//! Which intent it is: replays, conflicts, look-ups, and effects that fail.

use super::Clause;
use super::world::{World, of, operation, outcome, patiently, stale, token};
use crate::{Lookup, one_value_per_epoch};
use tenure_core::{Replayed, Token, Verdict};

pub(super) const BOTH: &[Clause] = &[
    ("the same operation is a replay, and is not applied again", a_replay_is_not_applied_again),
    ("the same operation with other content is a conflict", other_content_is_a_conflict),
    ("the token is judged before a replay", the_token_comes_before_the_replay),
    ("an operation is effective once, across epochs", once_across_epochs),
    ("one value per epoch", one_value),
    ("resources do not share operations", resources_do_not_share_operations),
    ("a failed effect takes the fence and the record back with it", a_failed_effect_leaves_nothing),
    ("a look-up finds the effect, for the holder only", lookup_finds_the_effect),
    ("long and odd values come back whole", long_values),
];

fn replay(token: &Token, value: &str) -> Verdict {
    Verdict::Replay(Replayed { epoch: token.epoch, outcome: outcome(value) })
}

fn a_replay_is_not_applied_again(world: &World) {
    let first = token(1);
    world.grant(&first);
    assert_eq!(world.apply(&first, &operation("one"), "a"), Verdict::Written);
    assert_eq!(world.apply(&first, &operation("two"), "b"), Verdict::Written);
    assert_eq!(world.apply(&first, &operation("one"), "a"), replay(&first, "a"));
    world.value_is(&first, "b");
}

fn other_content_is_a_conflict(world: &World) {
    let first = token(1);
    world.grant(&first);
    assert_eq!(world.apply(&first, &operation("one"), "a"), Verdict::Written);
    assert_eq!(world.apply(&first, &operation("one"), "b"), Verdict::Conflict { current: first.epoch });
    world.value_is(&first, "a");
    assert_eq!(world.apply(&first, &operation("one"), "a"), replay(&first, "a"), "the conflict changed the record");
}

fn the_token_comes_before_the_replay(world: &World) {
    let (first, second) = (token(1), token(2));
    world.grant(&first);
    assert_eq!(world.apply(&first, &operation("one"), "a"), Verdict::Written);
    world.grant(&second);
    assert_eq!(world.apply(&second, &operation("one"), "a"), replay(&first, "a"));
    // Under both rules the successor is known here by now, by its seal or by its replay.
    assert_eq!(world.apply(&first, &operation("one"), "a"), stale(&first, &second));
}

fn once_across_epochs(world: &World) {
    let (first, second) = (token(1), token(2));
    world.grant(&first);
    assert_eq!(world.apply(&first, &operation("one"), "a"), Verdict::Written);
    world.grant(&second);
    assert_eq!(world.apply(&second, &operation("two"), "b"), Verdict::Written);
    assert_eq!(world.apply(&second, &operation("one"), "a"), replay(&first, "a"));
    assert_eq!(world.apply(&second, &operation("one"), "c"), Verdict::Conflict { current: first.epoch });
    world.value_is(&second, "b");
}

fn one_value(world: &World) {
    let (first, second) = (token(1), token(2));
    let write = |token: &Token, value: &str| world.apply(token, &one_value_per_epoch(token.epoch), value);
    world.grant(&first);
    assert_eq!(write(&first, "old"), Verdict::Written);
    assert_eq!(write(&first, "old"), replay(&first, "old"));
    assert_eq!(write(&first, "other"), Verdict::Conflict { current: first.epoch });
    world.grant(&second);
    assert_eq!(write(&second, "new"), Verdict::Written);
    assert_eq!(write(&first, "old"), stale(&first, &second));
    assert_eq!(write(&second, "new"), replay(&second, "new"));
    world.value_is(&second, "new");
}

fn resources_do_not_share_operations(world: &World) {
    let (one, two) = (of("one", 1, 1), of("two", 1, 2));
    world.grant(&one);
    world.grant(&two);
    assert_eq!(world.apply(&one, &operation("op"), "a"), Verdict::Written);
    assert_eq!(world.apply(&two, &operation("op"), "b"), Verdict::Written);
    world.value_is(&one, "a");
    world.value_is(&two, "b");
}

fn a_failed_effect_leaves_nothing(world: &World) {
    let (first, second) = (token(1), token(2));
    world.grant(&first);
    assert_eq!(world.write(&first, "a"), Verdict::Written);
    world.grant(&second);
    let before = world.describe(&first.resource).row;
    world.sut.write_failing(&second, Some(&operation("one")));
    world.sut.write_failing(&second, None);
    assert_eq!(world.describe(&first.resource).row, before, "the fence stayed raised without its effect");
    world.value_is(&first, "a");
    let found = patiently(|| world.sut.lookup(&second, &operation("one")));
    assert_eq!(found, Ok(Lookup::Absent), "the record stayed without its effect");
    assert_eq!(world.apply(&second, &operation("one"), "b"), Verdict::Written);
    world.value_is(&second, "b");
}

fn lookup_finds_the_effect(world: &World) {
    let (first, second) = (token(1), token(2));
    world.grant(&first);
    assert_eq!(world.apply(&first, &operation("one"), "a"), Verdict::Written);
    world.grant(&second);
    let lookup = |token: &Token, name: &str| patiently(|| world.sut.lookup(token, &operation(name)));
    assert!(
        matches!(&lookup(&second, "one"), Ok(Lookup::Found(found))
            if found.epoch == first.epoch && found.outcome == outcome("a")),
        "the effect was not found"
    );
    assert_eq!(lookup(&second, "two"), Ok(Lookup::Absent));
    assert_eq!(lookup(&first, "one"), Err(stale(&first, &second)));
    // The absence is final: the old holder's write of it comes too late.
    assert_eq!(world.apply(&first, &operation("two"), "late"), stale(&first, &second));
    world.value_is(&first, "a");
}

fn long_values(world: &World) {
    let first = token(1);
    world.grant(&first);
    let long = "ä\n\"'\u{1F600}".repeat(5000);
    assert_eq!(world.apply(&first, &operation("../'\"é"), &long), Verdict::Written);
    assert_eq!(world.apply(&first, &operation(&"ß".repeat(256)), "b"), Verdict::Written);
    assert_eq!(world.apply(&first, &operation("../'\"é"), &long), replay(&first, &long));
    world.value_is(&first, "b");
}
