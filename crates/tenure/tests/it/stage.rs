use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenure::authority::store::memory::MemoryStore;
use tenure::authority::{Clock, Store};
use tenure::core::decide::Keys;
use tenure::core::record::{LeaseRecord, SessionRecord, SessionState};
use tenure::{Lease, ResourceName, Tenure, Ttl};

pub(crate) const TTL: Duration = Duration::from_secs(120);
pub(crate) const RESOURCE: &str = "tenant-7";

/// One authority in memory, and a clock that only the test moves.
pub(crate) struct Stage {
    time: Arc<AtomicU64>,
    store: Arc<dyn Store>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        // The clock does not begin at zero, as no machine's does.
        let time = Arc::new(AtomicU64::new(1_000_000_000_000));
        let store = MemoryStore::new(Clock::Manual(Arc::clone(&time)), Ttl::MAX).unwrap();
        Self { time, store: Arc::new(store) }
    }

    /// The same authority behind another store.
    pub(crate) fn behind(self, wrap: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>) -> Self {
        Self { store: wrap(Arc::clone(&self.store)), ..self }
    }

    pub(crate) fn clock(&self) -> Clock {
        Clock::Manual(Arc::clone(&self.time))
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    pub(crate) async fn worker(&self, name: &str) -> Tenure {
        Tenure::builder().owner(name).clock(self.clock()).over(self.store()).await.unwrap()
    }

    pub(crate) async fn lease(&self, name: &str) -> Lease {
        self.worker(name).await.acquire(RESOURCE).wait(Duration::ZERO).await.unwrap()
    }

    pub(crate) fn advance(&self, span: Duration) {
        self.time.fetch_add(u64::try_from(span.as_nanos()).unwrap(), Ordering::AcqRel);
    }

    pub(crate) fn back(&self, span: Duration) {
        self.time.fetch_sub(u64::try_from(span.as_nanos()).unwrap(), Ordering::AcqRel);
    }

    /// Moves the clock in small steps while the keepers follow: after each step every renewal that fell due was sent.
    pub(crate) async fn live_through(&self, span: Duration) {
        let step = Duration::from_secs(5);
        for _ in 0..span.as_secs() / step.as_secs() {
            self.advance(step);
            self.let_keepers_run().await;
        }
    }

    /// Keepers look at a driven clock every 2 ms of real time: a bounded wait that only has to be longer.
    pub(crate) async fn let_keepers_run(&self) {
        #[expect(clippy::disallowed_methods, reason = "real time for the keepers' threads; no outcome depends on its length")]
        tokio::time::sleep(Duration::from_millis(12)).await;
    }

    pub(crate) async fn record(&self) -> Option<LeaseRecord> {
        self.view().await.0
    }

    /// The session under the resource's newest grant.
    pub(crate) async fn session(&self) -> Option<SessionRecord> {
        self.view().await.1
    }

    async fn view(&self) -> (Option<LeaseRecord>, Option<SessionRecord>) {
        let keys = Keys { resource: ResourceName::new(RESOURCE).ok(), ..Keys::default() };
        let view = self.store.read(&keys).await.unwrap().view;
        (view.lease, view.holder)
    }

    /// Whether somebody could still be thought to hold the resource.
    pub(crate) async fn is_held(&self) -> bool {
        let (lease, session) = self.view().await;
        let live = session.is_some_and(|session| session.state == SessionState::Live);
        live && lease.is_some_and(|lease| lease.is_granted())
    }

    /// Waits, within a bound, until something that a keeper does in its own time has come true.
    pub(crate) async fn until<F: Future<Output = bool>>(&self, what: &str, holds: impl Fn() -> F) {
        for _ in 0..500 {
            if holds().await {
                return;
            }
            self.let_keepers_run().await;
        }
        panic!("never came true: {what}");
    }
}
