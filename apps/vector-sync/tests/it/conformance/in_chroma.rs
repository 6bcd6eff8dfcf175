//! The index in a Chroma server: what a server does to it that shares no transaction.

use super::fronts::{Front, Gate, endless};
use super::world::{World, along, build, entries, making, publish, seal, switch, tenant};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tenure_servers::{Chroma, Proxy};
use tokio::time::timeout;
use vector_sync::index::{Index, IndexError, Switched, WriteError, connect};
use vector_sync::tenant::Tenant;

const ALL: &str = "/api/v2/tenants/default_tenant/databases/default_database/collections";

/// The names of a tenant's collections.
fn collections(chroma: &Chroma, tenant: &Tenant) -> Vec<String> {
    let said = chroma.ask("GET", &format!("{ALL}?limit=10000"), "");
    let all: Vec<serde_json::Value> = serde_json::from_str(&said).unwrap();
    let names = all.iter().map(|each| each["name"].as_str().unwrap().to_owned());
    names.filter(|name| name.contains(&format!(".{tenant}."))).collect()
}

/// The story: a worker that had lost its tenant woke in the middle of a batch, and its vectors turned up in the answers of its
/// successor's version.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_arrives_after_the_takeover_lands_where_nobody_reads() {
    let world = World::chroma_and_sqlite();
    let chroma = Chroma::shared();
    let proxy = Proxy::to(chroma.port());
    let (index, tenant) = (world.open(), tenant());
    let late: Arc<dyn Index> = connect(&proxy.url(world.url())).unwrap().into();
    let old = seal(&*index, &tenant, 1).await;
    build(&*late, &tenant, &old, "apple").await;
    proxy.freeze();
    let writing = {
        let (late, tenant, old) = (Arc::clone(&late), tenant.clone(), old.clone());
        let more: Vec<_> = (0..8).map(|axis| super::world::entry("late.md", axis, "late", axis as usize)).collect();
        tokio::spawn(async move { late.write(&tenant, &old, &more).await })
    };
    let (_, version) = publish(&*index, &tenant, 2, "birch").await;
    proxy.heal();
    let said = writing.await.unwrap();
    assert!(matches!(said, Err(WriteError::Refused(_))), "{said:?}");
    let answer = index.search(&tenant, &along(0), 99).await.unwrap();
    assert_eq!((answer.version, answer.hits.len()), (version, 8));
    assert!(answer.hits.iter().all(|hit| hit.chunk.text.starts_with("birch")), "{answer:?}");
    assert_eq!(collections(chroma, &tenant).len(), 2);
}

/// The story: a worker woke after its generation had been cleared away, made its collection then, and nobody ever removed it.
#[tokio::test(flavor = "multi_thread")]
async fn a_collection_that_was_made_too_late_is_found_and_removed() {
    let world = World::chroma_and_postgres();
    let chroma = Chroma::shared();
    let proxy = Proxy::to(chroma.port());
    let (index, tenant) = (world.open(), tenant());
    let late: Arc<dyn Index> = connect(&proxy.url(world.url())).unwrap().into();
    let old = seal(&*index, &tenant, 1).await;
    // Another one of the same server, whose names begin alike.
    let other: Tenant = format!("{tenant}-b").parse().unwrap();
    publish(&*index, &other, 1, "apple").await;
    proxy.freeze();
    let beginning = {
        let (late, tenant, old) = (Arc::clone(&late), tenant.clone(), old.clone());
        tokio::spawn(async move { late.begin(&tenant, &old, &making("late")).await })
    };
    // Its record comes first.
    while index.generations(&tenant).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let (token, _) = publish(&*index, &tenant, 2, "birch").await;
    assert_eq!(index.condemn(&tenant, &token, 0).await.unwrap(), [1]);
    index.remove(&tenant, &token, 1).await.unwrap();
    assert_eq!(index.condemn(&tenant, &token, 0).await.unwrap(), [] as [u64; 0]);
    proxy.heal();
    beginning.await.unwrap().unwrap();
    assert_eq!(collections(chroma, &tenant).len(), 2, "it was made after its record was removed");

    assert_eq!(index.condemn(&tenant, &token, 0).await.unwrap(), [1]);
    index.remove(&tenant, &token, 1).await.unwrap();
    assert_eq!(index.condemn(&tenant, &token, 0).await.unwrap(), [] as [u64; 0]);
    assert_eq!(collections(chroma, &tenant).len(), 1);
    assert_eq!(collections(chroma, &other).len(), 1);
    assert_eq!(index.search(&tenant, &along(0), 99).await.unwrap().hits.len(), 8);
}

/// The story: a search had read the alias when its version was removed, and was told that nothing was there.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_whose_version_is_removed_meanwhile_goes_on_with_the_next() {
    let world = World::chroma_and_sqlite();
    let (index, tenant) = (world.open(), tenant());
    publish(&*index, &tenant, 1, "apple").await;
    let gate = Gate::new(Chroma::shared().port());
    let reader = connect(&world.url().replace(&Chroma::shared().url(), &gate.url())).unwrap();
    let searching = {
        let tenant = tenant.clone();
        tokio::spawn(async move { reader.search(&tenant, &along(4), 99).await })
    };
    // It knows the version by now, and asks for its collection.
    let gate = tokio::task::spawn_blocking(move || {
        gate.wait();
        gate
    });
    let gate = gate.await.unwrap();
    let (token, _) = publish(&*index, &tenant, 2, "birch").await;
    assert_eq!(index.condemn(&tenant, &token, 0).await.unwrap(), [1]);
    index.remove(&tenant, &token, 1).await.unwrap();
    gate.open();
    let answer = searching.await.unwrap().unwrap();
    assert_eq!((answer.version, answer.epoch, answer.hits.len()), (2, 2, 8));
}

/// The story: two programs kept their vectors in one server, and each took the other's collections for leftovers of its own.
#[tokio::test(flavor = "multi_thread")]
async fn two_catalogs_in_one_server_leave_each_other_alone() {
    let (one, other) = (World::chroma_and_sqlite(), World::chroma_and_sqlite());
    let (one, other, tenant) = (one.open(), other.open(), tenant());
    publish(&*one, &tenant, 1, "apple").await;
    let (token, _) = publish(&*other, &tenant, 5, "birch").await;
    assert_eq!(other.condemn(&tenant, &token, 0).await.unwrap(), [] as [u64; 0]);
    other.remove(&tenant, &token, 1).await.unwrap();
    assert!(one.search(&tenant, &along(0), 1).await.unwrap().hits[0].chunk.text.starts_with("apple"));
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_are_asked_for_again_and_unknown_in_the_end() {
    let world = World::chroma_and_sqlite();
    let proxy = Proxy::to(Chroma::shared().port());
    let (index, tenant) = (connect(&proxy.url(world.url())).unwrap(), tenant());
    let token = seal(&*index, &tenant, 1).await;
    index.begin(&tenant, &token, &making("apple")).await.unwrap();
    proxy.drop_answer_to(b"/upsert");
    index.write(&tenant, &token, &entries("apple")[..4]).await.unwrap();
    assert_eq!(proxy.lost(), 1);
    proxy.drop_answers();
    let said = index.write(&tenant, &token, &entries("apple")).await;
    assert!(matches!(said, Err(WriteError::Unknown(_))), "{said:?}");
    assert_eq!(proxy.lost(), 4, "three tries");
    let said = index.nearest(&tenant, 1, &along(0), 3).await;
    assert!(matches!(said, Err(IndexError::Unreachable { .. })), "{said:?}");
    proxy.heal();
    index.write(&tenant, &token, &entries("apple")).await.unwrap();
    assert_eq!(index.inspect(&tenant, &token).await.unwrap().chunks, 8);
    assert_eq!(index.generations(&tenant).await.unwrap()[0].chunks, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_stopped_or_busy_is_told_of_in_time() {
    let folder = TempDir::new().unwrap();
    let chroma = Chroma::start();
    let address = |server: &str| format!("chroma:{server}?wait=500ms&catalog=sqlite:{}", folder.path().display());
    let (index, tenant) = (connect(&address(&chroma.url())).unwrap(), tenant());
    publish(&*index, &tenant, 1, "apple").await;
    let token = seal(&*index, &tenant, 2).await;

    chroma.pause();
    let bound = Duration::from_secs(12);
    let said = timeout(bound, index.search(&tenant, &along(0), 1)).await.expect("it ends in time");
    let Err(error @ IndexError::Unreachable { .. }) = said else { panic!("{said:?}") };
    assert!(error.is_transient() && error.to_string().contains("does not answer in time"), "{error}");
    let said = timeout(bound, index.begin(&tenant, &token, &making("birch"))).await.expect("it ends in time");
    assert!(matches!(said, Err(WriteError::Unknown(_))), "{said:?}");
    chroma.resume();
    chroma.kill();
    let said = index.search(&tenant, &along(0), 1).await;
    assert!(matches!(said, Err(IndexError::Unreachable { .. })), "{said:?}");
    let said = index.begin(&tenant, &token, &making("birch")).await;
    assert!(matches!(said, Err(WriteError::Index(IndexError::Unreachable { .. }))), "nothing was sent: {said:?}");
    // What stands in the catalog is there all the same.
    assert_eq!(index.live(&tenant).await.unwrap().unwrap().epoch, 1);

    chroma.restart();
    let busy = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n";
    let front = Front::new(chroma.port(), busy, 2);
    let patient = connect(&address(&front.url()).replace("500ms", "10s")).unwrap();
    assert_eq!(patient.search(&tenant, &along(0), 1).await.unwrap().hits.len(), 1);
    assert_eq!(front.answered(), 2);
    let busy = connect(&address(&Front::new(chroma.port(), busy, usize::MAX).url())).unwrap();
    let said = busy.search(&tenant, &along(0), 1).await;
    let Err(IndexError::Unreachable { why, .. }) = said else { panic!("{said:?}") };
    assert!(why.contains("503"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_chroma_server_or_has_lost_a_collection_is_said() {
    let world = World::chroma_and_sqlite();
    let (index, tenant) = (world.open(), tenant());
    let (token, _) = publish(&*index, &tenant, 1, "apple").await;
    let elsewhere = |server: &str| connect(&world.url().replace(&Chroma::shared().url(), server)).unwrap();
    let odd = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
    for (server, wanted) in
        [(endless(), "more than 67108864 bytes"), (Front::new(1, odd, usize::MAX).url(), "not that of a Chroma server")]
    {
        let said = timeout(Duration::from_secs(30), elsewhere(&server).search(&tenant, &along(0), 1)).await.unwrap();
        let Err(IndexError::Failed { why, .. }) = said else { panic!("{said:?}") };
        assert!(why.contains(wanted), "{why}");
    }
    for name in collections(Chroma::shared(), &tenant) {
        let _ = Chroma::shared().ask("DELETE", &format!("{ALL}/{name}"), "");
    }
    for said in
        [index.search(&tenant, &along(0), 1).await.map(drop), index.nearest(&tenant, 1, &along(0), 1).await.map(drop)]
    {
        let Err(IndexError::Failed { why, .. }) = said else { panic!("{said:?}") };
        assert!(why.contains("sync anew"), "{why}");
    }
    // The way out: another generation.
    drop(token);
    let (token, version) = publish(&*index, &tenant, 2, "birch").await;
    let back = switch("back", version, 1, None);
    assert_eq!(index.switch(&tenant, &token, &back).await.unwrap(), Switched::To(3));
}
