//! Writing: whatever waits goes into one transaction, by the caller who finds nobody at it, or else by a thread.

use super::apply::{Batch, meta};
use super::file::File;
use super::import;
use crate::store::{Import, StoreError, SwapOutcome, Version};
use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;
use tenure_core::Ttl;
use tenure_core::decide::{Change, Swap};
use tenure_core::record::Event;
use tokio::sync::oneshot;

/// What came of a swap, or why it was certainly not made.
type Made = Result<SwapOutcome, StoreError>;

/// The queue, and the thread that works on it when no caller does. Dropping it ends the thread and closes the file.
#[derive(Debug)]
pub(super) struct Writer {
    desk: Arc<Desk>,
    signal: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Where swaps wait and are written.
#[derive(Debug)]
struct Desk {
    file: Arc<File>,
    waiting: Mutex<VecDeque<Job>>,
    /// Held by whoever writes.
    connection: Mutex<Connection>,
    next: AtomicU64,
    commits: AtomicU64,
}

#[derive(Debug)]
struct Job {
    number: u64,
    swap: Swap,
    expected: Option<Version>,
    answer: oneshot::Sender<Made>,
}

/// So many swaps share a commit at most: what comes later is not kept waiting for ever.
const BATCH_MAX: usize = 1024;

impl Writer {
    pub(super) fn start(connection: Connection, file: Arc<File>) -> Result<Self, StoreError> {
        let desk = Arc::new(Desk {
            file,
            waiting: Mutex::default(),
            connection: Mutex::new(connection),
            next: AtomicU64::new(0),
            commits: AtomicU64::new(0),
        });
        let (signal, signalled) = sync_channel(1);
        let at = Arc::clone(&desk);
        let thread = std::thread::Builder::new()
            .name("tenure-writer".to_owned())
            .spawn(move || run(&at, &signalled))
            .map_err(|error| StoreError::Unavailable(format!("no thread can be started: {error}")))?;
        Ok(Self { desk, signal: Some(signal), thread: Some(thread) })
    }

    pub(super) fn commits(&self) -> u64 {
        self.desk.commits.load(Ordering::Relaxed)
    }

    /// The writing connection while nobody writes or waits: what it has written it need not read from the file again.
    pub(super) fn idle(&self) -> Option<MutexGuard<'_, Connection>> {
        if !self.desk.is_empty() {
            return None;
        }
        self.desk.connection.try_lock().ok()
    }

    pub(super) async fn swap(&self, swap: Swap, expected: Option<Version>) -> Made {
        let (answer, answered) = oneshot::channel();
        let _ticket = self.desk.put(swap, expected, answer);
        // Whatever else this thread has to do may put its swaps beside this one first.
        let mut again = false;
        poll_fn(|context| {
            if std::mem::replace(&mut again, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        self.work();
        // An error means that whoever wrote ended without a word.
        answered.await.unwrap_or(Ok(SwapOutcome::Unknown))
    }

    /// What imports, once it is called; swaps wait for it.
    pub(super) fn import(&self, content: Import) -> impl FnOnce() -> Made + Send + 'static {
        let desk = Arc::clone(&self.desk);
        move || {
            let mut connection = desk.connection.lock().unwrap_or_else(PoisonError::into_inner);
            import::import(&mut connection, &desk.file, &content)
        }
    }

    /// Writes what waits, if nobody is at it; otherwise the thread will. This saves the one caller of an idle store two
    /// changes of threads, and never waits: not for another writer of this process, and not for another process.
    fn work(&self) {
        match self.desk.connection.try_lock() {
            Ok(connection) => self.desk.batch(connection, Duration::ZERO),
            Err(TryLockError::Poisoned(poisoned)) => self.desk.batch(poisoned.into_inner(), Duration::ZERO),
            Err(TryLockError::WouldBlock) => {}
        }
        if self.desk.is_empty() {
            return;
        }
        let signal = self.signal.as_ref().map(|signal| signal.try_send(()));
        if !matches!(signal, Some(Ok(()) | Err(TrySendError::Full(())))) {
            // The thread is gone, so this one has to wait.
            let connection = self.desk.connection.lock().unwrap_or_else(PoisonError::into_inner);
            self.desk.batch(connection, self.desk.file.place.busy_timeout);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.signal.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell: nobody waits any more.
            let _ = thread.join();
        }
    }
}

fn run(desk: &Desk, signalled: &Receiver<()>) {
    while let Ok(()) = signalled.recv() {
        while !desk.is_empty() {
            let connection = desk.connection.lock().unwrap_or_else(PoisonError::into_inner);
            desk.batch(connection, desk.file.place.busy_timeout);
        }
    }
}

/// A place in the queue. When it is dropped, a swap that nobody has begun on is taken back: it is certainly not made.
struct Ticket<'desk> {
    desk: &'desk Desk,
    number: u64,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut waiting = self.desk.waiting();
        // Taken from the front in the order of their numbers: mostly there is nothing to look for.
        if waiting.front().is_some_and(|first| first.number <= self.number) {
            waiting.retain(|job| job.number != self.number);
        }
    }
}

impl Desk {
    fn put(&self, swap: Swap, expected: Option<Version>, answer: oneshot::Sender<Made>) -> Ticket<'_> {
        let mut waiting = self.waiting();
        // Drawn under the lock, so that the numbers stand in the queue in their order.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        waiting.push_back(Job { number, swap, expected, answer });
        Ticket { desk: self, number }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }

    /// Takes what waits and writes it. When another process holds the file for longer than `patience`, what was taken
    /// is put back if somebody with more patience will come, and otherwise answered with that.
    fn batch(&self, mut connection: MutexGuard<'_, Connection>, patience: Duration) {
        let mut batch: Vec<Job> = {
            let mut waiting = self.waiting();
            let most = waiting.len().min(BATCH_MAX);
            waiting.drain(..most).collect()
        };
        // A swap that fails is answered alone, and the others are tried again without it.
        while !batch.is_empty() {
            match commit(&mut connection, &self.file, &batch, patience) {
                Ok(outcomes) => {
                    self.commits.fetch_add(1, Ordering::Relaxed);
                    // The next one may begin while the callers are being told.
                    drop(connection);
                    return answer(batch, outcomes);
                }
                Err(Failed::Busy(_)) if patience < self.file.place.busy_timeout => {
                    let mut waiting = self.waiting();
                    batch.into_iter().rev().for_each(|job| waiting.push_front(job));
                    return;
                }
                Err(Failed::One(at, error)) => answer_one(batch.remove(at), Err(error)),
                Err(Failed::All(made) | Failed::Busy(made)) => {
                    let outcomes = batch.iter().map(|_| made.clone()).collect();
                    return answer(batch, outcomes);
                }
            }
        }
    }
}

fn answer(batch: Vec<Job>, outcomes: Vec<Made>) {
    for (job, outcome) in batch.into_iter().zip(outcomes) {
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
    /// None was begun: another process holds the file.
    Busy(Made),
}

fn commit(connection: &mut Connection, file: &File, batch: &[Job], patience: Duration) -> Result<Vec<Made>, Failed> {
    let fault = |error: rusqlite::Error| Failed::All(Err(file.place.fault(&error)));
    let refuse = |error: StoreError| Failed::All(Err(error));
    let held = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy) => Failed::Busy(Err(file.place.fault(&error))),
        _ => fault(error),
    };
    connection.busy_timeout(patience).map_err(fault)?;
    file.guard.unmoved(&file.place).map_err(refuse)?;
    // Before it is promised: a store that is put back must know for how long a lost session may be believed in.
    let longest = batch.iter().filter_map(|job| session_ttl(&job.swap)).max();
    file.guard.promise(longest, &file.place).map_err(refuse)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(held)?;
    let meta = meta(&transaction).map_err(fault)?;
    file.check_origin(&meta).map_err(refuse)?;
    let now = file.time.now().map_err(refuse)?;
    let mut outcomes = Vec::with_capacity(batch.len());
    let mut changes = Batch::new(&transaction, meta);
    for (at, job) in batch.iter().enumerate() {
        if job.swap.made_before().is_some_and(|end| now.reached(&end)) {
            outcomes.push(Ok(SwapOutcome::Changed));
            continue;
        }
        match changes.apply(&job.swap, job.expected) {
            Ok(true) => outcomes.push(Ok(SwapOutcome::Done)),
            Ok(false) => outcomes.push(Ok(SwapOutcome::Changed)),
            Err(error) => return Err(Failed::One(at, file.place.fault(&error))),
        }
    }
    let grown = changes.finish().map_err(fault)?;
    if let Some(seen) = grown {
        file.guard.not_behind(seen, &file.place).map_err(refuse)?;
    }
    match transaction.commit() {
        Ok(()) => {
            if let Some(seen) = grown {
                file.guard.note(seen);
            }
            Ok(outcomes)
        }
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

/// The ttl of a session that is opened.
fn session_ttl(swap: &Swap) -> Option<Ttl> {
    match (&swap.change, swap.transition.event) {
        (Change::Session(session), Event::Opened) => Some(session.ttl),
        _ => None,
    }
}
