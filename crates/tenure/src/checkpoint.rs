use crate::error::{Lost, WriteError};
use crate::keeper::{Held, Keeper};
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tenure_core::{Epoch, SinkId, Token};
use tokio_util::sync::CancellationToken;

/// Where work asks whether it may go on. Cheap to clone into the parts of a job; the [`Lease`](crate::Lease) itself
/// stays with whoever finishes it.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    pub(crate) held: Arc<Held>,
}

impl Checkpoint {
    /// The right to write, to be shown to a receiver in the transaction of the write. It stays this one: there is no
    /// way to ask for "the current token", which is how a stale worker borrows its successor's.
    #[must_use]
    pub fn token(&self) -> &Token {
        self.held.token()
    }

    /// The epoch of the token.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.token().epoch
    }

    /// The grant, signed now for all receivers that the lease was acquired with: what a receiver behind HTTP is shown. It is
    /// a password until it expires, some minutes from now; ask for another one at each use. Reads the key from its file.
    ///
    /// # Errors
    /// [`SigningError::Lost`](crate::SigningError::Lost), for ever after the first time. Otherwise there is no key to sign
    /// with, and the lease is held still.
    #[cfg(feature = "signed")]
    pub fn signed(&self) -> Result<tenure_grant::SignedGrant, crate::error::SigningError> {
        self.held.signed()
    }

    /// The checkpoint: the sticky flag, then the own deadline on this very thread, then the authority. Ask before each
    /// step that costs or changes something.
    ///
    /// # Errors
    /// [`Lost`], for ever after the first time. A check that fails or is not answered is a loss: stop the work.
    pub async fn ensure_owned(&self) -> Result<&Token, Lost> {
        self.ensure_local()?;
        Keeper::check(&self.held).await;
        self.ensure_local()
    }

    /// The same without the authority: the sticky flag and the own deadline, in well under a microsecond.
    ///
    /// It cannot see a revocation before the next renewal has told of it.
    ///
    /// # Errors
    /// [`Lost`], for ever after the first time: stop the work.
    pub fn ensure_local(&self) -> Result<&Token, Lost> {
        self.held.standing()?;
        Ok(self.token())
    }

    /// The receivers that the takeover was announced without ([`Acquire::excuse`](crate::Acquire::excuse)) and that are not
    /// sealed yet: there this lease is refused, and a former holder may still be accepted. Each leaves the set when it is sealed.
    #[must_use]
    pub fn excused(&self) -> BTreeSet<SinkId> {
        self.held.excused()
    }

    /// [`ensure_local`](Self::ensure_local) for a write at one receiver. That receiver has the last word, as ever: one that was
    /// put back since answers `Unsealed`.
    ///
    /// # Errors
    /// [`WriteError::Lost`], for ever after the first time: stop the work. [`WriteError::Excused`]: leave out or put off what
    /// goes there. [`WriteError::NotMine`]: name it when you acquire.
    pub fn may_write_to(&self, sink: &SinkId) -> Result<&Token, WriteError> {
        self.held.may_write_to(sink)?;
        Ok(self.token())
    }

    /// For how long this process may believe still if no renewal is granted: until its own deadline, which lies a margin
    /// before the authority's. A checkpoint like [`ensure_local`](Self::ensure_local). For work that cannot be
    /// interrupted, and for whoever must end it in time from outside.
    ///
    /// # Errors
    /// [`Lost`], for ever after the first time: stop the work.
    pub fn time_left(&self) -> Result<Duration, Lost> {
        self.held.time_left()
    }

    /// Ends when the lease is lost, and says why. A lease that is released or completed is lost as well, for whoever
    /// still waits here.
    pub async fn lost(&self) -> Lost {
        let cancelled = self.cancellation();
        loop {
            if let Err(lost) = self.held.standing() {
                return lost;
            }
            cancelled.cancelled().await;
        }
    }

    /// A token that is cancelled when the lease is lost, for code that takes one.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.held.cancellation()
    }

    /// Runs the work while the lease is held: drops it on loss, and checks once more after it.
    ///
    /// # Errors
    /// [`Lost`]: the work was dropped where it stood, or ended too late. What it had begun to send may still arrive; the
    /// receiver's fence decides about that.
    pub async fn guard<Work: Future>(&self, work: Work) -> Result<Work::Output, Lost> {
        self.ensure_local()?;
        let (mut lost, mut work) = (pin!(self.lost()), pin!(work));
        let output = poll_fn(|context| {
            // The loss first: work that is always ready would otherwise never hear of it.
            if let Poll::Ready(lost) = lost.as_mut().poll(context) {
                return Poll::Ready(Err(lost));
            }
            work.as_mut().poll(context).map(Ok)
        })
        .await?;
        self.ensure_local()?;
        Ok(output)
    }
}
