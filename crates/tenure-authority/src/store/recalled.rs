//! Swaps that were decided on records from memory.

use super::Version;
use tenure_core::decide::Swap;
use tenure_core::record::Holdings;
use tenure_core::{AuthorityClock, Instant};

/// A change that was decided on records that this process remembers, and the conditions under which it may be made.
///
/// It saves the reading. What the reading would have shown is checked in the swap itself, in the same atomic step: the
/// record's version and the relied-on session as ever, and also that the store's own record is still the remembered one
/// (floor, incarnation and quarantine stand in it).
#[derive(Clone, Debug)]
pub struct Recalled {
    /// The change. Never one of the store's own record, and never an opening.
    pub swap: Swap,
    /// The version of the record that changes; `None`: it is absent.
    pub expected: Option<Version>,
    /// The version of the store's own record.
    pub authority: Version,
    /// Only while the store's clock, read after the record is locked, lies before it. A renewal carries the session's
    /// deadline; the new deadline then is that reading plus the session's ttl, whatever the change says.
    pub valid_before: Option<Instant<AuthorityClock>>,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a swap that was not made must be decided anew, an unknown one must be read"]
pub enum RecallOutcome {
    /// Made, and durable.
    Done(After),
    /// Not made: something is not as it was remembered. Read.
    Changed,
    /// The store cannot tell.
    Unknown,
}

/// How things stood right after the change, in the same atomic step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After {
    /// The version of the changed record.
    pub version: Version,
    /// The store's clock.
    pub now: Instant<AuthorityClock>,
    /// The number of the newest row of the history.
    pub history: u64,
    /// The fingerprint of the session of a renewal; of no meaning for other changes.
    pub holdings: Holdings,
}
