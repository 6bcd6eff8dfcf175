//! The wall clock, which bounds a signature and decides nothing about a write.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Whole seconds since the beginning of 1970, UTC: what RFC 7519 calls a numeric date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(u64);

impl UnixTime {
    /// Takes the seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds)
    }

    /// The seconds.
    #[must_use]
    pub const fn as_secs(self) -> u64 {
        self.0
    }

    /// So much later.
    #[must_use]
    pub const fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.as_secs()))
    }

    /// So much earlier.
    #[must_use]
    pub const fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.as_secs()))
    }

    /// How long it is since an earlier moment; nothing when that one is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_secs(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where the wall time comes from.
#[derive(Clone, Debug, Default)]
pub enum WallClock {
    /// The machine's.
    #[default]
    System,
    /// Seconds in this process, driven by a test.
    Manual(Arc<AtomicU64>),
}

impl WallClock {
    /// The time now.
    #[must_use]
    pub fn now(&self) -> UnixTime {
        match self {
            Self::System => {
                #[expect(clippy::disallowed_methods, reason = "a signature's time is wall time; no fence rests on it")]
                let now = std::time::SystemTime::now();
                UnixTime(now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs())
            }
            Self::Manual(seconds) => UnixTime(seconds.load(Ordering::Acquire)),
        }
    }
}
