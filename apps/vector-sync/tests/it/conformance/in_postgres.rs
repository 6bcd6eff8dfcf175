//! The index in PostgreSQL: lost answers, servers that are gone or stopped, and databases that do not fit.

use super::world::{World, along, build, entries, publish, seal, switch, tenant};
use futures_util::future::join_all;
use std::time::Duration;
use tenure_servers::{Postgres, Proxy};
use tokio::time::timeout;
use vector_sync::index::{IndexError, Switched, WriteError, connect};

/// The statement, and not the level READ COMMITTED.
const COMMIT: &[u8] = b"COMMIT\0";

/// The story: the answer to a COMMIT was lost, and what stood was taken for failed.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_unknown_and_then_found() {
    let url = Postgres::shared_with_vectors().database();
    let proxy = Proxy::to(Postgres::shared_with_vectors().port());
    let (index, tenant) = (connect(&proxy.url(&url)).unwrap(), tenant());
    let token = seal(&*index, &tenant, 1).await;
    let manifest = build(&*index, &tenant, &token, "apple").await;
    let first = switch("first", 0, 1, Some(manifest));
    proxy.drop_answer_to(COMMIT);
    let said = index.switch(&tenant, &token, &first).await;
    assert!(matches!(said, Err(WriteError::Unknown(_))), "{said:?}");
    proxy.wait_lost(1);
    assert_eq!(index.switched(&tenant, &token, &first.operation).await.unwrap(), Some(1));
    assert_eq!(index.switch(&tenant, &token, &first).await.unwrap(), Switched::To(1));
    assert_eq!(index.switches(&tenant).await.unwrap().len(), 1);

    // The same for everything that a round may repeat.
    let token = seal(&*index, &tenant, 2).await;
    proxy.drop_answer_to(COMMIT);
    let said = index.begin(&tenant, &token, &super::world::making("birch")).await;
    assert!(matches!(said, Err(WriteError::Unknown(_))), "{said:?}");
    index.begin(&tenant, &token, &super::world::making("birch")).await.unwrap();
    proxy.drop_answer_to(COMMIT);
    let said = index.write(&tenant, &token, &entries("birch")).await;
    assert!(matches!(said, Err(WriteError::Unknown(_))), "{said:?}");
    index.write(&tenant, &token, &entries("birch")).await.unwrap();
    assert_eq!(index.inspect(&tenant, &token).await.unwrap().chunks, 8);
    assert_eq!(index.generations(&tenant).await.unwrap()[1].chunks, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_is_told_of_in_time() {
    let server = Postgres::shared_with_vectors();
    let proxy = Proxy::to(server.port());
    let url = format!("{}?wait=300ms", proxy.url(&server.database()));
    let (index, tenant) = (connect(&url).unwrap(), tenant());
    publish(&*index, &tenant, 1, "apple").await;
    let token = seal(&*index, &tenant, 2).await;
    let manifest = build(&*index, &tenant, &token, "birch").await;
    let moved = switch("second", 1, 2, Some(manifest));

    // Requests and answers are held, then only the answers, then connections are cut.
    let bound = Duration::from_secs(10);
    proxy.freeze();
    let said = timeout(bound, index.search(&tenant, &along(0), 1)).await.expect("it ends in time");
    assert!(said.is_err_and(|error| error.is_transient()));
    let said = timeout(bound, index.switch(&tenant, &token, &moved)).await.expect("it ends in time");
    let Err(WriteError::Index(error)) = said else { panic!("{said:?}") };
    assert!(error.is_transient(), "{error}");
    proxy.cut();
    let said = timeout(bound, index.live(&tenant)).await.expect("it ends in time");
    assert!(said.is_err_and(|error| error.is_transient()));
    proxy.heal();
    // With connections of its own again, and nothing of what was given up in the way.
    assert_eq!(index.search(&tenant, &along(0), 1).await.unwrap().epoch, 1);
    let tries = async {
        loop {
            match index.switch(&tenant, &token, &moved).await {
                Err(WriteError::Index(error)) if error.is_transient() => {}
                said => return said,
            }
        }
    };
    assert_eq!(timeout(bound, tries).await.expect("it comes through").unwrap(), Switched::To(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_is_used_again_when_it_is_back() {
    let server = Postgres::options().vectors().unsynced().start();
    let (index, tenant) = (connect(&server.database()).unwrap(), tenant());
    let (token, _) = publish(&*index, &tenant, 1, "apple").await;
    // Several connections are kept, all of which the server drops.
    let axis = along(0);
    for said in join_all((0..4).map(|_| index.search(&tenant, &axis, 1))).await {
        said.unwrap();
    }
    server.kill();
    let said = index.search(&tenant, &along(0), 1).await;
    let Err(error @ (IndexError::Unreachable { .. } | IndexError::Sink(_))) = said else { panic!("{said:?}") };
    assert!(error.is_transient(), "{error}");
    let said = index.condemn(&tenant, &token, 0).await;
    assert!(matches!(said, Err(WriteError::Index(_))), "{said:?}");
    server.restart();
    assert_eq!(index.search(&tenant, &along(0), 99).await.unwrap().hits.len(), 8);
    assert_eq!(index.condemn(&tenant, &token, 0).await.unwrap(), [] as [u64; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_does_not_fit_is_told_how_to() {
    // A server without pgvector.
    let plain = Postgres::shared().database();
    let said = connect(&plain).unwrap().sink(&tenant()).await.unwrap_err().to_string();
    assert!(said.contains("install pgvector for PostgreSQL") && said.contains("-pgvector"), "{said}");
    assert_eq!(connect(&plain).unwrap().live(&tenant()).await.unwrap(), None, "nothing was left half made");

    // A database that is not there: nothing to read, and nowhere to write.
    let none = format!("{plain}_none");
    assert_eq!(connect(&none).unwrap().live(&tenant()).await.unwrap(), None);
    assert!(connect(&none).unwrap().sink(&tenant()).await.is_err());

    // Tables of a later version.
    let url = Postgres::shared_with_vectors().database();
    let (index, tenant) = (connect(&url).unwrap(), tenant());
    let (token, _) = publish(&*index, &tenant, 1, "apple").await;
    tenure_servers::postgres::psql(&url, "update vector_sync.index_version set version = 7").unwrap();
    let later = connect(&url).unwrap();
    let said = later.search(&tenant, &along(0), 1).await.unwrap_err().to_string();
    assert!(said.contains("have the version 7, this program knows 1"), "{said}");
    assert!(later.condemn(&tenant, &token, 0).await.is_err());
}

/// The story: each had a table `vectors_1`, pgvector was in the schema of the first, and so on the path of the second, who
/// dropped the table of the first.
#[tokio::test(flavor = "multi_thread")]
async fn two_schemas_of_one_database_are_two_indexes() {
    let url = Postgres::shared_with_vectors().database();
    let (one, other) = (connect(&url).unwrap(), connect(&format!("{url}?schema=other")).unwrap());
    let tenant = tenant();
    // pgvector is in the schema of the first one.
    tenure_servers::postgres::psql(&url, "create schema vector_sync; create extension vector schema vector_sync")
        .unwrap();
    publish(&*one, &tenant, 1, "apple").await;
    assert_eq!(other.live(&tenant).await.unwrap(), None);
    publish(&*other, &tenant, 9, "birch").await;
    assert!(one.search(&tenant, &along(0), 1).await.unwrap().hits[0].chunk.text.starts_with("apple"));
    assert!(other.place().contains("schema other") && one.place().contains("schema vector_sync"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_postgres_cannot_keep_is_named() {
    let (index, tenant) = (World::postgres().open(), tenant());
    let token = seal(&*index, &tenant, 1).await;
    index.begin(&tenant, &token, &super::world::making("apple")).await.unwrap();
    let odd = super::world::entry("odd.txt", 0, "with a \0 in it", 0);
    let said = index.write(&tenant, &token, &[odd]).await.unwrap_err().to_string();
    assert!(said.contains("\"odd.txt\" holds a zero byte"), "{said}");
    assert_eq!(index.inspect(&tenant, &token).await.unwrap().chunks, 0);
}

/// The index of a large generation is made after it was read back, and a takeover does not wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_generation_is_searched_by_an_index() {
    let url = Postgres::shared_with_vectors().database();
    let (index, tenant) = (connect(&url).unwrap(), tenant());
    let token = seal(&*index, &tenant, 1).await;
    build(&*index, &tenant, &token, "apple").await;
    // As many rows as the threshold wants, made by the server itself.
    let more = "select setseed(0.5);
                insert into vector_sync.vectors_1
                select tenant, epoch, 'more', n, key, '', '', l2_normalize((select array_agg(random() - 0.5)
                       from generate_series(1, 8) where n > 0)::real[]::vector)
                from vector_sync.vectors_1, generate_series(1, 20000) n where document = 'd0.md' and number = 0";
    tenure_servers::postgres::psql(&url, more).unwrap();
    assert_eq!(index.inspect(&tenant, &token).await.unwrap().chunks, 20_008);
    let made = "select indexdef from pg_indexes where indexname = 'near_1'";
    assert!(tenure_servers::postgres::psql(&url, made).unwrap().contains("hnsw"));
    let hits = index.nearest(&tenant, 1, &along(4), 300).await.unwrap();
    assert_eq!((&hits[0].chunk, hits.len()), (&entries("apple")[4].chunk, 300));
}
