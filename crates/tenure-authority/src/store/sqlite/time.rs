use crate::{Clock, StoreError};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenure_core::{AuthorityClock, Instant};

/// The store's clock, which remembers the highest reading.
#[derive(Debug)]
pub(super) struct Time {
    clock: Clock,
    origin: String,
    highest: AtomicU64,
}

impl Time {
    pub(super) fn new(clock: Clock) -> Self {
        let origin = clock.origin();
        Self { clock, origin, highest: AtomicU64::new(0) }
    }

    /// What names the clock's beginning.
    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    /// Learns of a reading that somebody has written down.
    pub(super) fn seen(&self, written: Option<Instant<AuthorityClock>>) {
        if let Some(written) = written {
            self.highest.fetch_max(written.as_nanos(), Ordering::AcqRel);
        }
    }

    /// The clock, which must not lie before any reading so far.
    pub(super) fn now(&self) -> Result<Instant<AuthorityClock>, StoreError> {
        // Before the reading, or a reading that another thread makes in between would look like a jump.
        let highest = self.highest.load(Ordering::Acquire);
        let nanos = self.clock.now_nanos()?;
        if nanos < highest {
            return Err(StoreError::ClockWentBack { by: Duration::from_nanos(highest - nanos) });
        }
        self.highest.fetch_max(nanos, Ordering::AcqRel);
        Ok(Instant::from_nanos(nanos))
    }
}
