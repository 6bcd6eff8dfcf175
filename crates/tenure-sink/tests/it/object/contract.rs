//! It passes the suite, under both rules: in memory, where versions are digests, and on a server that speaks S3.

use super::{LONG, operation, sent};
use crate::id;
use futures_util::TryStreamExt;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use object_store::path::Path;
use std::sync::Arc;
use tenure_core::fence::Rule;
use tenure_core::{OperationId, ResourceName, Token, Verdict};
use tenure_servers::S3;
use tenure_sink::conformance::{Capabilities, Held, SinkUnderTest, answered, run_all};
use tenure_sink::object::{Fate, ObjectSink, Upload, Write};
use tenure_sink::{ApplyError, Lookup, Sink, SinkError};

#[test]
fn memory_passes_the_suite_under_the_sealed_rule() {
    run_all(|| Box::new(Subject::create(Arc::new(InMemory::new()), "a/b", Rule::Sealed)));
}

#[test]
fn memory_passes_the_suite_under_the_high_water_rule() {
    run_all(|| Box::new(Subject::create(Arc::new(InMemory::new()), "", Rule::HighWater)));
}

#[test]
fn a_store_whose_versions_are_digests_passes_the_suite() {
    let store = || super::wire::Wire::hashed(Arc::new(InMemory::new()));
    run_all(|| Box::new(Subject::create(store(), "a", Rule::Sealed)));
}

#[test]
fn s3_passes_the_suite_under_the_sealed_rule() {
    run_all(|| Box::new(Subject::on(S3::shared(), Rule::Sealed)));
}

#[test]
fn s3_passes_the_suite_under_the_high_water_rule() {
    run_all(|| Box::new(Subject::on(S3::shared(), Rule::HighWater)));
}

/// How the sink is opened.
#[derive(Clone)]
enum Way {
    Store,
    Address(&'static S3),
}

struct Subject {
    store: Arc<dyn ObjectStore>,
    way: Way,
    prefix: String,
    sink: ObjectSink,
}

impl Subject {
    fn create(store: Arc<dyn ObjectStore>, prefix: &str, rule: Rule) -> Self {
        let sink = ObjectSink::create(Arc::clone(&store), prefix, id(), rule).unwrap();
        Self { store, way: Way::Store, prefix: prefix.to_owned(), sink }
    }

    fn on(server: &'static S3, rule: Rule) -> Self {
        let prefix = server.prefix();
        let url = format!("{}&create=true", super::s3::url(server, &prefix, rule));
        let sink = ObjectSink::at_with(&url, server.credentials()).unwrap();
        Self { store: super::s3::store(server), way: Way::Address(server), prefix, sink }
    }

    fn open(&self, prefix: &str) -> Result<ObjectSink, SinkError> {
        match &self.way {
            Way::Store => ObjectSink::open(Arc::clone(&self.store), prefix, id(), self.sink.rule()),
            Way::Address(server) => {
                ObjectSink::at_with(&super::s3::url(server, prefix, self.sink.rule()), server.credentials())
            }
        }
    }

    fn built(&self, token: &Token, operation: Option<&OperationId>, value: &str) -> Write {
        let write = self.sink.write(token).put("value", value.to_owned());
        match operation {
            Some(id) => write.once(&self::operation(id.as_str(), value)),
            None => write,
        }
    }
}

impl SinkUnderTest for Subject {
    fn sink(&self) -> &dyn Sink {
        &self.sink
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { seals_past_a_stopped_writer: true }
    }

    fn another(&self) -> Box<dyn SinkUnderTest> {
        let sink = self.open(&self.prefix).unwrap().with_wait(LONG);
        Box::new(Self { store: Arc::clone(&self.store), way: self.way.clone(), prefix: self.prefix.clone(), sink })
    }

    fn open_missing(&self) -> (Option<SinkError>, bool) {
        let prefix = format!("{}-missing", self.prefix);
        let error = self.open(&prefix).err();
        let found: Vec<_> =
            super::runtime().block_on(self.store.list(Some(&Path::from(prefix))).try_collect()).unwrap();
        (error, !found.is_empty())
    }

    fn write(&self, token: &Token, operation: Option<&OperationId>, value: &str) -> Result<Verdict, SinkError> {
        match sent(self.built(token, operation, value)) {
            Ok(Fate::Judged(verdict)) => Ok(verdict),
            Err(ApplyError::Sink(error)) => Err(error),
            other => panic!("no verdict: {other:?}"),
        }
    }

    fn write_failing(&self, token: &Token, operation: Option<&OperationId>) {
        let refused = self.built(token, operation, "half").when(|_| Err("the effect's own reason".to_owned()));
        match sent(refused) {
            Err(ApplyError::Effect(why)) => assert_eq!(why.to_string(), "the effect's own reason"),
            other => panic!("the effect was not refused: {other:?}"),
        }
    }

    fn lookup(&self, token: &Token, operation: &OperationId) -> Result<Result<Lookup, Verdict>, SinkError> {
        answered(self.sink.lookup(token, operation))
    }

    fn value(&self, resource: &ResourceName) -> Option<String> {
        let content = answered(self.sink.read(resource, "value")).unwrap();
        content.map(|content| String::from_utf8(content.to_vec()).unwrap())
    }

    /// A writer that was admitted, and uploads; its sink remembers the manifest by which it was.
    fn hold(&self, token: &Token) -> Box<dyn Held + '_> {
        let admitted = answered(self.sink.upload(token)).unwrap();
        Box::new(Open { sink: &self.sink, token: token.clone(), upload: admitted.unwrap() })
    }
}

struct Open<'a> {
    sink: &'a ObjectSink,
    token: Token,
    upload: Upload,
}

impl Held for Open<'_> {
    fn finish(mut self: Box<Self>, value: &str) -> Result<Verdict, String> {
        answered(self.upload.write(value)).map_err(|error| error.to_string())?;
        let staged = answered(self.upload.finish()).map_err(|error| error.to_string())?;
        match sent(self.sink.write(&self.token).place("value", staged)) {
            Ok(fate) => fate.verdict().cloned().ok_or_else(|| format!("{fate:?}")),
            Err(error) => Err(error.to_string()),
        }
    }
}
