//! Spans that stand in a relation to each other, checked where they are built.

use core::fmt;
use core::time::Duration;

/// How long a session lives after a granted renewal, by the authority's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ttl(Duration);

impl Ttl {
    /// The shortest: below it, an fsync on a busy disk outlasts the lease.
    pub const MIN: Self = Self(Duration::from_millis(50));

    /// The longest that any authority allows: a takeover without a release waits as long.
    pub const MAX: Self = Self(Duration::from_hours(24));

    /// The default: long enough for a worker that pauses, short enough to wait for one that died.
    pub const DEFAULT: Self = Self(Duration::from_mins(2));

    /// Checks and takes a span.
    ///
    /// # Errors
    /// [`TimingError`] when it is outside [`Ttl::MIN`] to [`Ttl::MAX`].
    pub fn new(span: Duration) -> Result<Self, TimingError> {
        if span < Self::MIN.0 {
            Err(TimingError::TtlTooShort { ttl: span })
        } else if span > Self::MAX.0 {
            Err(TimingError::TtlTooLong { ttl: span, max: Self::MAX.0 })
        } else {
            Ok(Self(span))
        }
    }

    /// The span.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

/// The holder's spans: `0 < renew_every < ttl - margin`, so that a renewal falls due while the holder still believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timing {
    ttl: Ttl,
    margin: Duration,
    renew_every: Duration,
}

impl Timing {
    /// The margin that [`Timing::of`] takes is the ttl divided by this. A tenth covers two clocks whose rates differ by
    /// 11 %, above the 8.3 % at which chrony slews at most (its `maxslewrate` of 83,333 ppm).
    pub const MARGIN_DIVISOR: u32 = 10;

    /// A renewal falls due every ttl divided by this, which leaves two more tries.
    pub const RENEW_DIVISOR: u32 = 3;

    /// The usual relations for a ttl.
    #[must_use]
    pub fn of(ttl: Ttl) -> Self {
        Self { ttl, margin: ttl.0 / Self::MARGIN_DIVISOR, renew_every: ttl.0 / Self::RENEW_DIVISOR }
    }

    /// The same with another margin: how much earlier than the authority the holder stops believing.
    ///
    /// # Errors
    /// [`TimingError::MarginTooLong`] when no renewal would fall due before the holder stops believing.
    pub fn with_margin(self, margin: Duration) -> Result<Self, TimingError> {
        let room = self.ttl.0.checked_sub(margin).filter(|room| *room > self.renew_every);
        match room {
            Some(_) => Ok(Self { margin, ..self }),
            None => Err(TimingError::MarginTooLong { margin, ttl: self.ttl.0 }),
        }
    }

    /// How long the authority lets the session live.
    #[must_use]
    pub const fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// How much earlier than the authority the holder stops believing.
    #[must_use]
    pub const fn margin(&self) -> Duration {
        self.margin
    }

    /// How often a renewal falls due.
    #[must_use]
    pub const fn renew_every(&self) -> Duration {
        self.renew_every
    }

    /// How long the holder believes after the instant before a granted request was sent.
    #[must_use]
    pub fn belief(&self) -> Duration {
        self.ttl.0.saturating_sub(self.margin)
    }

    /// How long one unanswered renewal is waited for, so that at least two more fit before the holder's own deadline.
    #[must_use]
    pub fn attempt(&self) -> Duration {
        self.renew_every / 2
    }
}

/// Why spans do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimingError {
    /// The ttl is below [`Ttl::MIN`], or zero.
    TtlTooShort {
        /// What was asked for.
        ttl: Duration,
    },
    /// The ttl is above the maximum.
    TtlTooLong {
        /// What was asked for.
        ttl: Duration,
        /// The maximum.
        max: Duration,
    },
    /// The margin leaves no room for a renewal.
    MarginTooLong {
        /// What was asked for.
        margin: Duration,
        /// The ttl it was asked for with.
        ttl: Duration,
    },
}

impl fmt::Display for TimingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TtlTooShort { ttl } => {
                write!(f, "a ttl of {ttl:?} is too short: give at least {:?}", Ttl::MIN.0)
            }
            Self::TtlTooLong { ttl, max } => write!(f, "a ttl of {ttl:?} is too long: give at most {max:?}"),
            Self::MarginTooLong { margin, ttl } => write!(
                f,
                "a margin of {margin:?} leaves no time for a renewal within a ttl of {ttl:?}: give less than two thirds of the ttl"
            ),
        }
    }
}

impl core::error::Error for TimingError {}

#[cfg(test)]
mod tests;
