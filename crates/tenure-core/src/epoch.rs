//! The number that only grows.

use core::fmt;
use core::num::NonZeroU64;
use core::str::FromStr;

/// Which grant of a resource this is: the first is 1, each grant adds 1. Never a storage version.
///
/// The largest is `i64::MAX`, so that every database keeps it in its signed integer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(NonZeroU64);

/// Why a number is not an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochError {
    /// Zero or negative: the first epoch is 1.
    NotPositive,
    /// Above `i64::MAX`.
    TooLarge,
    /// Not a decimal integer.
    NotInteger,
    /// There is no epoch after `i64::MAX`: the resource must be retired under another name.
    Exhausted,
}

impl fmt::Display for EpochError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotPositive => "an epoch is positive: the first is 1",
            Self::TooLarge => "an epoch is at most 9223372036854775807",
            Self::NotInteger => "an epoch is a decimal integer",
            Self::Exhausted => "no epoch is left for this resource: use another resource name",
        })
    }
}

impl core::error::Error for EpochError {}

impl Epoch {
    /// The epoch of a resource's first grant.
    pub const FIRST: Self = Self(NonZeroU64::MIN);

    /// The largest epoch.
    pub const MAX_VALUE: u64 = i64::MAX as u64;

    /// Checks and takes a number.
    ///
    /// # Errors
    /// [`EpochError`] when it is zero or above [`Epoch::MAX_VALUE`].
    pub const fn new(value: u64) -> Result<Self, EpochError> {
        if value > Self::MAX_VALUE {
            return Err(EpochError::TooLarge);
        }
        match NonZeroU64::new(value) {
            Some(value) => Ok(Self(value)),
            None => Err(EpochError::NotPositive),
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The number as databases keep it.
    #[must_use]
    pub const fn as_i64(self) -> i64 {
        // Cannot wrap: `new` admits nothing above i64::MAX.
        self.0.get().cast_signed()
    }

    /// The epoch of the next grant.
    ///
    /// # Errors
    /// [`EpochError::Exhausted`] after the largest: it never wraps.
    pub const fn next(self) -> Result<Self, EpochError> {
        match Self::new(self.0.get() + 1) {
            Ok(next) => Ok(next),
            Err(_) => Err(EpochError::Exhausted),
        }
    }

    /// The first epoch above a floor (`None` is no floor).
    ///
    /// # Errors
    /// [`EpochError::Exhausted`] when the floor is the largest epoch.
    pub const fn above(floor: Option<Self>) -> Result<Self, EpochError> {
        match floor {
            Some(floor) => floor.next(),
            None => Ok(Self::FIRST),
        }
    }
}

impl TryFrom<i64> for Epoch {
    type Error = EpochError;
    fn try_from(value: i64) -> Result<Self, EpochError> {
        u64::try_from(value).map_err(|_| EpochError::NotPositive).and_then(Self::new)
    }
}

impl FromStr for Epoch {
    type Err = EpochError;
    fn from_str(text: &str) -> Result<Self, EpochError> {
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(EpochError::NotInteger);
        }
        text.parse().map_err(|_| EpochError::TooLarge).and_then(Self::new)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests;
