//! The one thread that writes: whatever waits goes into one transaction.

use super::apply::{apply, meta};
use super::file::File;
use crate::store::{StoreError, SwapOutcome, Version};
use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use tenure_core::decide::Swap;
use tokio::sync::oneshot;

/// What came of a swap, or why it was certainly not made.
type Made = Result<SwapOutcome, StoreError>;

/// The thread and its queue. When it is dropped, the thread finishes what waits and closes the file.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    commits: Arc<AtomicU64>,
}

struct Job {
    swap: Swap,
    expected: Option<Version>,
    answer: oneshot::Sender<Made>,
}

/// So many swaps share a commit at most: what comes later is not kept waiting for ever.
const BATCH_MAX: usize = 1024;

impl Writer {
    pub(super) fn start(connection: Connection, file: Arc<File>) -> Result<Self, StoreError> {
        let (queue, jobs) = mpsc::channel();
        let commits = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&commits);
        let thread = std::thread::Builder::new()
            .name("tenure-writer".to_owned())
            .spawn(move || run(connection, &file, &jobs, &counter))
            .map_err(|error| StoreError::Unavailable(format!("no thread can be started: {error}")))?;
        Ok(Self { queue: Some(queue), thread: Some(thread), commits })
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Hands the swap over at the first poll. Once it is handed over it is made or not made, whoever still waits.
    pub(super) async fn swap(&self, swap: Swap, expected: Option<Version>) -> Made {
        let (answer, answered) = oneshot::channel();
        let gone = || StoreError::Unavailable("the writing thread of this store has ended: open it again".to_owned());
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        queue.send(Job { swap, expected, answer }).map_err(|_| gone())?;
        // It took the swap and ended without a word.
        answered.await.unwrap_or(Ok(SwapOutcome::Unknown))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell any more: whoever waited has an answer, or `Unknown`.
            let _ = thread.join();
        }
    }
}

fn run(mut connection: Connection, file: &File, jobs: &mpsc::Receiver<Job>, commits: &AtomicU64) {
    let mut batch = Vec::new();
    while let Ok(first) = jobs.recv() {
        batch.push(first);
        batch.extend(jobs.try_iter().take(BATCH_MAX - 1));
        // A swap that fails is answered alone, and the others are tried again without it.
        while !batch.is_empty() {
            match commit(&mut connection, file, &batch) {
                Ok(outcomes) => {
                    commits.fetch_add(1, Ordering::Relaxed);
                    answer(&mut batch, outcomes);
                }
                Err(Failed::One(at, error)) => answer_one(batch.remove(at), Err(error)),
                Err(Failed::All(error)) => {
                    let outcomes = batch.iter().map(|_| error.clone()).collect();
                    answer(&mut batch, outcomes);
                }
            }
        }
    }
}

fn answer(batch: &mut Vec<Job>, outcomes: Vec<Made>) {
    for (job, outcome) in batch.drain(..).zip(outcomes) {
        answer_one(job, outcome);
    }
}

fn answer_one(job: Job, outcome: Made) {
    // Nobody waits any more when the future was dropped; the swap is made or not all the same.
    let _ = job.answer.send(outcome);
}

/// Why a batch was not committed.
enum Failed {
    /// This swap broke off the transaction; the others are as if they had not been tried.
    One(usize, StoreError),
    /// None was made, or nobody can tell.
    All(Made),
}

fn commit(connection: &mut Connection, file: &File, batch: &[Job]) -> Result<Vec<Made>, Failed> {
    let fault = |error: rusqlite::Error| Failed::All(Err(file.place.fault(&error)));
    let refuse = |error: StoreError| Failed::All(Err(error));
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
    let mut meta = meta(&transaction).map_err(fault)?;
    file.check_origin(&meta).map_err(refuse)?;
    file.time.now().map_err(refuse)?;
    let mut outcomes = Vec::with_capacity(batch.len());
    for (at, job) in batch.iter().enumerate() {
        match apply(&transaction, &mut meta, &job.swap, job.expected) {
            Ok(true) => outcomes.push(Ok(SwapOutcome::Done)),
            Ok(false) => outcomes.push(Ok(SwapOutcome::Changed)),
            Err(error) => return Err(Failed::One(at, file.place.fault(&error))),
        }
    }
    match transaction.commit() {
        Ok(()) => Ok(outcomes),
        // The frames of a commit are written in order, the one that makes it valid last: when the disk is full, that
        // one is missing, and the transaction was certainly not made.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
            Err(Failed::All(Err(file.place.fault(&error))))
        }
        Err(error) => {
            tracing::warn!(%error, swaps = batch.len(), "the store cannot tell whether a commit was made");
            Err(Failed::All(Ok(SwapOutcome::Unknown)))
        }
    }
}
