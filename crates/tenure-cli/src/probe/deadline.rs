use rustix::event::{Timespec, poll};
use std::time::Duration;
use tenure::authority::BootClock;

/// An instant of this machine at which a wait ends. Processes are real, so it is the machine's clock, also where a test
/// drives the authority's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Deadline(u64);

impl Deadline {
    pub(super) fn after(span: Duration) -> Self {
        Self(BootClock.now_nanos().saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }

    pub(super) fn left(self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(BootClock.now_nanos()))
    }

    pub(super) fn has_passed(self) -> bool {
        self.left().is_zero()
    }
}

/// A stopwatch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since(u64);

impl Since {
    pub(super) fn now() -> Self {
        Self(BootClock.now_nanos())
    }

    pub(super) fn elapsed(self) -> Duration {
        Duration::from_nanos(BootClock.now_nanos().saturating_sub(self.0))
    }
}

/// A span as the system's calls take it.
pub(super) fn timespec(span: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(span.subsec_nanos()) }
}

/// A short pause between two looks at something that the system tells nobody about.
pub(super) fn nap() {
    // Cut short by a signal, it is only shorter.
    let _ = poll(&mut [], Some(&timespec(Duration::from_millis(1))));
}
