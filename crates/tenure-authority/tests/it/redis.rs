//! The store in Redis, on real servers.

mod contract;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tenure_authority::{Clock, Store, StoreError, connect};

/// The clock of a store on a network is its server's.
fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    connect(url, Clock::Manual(Arc::default()))
}

/// The address of a store that is made, of a name that is used once.
fn fresh(server: &str) -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("{server}?create=true&max_ttl=2m&name=n{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

fn made(server: &str) -> Arc<dyn Store> {
    open(&fresh(server)).expect("a store")
}
