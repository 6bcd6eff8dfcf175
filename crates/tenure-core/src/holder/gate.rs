use crate::{HolderClock, Instant};
use core::sync::atomic::{AtomicU64, Ordering};

/// Whether a holder may still believe: its own deadline, or lost for good, in one word.
///
/// Every checkpoint reads it on the caller's own thread, so no background task need be alive for a loss to be noticed.
/// The word only ever moves to a later deadline or to *lost*, and from *lost* it never moves again.
#[derive(Debug)]
pub struct Gate(AtomicU64);

/// No clock shows it: an instant of zero nanoseconds is no deadline that anybody could meet.
const LOST: u64 = 0;

impl Gate {
    /// Open until the deadline.
    #[must_use]
    pub const fn until(deadline: Instant<HolderClock>) -> Self {
        Self(AtomicU64::new(deadline.as_nanos()))
    }

    /// Open until it is closed.
    #[must_use]
    pub const fn open() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }

    /// Whether the holder may still believe at `now`. A deadline that was reached latches.
    #[must_use]
    pub fn is_open(&self, now: Instant<HolderClock>) -> bool {
        let mut deadline = self.0.load(Ordering::Acquire);
        while deadline != LOST && now.as_nanos() >= deadline {
            // A renewal may have been granted in between: then the later deadline decides.
            match self.0.compare_exchange_weak(deadline, LOST, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return false,
                Err(present) => deadline = present,
            }
        }
        deadline != LOST
    }

    /// Moves the deadline on. Returns false, and changes nothing, when the gate is lost.
    #[must_use]
    pub fn extend(&self, deadline: Instant<HolderClock>) -> bool {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |present| {
                (present != LOST).then(|| present.max(deadline.as_nanos()))
            })
            .is_ok()
    }

    /// Closes the gate for good. Returns whether this call was the one that closed it.
    pub fn close(&self) -> bool {
        self.0.swap(LOST, Ordering::AcqRel) != LOST
    }

    /// The deadline; `None` once lost.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant<HolderClock>> {
        match self.0.load(Ordering::Acquire) {
            LOST => None,
            nanos => Some(Instant::from_nanos(nanos)),
        }
    }
}

#[cfg(test)]
mod tests;
