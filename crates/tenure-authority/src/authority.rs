use crate::store::{Read, Store, StoreError, SwapOutcome, Version};
use std::sync::Arc;
use tenure_core::decide::{Change, Refusal, Reply, Request, Swap, Then, decide};
use tenure_core::record::{LeaseRecord, SessionRecord};
use tenure_core::{ResourceName, SessionId};

/// Executes requests against a store: read, decide, swap.
#[derive(Clone, Debug)]
pub struct Authority {
    store: Arc<dyn Store>,
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
        Self { store }
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
        for _ in 0..ROUNDS_MAX {
            let read = self.store.read(&keys).await?;
            let decision = decide(&read.view, request, read.now);
            let Some(swap) = decision.swap else {
                return match decision.then {
                    Then::Answer(answer) => Ok(answer),
                    // Without a change there is nothing that another round would find otherwise.
                    Then::Again => Err(AuthorityError::Contended),
                };
            };
            let expected = expected_version(&read, &swap);
            match (self.store.swap(swap, expected).await?, decision.then) {
                (SwapOutcome::Done, Then::Answer(answer)) => return Ok(answer),
                (SwapOutcome::Done, Then::Again) | (SwapOutcome::Changed, _) => {}
                // Resolved by reading: the next round finds the change made, and answers as to a repeat, or not made.
                (SwapOutcome::Unknown, _) if !unknown => unknown = true,
                (SwapOutcome::Unknown, _) => return Err(AuthorityError::Unknown),
            }
        }
        Err(AuthorityError::Contended)
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
        let keys = tenure_core::decide::Keys { resource: Some(resource.clone()), ..Default::default() };
        self.store.read(&keys).await
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
