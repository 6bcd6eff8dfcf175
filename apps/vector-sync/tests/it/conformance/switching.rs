//! Clauses 2 and 8: one alias, moved in one step, from the version that the caller saw.

use super::world::{World, along, build, making, publish, round, seal, switch, tenant};
use std::sync::Arc;
use tenure::Verdict;
use tokio::sync::Barrier;
use vector_sync::index::{Index, IndexError, State, Switched, Why, WriteError};

pub(crate) async fn the_alias_moves_from_the_version_that_was_seen(world: &World) {
    let (index, tenant) = (world.open(), tenant());
    publish(&*index, &tenant, 1, "apple").await;
    publish(&*index, &tenant, 2, "birch").await;
    let token = seal(&*index, &tenant, 3).await;
    let manifest = build(&*index, &tenant, &token, "cedar").await;
    let live = index.live(&tenant).await.unwrap();
    for from in [0, 1, 3] {
        let wrong = switch(&format!("from-{from}"), from, 3, Some(manifest.clone()));
        assert_eq!(index.switch(&tenant, &token, &wrong).await.unwrap(), Switched::NotFrom { live: 2 });
        assert_eq!(index.switched(&tenant, &token, &wrong.operation).await.unwrap(), None);
    }
    assert_eq!(index.live(&tenant).await.unwrap(), live);
    assert_eq!(index.switches(&tenant).await.unwrap().len(), 2);
    // What was refused so may be asked for again, under the same name, from what is live.
    let right = switch("from-3", 2, 3, Some(manifest));
    assert_eq!(index.switch(&tenant, &token, &right).await.unwrap(), Switched::To(3));
}

pub(crate) async fn the_same_operation_again_is_answered_with_what_it_did(world: &World) {
    let (index, tenant) = (world.open(), tenant());
    let token = seal(&*index, &tenant, 5).await;
    let manifest = build(&*index, &tenant, &token, "apple").await;
    let first = switch("first", 0, 5, Some(manifest.clone()));
    assert_eq!(index.switched(&tenant, &token, &first.operation).await.unwrap(), None);
    for _ in 0..3 {
        assert_eq!(index.switch(&tenant, &token, &first).await.unwrap(), Switched::To(1));
        assert_eq!(index.switched(&tenant, &token, &first.operation).await.unwrap(), Some(1));
    }
    assert_eq!(index.switches(&tenant).await.unwrap().len(), 1);
    // Also for whoever holds the tenant later, when another version is live.
    let (token, _) = publish(&*index, &tenant, 6, "birch").await;
    assert_eq!(index.switch(&tenant, &token, &first).await.unwrap(), Switched::To(1));
    assert_eq!(index.live(&tenant).await.unwrap().unwrap().epoch, 6);
    // Another content under the same name is no repetition.
    let other = switch("first", 2, 6, Some(manifest));
    let said = index.switch(&tenant, &token, &other).await;
    assert!(matches!(said, Err(WriteError::Refused(Verdict::Conflict { .. }))), "{said:?}");
}

pub(crate) async fn what_cannot_be_read_is_not_led_to(world: &World) {
    let (index, tenant) = (world.open(), tenant());
    let (_, version) = publish(&*index, &tenant, 1, "apple").await;
    let token = seal(&*index, &tenant, 2).await;
    // There is none; and one that was never verified has no manifest.
    let manifest = super::world::manifest(&making("none"), &[]);
    for (name, manifest) in [("none", Some(manifest)), ("none-either", None)] {
        let said = index.switch(&tenant, &token, &switch(name, version, 2, manifest)).await;
        assert_eq!(said.unwrap(), Switched::Gone);
    }
    build(&*index, &tenant, &token, "birch").await;
    let unverified = switch("unverified", version, 2, None);
    assert_eq!(index.switch(&tenant, &token, &unverified).await.unwrap(), Switched::Gone);
    assert_eq!(index.generations(&tenant).await.unwrap()[1].state, State::Building);
    assert_eq!(index.live(&tenant).await.unwrap().unwrap().epoch, 1);
    // A manifest is never changed.
    let other = switch("other", version, 1, Some(super::world::manifest(&making("other"), &[])));
    let said = index.switch(&tenant, &token, &other).await.unwrap_err();
    assert!(said.to_string().contains("another manifest"), "{said}");
}

pub(crate) async fn of_many_moves_from_one_version_one_is_made(world: &World) {
    let (index, tenant): (Arc<dyn Index>, _) = (world.open().into(), tenant());
    let token = seal(&*index, &tenant, 1).await;
    let manifest = build(&*index, &tenant, &token, "apple").await;
    let barrier = Arc::new(Barrier::new(6));
    let moves: Vec<_> = (0..6)
        .map(|n| {
            let (index, tenant, token, barrier) =
                (Arc::clone(&index), tenant.clone(), token.clone(), Arc::clone(&barrier));
            let switch = switch(&format!("one-of-many-{n}"), 0, 1, Some(manifest.clone()));
            tokio::spawn(async move {
                barrier.wait().await;
                loop {
                    match index.switch(&tenant, &token, &switch).await {
                        Ok(switched) => return switched,
                        Err(WriteError::Index(error)) if error.is_transient() => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    let mut made = 0;
    for each in moves {
        match each.await.unwrap() {
            Switched::To(1) => made += 1,
            Switched::NotFrom { live: 1 } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((made, index.switches(&tenant).await.unwrap().len()), (1, 1));
}

pub(crate) async fn a_rollback_says_what_it_led_away_from(world: &World) {
    let (index, tenant) = (world.open(), tenant());
    publish(&*index, &tenant, 1, "apple").await;
    publish(&*index, &tenant, 2, "birch").await;
    assert_eq!(index.live(&tenant).await.unwrap().unwrap().rejected, None);

    let token = seal(&*index, &tenant, 3).await;
    let back = switch("back", 2, 1, None);
    assert_eq!(index.switch(&tenant, &token, &back).await.unwrap(), Switched::To(3));
    let live = index.live(&tenant).await.unwrap().unwrap();
    assert_eq!((live.version, live.epoch, live.manifest.making), (3, 1, making("apple")));
    assert_eq!(live.rejected, Some(making("birch")));
    assert!(index.search(&tenant, &along(1), 1).await.unwrap().hits[0].chunk.text.starts_with("apple"));
    let moved = index.switches(&tenant).await.unwrap();
    let told: Vec<_> = moved.iter().map(|m| (m.version, m.from, m.to, m.by, m.why)).collect();
    assert_eq!(told, [(1, None, 1, 1, Why::Sync), (2, Some(1), 2, 2, Why::Sync), (3, Some(2), 1, 3, Why::Rollback)]);
    assert!(moved.is_sorted_by_key(|m| m.at_ms) && moved[0].at_ms > 1_600_000_000_000, "{moved:?}");
    assert_eq!(live.since_ms, moved[2].at_ms);

    publish(&*index, &tenant, 4, "cedar").await;
    assert_eq!(index.live(&tenant).await.unwrap().unwrap().rejected, None, "what is newer was never rejected");
}

pub(crate) async fn a_round_is_recorded_once(world: &World) {
    let (index, tenant) = (world.open(), tenant());
    let (token, version) = publish(&*index, &tenant, 1, "apple").await;
    assert!(!index.live(&tenant).await.unwrap().unwrap().recorded);
    let said = index.record(&tenant, &token, &round(1, Some(2))).await;
    let Err(WriteError::Index(IndexError::Failed { why, .. })) = said else { panic!("{said:?}") };
    assert!(why.contains("version 2 has never been live"), "{why}");
    assert_eq!(index.rounds(&tenant, 9).await.unwrap(), []);

    let first = round(1, Some(version));
    index.record(&tenant, &token, &first).await.unwrap();
    assert!(index.live(&tenant).await.unwrap().unwrap().recorded);
    let later = seal(&*index, &tenant, 2).await;
    let other = vector_sync::index::Round { recorded_by: 2, outcome: "failed".to_owned(), ..first.clone() };
    index.record(&tenant, &later, &other).await.unwrap();
    index.record(&tenant, &later, &round(2, None)).await.unwrap();
    let rounds = index.rounds(&tenant, 9).await.unwrap();
    assert_eq!(rounds.iter().map(|round| round.epoch).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(rounds[1], vector_sync::index::Round { at_ms: rounds[1].at_ms, ..first });
    assert!(rounds[1].at_ms > 1_600_000_000_000);
    assert_eq!(index.rounds(&tenant, 1).await.unwrap(), rounds[..1]);
}
