//! The store in PostgreSQL, on real servers.

mod contract;

use std::sync::Arc;
use std::time::Duration;
use tenure_authority::{BootClock, Clock, Store, connect};

/// A store at this address.
fn store(url: &str) -> Arc<dyn Store> {
    connect(url, Clock::Boot(BootClock)).expect("an address")
}

/// Lets real time pass.
fn pass(span: Duration) {
    let end = BootClock.now_nanos() + u64::try_from(span.as_nanos()).expect("within 584 years");
    while let Some(left) = end.checked_sub(BootClock.now_nanos()).filter(|left| *left > 0) {
        std::thread::park_timeout(Duration::from_nanos(left));
    }
}
