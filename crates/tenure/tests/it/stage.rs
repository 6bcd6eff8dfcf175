use crate::faults::Faults;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenure::authority::store::HistoryQuery;
use tenure::authority::store::memory::MemoryStore;
use tenure::authority::{Authority, Clock, Store};
use tenure::core::decide::{Keys, Refusal, Reply, Request};
use tenure::core::record::{Event, LeaseRecord, SessionRecord, SessionState, Transition};
use tenure::{ConnectError, Lease, ResourceName, Tenure, Timing, Token, Ttl};

pub(crate) const TTL: Duration = Duration::from_secs(120);
pub(crate) const RESOURCE: &str = "tenant-7";

/// One authority in memory, and a clock that only the test moves.
pub(crate) struct Stage {
    time: Arc<AtomicU64>,
    /// What the workers are given.
    store: Arc<dyn Store>,
    /// What the test looks at.
    plain: Arc<dyn Store>,
}

/// The spans that a wish has unless it says otherwise.
pub(crate) fn timing() -> Timing {
    Timing::of(Ttl::DEFAULT)
}

impl Stage {
    pub(crate) fn new() -> Self {
        // The clock does not begin at zero, as no machine's does.
        let time = Arc::new(AtomicU64::new(1_000_000_000_000));
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Clock::Manual(Arc::clone(&time)), Ttl::MAX).unwrap());
        Self { time, plain: Arc::clone(&store), store }
    }

    /// The workers are served through a script of faults; what the test itself asks goes past it.
    pub(crate) fn faulty() -> (Self, Arc<Faults>) {
        let stage = Self::new();
        let faults = Faults::new(stage.store());
        (Self { store: Arc::clone(&faults) as Arc<dyn Store>, ..stage }, faults)
    }

    /// A worker that no fault reaches.
    pub(crate) async fn rival(&self, name: &str) -> Tenure {
        Tenure::builder().owner(name).clock(self.clock()).over(Arc::clone(&self.plain)).await.unwrap()
    }

    /// Asks the authority past all faults.
    pub(crate) async fn ask(&self, request: Request) -> Result<Reply, Refusal> {
        Authority::new(Arc::clone(&self.plain)).execute(&request).await.unwrap()
    }

    pub(crate) async fn revoke(&self, token: &Token) {
        let (actor, reason) = ("operator".parse().unwrap(), "test".parse().unwrap());
        self.ask(Request::Revoke { resource: token.resource.clone(), only: None, actor, reason }).await.unwrap();
    }

    pub(crate) fn clock(&self) -> Clock {
        Clock::Manual(Arc::clone(&self.time))
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// What the authority is called.
    pub(crate) async fn identity(&self) -> String {
        self.plain.read(&Keys::default()).await.unwrap().view.authority.identity.to_string()
    }

    pub(crate) async fn worker(&self, name: &str) -> Tenure {
        Tenure::builder().owner(name).clock(self.clock()).over(self.store()).await.unwrap()
    }

    pub(crate) async fn worker_or_not(&self, name: &str) -> Result<Tenure, ConnectError> {
        Tenure::builder().owner(name).clock(self.clock()).over(self.store()).await
    }

    pub(crate) async fn lease(&self, name: &str) -> Lease {
        self.worker(name).await.acquire(RESOURCE).wait(Duration::ZERO).await.unwrap()
    }

    pub(crate) fn advance(&self, span: Duration) {
        self.time.fetch_add(u64::try_from(span.as_nanos()).unwrap(), Ordering::AcqRel);
    }

    pub(crate) fn now(&self) -> Duration {
        Duration::from_nanos(self.time.load(Ordering::Acquire))
    }

    /// What moves the clock from within a fault.
    pub(crate) fn time(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.time)
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
        #[expect(
            clippy::disallowed_methods,
            reason = "real time for the keepers' threads; no outcome depends on its length"
        )]
        tokio::time::sleep(Duration::from_millis(12)).await;
    }

    /// Lets time pass in small steps until the future has its answer, so that whatever waits for the clock goes on.
    pub(crate) async fn drive<T>(&self, what: &str, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        for _ in 0..3000 {
            #[expect(
                clippy::disallowed_methods,
                reason = "real time for the keepers' threads; no outcome depends on its length"
            )]
            let turn = tokio::time::sleep(Duration::from_millis(2));
            tokio::select! {
                biased;
                answer = &mut future => return answer,
                () = turn => self.advance(Duration::from_millis(50)),
            }
        }
        panic!("never came: {what}");
    }

    /// Moves the clock in steps of 5 ms while the keepers follow, until `holds`. Panics when that did not come `within`.
    pub(crate) async fn creep(&self, within: Duration, what: &str, holds: impl Fn() -> bool) {
        let until = self.now() + within;
        while !holds() {
            assert!(self.now() < until, "not within {within:?}: {what}");
            self.advance(Duration::from_millis(5));
            self.let_keepers_run().await;
        }
    }

    /// So many turns of [`Self::drive`], by real time alone.
    pub(crate) async fn ticks(&self, count: u64) {
        #[expect(
            clippy::disallowed_methods,
            reason = "where in a script it ends is for the keepers' threads to choose"
        )]
        tokio::time::sleep(Duration::from_millis(2 * count)).await;
    }

    /// The history of the resource, oldest first.
    pub(crate) async fn history(&self) -> Vec<Transition> {
        let rows = self.all_history().await.into_iter();
        rows.filter(|row| row.resource.as_ref().is_some_and(|resource| resource.as_str() == RESOURCE)).collect()
    }

    pub(crate) async fn all_history(&self) -> Vec<Transition> {
        let rows = self.plain.history(HistoryQuery::default()).await.unwrap();
        rows.into_iter().map(|row| row.transition).collect()
    }

    pub(crate) async fn count(&self, event: Event) -> usize {
        self.all_history().await.iter().filter(|row| row.event == event).count()
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
        let view = self.plain.read(&keys).await.unwrap().view;
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
