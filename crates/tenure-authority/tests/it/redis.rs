//! The store in Redis, on real servers.

mod address;
mod changes;
mod contract;
mod identity;
mod refusals;
mod replies;
mod sentinel;
mod settings;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tenure_authority::conformance::block_on;
use tenure_authority::{Clock, Read, Store, StoreError, SwapOutcome, Version, connect};
use tenure_core::decide::{Change, Keys, Swap};
use tenure_core::record::{Event, LeaseRecord, Phase, SessionRecord, Transition};
use tenure_core::{AuthorityClock, Epoch, Instant};

/// The clock of a store on a network is its server's.
fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    connect(url, Clock::Manual(Arc::default()))
}

/// The address of a store that is made, of a name that is used once.
fn fresh(server: &str) -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let mark = if server.contains('?') { '&' } else { '?' };
    format!("{server}{mark}create=true&max_ttl=2m&name=n{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

fn made(server: &str) -> Arc<dyn Store> {
    let store = open(&fresh(server)).expect("an address");
    read(&store);
    store
}

fn read(store: &Arc<dyn Store>) -> Read {
    try_read(store).expect("a read")
}

fn try_read(store: &Arc<dyn Store>) -> Result<Read, StoreError> {
    block_on(store.read(&Keys::default()))
}

/// What comes of a swap that grants a resource to a session, with nothing read.
fn grant(store: &Arc<dyn Store>, name: &str, to: &SessionRecord) -> Result<SwapOutcome, StoreError> {
    block_on(store.swap(granting(name, to), None))
}

fn granting(name: &str, to: &SessionRecord) -> Swap {
    let lease = LeaseRecord {
        resource: crate::world::resource(name),
        epoch: Epoch::FIRST,
        grant: crate::world::grant(name.len() as u64),
        session: to.id,
        owner: to.owner.clone(),
        since: Instant::from_nanos(1),
        phase: Phase::Held,
        sinks: Default::default(),
    };
    let transition = Transition {
        resource: Some(lease.resource.clone()),
        session: Some(to.id),
        epoch: Some(lease.epoch),
        grant: Some(lease.grant),
        ..transition(Event::Granted, Instant::from_nanos(1))
    };
    Swap { change: Change::Lease(lease), relies_on: Some(to.id), transition }
}

fn transition(event: Event, at: Instant<AuthorityClock>) -> Transition {
    Transition { at, event, resource: None, session: None, epoch: None, grant: None, actor: None, why: None }
}

/// A session that is open in the store, with its version.
fn opened(store: &Arc<dyn Store>, n: u64) -> (SessionRecord, Version) {
    let worker = crate::world::Worker::open(Arc::clone(store), n, false);
    let found = block_on(store.read(&Keys { session: Some(worker.session), ..Keys::default() })).expect("a read");
    (found.view.caller.expect("a session"), found.versions.caller.expect("a version"))
}
