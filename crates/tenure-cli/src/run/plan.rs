//! The spans of a run, which must fit into each other.

use crate::problem::Problem;
use std::time::Duration;
use tenure::{Timing, Ttl};

/// When a run renews, asks its command to end, and kills it. All of it lies before the authority's deadline:
///
/// ```text
/// renewal sent          asked to end     killed                  the authority's deadline
///      |------ belief ------|--- grace ---|--------- margin ---------|
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) ttl: Ttl,
    /// Between the request to end and the kill.
    pub(crate) grace: Duration,
    /// Between the kill and the authority's deadline: for clocks that differ in rate, and for the killing itself.
    pub(crate) margin: Duration,
}

impl Plan {
    const GRACE: Duration = Duration::from_secs(5);
    const DYING: Duration = Duration::from_millis(250);

    pub(crate) fn new(ttl: Duration, grace: Option<Duration>) -> Result<Self, Problem> {
        let ttl = Ttl::new(ttl).map_err(Problem::usage)?;
        // A tenth for clocks that differ in rate; and the dying takes its time on a busy machine, whatever the ttl is.
        let margin = Timing::of(ttl).margin().max(Self::DYING.min(ttl.get() / 5));
        // Two renewals must fall due before the command is asked to end, or one lost packet would end it.
        let room = ttl.get().saturating_sub(margin).saturating_sub(Timing::of(ttl).renew_every() * 2);
        let grace = grace.unwrap_or_else(|| Self::GRACE.min(room / 2));
        if grace > room {
            let ttl_for = grace.saturating_mul(30) / 7;
            return Err(Problem::usage(format_args!(
                "a grace of {grace:?} does not fit into a ttl of {:?}: give a grace of at most {:?}, or a ttl of at least {:?}",
                ttl.get(),
                Duration::from_millis(u64::try_from(room.as_millis()).unwrap_or(u64::MAX)),
                Duration::from_secs(ttl_for.as_secs() + 1),
            )));
        }
        Ok(Self { ttl, grace, margin })
    }

    /// How long before the authority's deadline the lease counts as lost here.
    pub(crate) fn holder_margin(&self) -> Duration {
        self.margin + self.grace
    }

    /// How often the watchdog is told how long the command may run: often enough that it never runs short between two
    /// renewals.
    pub(crate) fn tick(&self) -> Duration {
        (Timing::of(self.ttl).renew_every() / 8).clamp(Duration::from_millis(5), Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests;
