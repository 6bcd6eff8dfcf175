//! Executes the decisions of `tenure-core` against a store.
//!
//! # What this crate does not promise
//!
//! An authority hands out leases; it never judges a write. A worker that was stopped past its deadline may still send
//! its write, and only the receiver's fence refuses it (`tenure-sink`).
//!
//! # The pieces
//!
//! * [`Store`]: `read` and `swap`, the written contract that every store is tested against (`conformance`).
//! * [`Authority`]: reads, decides, swaps, and repeats within a bound; an unanswered swap is resolved by reading.
//! * [`store::memory`], [`store::sqlite`], [`store::postgres`], [`store::redis`], [`store::etcd`]: the stores.
//! * [`witness`]: what was seen of a store, kept outside of it, so that one that went back in time is noticed.
//! * [`Clock`]: the only place that reads the machine's clock, and the only one that a test replaces.

pub mod store;
pub mod witness;

#[cfg(feature = "conformance")]
pub mod conformance;

mod authority;
mod clock;
mod entropy;

pub use authority::{Authority, AuthorityError};
pub use clock::{BootClock, Clock, ClockError, FileClock, WallTime, boot_id};
pub use entropy::{EntropyError, random_bits};
pub use store::{
    After, Capabilities, Durability, Hint, HistoryQuery, Import, ImportError, Listed, Order, Page, Read, RecallOutcome,
    Recalled, Recorded, Scope, Source, Store, StoreError, SwapOutcome, TimeSource, Version, Versions, Wake, Wakes,
    connect,
};
