//! A seal and the transactions that have checked an older token.

use super::Clause;
use super::world::{World, answered, patiently, stale, token};
use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;
use tenure_core::Verdict;
use tenure_core::fence::{Rule, Sealing};

pub(super) const SEALED: &[Clause] = &[
    ("I10: a seal does not pass an open transaction", a_seal_does_not_pass),
    ("I2: nothing older lands once the seal has returned", nothing_older_lands),
];

fn a_seal_does_not_pass(world: &World) {
    let (old, new) = (token(1), token(2));
    world.grant(&old);
    let generation = world.describe(&old.resource).generation;
    let other = world.sut.another();
    let held = world.sut.hold(&old);
    let sealed = answered(other.sink().seal(&new, &generation, &BTreeSet::new()));
    let ended = world.sut.capabilities().seals_past_a_stopped_writer;
    match sealed {
        Ok(sealing) => {
            assert!(matches!(sealing, Sealing::Seal(_)), "{sealing:?}");
            let finished = held.finish("late");
            assert!(!matches!(finished, Ok(Verdict::Written)), "the seal has passed an open transaction");
            assert_eq!(world.sut.value(&old.resource), None);
            assert!(ended, "the sink says that it cannot end a stopped writer's transaction, but it did");
            world.has_granted(&new);
        }
        Err(error) => {
            assert!(!ended, "the sink says that a seal gets past a stopped writer, but: {error}");
            assert!(error.is_transient(), "{error}");
            assert!(error.to_string().contains("held by another transaction"), "it does not say why: {error}");
            assert_eq!(held.finish("in time"), Ok(Verdict::Written), "nothing was sealed, so it is in time");
            world.value_is(&old, "in time");
            world.grant(&new);
        }
    }
    assert_eq!(world.write(&old, "later"), stale(&old, &new));
    assert_eq!(world.write(&new, "new"), Verdict::Written);
    world.value_is(&new, "new");
}

fn nothing_older_lands(world: &World) {
    const WRITERS: usize = 3;
    let (old, new) = (token(1), token(2));
    world.grant(&old);
    let (started, handles) = (Barrier::new(WRITERS + 1), [(); WRITERS].map(|()| world.sut.another()));
    thread::scope(|scope| {
        let writers: Vec<_> = handles
            .iter()
            .enumerate()
            .map(|(at, handle)| {
                let (old, started) = (&old, &started);
                scope.spawn(move || {
                    let mut written = 0;
                    loop {
                        let value = format!("{at}.{written}");
                        match patiently(|| handle.write(old, None, &value)) {
                            Verdict::Written => written += 1,
                            verdict => return (verdict, written),
                        }
                        if written == 1 {
                            started.wait();
                        }
                    }
                })
            })
            .collect();
        started.wait();
        world.grant(&new);
        // Every writer's value is another one, so that a write after the seal would show.
        let sealed = world.sut.value(&old.resource);
        for writer in writers {
            let (verdict, written) = writer.join().unwrap_or_else(|_| unreachable!("a writer panicked"));
            // An authority beside the sink is first to say so: its record has moved on before the seal.
            let over = world.rule == Rule::Held && matches!(verdict, Verdict::Over(_));
            assert!(over || verdict == stale(&old, &new), "{verdict:?}");
            assert!(written > 0, "the writers never wrote before the seal");
        }
        assert_eq!(world.sut.value(&old.resource), sealed, "an older write landed after the seal had returned");
    });
}
