//! An index in a place of its own, and what the clauses do with it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;
use tenure::{Epoch, GrantId, OperationId, Token};
use tenure_servers::{Chroma, Postgres};
use vector_sync::chunk::Chunk;
use vector_sync::index::{Entry, Index, Round, Switch, Switched, Why, connect};
use vector_sync::manifest::{Making, Manifest, Sum, Sums};
use vector_sync::tenant::Tenant;

/// The length of the vectors.
pub(crate) const DIMENSIONS: u32 = 8;

/// An index in a place of its own.
pub(crate) struct World {
    url: String,
    records: Records,
    /// Goes with it.
    folder: TempDir,
}

/// Where the records are, whatever holds the vectors.
enum Records {
    /// In this folder of SQLite files.
    Folder(PathBuf),
    /// In the database at this address.
    Database(String),
}

/// Somebody who holds on to a tenant's records, in a transaction.
pub(crate) enum Holder {
    File(rusqlite::Connection),
    Rows(tokio_postgres::Client),
}

impl Holder {
    pub(crate) async fn let_go(self) {
        match self {
            Self::File(file) => file.execute_batch("ROLLBACK").unwrap(),
            Self::Rows(client) => client.batch_execute("ROLLBACK").await.unwrap(),
        }
    }
}

impl World {
    pub(crate) fn sqlite() -> Self {
        let folder = TempDir::new().unwrap();
        let records = folder.path().join("index");
        Self { url: format!("sqlite:{}", records.display()), records: Records::Folder(records), folder }
    }

    pub(crate) fn postgres() -> Self {
        let url = Postgres::shared_with_vectors().database();
        Self { url: url.clone(), records: Records::Database(url), folder: TempDir::new().unwrap() }
    }

    pub(crate) fn chroma_and_sqlite() -> Self {
        let Self { url, records, folder } = Self::sqlite();
        Self { url: format!("chroma:{}?catalog={url}", Chroma::shared().url()), records, folder }
    }

    /// The catalog needs no pgvector.
    pub(crate) fn chroma_and_postgres() -> Self {
        let catalog = Postgres::shared().database();
        let url = format!("chroma:{}?catalog={catalog}", Chroma::shared().url());
        Self { url, records: Records::Database(catalog), folder: TempDir::new().unwrap() }
    }

    /// Holds on to all records of a tenant that a round changes.
    pub(crate) async fn hold(&self, tenant: &Tenant) -> Holder {
        match &self.records {
            Records::Folder(folder) => {
                let file = rusqlite::Connection::open(folder.join(format!("{tenant}.db"))).unwrap();
                file.execute_batch("BEGIN IMMEDIATE").unwrap();
                Holder::File(file)
            }
            Records::Database(url) => {
                let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
                tokio::spawn(connection);
                let sql = format!(
                    "BEGIN; SET search_path = vector_sync;
                     SELECT FROM generation WHERE tenant = '{tenant}' FOR UPDATE;
                     SELECT FROM alias WHERE tenant = '{tenant}' FOR UPDATE"
                );
                client.batch_execute(&sql).await.unwrap();
                Holder::Rows(client)
            }
        }
    }

    /// Its address.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A handle that shares nothing in memory with others.
    pub(crate) fn open(&self) -> Box<dyn Index> {
        connect(&self.url).unwrap()
    }
}

/// A tenant that no other test has.
pub(crate) fn tenant() -> Tenant {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("t{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)).parse().unwrap()
}

/// Takes the tenant over: seals the token of an epoch.
pub(crate) async fn seal(index: &dyn Index, tenant: &Tenant, epoch: u64) -> Token {
    let sink = index.sink(tenant).await.unwrap();
    let token = token(tenant, epoch);
    let generation = sink.describe(&token.resource).await.unwrap().generation;
    let sealing = sink.seal(&token, &generation, &BTreeSet::new()).await.unwrap();
    assert!(matches!(sealing, tenure::core::fence::Sealing::Seal(_)), "{sealing:?}");
    token
}

/// A token that was not sealed.
pub(crate) fn token(tenant: &Tenant, epoch: u64) -> Token {
    let grant = GrantId::from_bits(u128::from(epoch) * 1000 + 7);
    Token { resource: tenant.resource(), epoch: Epoch::new(epoch).unwrap(), grant }
}

/// What generations are made of.
pub(crate) fn making(snapshot: &str) -> Making {
    Making {
        model: "words@1".to_owned(),
        dimensions: DIMENSIONS,
        chunker: "lines-1".to_owned(),
        snapshot: Sum::of(&[snapshot.as_bytes()]),
    }
}

/// A chunk whose vector points along one axis, with a little of the next.
pub(crate) fn entry(document: &str, number: u32, text: &str, axis: usize) -> Entry {
    let chunk =
        Chunk { document: document.to_owned(), number, heading: format!("About {document}"), text: text.to_owned() };
    let key = chunk.key("words@1");
    Entry { chunk, key, vector: along(axis) }
}

/// A vector of length one.
pub(crate) fn along(axis: usize) -> Vec<f32> {
    let mut vector = vec![0.0; DIMENSIONS as usize];
    vector[axis % DIMENSIONS as usize] = 0.96;
    vector[(axis + 1) % DIMENSIONS as usize] = 0.28;
    vector
}

/// As many chunks as there are axes, two of each document, all of which tell the word.
pub(crate) fn entries(word: &str) -> Vec<Entry> {
    (0..DIMENSIONS).map(|n| entry(&format!("d{}.md", n / 2), n % 2, &format!("{word} {n}"), n as usize)).collect()
}

/// The manifest that goes with them.
pub(crate) fn manifest(making: &Making, entries: &[Entry]) -> Manifest {
    let mut sums = Sums::default();
    for Entry { chunk, key, .. } in entries {
        sums.add(&Entry::sum(&chunk.document, chunk.number, key));
    }
    let documents: BTreeSet<&str> = entries.iter().map(|entry| &*entry.chunk.document).collect();
    Manifest {
        making: making.clone(),
        source: "a test".to_owned(),
        documents: documents.len() as u64,
        chunks: sums.count(),
        digest: sums.sum(),
    }
}

/// How the round of an epoch ended.
pub(crate) fn round(epoch: u64, version: Option<u64>) -> Round {
    let outcome = if version.is_some() { "published" } else { "failed" }.to_owned();
    Round { epoch, recorded_by: epoch, outcome, version, note: "8 chunks".to_owned(), at_ms: 0 }
}

/// A move to the generation of an epoch.
pub(crate) fn switch(name: &str, from: u64, to: u64, manifest: Option<Manifest>) -> Switch {
    let why = if manifest.is_some() { Why::Sync } else { Why::Rollback };
    Switch { operation: OperationId::new(name).unwrap(), from, to, why, manifest }
}

/// Builds the generation of the token's epoch, whose texts all tell the word.
pub(crate) async fn build(index: &dyn Index, tenant: &Tenant, token: &Token, word: &str) -> Manifest {
    let making = making(word);
    let entries = entries(word);
    index.begin(tenant, token, &making).await.unwrap();
    for batch in entries.chunks(3) {
        index.write(tenant, token, batch).await.unwrap();
    }
    manifest(&making, &entries)
}

/// Builds and publishes, from the version that is live.
pub(crate) async fn publish(index: &dyn Index, tenant: &Tenant, epoch: u64, word: &str) -> (Token, u64) {
    let token = seal(index, tenant, epoch).await;
    let manifest = build(index, tenant, &token, word).await;
    let from = index.live(tenant).await.unwrap().map_or(0, |live| live.version);
    let switch = switch(&format!("publish-{epoch}"), from, epoch, Some(manifest));
    assert_eq!(index.switch(tenant, &token, &switch).await.unwrap(), Switched::To(from + 1));
    (token, from + 1)
}
