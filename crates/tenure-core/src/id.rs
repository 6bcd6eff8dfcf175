//! Ids of 128 random bits. The caller draws them; the core only compares them.

use core::fmt;
use core::str::FromStr;

/// The text is not 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdError;

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id is written as 32 hexadecimal digits")
    }
}

impl core::error::Error for IdError {}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        // Two halves instead of one u128, whose alignment would cost each token eight bytes.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            high: u64,
            low: u64,
        }

        impl $name {
            /// Takes 128 bits that the caller drew from a good source of randomness.
            #[must_use]
            pub const fn from_bits(bits: u128) -> Self {
                #[expect(clippy::cast_possible_truncation, reason = "the other half is kept beside it")]
                Self { high: (bits >> 64) as u64, low: bits as u64 }
            }

            /// The bits.
            #[must_use]
            pub const fn bits(self) -> u128 {
                ((self.high as u128) << 64 | self.low as u128)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", self.bits())
            }
        }

        /// Enough to tell one from another in a log, and not enough to show it to a sink.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.high {
                    // None that was drawn is so small; those of tests are.
                    0 => write!(f, "{:x}", self.low),
                    high => write!(f, "{:08x}…", high >> 32),
                }
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                let digits = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
                if !digits {
                    return Err(IdError);
                }
                u128::from_str_radix(text, 16).map(Self::from_bits).map_err(|_| IdError)
            }
        }
    };
}

id_type!(
    /// One grant of one resource. Drawn by the candidate before it asks; it is also the id of the request.
    GrantId
);
id_type!(
    /// One start of one process. Never derived from host, pid or name: two containers may share all three.
    InstanceId
);
id_type!(
    /// One session: the liveness of one owner instance at the authority. Fresh for every opening, never used again.
    SessionId
);

#[cfg(test)]
mod tests;
