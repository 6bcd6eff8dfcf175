//! The store in etcd, on real servers.

mod between;
mod contract;
mod expiry;
mod faults;
mod late;
mod recalling;
mod sharing;
mod tls;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tenure_authority::{Clock, Store, connect};
use tenure_servers::Etcd;

/// The address of a store that is made on the shared server, of a name that is used once.
fn fresh(more: &str) -> String {
    fresh_on(&Etcd::shared().url(), more)
}

fn fresh_on(server: &str, more: &str) -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("{server}?create=true&name=n{}&{more}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

fn made(url: &str, clock: Clock) -> Arc<dyn Store> {
    connect(url, clock).expect("an address")
}
