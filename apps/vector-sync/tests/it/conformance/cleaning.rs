//! Clause 6: the dead stay dead, and only they are removed.

use super::world::{World, along, build, publish, seal, switch, tenant};
use vector_sync::index::{Index, State, Switched, WriteError};
use vector_sync::tenant::Tenant;

async fn states(index: &dyn Index, tenant: &Tenant) -> Vec<(u64, State)> {
    let generations = index.generations(tenant).await.unwrap();
    generations.iter().map(|generation| (generation.epoch, generation.state)).collect()
}

pub(crate) async fn the_versions_that_may_be_asked_for_again_are_kept(world: &World) {
    use State::{Building, Condemned, Published};
    let (index, tenant) = (world.open(), tenant());
    for epoch in [1, 2, 4] {
        publish(&*index, &tenant, epoch, &format!("word{epoch}")).await;
    }
    // One that was left half written, and one that is being written.
    let left = seal(&*index, &tenant, 5).await;
    build(&*index, &tenant, &left, "left").await;
    let token = seal(&*index, &tenant, 6).await;
    build(&*index, &tenant, &token, "now").await;
    // From 4 back to 1: before it, 4 and then 2 were live.
    let back = switch("back", 3, 1, None);
    assert_eq!(index.switch(&tenant, &token, &back).await.unwrap(), Switched::To(4));

    assert_eq!(index.condemn(&tenant, &token, 9).await.unwrap(), [5]);
    assert_eq!(index.condemn(&tenant, &token, 1).await.unwrap(), [2, 5]);
    let wanted = [(1, Published), (2, Condemned), (4, Published), (5, Condemned), (6, Building)];
    assert_eq!(states(&*index, &tenant).await, wanted);
    index.remove(&tenant, &token, 5).await.unwrap();
    assert_eq!(index.condemn(&tenant, &token, 0).await.unwrap(), [2, 4]);
    for epoch in [2, 4, 2, 99] {
        // The second time it is gone already.
        index.remove(&tenant, &token, epoch).await.unwrap();
    }
    assert_eq!(states(&*index, &tenant).await, [(1, Published), (6, Building)]);
    assert_eq!(index.condemn(&tenant, &token, 0).await.unwrap(), [] as [u64; 0]);
    assert!(index.search(&tenant, &along(3), 1).await.unwrap().hits[0].chunk.text.starts_with("word1"));
    assert_eq!(index.inspect(&tenant, &token).await.unwrap().chunks, 8);
}

pub(crate) async fn the_condemned_are_never_led_to(world: &World) {
    let (index, tenant) = (world.open(), tenant());
    publish(&*index, &tenant, 1, "apple").await;
    let left = seal(&*index, &tenant, 2).await;
    let manifest = build(&*index, &tenant, &left, "left").await;
    let (token, version) = publish(&*index, &tenant, 3, "birch").await;
    assert_eq!(index.condemn(&tenant, &token, 0).await.unwrap(), [1, 2]);
    for (name, to, manifest) in [("back", 1, None), ("finish", 2, Some(manifest))] {
        let said = index.switch(&tenant, &token, &switch(name, version, to, manifest)).await;
        assert_eq!(said.unwrap(), Switched::Gone);
    }
    assert!(index.nearest(&tenant, 1, &along(0), 1).await.is_err());
    index.remove(&tenant, &token, 1).await.unwrap();
    let said = index.switch(&tenant, &token, &switch("back-again", version, 1, None)).await;
    assert_eq!(said.unwrap(), Switched::Gone);
    assert_eq!(index.live(&tenant).await.unwrap().unwrap().epoch, 3);
}

pub(crate) async fn a_remover_that_was_stopped_removes_nothing_that_is_read(world: &World) {
    let (index, tenant) = (world.open(), tenant());
    publish(&*index, &tenant, 1, "apple").await;
    let (token, version) = publish(&*index, &tenant, 2, "birch").await;
    // It has seen that 2 is live and 1 is not, and stops. Then somebody goes back to 1, under the same lease.
    let back = switch("back", version, 1, None);
    assert_eq!(index.switch(&tenant, &token, &back).await.unwrap(), Switched::To(version + 1));
    for epoch in [1, 2] {
        let said = index.remove(&tenant, &token, epoch).await;
        assert!(matches!(said, Err(WriteError::NotCondemned(of)) if of == epoch), "{epoch}: {said:?}");
    }
    // Another one has taken over, and keeps 2; the remover wakes with a list of its own.
    let (newer, version) = publish(&*index, &tenant, 3, "cedar").await;
    assert_eq!(index.condemn(&tenant, &newer, 1).await.unwrap(), [2]);
    for epoch in [1, 2, 3] {
        let said = index.remove(&tenant, &token, epoch).await;
        assert!(matches!(said, Err(WriteError::Refused(_))), "{epoch}: {said:?}");
    }
    assert!(index.search(&tenant, &along(3), 1).await.unwrap().hits[0].chunk.text.starts_with("cedar"));
    let back = switch("back-to-1", version, 1, None);
    assert_eq!(index.switch(&tenant, &newer, &back).await.unwrap(), Switched::To(version + 1));
    assert_eq!(index.search(&tenant, &along(3), 99).await.unwrap().hits.len(), 8);
}
