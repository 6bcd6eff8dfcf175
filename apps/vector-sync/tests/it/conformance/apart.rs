//! Clause 4: what is done for one tenant, or is stuck there, is nothing to the others.

use super::world::{World, along, build, entries, publish, seal, switch, tenant};
use std::time::Duration;
use tokio::time::timeout;
use vector_sync::index::{IndexError, Switched, WriteError};

pub(crate) async fn another_tenant_waits_for_nobody(world: &World) {
    let (index, stuck, other) = (world.open(), tenant(), tenant());
    publish(&*index, &stuck, 1, "apple").await;
    publish(&*index, &other, 1, "apple").await;
    let token = seal(&*index, &stuck, 2).await;
    let manifest = build(&*index, &stuck, &token, "birch").await;
    let held = world.hold(&stuck).await;

    // Many calls for the one that is stuck, all of which wait.
    let waiting: Vec<_> = (0..6)
        .map(|n| {
            let (index, stuck, token) = (world.open(), stuck.clone(), token.clone());
            let moved = switch(&format!("stuck-{n}"), 1, 2, Some(manifest.clone()));
            tokio::spawn(async move { index.switch(&stuck, &token, &moved).await })
        })
        .collect();
    let mine = {
        let (index, stuck, token) = (&index, stuck.clone(), token.clone());
        let moved = switch("stuck-too", 1, 2, Some(manifest.clone()));
        async move { index.switch(&stuck, &token, &moved).await }
    };
    let whole_round = async {
        let (token, version) = publish(&*index, &other, 2, "birch").await;
        for epoch in index.condemn(&other, &token, 0).await.unwrap() {
            index.remove(&other, &token, epoch).await.unwrap();
        }
        let answer = index.search(&other, &along(4), 1).await.unwrap();
        assert_eq!((answer.version, &answer.hits[0].chunk), (version, &entries("birch")[4].chunk));
        // Searches of the one that is stuck go on as well.
        assert_eq!(index.search(&stuck, &along(4), 1).await.unwrap().epoch, 1);
    };
    // On the same handle, whose own call for the stuck one takes until its bound.
    let (said, ()) = tokio::join!(mine, async {
        timeout(Duration::from_secs(4), whole_round).await.expect("it waits for another tenant");
    });
    // Bounded, and told apart from a refusal.
    for said in [said].into_iter().chain(futures_util::future::join_all(waiting).await.into_iter().map(Result::unwrap))
    {
        let Err(WriteError::Index(error)) = said else { panic!("{said:?}") };
        assert!(
            matches!(error, IndexError::Unreachable { .. } | IndexError::Sink(_)) && error.is_transient(),
            "{error}"
        );
    }
    held.let_go().await;
    let moved = switch("after", 1, 2, Some(manifest));
    assert_eq!(index.switch(&stuck, &token, &moved).await.unwrap(), Switched::To(2));
}
