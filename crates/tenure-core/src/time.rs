//! Instants that cannot be compared across machines.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

/// The clock of the authority's store. Only the authority reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AuthorityClock {}

/// The suspend-aware clock of the holder's own machine. Only that holder reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HolderClock {}

/// A moment on one clock, in nanoseconds since that clock's own beginning.
///
/// Instants of two clocks are two types: comparing them does not compile.
///
/// ```compile_fail
/// use tenure_core::{AuthorityClock, HolderClock, Instant};
/// let _ = Instant::<AuthorityClock>::from_nanos(1) < Instant::<HolderClock>::from_nanos(2);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant<Clock> {
    nanos: u64,
    clock: PhantomData<Clock>,
}

impl<Clock> Instant<Clock> {
    /// A reading of the clock, in nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self { nanos, clock: PhantomData }
    }

    /// The reading, in nanoseconds.
    #[must_use]
    pub const fn as_nanos(&self) -> u64 {
        self.nanos
    }

    /// The instant `span` later; the end of time when it lies beyond (584 years after the clock's beginning).
    #[must_use]
    pub fn after(&self, span: Duration) -> Self {
        Self::from_nanos(self.nanos.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// How long ago `earlier` was; zero when it lies ahead.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Duration {
        Duration::from_nanos(self.nanos.saturating_sub(earlier.nanos))
    }

    /// Whether a deadline has been reached. Half-open: at the deadline itself it has.
    #[must_use]
    pub const fn reached(&self, deadline: &Self) -> bool {
        self.nanos >= deadline.nanos
    }
}

impl<Clock> fmt::Debug for Instant<Clock> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.nanos))
    }
}
