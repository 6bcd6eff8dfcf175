//! Where the connections of a sink live.

use std::future::Future;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A thread with a runtime, which ends with the last of its clones. Work that was handed over goes on when its future is
/// dropped.
#[derive(Clone)]
pub(crate) struct Home(Arc<Thread>);

struct Thread {
    handle: Handle,
    /// Dropped with the last clone, which ends the thread.
    _stop: oneshot::Sender<()>,
}

impl Home {
    pub(crate) fn start(name: &str) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let run = move || drop(runtime.block_on(stopped));
        std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Self(Arc::new(Thread { handle, _stop: stop })))
    }

    /// Runs the work to its end. `None` when the thread has ended, or the work panicked.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        self.0.handle.spawn(work).await.ok()
    }

    /// The same for who waits on the thread it is called on.
    pub(crate) fn block_on<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let (tell, told) = std::sync::mpsc::channel();
        self.0.handle.spawn(async move { drop(tell.send(work.await)) });
        told.recv().ok()
    }
}
