use crate::store::{Read, RecallOutcome, Scope, Store, StoreError, SwapOutcome, TimeSource, Version};
use recall::Recall;
use std::sync::Arc;
use tenure_core::decide::{Change, Keys, Refusal, Reply, Request, Swap, Then, decide};
use tenure_core::record::{LeaseRecord, SessionRecord};
use tenure_core::{ResourceName, SessionId};

mod recall;

/// Executes requests against a store: read, decide, swap.
#[derive(Clone, Debug)]
pub struct Authority {
    store: Arc<dyn Store>,
    /// Where the store is a round trip away, and its clock can be told without one.
    recall: Option<Arc<Recall>>,
}

/// How often one request is decided anew before the store counts as too busy. Each round that fails means that another
/// request on the same record went through, so a bound is reached only under heavy contention on one resource.
const ROUNDS_MAX: usize = 64;

/// Why a request has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The store said no. Certainly nothing was changed by the last step.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store could not say whether the change was made, and asking again did not settle it. Send the same request
    /// again: it gets the same answer if it was made.
    #[error("the store did not say whether the change was made: send the same request again")]
    Unknown,
    /// Other requests on the same record kept coming in between.
    #[error("the resource changed {ROUNDS_MAX} times while it was being decided: try again")]
    Contended,
}

impl Authority {
    /// An authority over a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        let able = store.capabilities();
        let has_clock = able.clock == TimeSource::Server || store.now().is_some();
        let recall = (able.scope == Scope::Network && has_clock).then(Arc::default);
        Self { store, recall }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Judges and executes one request. The same request may be sent again at any time.
    ///
    /// # Errors
    /// [`AuthorityError`] when there is no answer. A refusal is an answer.
    pub async fn execute(&self, request: &Request) -> Result<Result<Reply, Refusal>, AuthorityError> {
        let keys = request.keys();
        let mut unknown = false;
        if let Some(guess) = self.recall.as_ref().and_then(|recall| recall.guess(&keys, request, self.store.now())) {
            let then = Then::Answer(Ok(guess.reply));
            // Without such swaps the guess goes nowhere: a plain one would not check what it was decided on.
            if let Some(made) = self.make(guess.recalled, then).await?
                && let Some(answer) = self.settled(&keys, made, &mut unknown)?
            {
                return Ok(answer);
            }
        }
        for _ in 0..ROUNDS_MAX {
            let read = self.store.read(&keys).await.map_err(|error| said(error, unknown))?;
            if let Some(recall) = &self.recall {
                recall.saw(&keys, &read);
            }
            let decision = decide(&read.view, request, read.now);
            let Some(swap) = decision.swap else {
                return match decision.then {
                    Then::Answer(answer) => Ok(answer),
                    // Without a change there is nothing that another round would find otherwise.
                    Then::Again => Err(AuthorityError::Contended),
                };
            };
            let expected = expected_version(&read, &swap);
            let recalled = match (&self.recall, read.versions.authority, &swap.change) {
                (Some(_), Some(version), change) if !matches!(change, Change::Authority(_)) => {
                    let recalled = recall::recalled(swap.clone(), expected, version, &read.view);
                    self.make(recalled, decision.then.clone()).await.map_err(|error| said(error, unknown))?
                }
                _ => None,
            };
            let made = match recalled {
                Some(made) => made,
                None => {
                    let outcome = self.store.swap(swap, expected).await.map_err(|error| said(error, unknown))?;
                    Made::of(outcome, decision.then)
                }
            };
            if let Some(answer) = self.settled(&keys, made, &mut unknown)? {
                return Ok(answer);
            }
        }
        Err(AuthorityError::Contended)
    }

    /// Makes a swap under all conditions that its decision stands on, and remembers what came of it. `None`: the store has
    /// no such swaps.
    async fn make(&self, recalled: crate::store::Recalled, then: Then) -> Result<Option<Made>, StoreError> {
        let swap = recalled.swap.clone();
        let Some(making) = self.store.swap_recalled(recalled) else { return Ok(None) };
        Ok(Some(match (making.await?, then) {
            (RecallOutcome::Done(after), then) => {
                if let Some(recall) = &self.recall {
                    recall.made(swap, after);
                }
                match then {
                    Then::Answer(answer) => Made::Answer(answer.map(|reply| recall::answered(reply, after))),
                    Then::Again => Made::Again,
                }
            }
            (RecallOutcome::Changed, _) => Made::Changed,
            (RecallOutcome::Unknown, _) => Made::Unknown,
        }))
    }

    /// The answer, or `None` when the request is to be decided anew.
    fn settled(
        &self,
        keys: &Keys,
        made: Made,
        unknown: &mut bool,
    ) -> Result<Option<Result<Reply, Refusal>>, AuthorityError> {
        if let (Made::Changed | Made::Unknown, Some(recall)) = (&made, &self.recall) {
            recall.forget(keys);
        }
        match made {
            Made::Answer(answer) => Ok(Some(answer)),
            Made::Again | Made::Changed => Ok(None),
            // Resolved by reading: the next round finds the change made, and answers as to a repeat, or not made.
            Made::Unknown if !*unknown => {
                *unknown = true;
                Ok(None)
            }
            Made::Unknown => Err(AuthorityError::Unknown),
        }
    }

    /// The grants that stand on a session, for a holder whose account differs from the authority's.
    ///
    /// # Errors
    /// [`StoreError`]: nothing was read.
    pub async fn grants(&self, session: SessionId) -> Result<Vec<LeaseRecord>, StoreError> {
        self.store.grants(session).await
    }

    /// Ends what is overdue and removes sessions that ended long ago, at most `limit` of them. Anybody may, at any time;
    /// nothing waits for it, since whoever wants a resource ends the overdue session in its way.
    ///
    /// # Errors
    /// [`AuthorityError`]: the sweep stopped there; the next one goes on.
    pub async fn sweep(&self, limit: usize) -> Result<usize, AuthorityError> {
        let mut swept = 0;
        for id in self.store.idle_sessions(limit).await? {
            if self.execute(&Request::Sweep { id }).await?.is_ok() {
                swept += 1;
            }
        }
        Ok(swept)
    }

    /// A resource as it stands now.
    ///
    /// # Errors
    /// [`StoreError`]: nothing was read.
    pub async fn inspect(&self, resource: &ResourceName) -> Result<Read, StoreError> {
        let keys = Keys { resource: Some(resource.clone()), ..Default::default() };
        self.store.read(&keys).await
    }
}

/// What a store's error means. After an unknown change it is no refusal: that change may stand all the same.
fn said(error: StoreError, unknown: bool) -> AuthorityError {
    if !unknown {
        return error.into();
    }
    tracing::debug!(%error, "a change that is unknown could not be looked for");
    AuthorityError::Unknown
}

/// What one round came to.
enum Made {
    Answer(Result<Reply, Refusal>),
    /// The way is cleared: decide anew.
    Again,
    Changed,
    Unknown,
}

impl Made {
    fn of(outcome: SwapOutcome, then: Then) -> Self {
        match (outcome, then) {
            (SwapOutcome::Done, Then::Answer(answer)) => Self::Answer(answer),
            (SwapOutcome::Done, Then::Again) => Self::Again,
            (SwapOutcome::Changed, _) => Self::Changed,
            (SwapOutcome::Unknown, _) => Self::Unknown,
        }
    }
}

fn expected_version(read: &Read, swap: &Swap) -> Option<Version> {
    let (view, versions) = (&read.view, &read.versions);
    let of_session = |id: SessionId| {
        let is = |session: &Option<SessionRecord>| session.as_ref().is_some_and(|session| session.id == id);
        // A session that is being opened is neither, and must be absent still.
        versions.caller.filter(|_| is(&view.caller)).or(versions.holder.filter(|_| is(&view.holder)))
    };
    match &swap.change {
        Change::Authority(_) => versions.authority,
        Change::Lease(_) | Change::DropLease(_) => versions.lease,
        Change::Session(session) => of_session(session.id),
        Change::DropSession(id) => of_session(*id),
    }
}
