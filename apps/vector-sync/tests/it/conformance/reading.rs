//! Clauses 3 and 5: whole answers, of one generation, and of none before its time.

use super::world::{World, along, build, entries, making, publish, seal, switch, tenant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vector_sync::index::{IndexError, Inspection, State, Switched};

pub(crate) async fn nothing_is_there_before_the_first_round(world: &World) {
    let (index, tenant) = (world.open(), tenant());
    assert_eq!(index.tenants().await.unwrap(), []);
    for made in [false, true] {
        if made {
            index.sink(&tenant).await.unwrap();
        }
        assert_eq!(index.live(&tenant).await.unwrap(), None);
        assert_eq!(index.generations(&tenant).await.unwrap(), []);
        assert_eq!(index.switches(&tenant).await.unwrap(), []);
        assert_eq!(index.rounds(&tenant, 9).await.unwrap(), []);
        assert_eq!(index.known(&tenant, &[making("one").snapshot]).await.unwrap(), [None]);
        let error = index.search(&tenant, &along(0), 3).await.unwrap_err();
        assert!(matches!(error, IndexError::Empty { .. }), "{error}");
        assert!(error.to_string().contains(&format!("sync --tenant {tenant}")), "{error}");
    }
}

pub(crate) async fn a_round_is_published_whole_and_found_again(world: &World) {
    let (index, tenant) = (world.open(), tenant());
    let token = seal(&*index, &tenant, 1).await;
    let manifest = build(&*index, &tenant, &token, "apple").await;
    let inspection = index.inspect(&tenant, &token).await.unwrap();
    let (documents, chunks, digest) = (manifest.documents, manifest.chunks, manifest.digest);
    assert_eq!(inspection, Inspection { documents, chunks, digest, foreign: 0 });
    let probe = index.nearest(&tenant, 1, &along(2), 1).await.unwrap();
    assert_eq!(probe[0].chunk, entries("apple")[2].chunk);

    let first = switch("first", 0, 1, Some(manifest.clone()));
    assert_eq!(index.switch(&tenant, &token, &first).await.unwrap(), Switched::To(1));
    // Somebody else, who shares nothing with the builder.
    let other = world.open();
    let live = other.live(&tenant).await.unwrap().unwrap();
    assert_eq!((live.version, live.epoch, live.manifest), (1, 1, manifest));
    let answer = other.search(&tenant, &along(5), 3).await.unwrap();
    assert_eq!((answer.version, answer.epoch, answer.hits.len()), (1, 1, 3));
    assert_eq!(answer.hits[0].chunk, entries("apple")[5].chunk);
    assert!((answer.hits[0].score - 1.0).abs() < 1e-3, "{answer:?}");
    assert!(answer.hits.is_sorted_by(|one, next| one.score >= next.score), "{answer:?}");
    // The neighbours share one of the two axes: 0.96 * 0.28.
    assert!((answer.hits[1].score - 0.2688).abs() < 1e-3, "{answer:?}");
    let generation = &other.generations(&tenant).await.unwrap()[0];
    assert_eq!((generation.epoch, generation.state, generation.chunks), (1, State::Published, 8));
    assert!(generation.begun_ms <= live.since_ms && generation.begun_ms > 1_600_000_000_000, "{generation:?}");
}

pub(crate) async fn tenants_are_listed_in_the_order_of_their_names(world: &World) {
    let index = world.open();
    let mut tenants = [tenant(), tenant(), tenant()];
    for tenant in tenants.iter().rev() {
        let token = seal(&*index, tenant, 1).await;
        index.begin(tenant, &token, &making("one")).await.unwrap();
    }
    tenants.sort();
    assert_eq!(world.open().tenants().await.unwrap(), tenants);
}

pub(crate) async fn a_generation_is_seen_by_nobody_before_its_time(world: &World) {
    let (index, tenant) = (world.open(), tenant());
    let token = seal(&*index, &tenant, 1).await;
    build(&*index, &tenant, &token, "apple").await;
    assert_eq!(index.live(&tenant).await.unwrap(), None);
    let said = index.search(&tenant, &along(0), 3).await;
    assert!(matches!(said, Err(IndexError::Empty { .. })), "{said:?}");
    publish(&*index, &tenant, 2, "birch").await;
    let token = seal(&*index, &tenant, 3).await;
    build(&*index, &tenant, &token, "cedar").await;
    let answer = index.search(&tenant, &along(0), 99).await.unwrap();
    assert_eq!((answer.epoch, answer.hits.len()), (2, 8));
    assert!(answer.hits.iter().all(|hit| hit.epoch == 2 && hit.chunk.text.starts_with("birch")), "{answer:?}");
}

/// How often the alias moves.
const MOVES: u64 = 100;

pub(crate) async fn no_answer_holds_two_generations(world: &World) {
    let (index, tenant) = (world.open(), tenant());
    let word = |epoch: u64| format!("word{epoch}");
    let (mut token, mut version) = publish(&*index, &tenant, 1, &word(1)).await;
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..3)
        .map(|axis| {
            let (index, tenant, done) = (world.open(), tenant.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                let (mut last, mut seen) = (0, 0);
                while !done.load(Ordering::Relaxed) {
                    let answer = match index.search(&tenant, &along(axis), 99).await {
                        Ok(answer) => answer,
                        Err(error) => panic!("{error}"),
                    };
                    let whole = answer.hits.len() == 8
                        && answer.hits.iter().all(|hit| {
                            hit.epoch == answer.epoch && hit.chunk.text.starts_with(&format!("word{} ", answer.epoch))
                        });
                    assert!(whole, "{answer:?}");
                    assert!(answer.version >= last, "back from {last} to {}", answer.version);
                    seen += u64::from(answer.version > last);
                    last = answer.version;
                }
                seen
            })
        })
        .collect();

    // Of each ten moves one publishes what is new and removes all the rest at once, the next publishes again, and the others lead
    // back and forth between those two.
    let (mut live, mut other) = (1, 1);
    for n in 2..=MOVES {
        if matches!(n % 10, 2 | 3) {
            (token, version) = publish(&*index, &tenant, n, &word(n)).await;
            (other, live) = (live, n);
        } else {
            let moved = switch(&format!("move-{n}"), version, other, None);
            assert_eq!(index.switch(&tenant, &token, &moved).await.unwrap(), Switched::To(version + 1));
            version += 1;
            (other, live) = (live, other);
        }
        if n % 10 == 2 {
            for epoch in index.condemn(&tenant, &token, 0).await.unwrap() {
                index.remove(&tenant, &token, epoch).await.unwrap();
            }
        }
    }
    done.store(true, Ordering::Relaxed);
    assert_eq!(version, MOVES);
    for reader in readers {
        let seen = reader.await.unwrap();
        assert!(seen > 3, "a reader saw {seen} versions: it has tested nothing");
    }
}
