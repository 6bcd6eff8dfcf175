use crate::StoreError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenure_core::{AuthorityClock, Instant};

/// How far the server's clock may go back, as clocks do that are set right: it stands still for as long.
const SLACK: Duration = Duration::from_secs(1);

/// The highest reading of the server's clock that this process has seen.
#[derive(Debug, Default)]
pub(super) struct Time(AtomicU64);

impl Time {
    /// The highest reading so far. To be taken before the server is asked, or an answer that another one has overtaken
    /// would look like a jump.
    pub(super) fn seen(&self) -> Instant<AuthorityClock> {
        Instant::from_nanos(self.0.load(Ordering::Acquire))
    }

    /// Learns of a reading, and of another one that stands in the records that were read with it.
    pub(super) fn settle(
        &self,
        seen: Instant<AuthorityClock>,
        written: Option<Instant<AuthorityClock>>,
        reading: Instant<AuthorityClock>,
    ) -> Result<Instant<AuthorityClock>, StoreError> {
        let highest = written.map_or(seen, |written| written.max(seen));
        let by = highest.since(&reading);
        if by > SLACK {
            return Err(StoreError::ClockWentBack { by });
        }
        let now = highest.max(reading);
        self.0.fetch_max(now.as_nanos(), Ordering::AcqRel);
        Ok(now)
    }
}

#[cfg(test)]
mod tests;
