//! Where a network store's connections live.

use super::StoreError;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// The runtime on which a store talks with its server. Futures of the store may be awaited anywhere: they hand the work
/// over, and work that was handed over goes on when its future is dropped.
#[derive(Clone)]
pub(crate) enum Home {
    /// The caller's: no change of threads when the caller is on it as well. It must have its I/O and time switched on.
    Given(Handle),
    /// A thread of the store's own, which ends with the last of its clones.
    Own(Arc<Thread>),
}

pub(crate) struct Thread {
    handle: Handle,
    /// Dropped with the last clone, which ends the thread.
    _stop: oneshot::Sender<()>,
}

impl Home {
    /// A thread of its own.
    pub(crate) fn own() -> Result<Self, StoreError> {
        let none = |error: std::io::Error| StoreError::Unavailable(format!("no thread can be started: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(none)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            let _ = runtime.block_on(stopped);
        };
        std::thread::Builder::new().name("tenure-store".to_owned()).spawn(run).map_err(none)?;
        Ok(Self::Own(Arc::new(Thread { handle, _stop: stop })))
    }

    fn handle(&self) -> &Handle {
        match self {
            Self::Given(handle) => handle,
            Self::Own(thread) => &thread.handle,
        }
    }

    /// Starts a task that nobody waits for.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.handle().spawn(task);
    }

    /// Runs the work to its end, also when the returned future is dropped after its first poll.
    ///
    /// # Errors
    /// [`HomeGone`] when the runtime has ended. A change that was under way is unknown then.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, HomeGone> {
        self.handle().spawn(work).await.map_err(|_| HomeGone)
    }
}

/// The runtime has ended, or the work panicked: what was under way may have been done or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HomeGone;

impl From<HomeGone> for StoreError {
    fn from(_: HomeGone) -> Self {
        Self::Unavailable("the runtime of this store's connections has ended: connect again".to_owned())
    }
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Given(_) => "Home::Given",
            Self::Own(_) => "Home::Own",
        })
    }
}
