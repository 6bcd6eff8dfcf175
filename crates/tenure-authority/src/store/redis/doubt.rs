//! Changes that replicas may not have yet, though they were sent.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is in doubt: changes that are under way, and those that ended without a word of the replicas.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    under_way: AtomicU64,
    /// How many were left in doubt, ever.
    left: AtomicU64,
    /// Up to which of these the replicas have them.
    settled: AtomicU64,
}

/// A change that is under way. Dropped, it is left in doubt.
#[derive(Debug)]
pub(super) struct Sent<'a> {
    doubt: &'a Doubt,
    is_settled: bool,
}

impl Doubt {
    /// Before a change is sent: from then on it may be made, whatever comes back.
    pub(super) fn send(&self) -> Sent<'_> {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        Sent { doubt: self, is_settled: false }
    }

    pub(super) fn is_any(&self) -> bool {
        self.under_way.load(Ordering::SeqCst) > 0 || self.settled.load(Ordering::SeqCst) < self.left()
    }

    /// How many were left in doubt by now.
    pub(super) fn left(&self) -> u64 {
        self.left.load(Ordering::SeqCst)
    }

    /// The replicas have what these did.
    pub(super) fn settle(&self, left: u64) {
        self.settled.fetch_max(left, Ordering::SeqCst);
    }
}

impl Sent<'_> {
    /// The replicas have it, or it certainly was not made.
    pub(super) fn settled(mut self) {
        self.is_settled = true;
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            self.doubt.left.fetch_add(1, Ordering::SeqCst);
        }
        self.doubt.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
