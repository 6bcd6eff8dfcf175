//! Removal of objects that no name stands for, and never will.

use super::Place;
use super::judge::{Judged, judge};
use super::manifest::Manifest;
use super::nonce::{Key, Nonce};
use super::swap::Held;
use super::turn::{Start, Step, Turned, Verb, turn};
use crate::{Answer, SinkError};
use futures_util::StreamExt;
use object_store::ObjectStore;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tenure_core::{Token, Verdict};

/// What a collection has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// So many objects are gone.
    pub removed: u64,
    /// So many bytes they had, as far as they were listed.
    pub bytes: u64,
    /// So many are there still: those that names stand for, and those of this epoch that may be on their way.
    pub kept: u64,
}

impl Place {
    /// An object is named only by a write under the epoch in its key, and after it was replaced never again. So those of
    /// older epochs that are not named now are dead, whoever may still be at work, and so are those that were replaced.
    pub(super) async fn collect(&self, token: &Token) -> Result<Result<Collected, Verdict>, SinkError> {
        let below = self.bucket.objects(&token.resource);
        let mut listed: HashMap<Key, u64> = HashMap::new();
        self.bucket
            .list(&below, None, |found| {
                // Whatever else lies there is somebody else's.
                if let Some(key) = found.location.filename().and_then(|name| name.parse().ok()) {
                    listed.insert(key, found.size);
                }
                true
            })
            .await?;
        let claimed = match turn(self, &token.resource, Start::Fresh, &Claim { token }).await? {
            Turned::Said(Ok(manifest)) => manifest,
            Turned::Said(Err(verdict)) => return Ok(Err(verdict)),
            Turned::Unknown(why) => return Err(self.unreachable(why)),
        };
        let replaced: Vec<Key> = claimed.dropped().collect();
        let named: HashSet<Key> = claimed.names.values().map(|object| object.key).collect();
        let is_dead = |key: &Key| !named.contains(key) && (key.epoch < token.epoch || replaced.contains(key));
        let mut dead: Vec<Key> = listed.keys().copied().filter(is_dead).collect();
        dead.extend(replaced.iter().filter(|key| !listed.contains_key(key) && is_dead(key)));
        self.remove(token, &dead).await?;
        if !replaced.is_empty() {
            // Whoever has taken over meanwhile finds the list as it was, and removes what is gone once more.
            let _ = turn(self, &token.resource, Start::Fresh, &Cross { token, gone: &replaced }).await?;
        }
        let mut collected = Collected::default();
        for (key, bytes) in listed {
            if is_dead(&key) {
                collected.removed += 1;
                collected.bytes += bytes;
            } else {
                collected.kept += 1;
            }
        }
        Ok(Ok(collected))
    }

    async fn remove(&self, token: &Token, dead: &[Key]) -> Result<(), SinkError> {
        let keys: Vec<_> = dead.iter().map(|key| Ok(self.bucket.object(&token.resource, *key))).collect();
        let mut removed = self.bucket.store.delete_stream(futures_util::stream::iter(keys).boxed());
        loop {
            match self.bucket.piece(async { removed.next().await.transpose() }).await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn unreachable(&self, why: String) -> SinkError {
        SinkError::Unreachable { place: self.bucket.place.clone(), why }
    }
}

/// Shows a token, and takes what stands while it is admitted.
struct Claim<'a> {
    token: &'a Token,
}

impl Verb for Claim<'_> {
    type Said = Result<Arc<Manifest>, Verdict>;

    fn decide<'a>(
        &'a self,
        place: &'a Place,
        held: Option<&'a Held>,
    ) -> Answer<'a, Result<Step<Self::Said>, SinkError>> {
        Box::pin(async move {
            let raised = match judge(place, held, self.token, None).await? {
                Judged::Refused(verdict) => return Ok(Step::Say(Err(verdict))),
                Judged::Admitted { raised, .. } => raised,
            };
            let Some(held) = held else { return Ok(Step::Make) };
            let Some(raised) = raised else { return Ok(Step::Say(Ok(Arc::clone(&held.manifest)))) };
            let mut next = held.manifest.next(Nonce::draw(&place.bucket.place)?);
            raised.register(&mut next);
            let stands = Arc::new(next.clone());
            Ok(Step::Swap(Box::new(next), Ok(stands)))
        })
    }

    fn is_told_apart(&self) -> bool {
        true
    }
}

/// Crosses off what is gone.
struct Cross<'a> {
    token: &'a Token,
    gone: &'a [Key],
}

impl Verb for Cross<'_> {
    type Said = ();

    fn decide<'a>(&'a self, place: &'a Place, held: Option<&'a Held>) -> Answer<'a, Result<Step<()>, SinkError>> {
        Box::pin(async move {
            let (Judged::Admitted { raised: None, .. }, Some(held)) =
                (judge(place, held, self.token, None).await?, held)
            else {
                return Ok(Step::Say(()));
            };
            let mut next = held.manifest.next(Nonce::draw(&place.bucket.place)?);
            next.removed(self.gone);
            Ok(Step::Swap(Box::new(next), ()))
        })
    }

    fn is_told_apart(&self) -> bool {
        true
    }
}
