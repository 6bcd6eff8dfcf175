//! The protocol of Tenure: who may write, decided by pure functions.
//!
//! # What this crate does not promise
//!
//! A lease alone protects nothing. After a deadline has passed, a worker that was stopped may wake up and send its
//! write, and *nothing in this crate, nor in any authority, can stop that write*. What stops it is the receiver: a
//! [`fence`] that is compared in the same atomic step as the write. The false sentence to keep out of every document is
//! "after expiry all old writes are rejected". The true one: after the takeover is **announced**, no write of an older
//! grant is accepted at a sealed sink.
//!
//! # The three parts
//!
//! * The **authority** decides who holds a resource: [`decide()`](decide::decide) maps records, a request and an instant to a
//!   [`Decision`](decide::Decision). It never judges a write and never trusts a holder's clock.
//! * The **holder** believes that it holds: [`HeldSession`](holder::HeldSession), [`HeldLease`](holder::HeldLease) and
//!   the [`Gate`](holder::Gate) that, once lost, stays lost.
//! * The **sink** receives the effect: [`admit`](fence::admit), [`seal`](fence::seal) and [`forget`](fence::forget) say
//!   what its one transaction must do. It never asks the authority.
//!
//! # Purity
//!
//! The crate is `no_std`: it has no clock, no I/O, no threads and no source of randomness to reach for. Time is an
//! argument, ids are arguments, effects are values. That is what lets the model in `tests/` explore these very
//! functions.
#![no_std]

extern crate alloc;

pub mod address;
pub mod decide;
pub mod fence;
pub mod holder;
pub mod invariants;
pub mod ledger;
pub mod operation;
pub mod record;

mod epoch;
mod id;
mod loss;
mod name;
mod time;
mod token;
mod ttl;
mod verdict;

pub use epoch::{Epoch, EpochError};
pub use id::{GrantId, IdError, InstanceId, SessionId};
pub use loss::Loss;
pub use name::{
    Actor, Digest, Generation, NAME_BYTES_MAX, NameError, OperationId, Outcome, OwnerName, Reason, ResourceName,
    SinkId, StoreIdentity, TEXT_BYTES_MAX,
};
pub use record::Owner;
pub use time::{AuthorityClock, HolderClock, Instant};
pub use token::{Order, Token, TokenError};
pub use ttl::{Timing, TimingError, Ttl};
pub use verdict::{Ending, Over, Replayed, Verdict};
