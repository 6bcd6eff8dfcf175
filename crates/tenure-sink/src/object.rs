//! Effects as objects of a store that puts on a condition, such as S3.
//!
//! # What is not guaranteed
//!
//! * Only writers and readers that go through an [`ObjectSink`] see one thing. Whoever may write to the bucket can put
//!   whatever they like; take that right from them (`docs/object-sink.md`).
//! * **A bucket that was put back** to an earlier time, or copied, is the same sink as before: call [`Sink::reopen`] then,
//!   before any worker starts. What was [collected](ObjectSink::collect) since is gone all the same.
//! * Names of two resources never change together. Those of one resource do.
//! * A store must keep what it has confirmed, and tell everybody the newest at once. S3 does; a cache in front of it may not.
//! * A bare write, without an operation, may end as [`Fate::Unknown`]; so may one with an operation, but a look-up then tells.
//! * Under [`Rule::HighWater`] a resource that was never seen may be written by a token at or below the sink's floor while
//!   that floor is just being raised for another resource. Each forgotten resource has a floor of its own besides, without
//!   a gap.
//!
//! # How it works
//!
//! Each resource has one **manifest**: a small object that holds its fence, its names with the object that each stands for, and
//! its newest operations. It is moved by compare-and-swap, a put on the condition that the version stands that was read; all
//! else in the store is written once and not changed. So one put is the one step: the token's check, the names, the operation's
//! record. A seal is such a put as well. Whatever was judged by an older manifest cannot land behind it: I10 holds of itself,
//! and V4 too, since nobody is ever inside.
//!
//! | step of a write | | after a crash just behind it |
//! |---|---|---|
//! | 1 | the manifest is read, and the token judged | nothing has changed |
//! | 2 | new content is put under a key of its own, the epoch and a nonce | an object without a name; a later epoch collects it |
//! | 3 | records of the oldest operations, when the manifest holds too many | they say what the manifest says |
//! | 4 | **the manifest is put**, if the one that was judged still stands | all of it |
//!
//! An answer that was lost is looked for: each manifest names the change that made it and the sixteen before. A seal that comes
//! from elsewhere gets in between the writers of a process because they leave it room: after four puts in a row they rest for
//! as long as three take.
//!
//! **The generation** is the sink's identity and the number of reopenings. A reopening touches every manifest, so that each
//! write finds the generation in the manifest that it judges by.
//!
//! # Keys, below the prefix
//!
//! | key | what it holds |
//! |---|---|
//! | `sink.json` | rule, identity, openings, floor |
//! | `manifests/DIGEST.json` | the manifest of the resource with this digest (SHA-256) of its name |
//! | `objects/DIGEST/EPOCH-NONCE` | content |
//! | `operations/DIGEST/DIGEST.json` | the record of an operation that is too old for the manifest |
//! | `trials/NONCE` | for a moment, whenever a sink is opened: does the store heed conditions? |
//!
//! # How it is used
//!
//! ```no_run
//! # use tenure_core::{Epoch, GrantId, OperationId, Outcome, ResourceName, SinkId, Token, Verdict, fence::Rule};
//! # use tenure_sink::object::{Fate, ObjectSink, Operation};
//! # use tenure_sink::digest_of;
//! # use std::sync::Arc;
//! # async fn work() -> Result<(), Box<dyn std::error::Error>> {
//! # let token = Token { resource: ResourceName::new("tenant-7")?, epoch: Epoch::FIRST, grant: GrantId::from_bits(7) };
//! # let sink = ObjectSink::open(Arc::new(object_store::memory::InMemory::new()), "out", SinkId::new("out")?, Rule::Sealed)?;
//! let report = Operation { id: OperationId::new("report-17")?, digest: digest_of(b"42"), outcome: Outcome::new("filed")? };
//! match sink.write(&token).put("report", "42").remove("draft").once(&report).send().await? {
//!     Fate::Judged(Verdict::Written | Verdict::Replay(_)) => println!("it stands"),
//!     Fate::Judged(verdict) => println!("refused: {verdict}"),
//!     Fate::Unknown { why } => println!("look it up: {why}"),
//! }
//! # Ok(())
//! # }
//! ```

mod bucket;
mod collect;
mod desk;
mod fate;
mod fault;
mod fence;
mod judge;
mod manifest;
mod names;
mod namespace;
mod nonce;
mod patience;
mod records;
#[cfg(feature = "s3")]
mod s3;
mod swap;
mod trial;
mod turn;
mod upload;
mod write;

pub use collect::Collected;
pub use fate::{Fate, Refused};
pub use manifest::Object;
pub use names::Names;
pub use upload::{Staged, Upload};
pub use write::{Operation, Write};

use crate::home::Home;
use crate::{Answer, Description, Lookup, Rows, Sink, SinkError};
use bucket::Bucket;
use bytes::Bytes;
use desk::Desks;
use namespace::Namespace;
use object_store::ObjectStore;
use object_store::path::Path;
use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::fence::{Forgetting, Rule, Sealing};
use tenure_core::{Epoch, Generation, OperationId, ResourceName, SinkId, Token, Verdict};

/// How long an answer may take, unless said otherwise.
const WAIT: Duration = Duration::from_secs(5);

/// How often a reader looks again when what it was to read was replaced under it.
const LOOKS: u32 = 5;

/// A sink in a store of objects. Cheap to clone; the clones share what they know of the manifests.
///
/// It has a thread of its own for its connections, so that its futures may be awaited anywhere. What was begun goes on when the
/// future is dropped: the change is made, or not made, as the contract has it.
#[derive(Clone)]
pub struct ObjectSink(Arc<Place>);

#[derive(Clone)]
struct Place {
    bucket: Bucket,
    home: Home,
    desks: Arc<Desks>,
    id: SinkId,
    rule: Rule,
}

impl ObjectSink {
    /// Makes a sink below a prefix of a store. One that is there already stays as it is.
    ///
    /// The store may repeat by itself what was not answered; give it a small bound on that, since each call waits for it. Blocks;
    /// call it outside async code.
    ///
    /// # Errors
    /// [`SinkError::Unfit`] when the store does not put on a condition; [`SinkError::NoAuthority`] under [`Rule::Held`]; otherwise what keeps the sink from being made, such as
    /// one of another rule that is there.
    pub fn create(store: Arc<dyn ObjectStore>, prefix: &str, id: SinkId, rule: Rule) -> Result<Self, SinkError> {
        Self::ready(Bucket::new(store, prefix, WAIT)?, id, rule, true)
    }

    /// Opens the sink below a prefix of a store.
    ///
    /// Blocks; call it outside async code.
    ///
    /// # Errors
    /// As [`create`](Self::create), and [`SinkError::Missing`] when there is none.
    pub fn open(store: Arc<dyn ObjectStore>, prefix: &str, id: SinkId, rule: Rule) -> Result<Self, SinkError> {
        Self::ready(Bucket::new(store, prefix, WAIT)?, id, rule, false)
    }

    fn ready(bucket: Bucket, id: SinkId, rule: Rule, create: bool) -> Result<Self, SinkError> {
        if rule == Rule::Held {
            let why = "no authority is in a store of objects: take the rule `sealed`".to_owned();
            return Err(SinkError::NoAuthority { place: bucket.place, why });
        }
        let home = Home::start("tenure-object-sink").map_err(|error| SinkError::Failed {
            place: bucket.place.clone(),
            doing: "starting a thread for the connections",
            why: error.to_string(),
        })?;
        let sink = Self(Arc::new(Place { bucket, home, desks: Arc::default(), id, rule }));
        let place = sink.place();
        let looked = sink.0.home.block_on(async move {
            // A look first: where there is no bucket, or no sink to open, nothing is put.
            if !create {
                Namespace::load(&place.bucket, place.rule).await?;
                return trial::trial(&place.bucket).await;
            }
            Namespace::find(&place.bucket, place.rule).await?;
            trial::trial(&place.bucket).await?;
            Namespace::create(&place.bucket, place.rule).await
        });
        looked.unwrap_or_else(|| Err(sink.0.ended())).map(|()| sink)
    }

    /// The same sink with another bound on each answer, and on waiting for others (5 seconds unless said otherwise). A large
    /// upload has a minute for each part.
    #[must_use]
    pub fn with_wait(self, wait: Duration) -> Self {
        let mut place = (*self.0).clone();
        place.bucket.wait = wait;
        Self(Arc::new(place))
    }

    /// The same sink, of a store that repeats nothing by itself (`RetryConfig { max_retries: 0, .. }`, and nothing between
    /// here and there that does). Unless that is said, a refusal may be one of a second attempt whose first has been done, so a
    /// bare write looks at what stands before it puts. A sink that was opened [by its address](ObjectSink::at) is one already.
    #[must_use]
    pub fn without_retries(self) -> Self {
        let mut place = (*self.0).clone();
        place.bucket.repeats = false;
        Self(Arc::new(place))
    }

    /// Begins a write. Nothing happens before it is sent.
    pub fn write(&self, token: &Token) -> Write {
        Write::new(self, token)
    }

    /// Begins an upload of content that comes piece by piece. The inner `Err` is the verdict that refuses the token.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was begun.
    pub async fn upload(&self, token: &Token) -> Result<Result<Upload, Verdict>, SinkError> {
        Upload::begin(self, token).await
    }

    /// The content of a name; `None` when there is no such name. Never a part of a write.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was read.
    pub async fn read(&self, resource: &ResourceName, name: &str) -> Result<Option<Bytes>, SinkError> {
        let (place, resource, name) = (self.place(), resource.clone(), name.to_owned());
        self.run(async move { place.read(&resource, &name).await }).await
    }

    /// What the names of a resource stand for now. Empty where nothing was ever written.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was read.
    pub async fn names(&self, resource: &ResourceName) -> Result<Names, SinkError> {
        let (place, resource) = (self.place(), resource.clone());
        let held = self.run(async move { swap::load(&place.bucket, &resource, place.rule).await }).await?;
        Ok(held.map_or_else(Names::default, |held| Names(held.manifest.names.clone())))
    }

    /// Asks the store itself, with the sink's credentials and TLS, on the sink's own thread: the caller needs no runtime. What
    /// is put past the sink is not fenced.
    ///
    /// # Errors
    /// [`SinkError`]: nobody was there to ask. The inner one is the store's.
    pub async fn past_the_fence<T: Send + 'static, F>(
        &self,
        question: impl FnOnce(Arc<dyn ObjectStore>) -> F,
    ) -> Result<object_store::Result<T>, SinkError>
    where
        F: Future<Output = object_store::Result<T>> + Send + 'static,
    {
        let asked = question(Arc::clone(&self.0.bucket.store));
        self.run(async move { Ok(asked.await) }).await
    }

    /// Where an object lies in the store, for a reader of the caller's own: for a part of it, or piece by piece. It is gone
    /// some time after another has taken its name.
    #[must_use]
    pub fn key_of(&self, resource: &ResourceName, object: &Object) -> Path {
        self.0.bucket.object(resource, object.key)
    }

    /// Looks for the effect of an operation, for a token that is admitted. The inner `Err` is the verdict that refuses the
    /// token. An absence is final, also for what was sent under this token and came to [`Fate::Unknown`]. Not for a send that has
    /// not come to its end yet: one that is uploading, also when its future was dropped, may put its names afterwards.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was found out.
    pub async fn lookup(&self, token: &Token, operation: &OperationId) -> Result<Result<Lookup, Verdict>, SinkError> {
        let (place, token, operation) = (self.place(), token.clone(), operation.clone());
        self.run(async move { place.lookup(&token, &operation).await }).await
    }

    /// Removes the objects of a resource that no name stands for and never will: those of older epochs, whoever put them there
    /// and when, and those that were replaced. The inner `Err` is the verdict that refuses the token: it is a writer like
    /// others. What a name stands for stays, and so does what this epoch may be uploading.
    ///
    /// # Errors
    /// [`SinkError`]: some of them may be gone. Repeating it is safe.
    pub async fn collect(&self, token: &Token) -> Result<Result<Collected, Verdict>, SinkError> {
        let (place, token) = (self.place(), token.clone());
        self.run(async move { place.collect(&token).await }).await
    }

    fn place(&self) -> Arc<Place> {
        Arc::clone(&self.0)
    }

    /// Runs to its end on the sink's own thread.
    fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, SinkError>> + Send + 'static,
    ) -> Answer<'static, Result<T, SinkError>> {
        let place = self.place();
        Box::pin(async move { place.home.run(work).await.unwrap_or_else(|| Err(place.ended())) })
    }
}

impl fmt::Debug for ObjectSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { bucket, id, rule, .. } = &*self.0;
        f.debug_struct("ObjectSink")
            .field("place", &bucket.place)
            .field("id", id)
            .field("rule", rule)
            .finish_non_exhaustive()
    }
}

impl Sink for ObjectSink {
    fn id(&self) -> &SinkId {
        &self.0.id
    }

    fn rule(&self) -> Rule {
        self.0.rule
    }

    fn describe<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Description, SinkError>> {
        let (place, resource) = (self.place(), resource.clone());
        self.run(async move { place.describe(&resource).await })
    }

    fn seal<'a>(
        &'a self,
        token: &'a Token,
        generation: &'a Generation,
        enrolled: &'a BTreeSet<SinkId>,
    ) -> Answer<'a, Result<Sealing, SinkError>> {
        let (place, token, generation, enrolled) = (self.place(), token.clone(), generation.clone(), enrolled.clone());
        self.run(async move { place.seal(&token, &generation, &enrolled).await })
    }

    fn forget<'a>(&'a self, resource: &'a ResourceName, cut: Epoch) -> Answer<'a, Result<Forgetting, SinkError>> {
        let (place, resource) = (self.place(), resource.clone());
        self.run(async move { place.forget(&resource, cut).await })
    }

    fn rows<'a>(&'a self, after: Option<&'a ResourceName>, limit: usize) -> Answer<'a, Result<Rows, SinkError>> {
        let (place, after) = (self.place(), after.cloned());
        self.run(async move { place.rows(after.as_ref(), limit).await })
    }

    /// It takes as long as there are manifests, eight at once; each has the sink's own bound.
    fn reopen(&self) -> Answer<'_, Result<Generation, SinkError>> {
        let place = self.place();
        self.run(async move { place.reopen().await })
    }
}

impl Place {
    async fn read(&self, resource: &ResourceName, name: &str) -> Result<Option<Bytes>, SinkError> {
        let mut gone = None;
        for _ in 0..LOOKS {
            let held = swap::load(&self.bucket, resource, self.rule).await?;
            let Some(object) = held.as_ref().and_then(|held| held.manifest.names.get(name)) else { return Ok(None) };
            let key = self.bucket.object(resource, object.key);
            let damaged = |what: String| SinkError::corrupt(&self.bucket.called(&key), what);
            match self.bucket.get_large(&key).await? {
                Some(read) if read.body.len() as u64 == object.bytes => return Ok(Some(read.body)),
                Some(read) => {
                    return Err(damaged(format!("it has {} bytes, and had {}", read.body.len(), object.bytes)));
                }
                None if gone == Some(object.key) => {
                    return Err(damaged("it is named, and is not there".to_owned()));
                }
                // It was replaced and collected since the manifest was read.
                None => gone = Some(object.key),
            }
        }
        Err(SinkError::Busy { place: self.bucket.called(&self.bucket.manifest(resource)), waited: Duration::ZERO })
    }

    fn ended(&self) -> SinkError {
        SinkError::Unreachable { place: self.bucket.place.clone(), why: "its thread has ended".to_owned() }
    }
}
