//! The sink in a store of objects: in memory, behind a wire that makes trouble, and on a server that speaks S3.

mod answers;
mod bounds;
mod collect;
mod contract;
mod damage;
mod records;
mod reopening;
mod s3;
mod unfit;
mod uploads;
mod wire;
mod writers;

use crate::id;
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use sha2::{Digest as _, Sha256};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tenure_core::fence::{Rule, Sealing};
use tenure_core::{Digest, OperationId, Outcome, ResourceName, Token, Verdict};
use tenure_sink::conformance::answered;
use tenure_sink::object::{Fate, ObjectSink, Operation, Refused, Write};
use tenure_sink::{ApplyError, SinkError};
use wire::Wire;

/// What a call that meets a gate, or a slow machine, waits for. Nothing here is about running out of it.
const LONG: Duration = Duration::from_secs(60);

/// A sink of its own in a store.
struct Shop {
    store: Arc<dyn ObjectStore>,
    sink: ObjectSink,
}

impl Shop {
    fn create(store: Arc<dyn ObjectStore>, rule: Rule) -> Self {
        let sink = ObjectSink::create(Arc::clone(&store), "shop", id(), rule).unwrap().with_wait(LONG);
        Self { store, sink }
    }

    fn in_memory() -> Self {
        Self::create(Arc::new(InMemory::new()), Rule::Sealed)
    }

    /// Behind a wire.
    fn wired() -> (Self, Arc<Wire>) {
        let wire = Wire::to(Arc::new(InMemory::new()));
        (Self::create(wire.clone(), Rule::Sealed), wire)
    }

    /// As another process has it.
    fn another(&self) -> Self {
        let sink = ObjectSink::open(Arc::clone(&self.store), "shop", id(), self.rule()).unwrap().with_wait(LONG);
        Self { store: Arc::clone(&self.store), sink }
    }

    fn rule(&self) -> Rule {
        tenure_sink::Sink::rule(&self.sink)
    }

    fn seal(&self, token: &Token) {
        let sealing = crate::seal(&self.sink, token).unwrap();
        assert!(matches!(sealing, Sealing::Seal(_)), "{sealing:?}");
    }

    /// What becomes of a bare write of a value.
    fn put(&self, token: &Token, value: &str) -> Fate {
        sent(self.sink.write(token).put("value", value.to_owned())).unwrap()
    }

    fn value(&self) -> Option<String> {
        self.value_of("value")
    }

    fn value_of(&self, name: &str) -> Option<String> {
        let content = answered(self.sink.read(&resource(), name)).unwrap();
        content.map(|content| String::from_utf8(content.to_vec()).unwrap())
    }

    /// The keys below a part of the sink, and what each holds.
    fn keys(&self, part: &str) -> Vec<(Path, Bytes)> {
        self.keys_below(&format!("shop/{part}"))
    }

    fn keys_below(&self, part: &str) -> Vec<(Path, Bytes)> {
        runtime().block_on(async {
            let listed: Vec<_> = self.store.list(Some(&Path::from(part))).try_collect().await.unwrap();
            let mut found = Vec::new();
            for meta in listed {
                let body = self.store.get(&meta.location).await.unwrap().bytes().await.unwrap();
                found.push((meta.location, body));
            }
            found
        })
    }

    /// The one manifest.
    fn manifest(&self) -> (Path, serde_json::Value) {
        let mut all = self.keys("manifests");
        assert_eq!(all.len(), 1, "{all:?}");
        let (key, body) = all.remove(0);
        (key, serde_json::from_slice(&body).unwrap())
    }

    /// Puts something in the place of a key, past the sink.
    fn plant(&self, key: &Path, body: impl Into<PutPayload>) {
        runtime().block_on(self.store.put(key, body.into())).unwrap();
    }
}

/// For what the tests ask a store by themselves. Its connections must outlive the question.
fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap())
}

fn resource() -> ResourceName {
    ResourceName::new("r").unwrap()
}

fn sent(write: Write) -> Result<Fate, ApplyError<Refused>> {
    answered(write.send())
}

/// The sink's own reason.
#[track_caller]
fn failed(write: Write) -> SinkError {
    match sent(write) {
        Err(ApplyError::Sink(error)) => error,
        other => panic!("it did not fail: {other:?}"),
    }
}

fn written() -> Fate {
    Fate::Judged(Verdict::Written)
}

fn stale(presented: &Token, current: &Token) -> Fate {
    Fate::Judged(Verdict::Stale { presented: presented.epoch, current: current.epoch })
}

/// An operation whose content is `content`.
fn operation(name: &str, content: &str) -> Operation {
    Operation {
        id: OperationId::new(name).unwrap(),
        digest: Digest(Sha256::digest(content).into()),
        outcome: Outcome::new(format!("wrote {content}")).unwrap(),
    }
}
