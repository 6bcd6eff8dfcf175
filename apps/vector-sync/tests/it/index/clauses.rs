//! The clauses.

use super::world::{World, along, build, entries, making, manifest, publish, seal, switch, tenant, token};
use vector_sync::index::{IndexError, Inspection, State, Switched};

pub(crate) async fn nothing_is_there_before_the_first_round(world: &World) {
    let (index, tenant) = (world.open(), tenant());
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
    assert_eq!(index.live(&tenant).await.unwrap(), None, "it is staged");

    let moved = switch("first", 0, 1, Some(manifest.clone()));
    assert_eq!(index.switch(&tenant, &token, &moved).await.unwrap(), Switched::To(1));
    // Somebody else, who shares nothing with the builder.
    let other = world.open();
    let live = other.live(&tenant).await.unwrap().unwrap();
    assert_eq!((live.version, live.epoch, live.manifest), (1, 1, manifest));
    let answer = other.search(&tenant, &along(5), 3).await.unwrap();
    assert_eq!((answer.version, answer.epoch, answer.hits.len()), (1, 1, 3));
    assert_eq!(answer.hits[0].chunk, entries("apple")[5].chunk);
    assert!((answer.hits[0].score - 1.0).abs() < 1e-3, "{answer:?}");
    assert!(answer.hits.windows(2).all(|pair| pair[0].score >= pair[1].score), "{answer:?}");
    let generation = &other.generations(&tenant).await.unwrap()[0];
    assert_eq!((generation.epoch, generation.state, generation.chunks), (1, State::Published, 8));
}
