//! A store that fails when a test says so.

use crate::store::{
    Answer, Capabilities, HistoryQuery, Import, Listed, Page, Read, Recorded, Store, StoreError, SwapOutcome, Version,
    Wake,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenure_core::decide::{Keys, Swap};
use tenure_core::record::LeaseRecord;
use tenure_core::{ResourceName, SessionId};
use tokio::sync::watch;

/// Wraps a store, and fails or hangs as it is told. Listings and imports go through unharmed.
///
/// ```
/// # use std::sync::Arc;
/// # use tenure_authority::{Clock, Store};
/// # use tenure_authority::conformance::faults::{FaultStore, Point, When};
/// # use tenure_authority::store::memory::MemoryStore;
/// # let clock = Clock::Manual(Arc::default());
/// # let memory = MemoryStore::new(clock, tenure_core::Ttl::DEFAULT).expect("random bits");
/// let faults = Arc::new(FaultStore::new(Arc::new(memory)));
/// faults.fail_next(Point::Swap, When::After, 1); // applied, and nobody is told
/// let store: Arc<dyn Store> = faults.clone();    // give this one to the code under test
/// assert_eq!(faults.calls(Point::Swap), 0);
/// ```
#[derive(Debug)]
pub struct FaultStore {
    inner: Arc<dyn Store>,
    script: Mutex<Script>,
}

/// Which call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// [`Store::read`].
    Read,
    /// [`Store::swap`].
    Swap,
}

/// Where on its way the call meets the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before the store: nothing is done, and the answer is [`StoreError::Unavailable`].
    Before,
    /// Before the store, but nobody can tell: a swap is not made and answers [`SwapOutcome::Unknown`]. A read fails as
    /// with [`When::Before`].
    Lost,
    /// After the store: a swap is made and answers [`SwapOutcome::Unknown`], a read is read and fails.
    After,
    /// On its way for long: a swap answers [`SwapOutcome::Unknown`], and arrives at [`FaultStore::arrive`]. A read fails as
    /// with [`When::Before`].
    Late,
}

#[derive(Debug, Default)]
struct Script {
    read: Line,
    swap: Line,
    late: Vec<(Swap, Option<Version>)>,
}

/// What is said about one kind of call.
#[derive(Debug, Default)]
struct Line {
    next: VecDeque<Fault>,
    calls: u64,
    failed: u64,
}

#[derive(Debug)]
enum Fault {
    Fail(When),
    Hang(When, Gate),
}

/// A call's side of a [`Hang`].
#[derive(Debug)]
struct Gate {
    reached: watch::Sender<bool>,
    released: watch::Receiver<bool>,
}

/// A call that is held until it is released; dropping this releases it as well.
#[derive(Debug)]
pub struct Hang {
    reached: watch::Receiver<bool>,
    released: watch::Sender<bool>,
}

impl Hang {
    /// Waits until a call has come and is held.
    pub async fn reached(&self) {
        // An error means that the call was dropped, which is after it was held.
        let _ = self.reached.clone().wait_for(|reached| *reached).await;
    }

    /// Whether a call has come and is held, or was.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        *self.reached.borrow()
    }

    /// Lets the call go on, now or when it comes.
    pub fn release(self) {
        self.released.send_replace(true);
    }
}

impl FaultStore {
    /// A store that does no harm yet.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, script: Mutex::default() }
    }

    /// The store below, where no fault reaches.
    #[must_use]
    pub fn inner(&self) -> &Arc<dyn Store> {
        &self.inner
    }

    /// The next `n` calls of this kind fail, after those that the script holds already.
    pub fn fail_next(&self, point: Point, when: When, n: usize) {
        self.line(point, |line| line.next.extend((0..n).map(|_| Fault::Fail(when))));
    }

    /// The next call of this kind is held, after those that the script holds already, and then goes on unharmed:
    /// [`When::After`] it was executed, otherwise before that.
    pub fn hang_next(&self, point: Point, when: When) -> Hang {
        let (reached, told) = watch::channel(false);
        let (release, released) = watch::channel(false);
        self.line(point, |line| line.next.push_back(Fault::Hang(when, Gate { reached, released })));
        Hang { reached: told, released: release }
    }

    /// Lets the swaps that are late arrive now, in their order, and gives what the store says of each.
    pub async fn arrive(&self) -> Vec<Result<SwapOutcome, StoreError>> {
        let late = std::mem::take(&mut self.script().late);
        let mut said = Vec::new();
        for (swap, expected) in late {
            said.push(self.inner.swap(swap, expected).await);
        }
        said
    }

    /// Forgets what has not happened yet.
    pub fn heal(&self) {
        for point in [Point::Read, Point::Swap] {
            self.line(point, |line| line.next.clear());
        }
    }

    /// How many calls of this kind have begun.
    #[must_use]
    pub fn calls(&self, point: Point) -> u64 {
        self.line(point, |line| line.calls)
    }

    /// How many calls of this kind were made to fail.
    #[must_use]
    pub fn failed(&self, point: Point) -> u64 {
        self.line(point, |line| line.failed)
    }

    fn line<T>(&self, point: Point, of: impl FnOnce(&mut Line) -> T) -> T {
        let mut script = self.script();
        of(match point {
            Point::Read => &mut script.read,
            Point::Swap => &mut script.swap,
        })
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, point: Point) -> Option<Fault> {
        self.line(point, |line| {
            line.calls += 1;
            let fault = line.next.pop_front();
            line.failed += u64::from(matches!(fault, Some(Fault::Fail(_))));
            fault
        })
    }
}

impl Gate {
    async fn hold(mut self) {
        self.reached.send_replace(true);
        // An error means that the test dropped its side.
        let _ = self.released.wait_for(|released| *released).await;
    }
}

fn injected() -> StoreError {
    StoreError::Unavailable("a test made it fail".to_owned())
}

impl Store for FaultStore {
    fn read<'a>(&'a self, keys: &'a Keys) -> Answer<'a, Result<Read, StoreError>> {
        Box::pin(async move {
            match self.begin(Point::Read) {
                None => self.inner.read(keys).await,
                Some(Fault::Fail(When::Before | When::Lost | When::Late)) => Err(injected()),
                Some(Fault::Fail(When::After)) => self.inner.read(keys).await.and_then(|_| Err(injected())),
                Some(Fault::Hang(When::Before | When::Lost | When::Late, gate)) => {
                    gate.hold().await;
                    self.inner.read(keys).await
                }
                Some(Fault::Hang(When::After, gate)) => {
                    let read = self.inner.read(keys).await;
                    gate.hold().await;
                    read
                }
            }
        })
    }

    fn swap(&self, swap: Swap, expected: Option<Version>) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        Box::pin(async move {
            match self.begin(Point::Swap) {
                None => self.inner.swap(swap, expected).await,
                Some(Fault::Fail(When::Before)) => Err(injected()),
                Some(Fault::Fail(When::Lost)) => Ok(SwapOutcome::Unknown),
                Some(Fault::Fail(When::Late)) => {
                    self.script().late.push((swap, expected));
                    Ok(SwapOutcome::Unknown)
                }
                Some(Fault::Fail(When::After)) => {
                    // A refusal by the store itself stays one: only the news of a change is lost.
                    self.inner.swap(swap, expected).await.map(|_| SwapOutcome::Unknown)
                }
                Some(Fault::Hang(When::Before | When::Lost | When::Late, gate)) => {
                    gate.hold().await;
                    self.inner.swap(swap, expected).await
                }
                Some(Fault::Hang(When::After, gate)) => {
                    let outcome = self.inner.swap(swap, expected).await;
                    gate.hold().await;
                    outcome
                }
            }
        })
    }

    fn grants(&self, session: SessionId) -> Answer<'_, Result<Vec<LeaseRecord>, StoreError>> {
        self.inner.grants(session)
    }

    fn leases(&self, page: Page<ResourceName>) -> Answer<'_, Result<Vec<Listed>, StoreError>> {
        self.inner.leases(page)
    }

    fn history(&self, query: HistoryQuery) -> Answer<'_, Result<Vec<Recorded>, StoreError>> {
        self.inner.history(query)
    }

    fn idle_sessions(&self, limit: usize) -> Answer<'_, Result<Vec<SessionId>, StoreError>> {
        self.inner.idle_sessions(limit)
    }

    fn import(&self, content: Import) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        self.inner.import(content)
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn warnings(&self) -> Answer<'_, Result<Vec<String>, StoreError>> {
        self.inner.warnings()
    }

    fn watch(&self, resource: &ResourceName) -> Option<Wake> {
        self.inner.watch(resource)
    }
}
