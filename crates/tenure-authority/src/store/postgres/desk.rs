//! Where jobs wait until the last batch was answered.

use crate::store::home::Home;
use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is done with the jobs of a desk.
pub(super) trait Line: Send + Sync + 'static {
    /// What waits.
    type Job: Send + 'static;

    /// Takes those that go together from the front, at least one. Nobody else works at them.
    fn take(&self, waiting: &mut VecDeque<Self::Job>) -> Vec<Self::Job>;

    /// Whether anybody still waits for it. A job that nobody has begun on is certainly not done.
    fn is_wanted(job: &Self::Job) -> bool;

    /// Does and answers all of them.
    fn work(&self, jobs: Vec<Self::Job>) -> impl Future<Output = ()> + Send;
}

/// A queue, and one task at a time that works on it.
#[derive(Debug)]
pub(super) struct Desk<L: Line> {
    line: L,
    queue: Mutex<Queue<L::Job>>,
}

#[derive(Debug)]
struct Queue<Job> {
    waiting: VecDeque<Job>,
    is_served: bool,
}

impl<L: Line> Desk<L> {
    pub(super) fn new(line: L) -> Arc<Self> {
        Arc::new(Self { line, queue: Mutex::new(Queue { waiting: VecDeque::new(), is_served: false }) })
    }

    /// Its answer comes once it was its turn, also when the asking future was dropped after a batch had taken it.
    pub(super) fn put(self: &Arc<Self>, home: &Home, job: L::Job) {
        let mut queue = self.queue();
        queue.waiting.push_back(job);
        if !std::mem::replace(&mut queue.is_served, true) {
            drop(queue);
            home.spawn(serve(Clerk { desk: Arc::clone(self), is_done: false }));
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue<L::Job>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None`: nobody waits, and nobody serves any more.
    fn next(&self) -> Option<Vec<L::Job>> {
        let mut queue = self.queue();
        queue.waiting.retain(L::is_wanted);
        if queue.waiting.is_empty() {
            queue.is_served = false;
            return None;
        }
        Some(self.line.take(&mut queue.waiting))
    }
}

/// Whoever serves the desk. When the runtime ends under it, the jobs go with it, and their askers are told by that.
struct Clerk<L: Line> {
    desk: Arc<Desk<L>>,
    is_done: bool,
}

impl<L: Line> Drop for Clerk<L> {
    fn drop(&mut self) {
        if !self.is_done {
            let mut queue = self.desk.queue();
            queue.is_served = false;
            queue.waiting.clear();
        }
    }
}

async fn serve<L: Line>(mut clerk: Clerk<L>) {
    // Whatever else this thread has to do may put its jobs beside the first one.
    tokio::task::yield_now().await;
    while let Some(jobs) = clerk.desk.next() {
        clerk.desk.line.work(jobs).await;
    }
    clerk.is_done = true;
}
