//! Five hundred processes that wait for one resource. `cargo bench -p tenure --bench waiting`
//!
//! Each has a keeper of its own, and all ask one store, which counts: what a hand-over costs, how long it takes, and what
//! the waiting itself costs. `TENURE_BENCH_URL` names another store than one in memory.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenure::authority::store::{
    Answer, Capabilities, HistoryQuery, Import, Listed, Page, Read, RecallOutcome, Recalled, Recorded, SwapOutcome,
    Version, Wake,
};
use tenure::authority::{BootClock, Clock, Store, StoreError, store};
use tenure::core::SessionId;
use tenure::core::decide::{Keys, Swap};
use tenure::core::record::LeaseRecord;
use tenure::{ResourceName, Tenure};
use tokio::sync::mpsc;

const WAITERS: usize = 500;
const HAND_OVERS: usize = 40;
const RESOURCE: &str = "waited-for";

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let url = std::env::var("TENURE_BENCH_URL").unwrap_or_else(|_| "memory:".to_owned());
    let counted = Arc::new(Counted::new(store::connect(&url, Clock::Boot(BootClock))?));
    let holder = connect(&counted, "holder").await?;
    let mut lease = holder.acquire(RESOURCE).await?;
    let (tell, mut served) = mpsc::channel(WAITERS);
    let mut workers = Vec::new();
    for at in 0..WAITERS {
        let worker = connect(&counted, &format!("waiter-{at}")).await?;
        let (wish, tell) = (worker.acquire(RESOURCE).wait(Duration::from_hours(1)), tell.clone());
        tokio::spawn(async move { tell.send(wish.await).await });
        workers.push(worker);
    }
    // Each has looked for the first time, and by itself.
    wait(Duration::from_secs(15)).await;
    let before = counted.count();
    wait(Duration::from_secs(10)).await;
    let idle = (counted.count() - before) as f64 / 10.0;

    let mut hand_overs = Vec::new();
    for _ in 0..HAND_OVERS {
        let (before, began) = (counted.count(), BootClock.now_nanos());
        lease.release().await?;
        lease = served.recv().await.ok_or("nobody waits")??;
        let took = Duration::from_nanos(BootClock.now_nanos() - began);
        // Those whose look was under way when it was granted.
        wait(Duration::from_millis(250)).await;
        let seconds = Duration::from_nanos(BootClock.now_nanos() - began).as_secs_f64();
        hand_overs.push(((counted.count() - before) as f64 - idle * seconds, took));
    }
    println!("store                                        {:>10}", store::shown(&url));
    println!("waiting processes                            {WAITERS:>10}");
    println!("queries a second while nothing happens       {idle:>10.1}");
    hand_overs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (middle, worst) = (hand_overs[HAND_OVERS / 2].0, hand_overs[HAND_OVERS - 1].0);
    println!("queries for a hand-over, beyond those        {middle:>10.1} in the middle, {worst:.1} at most");
    hand_overs.sort_by_key(|hand_over| hand_over.1);
    let (middle, worst) = (hand_overs[HAND_OVERS / 2].1, hand_overs[HAND_OVERS - 1].1);
    println!("from the release to the next grant           {middle:>10.1?} in the middle, {worst:.1?} at most");
    Ok(())
}

async fn connect(store: &Arc<Counted>, name: &str) -> Outcome<Tenure> {
    let store = Arc::clone(store) as Arc<dyn Store>;
    Ok(Tenure::builder().owner(name).clock(Clock::Boot(BootClock)).over(store).await?)
}

#[expect(clippy::disallowed_methods, reason = "a bench measures for a while; nothing depends on how long exactly")]
async fn wait(span: Duration) {
    tokio::time::sleep(span).await;
}

/// A store that counts what it is asked.
#[derive(Debug)]
struct Counted {
    store: Arc<dyn Store>,
    queries: AtomicU64,
}

impl Counted {
    fn new(store: Arc<dyn Store>) -> Self {
        Self { store, queries: AtomicU64::new(0) }
    }

    fn count(&self) -> u64 {
        self.queries.load(Ordering::Acquire)
    }

    fn asked(&self) -> &dyn Store {
        self.queries.fetch_add(1, Ordering::AcqRel);
        &*self.store
    }
}

impl Store for Counted {
    fn read<'a>(&'a self, keys: &'a Keys) -> Answer<'a, Result<Read, StoreError>> {
        self.asked().read(keys)
    }

    fn swap(&self, swap: Swap, expected: Option<Version>) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        self.asked().swap(swap, expected)
    }

    fn swap_recalled(&self, recalled: Recalled) -> Option<Answer<'_, Result<RecallOutcome, StoreError>>> {
        self.asked().swap_recalled(recalled)
    }

    fn grants(&self, session: SessionId) -> Answer<'_, Result<Vec<LeaseRecord>, StoreError>> {
        self.asked().grants(session)
    }

    fn leases(&self, page: Page<ResourceName>) -> Answer<'_, Result<Vec<Listed>, StoreError>> {
        self.asked().leases(page)
    }

    fn history(&self, query: HistoryQuery) -> Answer<'_, Result<Vec<Recorded>, StoreError>> {
        self.asked().history(query)
    }

    fn idle_sessions(&self, limit: usize) -> Answer<'_, Result<Vec<SessionId>, StoreError>> {
        self.asked().idle_sessions(limit)
    }

    fn import(&self, content: Import) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        self.asked().import(content)
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn watch(&self, resource: &ResourceName) -> Option<Wake> {
        self.store.watch(resource)
    }
}
