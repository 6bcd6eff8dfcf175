use super::super::DemoError;
use super::{Page, Place, id, outcome};
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use std::future::Future;
use std::sync::Arc;
use tenure::blocking::wait_for;
use tenure::core::ResourceName;
use tenure::core::fence::Rule;
use tenure::sink::object::{Fate, ObjectSink, Operation};
use tenure::sink::{ApplyError, Sink, digest_of, one_value_per_epoch};
use tenure::{Token, Verdict};

/// A prefix of a bucket, with the document and the fence's own objects below it.
#[derive(Debug)]
pub(super) struct Prefix {
    url: String,
}

/// The name of the document, under the fence and without one.
const DOCUMENT: &str = "document.json";

impl Prefix {
    pub(super) fn at(url: &str) -> Result<Self, DemoError> {
        Ok(Self { url: url.to_owned() })
    }

    /// Without a rule there is a fence as well, and nobody asks it.
    fn open(&self, rule: Option<Rule>) -> Result<ObjectSink, DemoError> {
        let rule = rule.unwrap_or(Rule::HighWater).name();
        let mark = if self.url.contains('?') { '&' } else { '?' };
        Ok(ObjectSink::at(&format!("{}{mark}create=true&id={}&rule={rule}", self.url, id()?))?)
    }

    /// The prefix itself, as the store knows it.
    fn path(&self) -> Result<Path, DemoError> {
        let place = self.url.split('?').next().unwrap_or_default().trim_start_matches("s3://");
        let prefix = place.split_once('/').map_or("", |(_, prefix)| prefix);
        Path::parse(prefix).map_err(|error| DemoError::Server(error.to_string()))
    }
}

impl Place for Prefix {
    fn create(&self, rule: Option<Rule>) -> Result<(), DemoError> {
        self.open(rule).map(drop)
    }

    fn sink(&self, rule: Rule) -> Result<Arc<dyn Sink>, DemoError> {
        Ok(Arc::new(self.open(Some(rule))?))
    }

    fn write(&self, rule: Option<Rule>, token: &Token, value: &str) -> Result<Verdict, DemoError> {
        let (sink, page) = (self.open(rule)?, Page::text(token, value));
        if rule.is_none() {
            let path = self.path()?.join(DOCUMENT);
            asked(&sink, |store| async move { store.put(&path, PutPayload::from(page)).await })?;
            return Ok(Verdict::Written);
        }
        let operation = Operation {
            id: one_value_per_epoch(token.epoch),
            digest: digest_of(value.as_bytes()),
            outcome: outcome(value),
        };
        match wait_for(sink.write(token).put(DOCUMENT, page).once(&operation).send()) {
            Ok(Fate::Judged(verdict)) => Ok(verdict),
            Ok(Fate::Unknown { why }) => Err(DemoError::Server(format!("nobody knows whether it was written: {why}"))),
            Err(ApplyError::Effect(refused)) => Err(DemoError::Server(refused.to_string())),
            Err(ApplyError::Sink(error)) => Err(DemoError::Sink(error)),
        }
    }

    fn document(&self, rule: Option<Rule>, resource: &str) -> Result<Option<(i64, String)>, DemoError> {
        let sink = self.open(rule)?;
        if rule.is_some() {
            let resource = ResourceName::new(resource).map_err(|error| DemoError::Server(error.to_string()))?;
            return wait_for(sink.read(&resource, DOCUMENT))?.map(|page| Page::read(&page)).transpose();
        }
        let path = self.path()?.join(DOCUMENT);
        let page = asked(&sink, |store| async move {
            match store.get(&path).await {
                Ok(found) => found.bytes().await.map(Some),
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        })?;
        page.map(|page| Page::read(&page)).transpose()
    }

    fn clear(&self, rule: Option<Rule>) -> Result<(), DemoError> {
        let prefix = self.path()?;
        asked(&self.open(rule)?, |store| async move {
            let all: Vec<_> = store.list(Some(&prefix)).map_ok(|object| object.location).try_collect().await?;
            for each in &all {
                store.delete(each).await?;
            }
            Ok(())
        })
    }
}

fn asked<T: Send + 'static, F>(
    sink: &ObjectSink,
    question: impl FnOnce(Arc<dyn ObjectStore>) -> F,
) -> Result<T, DemoError>
where
    F: Future<Output = object_store::Result<T>> + Send + 'static,
{
    wait_for(sink.past_the_fence(question))?.map_err(|error| DemoError::Server(error.to_string()))
}
