//! The store, and where in it the sink is.

use super::fault::Fault;
use super::manifest::READ_MAX;
use super::nonce::{Key, Nonce};
use crate::SinkError;
use bytes::Bytes;
use futures_util::StreamExt;
use object_store::path::Path;
use object_store::{
    GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion,
};
use sha2::{Digest as _, Sha256};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{OperationId, ResourceName};

use super::manifest::hex;

/// A large upload may take longer than an answer to a small question.
const UPLOAD: Duration = Duration::from_mins(1);

/// A store and a prefix in it.
#[derive(Clone)]
pub(super) struct Bucket {
    /// For what may be asked again, and may do so by itself.
    pub(super) store: Arc<dyn ObjectStore>,
    /// For what is put on a condition.
    pub(super) exact: Arc<dyn ObjectStore>,
    /// Whether that one may repeat by itself what was not answered: a refusal may then be of its second attempt, and the
    /// first one stands.
    pub(super) repeats: bool,
    /// Empty, or with a slash at its end.
    prefix: String,
    /// How it is called in messages.
    pub(super) place: String,
    /// How long an answer may take.
    pub(super) wait: Duration,
}

/// What a put on a condition came to.
#[derive(Debug)]
pub(super) enum Put {
    Done(UpdateVersion),
    /// The condition did not hold.
    Lost,
    NotSent(SinkError),
    Refused(SinkError),
    Unsure(String),
}

/// Something that was read, and the version under which it stood.
pub(super) struct Read {
    pub(super) body: Bytes,
    pub(super) version: UpdateVersion,
}

impl Bucket {
    pub(super) fn new(store: Arc<dyn ObjectStore>, prefix: &str, wait: Duration) -> Result<Self, SinkError> {
        let place = format!("{store}/{prefix}");
        let wrong = |why: String| SinkError::Address { url: place.clone(), why };
        let path = Path::parse(prefix).map_err(|error| wrong(format!("its prefix cannot be used: {error}")))?;
        // The longest key behind it has 200 bytes, and 1,024 are what stores take.
        if path.as_ref().len() > 512 {
            return Err(wrong("its prefix has more than 512 bytes".to_owned()));
        }
        let prefix = if path.as_ref().is_empty() { String::new() } else { format!("{path}/") };
        Ok(Self { exact: Arc::clone(&store), repeats: true, store, prefix, place, wait })
    }

    pub(super) fn sink(&self) -> Path {
        self.key(format_args!("sink.json"))
    }

    pub(super) fn manifests(&self) -> Path {
        self.key(format_args!("manifests"))
    }

    pub(super) fn manifest(&self, resource: &ResourceName) -> Path {
        self.key(format_args!("manifests/{}.json", digest(resource.as_str())))
    }

    pub(super) fn objects(&self, resource: &ResourceName) -> Path {
        self.key(format_args!("objects/{}", digest(resource.as_str())))
    }

    pub(super) fn object(&self, resource: &ResourceName, key: Key) -> Path {
        self.key(format_args!("objects/{}/{key}", digest(resource.as_str())))
    }

    pub(super) fn operation(&self, resource: &ResourceName, id: &OperationId) -> Path {
        self.key(format_args!("operations/{}/{}.json", digest(resource.as_str()), digest(id.as_str())))
    }

    pub(super) fn trial(&self, nonce: Nonce) -> Path {
        self.key(format_args!("trials/{nonce}"))
    }

    /// What stands behind the prefix is ours, and plain; so was the prefix when it was parsed.
    fn key(&self, rest: std::fmt::Arguments<'_>) -> Path {
        Path::parse(format!("{}{rest}", self.prefix)).unwrap_or_default()
    }

    /// How an object is called in messages.
    pub(super) fn called(&self, key: &Path) -> String {
        let key = key.as_ref();
        let key = key.strip_prefix(&self.prefix).unwrap_or(key);
        let (place, behind) = match self.place.split_once('?') {
            Some((place, parameters)) => (place, format!("?{parameters}")),
            None => (self.place.as_str(), String::new()),
        };
        format!("{}/{key}{behind}", place.trim_end_matches('/'))
    }

    async fn bounded<T>(
        &self,
        wait: Duration,
        asked: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, Fault> {
        match tokio::time::timeout(wait, asked).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(Fault::of(&error, &self.place)),
            Err(_) => Err(Fault::Unsure("no answer came in time".to_owned())),
        }
    }

    /// What a key holds, and its version; `None` when there is no such key.
    pub(super) async fn get(&self, key: &Path) -> Result<Option<Read>, SinkError> {
        self.get_at_most(key, READ_MAX, self.wait).await
    }

    pub(super) async fn get_large(&self, key: &Path) -> Result<Option<Read>, SinkError> {
        self.get_at_most(key, u64::MAX, self.wait.max(UPLOAD)).await
    }

    async fn get_at_most(&self, key: &Path, most: u64, wait: Duration) -> Result<Option<Read>, SinkError> {
        let asked = async {
            let got = self.store.get_opts(key, GetOptions::default()).await?;
            let (bytes, version) =
                (got.meta.size, UpdateVersion { e_tag: got.meta.e_tag.clone(), version: got.meta.version.clone() });
            if bytes > most {
                return Ok(Err(bytes));
            }
            Ok(Ok(Read { body: got.bytes().await?, version }))
        };
        match self.bounded(wait, asked).await {
            Ok(Ok(read)) => Ok(Some(read)),
            Ok(Err(bytes)) => Err(SinkError::corrupt(
                &self.called(key),
                format_args!("it has {bytes} bytes, and no sink has written so many"),
            )),
            Err(Fault::Gone) => Ok(None),
            Err(fault) => Err(fault.into_error(&self.place)),
        }
    }

    /// Puts if nothing is there, or if this version is.
    pub(super) async fn put_if(&self, key: &Path, body: Vec<u8>, version: Option<UpdateVersion>) -> Put {
        let mode = version.map_or(PutMode::Create, PutMode::Update);
        let asked = self.exact.put_opts(key, PutPayload::from(body), PutOptions::from(mode));
        match self.bounded(self.wait, asked).await {
            Ok(done) => Put::Done(UpdateVersion { e_tag: done.e_tag, version: done.version }),
            // Some stores say so of a version whose object is gone.
            Err(Fault::Lost | Fault::Gone) => Put::Lost,
            Err(Fault::NotSent(error)) => Put::NotSent(error),
            Err(Fault::Refused(error)) => Put::Refused(error),
            Err(Fault::Unsure(why)) => Put::Unsure(why),
        }
    }

    /// Puts whatever is there. Only what is the same each time, or was never there, is put so.
    pub(super) async fn put(&self, key: &Path, body: impl Into<PutPayload>) -> Result<(), SinkError> {
        let asked = self.store.put(key, body.into());
        let done = self.bounded(self.wait.max(UPLOAD), asked).await;
        done.map(drop).map_err(|fault| fault.into_error(&self.place))
    }

    /// For the pieces of one upload.
    pub(super) async fn piece<T>(&self, asked: impl Future<Output = object_store::Result<T>>) -> Result<T, SinkError> {
        self.bounded(self.wait.max(UPLOAD), asked).await.map_err(|fault| fault.into_error(&self.place))
    }

    /// One key; what is not there is removed already.
    pub(super) async fn remove(&self, key: &Path) -> Result<(), SinkError> {
        match self.bounded(self.wait, self.store.delete(key)).await {
            Ok(()) | Err(Fault::Gone) => Ok(()),
            Err(fault) => Err(fault.into_error(&self.place)),
        }
    }

    /// The keys below a prefix, in their order, from behind `after` on, until `take` has enough of them.
    pub(super) async fn list(
        &self,
        below: &Path,
        after: Option<&Path>,
        mut take: impl FnMut(ObjectMeta) -> bool,
    ) -> Result<(), SinkError> {
        let mut listed = match after {
            Some(after) => self.store.list_with_offset(Some(below), after),
            None => self.store.list(Some(below)),
        };
        loop {
            let next = async { listed.next().await.transpose() };
            match self.bounded(self.wait, next).await {
                Ok(Some(found)) if take(found.clone()) => {}
                Ok(_) | Err(Fault::Gone) => return Ok(()),
                Err(fault) => return Err(fault.into_error(&self.place)),
            }
        }
    }
}

/// What a name is called in keys: of a length, and of letters, that every store takes.
fn digest(name: &str) -> String {
    hex(&Sha256::digest(name))
}
