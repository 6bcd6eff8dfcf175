use super::records::{Worker, grant_id, held, swap};
use super::{Subject, block_on};
use crate::store::SwapOutcome;
use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};
use tenure_core::decide::{Change, Keys, Refusal};
use tenure_core::record::{Event, LeaseRecord};

const THREADS: u64 = 8;
const CYCLES: u64 = 20;

/// Eight workers acquire and release one resource: each epoch is given once, and none is left out.
pub(super) fn one_resource_gives_each_epoch_once(subject: &Subject) {
    let epochs = race(subject, |_| "r".to_owned());
    let expected: BTreeSet<_> = (1..=THREADS * CYCLES).collect();
    assert_eq!(epochs.len() as u64, THREADS * CYCLES);
    assert_eq!(epochs.into_iter().map(|(_, epoch)| epoch).collect::<BTreeSet<_>>(), expected);
}

pub(super) fn many_resources_do_not_share_epochs(subject: &Subject) {
    let epochs: BTreeSet<_> = race(subject, |thread| format!("r{thread}")).into_iter().collect();
    let expected = (0..THREADS).flat_map(|thread| (1..=CYCLES).map(move |epoch| (thread, epoch)));
    assert_eq!(epochs, expected.collect());
}

fn race(subject: &Subject, resource: impl Fn(u64) -> String + Sync) -> Vec<(u64, u64)> {
    let start = Barrier::new(usize::try_from(THREADS).unwrap_or(1));
    let cycle = |thread: u64| {
        let worker = Worker::open_long(&subject.store, thread).expect("a session");
        let resource = resource(thread);
        let mut epochs = Vec::new();
        start.wait();
        for n in 0..CYCLES {
            let token = loop {
                match worker.acquire(&resource, grant_id(thread * CYCLES + n), &[]) {
                    Ok(granted) => break granted.token,
                    Err(Refusal::Busy { .. }) => std::thread::yield_now(),
                    Err(refusal) => unreachable!("{refusal}"),
                }
            };
            epochs.push((thread, token.epoch.get()));
            worker.release(&token).expect("nobody else may take it");
        }
        epochs
    };
    std::thread::scope(|scope| {
        let cycle = &cycle;
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || cycle(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// However they fall into one batch: of all swaps of one version, one is made, and only its row is in the history.
pub(super) fn one_of_two_swaps_of_one_version_wins(subject: &Subject) {
    let holder = subject.opened(1);
    for round in 1..=20 {
        let read = subject.read_resource("r");
        let start = Arc::new(Barrier::new(4));
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let swaps = (0..4).map(|n| {
                let lease = held("r", round, grant_id(4 * round + n), &holder, read.now);
                let start = Arc::clone(&start);
                scope.spawn(move || {
                    start.wait();
                    let made = swap(Change::Lease(lease), Event::Granted, read.now);
                    block_on(subject.store.swap(made, read.versions.lease)).expect("a swap")
                })
            });
            let swaps: Vec<_> = swaps.collect();
            swaps.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == SwapOutcome::Done).count(), 1, "{outcomes:?}");
        let after = subject.read(&Keys {
            session: Some(holder.id),
            resource: Some(super::records::resource("r")),
            grant: None,
        });
        assert_eq!(after.view.history, read.view.history + 1);
        assert_eq!(
            after.view.holdings,
            after.view.lease.iter().filter_map(LeaseRecord::holding).map(|(_, grant)| grant).collect()
        );
    }
}
