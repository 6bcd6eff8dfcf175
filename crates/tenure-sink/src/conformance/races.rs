//! Several handles at once, as several processes would.

use super::Clause;
use super::world::{World, operation, patiently, token};
use std::sync::Barrier;
use std::thread;
use tenure_core::Verdict;

pub(super) const BOTH: &[Clause] = &[
    ("racing repeats of one operation are effective once", one_effect_in_a_race),
    ("I1: in a race of epochs the newest stands last", the_newest_stands_last),
];

const RACERS: usize = 4;

/// The epoch of the last of them.
const NEWEST: u64 = 4;

fn one_effect_in_a_race(world: &World) {
    let first = token(1);
    world.grant(&first);
    let (start, handles) = (Barrier::new(RACERS), [(); RACERS].map(|()| world.sut.another()));
    let verdicts: Vec<Verdict> = thread::scope(|scope| {
        let racers = handles.each_ref().map(|handle| {
            let (start, first) = (&start, &first);
            scope.spawn(move || {
                start.wait();
                patiently(|| handle.write(first, Some(&operation("one")), "a"))
            })
        });
        racers.map(|racer| racer.join().unwrap_or_else(|_| unreachable!("a racer panicked"))).into()
    });
    let count = |name: &str| verdicts.iter().filter(|verdict| verdict.name() == name).count();
    assert_eq!((count("written"), count("replay")), (1, verdicts.len() - 1), "{verdicts:?}");
    world.value_is(&first, "a");
}

fn the_newest_stands_last(world: &World) {
    let start = Barrier::new(RACERS);
    let worlds = [(); RACERS].map(|()| World::new(world.sut.another()));
    thread::scope(|scope| {
        for (mine, epoch) in worlds.iter().zip(1..=NEWEST) {
            let start = &start;
            scope.spawn(move || {
                let mine_token = token(epoch);
                start.wait();
                for _ in 0..5 {
                    if mine.rule.is_sealed() {
                        // A refused seal is a race lost; the write says so as well.
                        let _ = mine.seal(&mine_token);
                    }
                    let verdict = mine.write(&mine_token, &epoch.to_string());
                    assert!(epoch < NEWEST || verdict == Verdict::Written, "the newest was refused: {verdict:?}");
                }
            });
        }
    });
    world.value_is(&token(1), &NEWEST.to_string());
    assert_eq!(world.describe(&token(1).resource).row.map(|row| row.epoch), Some(token(NEWEST).epoch));
}
