//! A change of names, in one step with the check of the token.

use super::fate::{Fate, Refused};
use super::judge::{Judged, judge};
use super::manifest::{BYTES_MAX, Object, Recorded};
use super::names::{Names, check_name};
use super::nonce::Nonce;
use super::swap::Held;
use super::turn::{Start, Step, Turned, Verb, turn};
use super::upload::{Staged, stage};
use super::{ObjectSink, Place};
use crate::{Answer, ApplyError, Found, Lookup, SinkError};
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use tenure_core::{Digest, OperationId, Outcome, Replayed, Token, Verdict};

/// An operation that takes effect once, however often it is sent, and under whatever epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Which intent it is.
    pub id: OperationId,
    /// Of its content: the same operation with another digest is a conflict. [`digest_of`](crate::digest_of) makes one.
    pub digest: Digest,
    /// What a replay is told.
    pub outcome: Outcome,
}

/// A write that was put together and not sent yet. All its changes stand together, or none.
#[must_use = "nothing is written until it is sent"]
pub struct Write {
    sink: ObjectSink,
    token: Token,
    operation: Option<Operation>,
    changes: Vec<(String, Change)>,
    condition: Option<Condition>,
}

type Condition = Arc<dyn Fn(&Names) -> Result<(), String> + Send + Sync>;

enum Change {
    Content(Bytes),
    Staged(Staged),
    Remove,
}

impl Write {
    pub(super) fn new(sink: &ObjectSink, token: &Token) -> Self {
        Self { sink: sink.clone(), token: token.clone(), operation: None, changes: Vec::new(), condition: None }
    }

    /// Lets a name stand for this content.
    pub fn put(mut self, name: impl Into<String>, content: impl Into<Bytes>) -> Self {
        self.changes.push((name.into(), Change::Content(content.into())));
        self
    }

    /// Lets a name stand for what was uploaded before, under the same token.
    pub fn place(mut self, name: impl Into<String>, staged: Staged) -> Self {
        self.changes.push((name.into(), Change::Staged(staged)));
        self
    }

    /// Takes a name away. One that is not there is gone already.
    pub fn remove(mut self, name: impl Into<String>) -> Self {
        self.changes.push((name.into(), Change::Remove));
        self
    }

    /// Looks at the names in the same step, and refuses by giving a reason. It may be asked several times; the last time
    /// counts. With it, a read, a thought and a write are one step.
    pub fn when(mut self, condition: impl Fn(&Names) -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.condition = Some(Arc::new(condition));
        self
    }

    /// Makes an operation of it: it takes effect once, and a repeat is a replay.
    pub fn once(mut self, operation: &Operation) -> Self {
        self.operation = Some(operation.clone());
        self
    }

    /// Uploads what is new, and then swaps the manifest. It runs on any runtime, and goes on when the future is dropped: look an
    /// operation up only when its send has come to its end, or this process to its own.
    ///
    /// # Errors
    /// [`ApplyError::Sink`]: nothing was written, and nothing will be. [`ApplyError::Effect`]: the token was admitted, the
    /// effect was refused, and nothing of it stands.
    pub async fn send(self) -> Result<Fate, ApplyError<Refused>> {
        let place = self.sink.place();
        let home = place.home.clone();
        let why = "its thread has ended".to_owned();
        home.run(async move { self.sent(&place).await }).await.unwrap_or(Ok(Fate::Unknown { why }))
    }

    async fn sent(self, place: &Place) -> Result<Fate, ApplyError<Refused>> {
        for (name, change) in &self.changes {
            check_name(name)?;
            if let Change::Staged(staged) = change {
                staged.check(place, &self.token).map_err(|why| ApplyError::Effect(Refused(why)))?;
            }
        }
        // A look first: whoever is late, or repeats, uploads nothing.
        if self.changes.iter().any(|(_, change)| matches!(change, Change::Content(_)))
            && let Some(verdict) = place.would_refuse(&self.token, self.operation.as_ref()).await?
        {
            return Ok(Fate::Judged(verdict));
        }
        let mut names = Vec::with_capacity(self.changes.len());
        for (name, change) in self.changes {
            names.push((
                name,
                match change {
                    Change::Content(content) => Some(stage(place, &self.token, content).await?.object),
                    Change::Staged(staged) => Some(staged.object),
                    Change::Remove => None,
                },
            ));
        }
        let verb = Writing { token: &self.token, operation: self.operation.as_ref(), names, condition: self.condition };
        match turn(place, &self.token.resource, Start::Memory, &verb).await? {
            Turned::Said(Ok(verdict)) => Ok(Fate::Judged(verdict)),
            Turned::Said(Err(refused)) => Err(ApplyError::Effect(refused)),
            Turned::Unknown(why) => Ok(Fate::Unknown { why }),
        }
    }
}

impl fmt::Debug for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.changes.iter().map(|(name, _)| name).collect();
        f.debug_struct("Write")
            .field("token", &self.token)
            .field("operation", &self.operation)
            .field("names", &names)
            .finish_non_exhaustive()
    }
}

impl Place {
    /// What a write would be told that changes nothing; `None` when it may go on, as far as can be told now.
    async fn would_refuse(&self, token: &Token, operation: Option<&Operation>) -> Result<Option<Verdict>, SinkError> {
        let id = operation.map(|operation| &operation.id);
        if let Some(held) = self.desks.of(&token.resource).glance()
            && let Judged::Admitted { found: None, .. } = judge(self, Some(&held), token, id).await?
        {
            return Ok(None);
        }
        let held = super::swap::load(&self.bucket, &token.resource, self.rule).await?;
        Ok(match judge(self, held.as_ref(), token, id).await? {
            Judged::Refused(verdict) => Some(verdict),
            Judged::Admitted { raised: None, found: Some(found), .. } => {
                operation.map(|operation| repeated(&operation.digest, found))
            }
            Judged::Admitted { .. } => None,
        })
    }

    pub(super) async fn lookup(
        &self,
        token: &Token,
        operation: &OperationId,
    ) -> Result<Result<Lookup, Verdict>, SinkError> {
        match turn(self, &token.resource, Start::Fresh, &Looking { token, operation }).await? {
            Turned::Said(said) => Ok(said),
            Turned::Unknown(why) => Err(SinkError::Unreachable { place: self.bucket.place.clone(), why }),
        }
    }
}

/// The same operation with the same content, or with another.
fn repeated(digest: &Digest, found: Found) -> Verdict {
    if found.digest == *digest {
        Verdict::Replay(Replayed { epoch: found.epoch, outcome: found.outcome })
    } else {
        Verdict::Conflict { current: found.epoch }
    }
}

struct Writing<'w> {
    token: &'w Token,
    operation: Option<&'w Operation>,
    /// `None` takes the name away.
    names: Vec<(String, Option<Object>)>,
    condition: Option<Condition>,
}

impl Verb for Writing<'_> {
    type Said = Result<Verdict, Refused>;

    fn decide<'a>(
        &'a self,
        place: &'a Place,
        held: Option<&'a Held>,
    ) -> Answer<'a, Result<Step<Self::Said>, SinkError>> {
        Box::pin(async move {
            let id = self.operation.map(|operation| &operation.id);
            let (raised, found, seal_no) = match judge(place, held, self.token, id).await? {
                Judged::Refused(verdict) => return Ok(Step::Say(Ok(verdict))),
                Judged::Admitted { raised, found, seal_no } => (raised, found, seal_no),
            };
            let Some(held) = held else { return Ok(Step::Make) };
            let mut next = held.manifest.next(Nonce::draw(&place.bucket.place)?);
            if let (Some(operation), Some(found)) = (self.operation, found) {
                let verdict = Ok(repeated(&operation.digest, found));
                let Some(raised) = raised else { return Ok(Step::Say(verdict)) };
                raised.register(&mut next);
                return Ok(Step::Swap(Box::new(next), verdict));
            }
            if let Some(raised) = raised {
                raised.register(&mut next);
            }
            if let Some(condition) = &self.condition
                && let Err(why) = condition(&Names(next.names.clone()))
            {
                return Ok(Step::Say(Err(Refused(why))));
            }
            for (name, object) in &self.names {
                match object {
                    Some(object) => next.name(name, object.clone()),
                    None => next.unname(name),
                }
            }
            if next.names.len() > held.manifest.names.len() {
                let bytes = next.to_bytes(&place.bucket.place)?.len();
                if bytes > BYTES_MAX {
                    let why = format!(
                        "with these names the manifest of {} would have {bytes} bytes, and {BYTES_MAX} are the most: take \
                         names away, or divide it into several resources",
                        self.token.resource
                    );
                    return Ok(Step::Say(Err(Refused(why))));
                }
            }
            if let Some(operation) = self.operation {
                let (digest, outcome) = (operation.digest, operation.outcome.clone());
                let found = Found { epoch: self.token.epoch, digest, outcome };
                next.record(Recorded { id: operation.id.clone(), seal_no, found });
            }
            Ok(Step::Swap(Box::new(next), Ok(Verdict::Written)))
        })
    }

    /// Operations are remembered for ever.
    fn is_told_apart(&self) -> bool {
        self.operation.is_some()
    }
}

struct Looking<'a> {
    token: &'a Token,
    operation: &'a OperationId,
}

impl Verb for Looking<'_> {
    type Said = Result<Lookup, Verdict>;

    fn decide<'a>(
        &'a self,
        place: &'a Place,
        held: Option<&'a Held>,
    ) -> Answer<'a, Result<Step<Self::Said>, SinkError>> {
        Box::pin(async move {
            let (raised, found) = match judge(place, held, self.token, Some(self.operation)).await? {
                Judged::Refused(verdict) => return Ok(Step::Say(Err(verdict))),
                Judged::Admitted { raised, found, .. } => (raised, found),
            };
            let Some(held) = held else { return Ok(Step::Make) };
            let said = Ok(match (&raised, found) {
                (None, Some(found)) => return Ok(Step::Say(Ok(Lookup::Found(found)))),
                (Some(_), Some(found)) => Lookup::Found(found),
                // A manifest that is still on its way, also under this token, was judged by what stands now. Once that is
                // another one it cannot land any more, and the absence is final. What is still uploading is judged later.
                (_, None) => Lookup::Absent,
            });
            let mut next = held.manifest.next(Nonce::draw(&place.bucket.place)?);
            if let Some(raised) = raised {
                raised.register(&mut next);
            }
            Ok(Step::Swap(Box::new(next), said))
        })
    }

    fn is_told_apart(&self) -> bool {
        true
    }
}
