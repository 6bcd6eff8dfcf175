//! Clause 1: each call that takes a token checks it in the transaction of its records.

use super::world::{World, build, entries, making, publish, round, seal, switch, tenant, token};
use tenure::{OperationId, Token, Verdict};
use vector_sync::index::{Index, IndexError, WriteError};
use vector_sync::tenant::Tenant;

/// What each call says to a token.
async fn said(index: &dyn Index, tenant: &Tenant, token: &Token) -> Vec<(&'static str, Option<WriteError>)> {
    let (making, entries, epoch) = (making("late"), entries("late"), token.epoch.get());
    let manifest = super::world::manifest(&making, &entries);
    let late = switch("late", 1, epoch, Some(manifest));
    let operation = OperationId::new("publish-1").unwrap();
    vec![
        ("begin", index.begin(tenant, token, &making).await.err()),
        ("write", index.write(tenant, token, &entries).await.err()),
        ("inspect", index.inspect(tenant, token).await.err()),
        ("switch", index.switch(tenant, token, &late).await.err()),
        ("switched", index.switched(tenant, token, &operation).await.err()),
        ("record", index.record(tenant, token, &round(epoch, Some(1))).await.err()),
        ("condemn", index.condemn(tenant, token, 0).await.err()),
        ("remove", index.remove(tenant, token, 1).await.err()),
    ]
}

pub(crate) async fn an_older_token_is_refused_by_each_call(world: &World) {
    let (index, tenant) = (world.open(), tenant());
    publish(&*index, &tenant, 1, "apple").await;
    let old = seal(&*index, &tenant, 2).await;
    build(&*index, &tenant, &old, "late").await;
    // A successor seals, on another machine so to say, and does nothing yet.
    seal(&*world.open(), &tenant, 4).await;
    let before = (index.live(&tenant).await.unwrap(), index.generations(&tenant).await.unwrap());

    for token in [old, token(&tenant, 3), token(&tenant, 9)] {
        for (call, said) in said(&*index, &tenant, &token).await {
            let Some(WriteError::Refused(verdict)) = said else { panic!("{call} with {token}: {said:?}") };
            let stale = matches!(verdict, Verdict::Stale { current, .. } if current.get() == 4);
            assert!(stale || token.epoch.get() == 9 && verdict == Verdict::Unsealed, "{call} with {token}: {verdict}");
        }
    }
    let after = (index.live(&tenant).await.unwrap(), index.generations(&tenant).await.unwrap());
    assert_eq!(after, before);
    assert_eq!((index.switches(&tenant).await.unwrap().len(), index.rounds(&tenant, 9).await.unwrap()), (1, vec![]));
}

pub(crate) async fn a_token_of_another_tenant_is_refused(world: &World) {
    let (index, mine, other) = (world.open(), tenant(), tenant());
    publish(&*index, &other, 1, "apple").await;
    // It is the newest, of its own tenant.
    let token = seal(&*index, &mine, 7).await;
    let before = index.generations(&other).await.unwrap();
    for (call, said) in said(&*index, &other, &token).await {
        let Some(WriteError::Index(IndexError::Failed { why, .. })) = &said else { panic!("{call}: {said:?}") };
        assert!(why.contains(&format!("is of vectors:{mine}, not of vectors:{other}")), "{call}: {why}");
    }
    assert_eq!(index.generations(&other).await.unwrap(), before);
}
