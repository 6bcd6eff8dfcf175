//! Content on its way: it lies in the store, and no name stands for it yet.

use super::judge::{Judged, judge};
use super::manifest::Object;
use super::nonce::{Key, Nonce};
use super::patience::all_of;
use super::{ObjectSink, Place};
use crate::{Answer, SinkError};
use bytes::{Bytes, BytesMut};
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};
use std::fmt;
use tenure_core::{ResourceName, Token, Verdict};

/// Longer content is uploaded in parts of this length. Stores want them all equal, and of 5 MiB at least.
const PART: usize = 8 * 1024 * 1024;

/// Content that was uploaded whole, under one token. [`Write::place`](super::Write::place) gives it a name.
///
/// One that is never placed stays in the store, until a later epoch [collects](ObjectSink::collect) it.
#[derive(Debug)]
#[must_use = "no name stands for it yet"]
pub struct Staged {
    resource: ResourceName,
    place: String,
    pub(super) object: Object,
}

impl Staged {
    /// What is collected is of older epochs, so that only this epoch's may be named.
    pub(super) fn check(&self, place: &Place, token: &Token) -> Result<(), String> {
        if self.place != place.bucket.place || self.resource != token.resource {
            return Err(format!("it was uploaded for {} of {}: upload it there", self.resource, self.place));
        }
        if self.object.key.epoch != token.epoch {
            return Err(format!(
                "it was uploaded under epoch {}, and may be collected by now: upload it again under epoch {}",
                self.object.key.epoch, token.epoch
            ));
        }
        Ok(())
    }
}

/// Uploads content that is at hand.
pub(super) async fn stage(place: &Place, token: &Token, content: Bytes) -> Result<Staged, SinkError> {
    let bucket = &place.bucket;
    let key = Key::new(token.epoch, Nonce::draw(&bucket.place)?);
    let (at, bytes) = (bucket.object(&token.resource, key), content.len() as u64);
    if content.len() <= PART {
        bucket.put(&at, content).await?;
    } else {
        let mut upload = bucket.piece(bucket.store.put_multipart(&at)).await?;
        let mut parts = Vec::new();
        let mut rest = content;
        while !rest.is_empty() {
            parts.push(upload.put_part(PutPayload::from(rest.split_to(rest.len().min(PART)))));
        }
        let sent = parts.into_iter().map(|part| Box::pin(bucket.piece(part)) as Answer<'_, _>).collect();
        let sent: Result<Vec<()>, _> = all_of(sent).await;
        let done = match sent {
            Ok(_) => bucket.piece(upload.complete()).await.map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            // Its parts would be paid for; a rule of the bucket removes what stays.
            let _ = bucket.piece(upload.abort()).await;
            return Err(error);
        }
    }
    Ok(Staged { resource: token.resource.clone(), place: bucket.place.clone(), object: Object { key, bytes } })
}

/// Content that comes piece by piece. Dropping it leaves the parts that were sent: [`abort`](Self::abort) removes them,
/// and so does a rule of the bucket for uploads that were not completed.
pub struct Upload {
    sink: ObjectSink,
    token: Token,
    key: Key,
    /// Begun when there is a whole part.
    begun: Option<Box<dyn MultipartUpload>>,
    buffer: BytesMut,
    bytes: u64,
    /// While a piece is under way, and for good when it did not arrive: it may be missing in the middle.
    is_broken: bool,
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload").field("token", &self.token).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Upload {
    pub(super) async fn begin(sink: &ObjectSink, token: &Token) -> Result<Result<Self, Verdict>, SinkError> {
        let (place, shown) = (sink.place(), token.clone());
        let judged = sink.run(async move {
            let held = super::swap::load(&place.bucket, &shown.resource, place.rule).await?;
            judge(&place, held.as_ref(), &shown, None).await
        });
        if let Judged::Refused(verdict) = judged.await? {
            return Ok(Err(verdict));
        }
        let key = Key::new(token.epoch, Nonce::draw(&sink.place().bucket.place)?);
        let (sink, token) = (sink.clone(), token.clone());
        Ok(Ok(Self { sink, token, key, begun: None, buffer: BytesMut::new(), bytes: 0, is_broken: false }))
    }

    /// Takes the next piece, of any length. After a piece that was not taken, or whose future was dropped, it takes no more.
    ///
    /// # Errors
    /// [`SinkError`]: begin the upload anew.
    pub async fn write(&mut self, piece: impl AsRef<[u8]>) -> Result<(), SinkError> {
        self.expect_whole()?;
        self.is_broken = true;
        let piece = piece.as_ref();
        self.bytes += piece.len() as u64;
        self.buffer.extend_from_slice(piece);
        while self.buffer.len() >= PART {
            let part = self.buffer.split_to(PART).freeze();
            self.part(part).await?;
        }
        self.is_broken = false;
        Ok(())
    }

    fn expect_whole(&self) -> Result<(), SinkError> {
        if !self.is_broken {
            return Ok(());
        }
        let why = "a piece of it did not arrive: begin the upload anew".to_owned();
        Err(SinkError::Failed { place: self.sink.place().bucket.place.clone(), doing: "uploading", why })
    }

    async fn part(&mut self, part: Bytes) -> Result<(), SinkError> {
        let place = self.sink.place();
        let mut begun = match self.begun.take() {
            Some(begun) => begun,
            None => {
                let (place, at) = (self.sink.place(), place.bucket.object(&self.token.resource, self.key));
                self.sink.run(async move { place.bucket.piece(place.bucket.store.put_multipart(&at)).await }).await?
            }
        };
        let sent = begun.put_part(PutPayload::from(part));
        self.begun = Some(begun);
        self.sink.run(async move { place.bucket.piece(sent).await }).await
    }

    /// Ends it. No name stands for it yet.
    ///
    /// # Errors
    /// [`SinkError`]: begin the upload anew.
    pub async fn finish(mut self) -> Result<Staged, SinkError> {
        self.expect_whole()?;
        let (place, rest) = (self.sink.place(), self.buffer.split().freeze());
        if self.begun.is_some() && !rest.is_empty() {
            self.part(rest.clone()).await?;
        }
        let (at, begun) = (place.bucket.object(&self.token.resource, self.key), self.begun.take());
        let bucket_place = place.bucket.place.clone();
        self.sink
            .run(async move {
                match begun {
                    Some(mut begun) => place.bucket.piece(begun.complete()).await.map(drop),
                    None => place.bucket.put(&at, rest).await,
                }
            })
            .await?;
        let object = Object { key: self.key, bytes: self.bytes };
        Ok(Staged { resource: self.token.resource.clone(), place: bucket_place, object })
    }

    /// Gives it up, and removes what was sent.
    ///
    /// # Errors
    /// [`SinkError`]: parts may be left.
    pub async fn abort(mut self) -> Result<(), SinkError> {
        let (place, begun) = (self.sink.place(), self.begun.take());
        let Some(mut begun) = begun else { return Ok(()) };
        self.sink.run(async move { place.bucket.piece(begun.abort()).await }).await
    }
}
