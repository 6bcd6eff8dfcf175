//! What tells one manifest, and one object, from every other.

use crate::SinkError;
use std::fmt;
use std::str::FromStr;
use tenure_core::Epoch;

/// 128 random bits. No two bodies of a manifest are ever equal, since each holds a fresh one: stores name a version by a
/// digest of the body, and would take A, B, A for unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Nonce(u128);

impl Nonce {
    pub(super) fn draw(place: &str) -> Result<Self, SinkError> {
        let mut bits = [0; 16];
        #[expect(clippy::disallowed_methods, reason = "a sink does not know the authority's source of random bits")]
        getrandom::fill(&mut bits).map_err(|error| SinkError::Failed {
            place: place.to_owned(),
            doing: "drawing random bits",
            why: error.to_string(),
        })?;
        Ok(Self(u128::from_be_bytes(bits)))
    }

    /// A number below the bound, to spread those who wait.
    pub(super) fn below(self, bound: u64) -> u64 {
        u64::try_from(self.0 % u128::from(bound.max(1))).unwrap_or(0)
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Nonce {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let plain = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let bits = u128::from_str_radix(text, 16).ok().filter(|_| plain);
        bits.map(Self).ok_or_else(|| format!("{text:?} is no nonce"))
    }
}

/// The last part of an object's key: the epoch under which it was uploaded, and a nonce. An object is never written twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) epoch: Epoch,
    nonce: Nonce,
}

impl Key {
    pub(super) fn new(epoch: Epoch, nonce: Nonce) -> Self {
        Self { epoch, nonce }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:019}-{}", self.epoch.get(), self.nonce)
    }
}

impl FromStr for Key {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('-').filter(|(epoch, _)| epoch.len() == 19);
        let key = parts.and_then(|(epoch, nonce)| {
            let number: u64 = epoch.parse().ok()?;
            Some(Self { epoch: Epoch::new(number).ok()?, nonce: nonce.parse().ok()? })
        });
        // What is read must be what would be written: it becomes a part of a key again.
        key.filter(|key| key.to_string() == text).ok_or_else(|| format!("{text:?} is no key of an object"))
    }
}
