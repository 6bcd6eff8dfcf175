use super::reader::Readers;
use crate::StoreError;
use std::fmt;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// The thread on which listings run, so that none of them blocks a caller's thread. It ends when it is dropped.
pub(super) struct Lister {
    queue: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

type Job = Box<dyn FnOnce(&Readers) + Send>;

impl Lister {
    pub(super) fn start(readers: Arc<Readers>) -> Result<Self, StoreError> {
        let (queue, jobs) = mpsc::channel::<Job>();
        let thread = std::thread::Builder::new()
            .name("tenure-lister".to_owned())
            .spawn(move || jobs.iter().for_each(|job| job(&readers)))
            .map_err(|error| StoreError::Unavailable(format!("no thread can be started: {error}")))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    pub(super) async fn list<T: Send + 'static>(
        &self,
        list: impl FnOnce(&Readers) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let gone = || StoreError::Unavailable("the listing thread of this store has ended: open it again".to_owned());
        let job: Job = Box::new(move |readers| {
            // Whoever asked may have gone.
            let _ = answer.send(list(readers));
        });
        self.queue.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

impl Drop for Lister {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // It holds nothing that could be lost.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Lister {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lister")
    }
}
