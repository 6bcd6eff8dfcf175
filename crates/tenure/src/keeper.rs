//! The thread on which renewals and all talk with the authority run.

mod ask;
mod excused;
mod fork;
mod held;
mod kept;
mod lookout;
mod sealing;
mod signing;
mod slots;
mod takeover;
mod verbs;
mod witness;

pub(crate) use excused::Excuse;
pub(crate) use held::Held;
pub(crate) use sealing::News;
pub use sealing::SealNews;
pub(crate) use signing::Keys;
pub(crate) use takeover::Wish;

use crate::checkpoint::Checkpoint;
use crate::error::{AcquireError, ConnectError};
use crate::lease::Lease;
use crate::losses::LossCounters;
use kept::Kept;
use signing::Signing;
use slots::Slots;
use std::future::Future;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tenure_authority::witness::{Scribe, WitnessFolder};
use tenure_authority::{Authority, Clock, Store, StoreError};
use tenure_core::record::{Owner, Seen};
use tenure_core::{HolderClock, Instant, Loss};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// A connection's end of the keeper. When the last connection and the last lease are gone, the thread closes its sessions
/// and ends.
#[derive(Debug)]
pub(crate) struct Keeper {
    shared: Arc<Shared>,
}

/// What the keeper's tasks share with the callers' threads.
#[derive(Debug)]
pub(crate) struct Shared {
    authority: Authority,
    clock: Clock,
    owner: Owner,
    losses: LossCounters,
    runtime: Handle,
    stop: CancellationToken,
    sessions: Mutex<Vec<Arc<Kept>>>,
    /// Held while a session is opened.
    opening: tokio::sync::Mutex<()>,
    slots: Slots,
    seen: Mutex<Seen>,
    /// Writes down what was seen, where that was asked for.
    remembered: Option<Scribe<Seen>>,
    signing: Signing,
    latest: AtomicU64,
    /// Connections, leases and wishes under way. With the last one the keeper ends.
    users: AtomicUsize,
    /// Of [`fork::generation`], where the keeper was started.
    process: u32,
}

impl Keeper {
    /// Another connection to the same keeper.
    pub(crate) fn of(shared: &Arc<Shared>) -> Arc<Self> {
        shared.enter();
        Arc::new(Self { shared: Arc::clone(shared) })
    }

    /// Starts the thread, opens the store on it, and says hello.
    pub(crate) async fn start(
        clock: Clock,
        owner: Owner,
        witness: Option<WitnessFolder>,
        keys: Keys,
        open: impl FnOnce() -> Result<Arc<dyn Store>, StoreError> + Send + 'static,
    ) -> Result<Arc<Self>, ConnectError> {
        let (tell, told) = oneshot::channel();
        let thread = std::thread::Builder::new().name("tenure-keeper".into());
        thread
            .spawn(move || run(clock, owner, (witness, keys), open, tell))
            .map_err(|error| ConnectError::Thread(error.to_string()))?;
        told.await.map_err(|_| ConnectError::Thread("it ended at once".into()))?
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.shared.owner
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.shared.authority
    }

    pub(crate) fn losses(&self) -> &LossCounters {
        &self.shared.losses
    }

    /// Runs a wish on the keeper. Dropping the returned future makes the keeper give up whatever it gets.
    pub(crate) async fn acquire(self: Arc<Self>, wish: Wish) -> Result<Lease, AcquireError> {
        let (mut reply, answer) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        shared.spawn(async move {
            let taken = takeover::acquire(&self, &wish, &mut reply).await;
            // When nobody waits any more the lease comes back here and is dropped, which gives it up.
            let _ = reply.send(taken.map(|held| Lease::new(Checkpoint { held })));
        });
        answer.await.map_err(|_| AcquireError::Closed)?
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.leave();
    }
}

fn run(
    clock: Clock,
    owner: Owner,
    kept_in: (Option<WitnessFolder>, Keys),
    open: impl FnOnce() -> Result<Arc<dyn Store>, StoreError>,
    tell: oneshot::Sender<Result<Arc<Keeper>, ConnectError>>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = tell.send(Err(ConnectError::Thread(error.to_string())));
            return;
        }
    };
    runtime.block_on(async move {
        match begin(clock, owner, kept_in, open).await {
            Ok(shared) => {
                let _ = tell.send(Ok(Keeper::of(&shared)));
                shared.stop.cancelled().await;
                shared.close_sessions().await;
                if shared.remembered.is_some() {
                    shared.see_the_end().await;
                }
            }
            Err(error) => drop(tell.send(Err(error))),
        }
    });
}

async fn begin(
    clock: Clock,
    owner: Owner,
    (witness, keys): (Option<WitnessFolder>, Keys),
    open: impl FnOnce() -> Result<Arc<dyn Store>, StoreError>,
) -> Result<Arc<Shared>, ConnectError> {
    fork::watch();
    let authority = Authority::new(open()?);
    // The first word with the authority: an address that leads nowhere is told now, not at the first wish.
    let first_words = async {
        let (hello, remembered) = witness::hello(&authority, witness).await?;
        Ok::<_, ConnectError>((hello, remembered, Signing::of(keys, &authority).await?))
    };
    let (hello, remembered, signing) = tokio::select! {
        biased;
        said = first_words => said?,
        () = patience(&clock) => return Err(ConnectError::Silent { waited: PATIENCE }),
    };
    let shared = Shared {
        authority,
        clock,
        owner,
        losses: LossCounters::default(),
        runtime: Handle::current(),
        stop: CancellationToken::new(),
        sessions: Mutex::default(),
        opening: tokio::sync::Mutex::default(),
        slots: Slots::default(),
        seen: Mutex::default(),
        remembered,
        signing,
        latest: AtomicU64::new(0),
        users: AtomicUsize::new(0),
        process: fork::generation(),
    };
    shared.clock.now_nanos()?;
    shared.note(&hello);
    // What ended long ago is cleared away in passing, a little at each start.
    tokio::select! {
        biased;
        _ = shared.authority.sweep(SWEPT_AT_START) => {}
        () = shared.pause(PATIENCE) => {}
    }
    Ok(Arc::new(shared))
}

/// Ends when [`PATIENCE`] is over, or the clock cannot be read.
async fn patience(clock: &Clock) {
    let Ok(began) = clock.now_nanos() else { return };
    while let Ok(now) = clock.now_nanos()
        && let Some(left) = PATIENCE.checked_sub(Duration::from_nanos(now.saturating_sub(began)))
        && !left.is_zero()
    {
        #[expect(clippy::disallowed_methods, reason = "a nap; the clock above decides")]
        tokio::time::sleep(clock.nap(left)).await;
    }
}

/// How long an authority is waited for that neither answers nor says that it cannot.
const PATIENCE: Duration = Duration::from_secs(10);

/// Enough to outrun one session per start of a process.
const SWEPT_AT_START: usize = 8;

impl Shared {
    /// The clock on a caller's thread.
    ///
    /// # Errors
    /// [`Loss::ClockJumped`] when it cannot be read: without time there is no belief.
    fn now(&self) -> Result<Instant<HolderClock>, Loss> {
        self.clock.now_nanos().map(Instant::from_nanos).map_err(|_| Loss::ClockJumped)
    }

    /// The clock on the keeper's own thread, where readings follow each other, so that a step back shows.
    fn now_in_order(&self) -> Result<Instant<HolderClock>, Loss> {
        let now = self.now()?;
        let before = self.latest.fetch_max(now.as_nanos(), Ordering::AcqRel);
        if now.as_nanos() < before { Err(Loss::ClockJumped) } else { Ok(now) }
    }

    fn enter(&self) {
        self.users.fetch_add(1, Ordering::AcqRel);
    }

    fn leave(&self) {
        if self.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.stop.cancel();
        }
    }

    /// Runs a task on the keeper. It is dropped when the keeper has ended, and then nothing is left to do for it: the
    /// sessions are closed.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // Boxed: a task is laid out at 128 bytes, and glibc's allocator hardly finds an old place for so large a thing that
        // is so aligned. Each acquisition would leave a hole of 4 KiB behind.
        self.runtime.spawn(Box::pin(task));
    }
}

/// A poisoned mutex means that a thread panicked between two plain assignments; the data is whole.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
