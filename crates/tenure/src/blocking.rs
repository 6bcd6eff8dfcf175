//! The same for plain programs without a runtime.
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let tenure = tenure::blocking::connect("sqlite:jobs.db?create=true")?;
//! let lease = tenure.acquire(tenure.wish("tenant-7"))?;
//! lease.ensure_owned()?;
//! lease.complete("done")?;
//! # Ok(())
//! # }
//! ```

use crate::acquire::Acquire;
use crate::connect::IntoResource;
use crate::error::{AcquireError, ConnectError, FinishError, HeedError, Lost, WriteError};
use std::collections::BTreeSet;
use std::future::{Future, IntoFuture};
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use tenure_core::{SinkId, Token, Verdict};

/// Connects to the authority at `url`.
///
/// # Errors
/// [`ConnectError`]; its message says what to do.
pub fn connect(url: &str) -> Result<Tenure, ConnectError> {
    wait_for(crate::connect(url)).map(Tenure)
}

/// A connection to an authority.
#[derive(Clone, Debug)]
pub struct Tenure(crate::Tenure);

impl From<crate::Tenure> for Tenure {
    fn from(tenure: crate::Tenure) -> Self {
        Self(tenure)
    }
}

impl Tenure {
    /// A wish with its defaults, to be changed and handed to [`acquire`](Self::acquire).
    pub fn wish(&self, resource: impl IntoResource) -> Acquire {
        self.0.acquire(resource)
    }

    /// Waits for a wish.
    ///
    /// # Errors
    /// [`AcquireError`]; nothing is held.
    pub fn acquire(&self, wish: Acquire) -> Result<Lease, AcquireError> {
        wait_for(wish.into_future()).map(Lease)
    }
}

impl Deref for Tenure {
    type Target = crate::Tenure;
    fn deref(&self) -> &crate::Tenure {
        &self.0
    }
}

/// A lease whose calls block.
#[derive(Debug)]
#[must_use = "dropping a lease gives it up"]
pub struct Lease(crate::Lease);

impl Lease {
    /// The right to write; see [`Checkpoint::token`](crate::Checkpoint::token).
    #[must_use]
    pub fn token(&self) -> &Token {
        self.0.token()
    }

    /// See [`Checkpoint::signed`](crate::Checkpoint::signed).
    ///
    /// # Errors
    /// [`SigningError`](crate::SigningError).
    #[cfg(feature = "signed")]
    pub fn signed(&self) -> Result<tenure_grant::SignedGrant, crate::error::SigningError> {
        self.0.signed()
    }

    /// See [`Checkpoint::ensure_owned`](crate::Checkpoint::ensure_owned).
    ///
    /// # Errors
    /// [`Lost`]: stop the work.
    pub fn ensure_owned(&self) -> Result<&Token, Lost> {
        wait_for(self.0.ensure_owned())
    }

    /// See [`Checkpoint::ensure_local`](crate::Checkpoint::ensure_local).
    ///
    /// # Errors
    /// [`Lost`]: stop the work.
    pub fn ensure_local(&self) -> Result<&Token, Lost> {
        self.0.ensure_local()
    }

    /// See [`Checkpoint::excused`](crate::Checkpoint::excused).
    #[must_use]
    pub fn excused(&self) -> BTreeSet<SinkId> {
        self.0.excused()
    }

    /// See [`Checkpoint::may_write_to`](crate::Checkpoint::may_write_to).
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn may_write_to(&self, sink: &SinkId) -> Result<&Token, WriteError> {
        self.0.may_write_to(sink)
    }

    /// See [`Lease::heed`](crate::Lease::heed).
    ///
    /// # Errors
    /// [`HeedError`].
    pub fn heed(&self, sink: &SinkId, verdict: &Verdict) -> Result<(), HeedError> {
        wait_for(self.0.heed(sink, verdict))
    }

    /// See [`Lease::release`](crate::Lease::release).
    ///
    /// # Errors
    /// [`FinishError`]; the lease is not held any more.
    pub fn release(self) -> Result<(), FinishError> {
        wait_for(self.0.release())
    }

    /// See [`Lease::complete`](crate::Lease::complete).
    ///
    /// # Errors
    /// [`FinishError`].
    pub fn complete(self, outcome: impl AsRef<str>) -> Result<(), FinishError> {
        wait_for(self.0.complete(outcome))
    }

    /// The lease for asynchronous code.
    pub fn into_async(self) -> crate::Lease {
        self.0
    }
}

/// Waits on this thread. All work is done by the keeper's thread, so nothing here needs a runtime.
pub fn wait_for<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
