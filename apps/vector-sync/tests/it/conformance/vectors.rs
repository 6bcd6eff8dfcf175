//! Clauses 7 and 8: what is written, and what is kept.

use super::world::{DIMENSIONS, World, along, build, entries, making, manifest, publish, seal, switch, tenant};
use vector_sync::index::{IndexError, Switched, WriteError};
use vector_sync::manifest::Sum;

pub(crate) async fn what_is_written_twice_is_there_once(world: &World) {
    let (index, tenant) = (world.open(), tenant());
    let token = seal(&*index, &tenant, 1).await;
    let manifest = build(&*index, &tenant, &token, "apple").await;
    let entries = entries("apple");
    index.write(&tenant, &token, &entries).await.unwrap();
    // One that is new among others that are not.
    let more = super::world::entry("d9.md", 0, "apple once more", 4);
    index.write(&tenant, &token, &[entries[3].clone(), more.clone()]).await.unwrap();
    let whole: Vec<_> = entries.into_iter().chain([more]).collect();
    let inspection = index.inspect(&tenant, &token).await.unwrap();
    assert_eq!((inspection.chunks, inspection.documents), (manifest.chunks + 1, manifest.documents + 1));
    assert_eq!(inspection.digest, super::world::manifest(&manifest.making, &whole).digest);
    let generation = &index.generations(&tenant).await.unwrap()[0];
    assert_eq!(generation.chunks, manifest.chunks + 1);
    let hits = index.nearest(&tenant, 1, &along(4), 99).await.unwrap();
    assert_eq!(hits.len(), whole.len());
    index.write(&tenant, &token, &[]).await.unwrap();
}

pub(crate) async fn a_generation_that_is_begun_again_is_empty(world: &World) {
    let (index, tenant) = (world.open(), tenant());
    let token = seal(&*index, &tenant, 1).await;
    build(&*index, &tenant, &token, "apple").await;
    index.begin(&tenant, &token, &making("birch")).await.unwrap();
    assert_eq!(index.inspect(&tenant, &token).await.unwrap().chunks, 0);
    assert_eq!(index.generations(&tenant).await.unwrap()[0].chunks, 0);
    let few = &entries("birch")[..2];
    index.write(&tenant, &token, few).await.unwrap();
    let inspection = index.inspect(&tenant, &token).await.unwrap();
    assert_eq!(inspection.digest, manifest(&making("birch"), few).digest);
}

pub(crate) async fn what_was_published_is_not_written_any_more(world: &World) {
    let (index, tenant) = (world.open(), tenant());
    let (token, _) = publish(&*index, &tenant, 1, "apple").await;
    let answer = index.search(&tenant, &along(0), 99).await.unwrap();
    let more = super::world::entry("late.md", 0, "late", 0);
    for said in [index.write(&tenant, &token, &[more]).await, index.begin(&tenant, &token, &making("birch")).await] {
        let Err(WriteError::Index(IndexError::Failed { why, .. })) = said else { panic!("{said:?}") };
        assert!(why.contains("generation 1 is"), "{why}");
    }
    assert_eq!(index.search(&tenant, &along(0), 99).await.unwrap(), answer);
    // Nor is one that was never begun.
    let token = seal(&*index, &tenant, 2).await;
    let said = index.write(&tenant, &token, &entries("birch")).await;
    assert!(matches!(said, Err(WriteError::Index(IndexError::Failed { .. }))), "{said:?}");
    assert_eq!(index.generations(&tenant).await.unwrap().len(), 1);
}

pub(crate) async fn a_vector_that_does_not_fit_is_refused(world: &World) {
    let (index, tenant) = (world.open(), tenant());
    let token = seal(&*index, &tenant, 1).await;
    let manifest = build(&*index, &tenant, &token, "apple").await;
    let before = index.inspect(&tenant, &token).await.unwrap();
    let mut odd = super::world::entry("odd.md", 0, "odd", 0);
    for length in [0, 7, 9] {
        odd.vector = vec![0.5; length];
        let said = index.write(&tenant, &token, std::slice::from_ref(&odd)).await;
        let Err(WriteError::Index(IndexError::Dimensions { found, asked, .. })) = said else { panic!("{said:?}") };
        assert_eq!((found, asked as usize), (DIMENSIONS, length));
    }
    odd.vector = along(0);
    odd.vector[3] = f32::NAN;
    // The one that fits comes first, and does not stand alone.
    let said = index.write(&tenant, &token, &[super::world::entry("even.md", 0, "even", 0), odd]).await;
    let Err(WriteError::Index(IndexError::Failed { why, .. })) = said else { panic!("{said:?}") };
    assert!(why.contains("infinite or none"), "{why}");
    assert_eq!(index.inspect(&tenant, &token).await.unwrap(), before);

    let first = switch("first", 0, 1, Some(manifest));
    assert_eq!(index.switch(&tenant, &token, &first).await.unwrap(), Switched::To(1));
    for said in
        [index.search(&tenant, &[1.0; 5], 3).await.map(drop), index.nearest(&tenant, 1, &[1.0; 5], 3).await.map(drop)]
    {
        assert!(matches!(said, Err(IndexError::Dimensions { found: DIMENSIONS, asked: 5, .. })), "{said:?}");
    }
    assert_eq!(index.search(&tenant, &along(0), 0).await.unwrap().hits, []);
    let said = index.nearest(&tenant, 2, &along(0), 3).await;
    assert!(matches!(said, Err(IndexError::Failed { .. })), "{said:?}");
}

pub(crate) async fn kept_vectors_are_there_until_nobody_uses_them(world: &World) {
    let (index, tenant) = (world.open(), tenant());
    let key = |name: &str| Sum::of(&[name.as_bytes()]);
    let old = seal(&*index, &tenant, 1).await;
    index.keep(&tenant, 1, &[(key("a"), along(0)), (key("b"), along(1)), (key("a"), along(0))]).await.unwrap();
    // It has lost the tenant, and has paid for one more.
    let token = seal(&*index, &tenant, 2).await;
    index.keep(&tenant, old.epoch.get(), &[(key("c"), along(2)), (key("a"), along(7))]).await.unwrap();
    let known = || async { world.open().known(&tenant, &[key("c"), key("none"), key("a"), key("c")]).await.unwrap() };
    assert_eq!(known().await, [Some(along(2)), None, Some(along(0)), Some(along(2))]);
    assert_eq!(index.known(&tenant, &[]).await.unwrap(), [] as [Option<Vec<f32>>; 0]);

    // Before the first version nobody knows what will be used, also when one is being built.
    let making = making("apple");
    index.begin(&tenant, &token, &making).await.unwrap();
    assert_eq!(index.condemn(&tenant, &token, 0).await.unwrap(), [] as [u64; 0]);
    assert_eq!(known().await, [Some(along(2)), None, Some(along(0)), Some(along(2))]);

    // Generation 2 uses a vector of the lost round's, and another one comes along with it.
    let mut entry = super::world::entry("one.md", 0, "one", 2);
    entry.key = key("c");
    index.write(&tenant, &token, std::slice::from_ref(&entry)).await.unwrap();
    let first = switch("first", 0, 2, Some(manifest(&making, &[entry])));
    assert_eq!(index.switch(&tenant, &token, &first).await.unwrap(), Switched::To(1));
    index.keep(&tenant, 3, &[(key("d"), along(3))]).await.unwrap();
    index.condemn(&tenant, &token, 0).await.unwrap();
    let keys = ["a", "b", "c", "d"].map(key);
    assert_eq!(index.known(&tenant, &keys).await.unwrap(), [None, None, Some(along(2)), Some(along(3))]);
}
