use crate::checkpoint::Checkpoint;
use crate::error::{AcquireError, FinishError, HeedError};
use crate::keeper::{Keeper, Wish};
use std::ops::Deref;
use tenure_core::{Loss, Outcome, SinkId, Verdict};

/// The right to write, held by this process. Its checkpoints are those of [`Checkpoint`].
///
/// Dropping it gives it up: the drop itself does no I/O, the keeper releases it. Use [`release`](Self::release) to know
/// that it was taken.
#[derive(Debug)]
#[must_use = "dropping a lease gives it up"]
pub struct Lease {
    checkpoint: Checkpoint,
}

/// A lease that was acquired again after a loss.
#[derive(Debug)]
pub struct Resumed {
    /// The new lease, under a new epoch. The old token stays dead.
    pub lease: Lease,
    /// Whether nobody held the resource in between: work that was staged under the old epoch may be adopted.
    pub uninterrupted: bool,
}

impl Lease {
    pub(crate) fn new(checkpoint: Checkpoint) -> Self {
        checkpoint.held.enter();
        Self { checkpoint }
    }

    /// A checkpoint to hand to the parts of a job.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        self.checkpoint.clone()
    }

    /// Gives the lease up. First let the work end: every checkpoint fails from now on.
    ///
    /// # Errors
    /// [`FinishError`]; in every case the lease is not held any more.
    pub async fn release(self) -> Result<(), FinishError> {
        Keeper::release(&self.checkpoint.held).await
    }

    /// Says that the resource is done, with an outcome that later acquirers are told.
    ///
    /// # Errors
    /// [`FinishError::Refused`] and [`FinishError::Lost`] mean *not accepted*: somebody else has, or will have, the last
    /// word; never force it. [`FinishError::Unknown`] means that nobody knows.
    pub async fn complete(self, outcome: impl AsRef<str>) -> Result<(), FinishError> {
        let outcome = Outcome::new(outcome)?;
        Keeper::complete(&self.checkpoint.held, outcome).await
    }

    /// Follows a receiver's verdict: `Stale`, `Over`, and `Conflict` when another grant stands there, are the loss of this
    /// lease; `Unsealed` is none, and the receiver is sealed again, which asks the authority.
    ///
    /// # Errors
    /// [`HeedError::Lost`]: stop the work. The others: the lease is held, but nothing may be written there yet.
    pub async fn heed(&self, sink: &SinkId, verdict: &Verdict) -> Result<(), HeedError> {
        match verdict {
            Verdict::Written | Verdict::Replay(_) => Ok(self.ensure_local().map(|_| ())?),
            Verdict::Stale { .. } | Verdict::Conflict { .. } | Verdict::Unsealed | Verdict::Over(_) => {
                Keeper::heed(&self.checkpoint.held, sink.clone(), verdict.clone()).await
            }
        }
    }

    /// The way back after a loss: the same wish again, under a new epoch.
    ///
    /// # Errors
    /// [`AcquireError`]; the old lease is given up in every case.
    pub async fn resume(self) -> Result<Resumed, AcquireError> {
        let (keeper, before, wish) = (self.held.keeper(), self.epoch(), Wish::again(&self.held));
        // Settled before the new wish is sent, so that the two do not race.
        Keeper::give_up(&self.held, Loss::Ended).await;
        drop(self);
        let lease = keeper.acquire(wish).await?;
        let uninterrupted = before.next().is_ok_and(|next| next == lease.epoch());
        Ok(Resumed { lease, uninterrupted })
    }
}

impl Deref for Lease {
    type Target = Checkpoint;
    fn deref(&self) -> &Checkpoint {
        &self.checkpoint
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.checkpoint.held.lose(Loss::Ended);
        self.checkpoint.held.leave();
    }
}
