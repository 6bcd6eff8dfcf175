//! An authority in the same database, and what it says of a grant.

use super::Clause;
use super::world::{World, operation, patiently, stale, token};
use tenure_core::record::EndReason;
use tenure_core::{Ending, Over, Token, Verdict};

pub(super) const HELD: &[Clause] = &[
    ("H1: at the deadline itself a check is refused, before anybody takes over", at_the_deadline_it_is_over),
    ("H1: what was checked before the deadline may commit", what_was_checked_before_may_commit),
    ("H2: a grant that is over is refused, whatever ended it", a_grant_that_is_over),
    ("H2: the token comes before the replay and the look-up", over_comes_before_replay),
    ("the fence comes before the authority", the_fence_comes_first),
];

const EXPIRED: Ending = Ending::Session(EndReason::Expired);

/// What was said of a grant that is over.
fn over(verdict: Verdict) -> Over {
    match verdict {
        Verdict::Over(over) => over,
        other => unreachable!("it is over, but the verdict is {other:?}"),
    }
}

fn at_the_deadline_it_is_over(world: &World) {
    let (first, second) = (token(1), token(2));
    world.grant(&first);
    assert_eq!(world.write(&first, "in time"), Verdict::Written);
    let row = world.describe(&first.resource).row;
    world.authority().reaches_the_deadline();
    let refused = over(world.write(&first, "late"));
    assert_eq!((refused.presented, refused.current, refused.why), (first.epoch, Some(first.epoch), EXPIRED));
    assert!(refused.holder.is_some() && refused.ago.is_some(), "{refused:?}");
    world.value_is(&first, "in time");
    assert_eq!(world.describe(&first.resource).row, row, "a refused write changed the row");
    world.grant(&second);
    assert_eq!(world.write(&first, "later"), stale(&first, &second));
    assert_eq!(world.write(&second, "new"), Verdict::Written);
}

fn what_was_checked_before_may_commit(world: &World) {
    let first = token(1);
    world.grant(&first);
    let held = world.sut.hold(&first);
    world.authority().reaches_the_deadline();
    assert_eq!(held.finish("checked before"), Ok(Verdict::Written));
    world.value_is(&first, "checked before");
    assert_eq!(over(world.write(&first, "late")).why, EXPIRED);
    world.value_is(&first, "checked before");
}

fn a_grant_that_is_over(world: &World) {
    let endings = Ending::ALL.into_iter().filter(|ending| !matches!(ending, Ending::Superseded));
    for (why, epoch) in endings.zip(1..) {
        let mine = token(epoch);
        world.grant(&mine);
        assert_eq!(world.write(&mine, "in time"), Verdict::Written, "{why:?}");
        patiently(|| world.authority().ends(&mine, why));
        assert_eq!(over(world.write(&mine, "late")).why, why);
        world.value_is(&mine, "in time");
    }
    // Granted to another, and not sealed here yet: the fence would still let it in.
    let (mine, other) = (token(20), token(21));
    world.grant(&mine);
    world.has_granted(&other);
    let refused = over(world.write(&mine, "late"));
    assert_eq!((refused.why, refused.current), (Ending::Superseded, Some(other.epoch)));
    assert_eq!(world.write(&other, "early"), Verdict::Unsealed);
}

fn over_comes_before_replay(world: &World) {
    let (first, second) = (token(1), token(2));
    world.grant(&first);
    assert_eq!(world.apply(&first, &operation("one"), "a"), Verdict::Written);
    world.authority().reaches_the_deadline();
    assert_eq!(over(world.apply(&first, &operation("one"), "a")).why, EXPIRED);
    let lookup = |token: &Token| patiently(|| world.sut.lookup(token, &operation("one")));
    assert_eq!(lookup(&first).err().map(|verdict| over(verdict).why), Some(EXPIRED));
    world.grant(&second);
    assert_eq!(world.apply(&second, &operation("one"), "a").name(), "replay");
}

fn the_fence_comes_first(world: &World) {
    // The authority has granted it, and it is not sealed here.
    let (first, second) = (token(1), token(2));
    world.has_granted(&first);
    assert_eq!(world.write(&first, "early"), Verdict::Unsealed);
    world.grant(&first);
    world.grant(&second);
    world.authority().reaches_the_deadline();
    assert_eq!(world.write(&first, "late"), stale(&first, &second));
}
