//! What a worker embeds: acquire the right to write, check it, and stop for good once it is lost.
//!
//! # What is not promised
//!
//! * **A lease does not stop a write.** A worker that is stopped by the machine, and wakes after its deadline, can still
//!   send what it had prepared. Only the receiver can refuse it: hand [`Checkpoint::token`] to a fence of `tenure-sink` in the
//!   same transaction as the write.
//! * **It is not exactly-once.** A call whose answer was lost stays unknown until somebody looks.
//! * **Two holders may believe at once** if a machine's clock runs more than a tenth faster or slower than the
//!   authority's (see [`Timing`]). Sealed receivers are not affected: they use no clock.
//!
//! # Three calls
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let tenure = tenure::connect("sqlite:jobs.db?create=true").await?;
//! let lease = tenure.acquire("tenant-7").await?;
//! for batch in 0..10 {
//!     lease.ensure_owned().await?; // once lost, this fails for ever
//!     # let _ = batch;
//!     // write the batch, with lease.token() checked in the receiver's own transaction
//! }
//! lease.complete("version 12").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where things run
//!
//! Each [`Tenure`] has one thread of its own, the keeper. Renewals and everything that talks to the authority run there,
//! so a runtime that is starved or blocked cannot stop a renewal, and dropping a future never leaves half a request. The
//! futures of this crate may be awaited on any runtime. Checkpoints read the clock on the caller's own thread, so a loss
//! is noticed even if the keeper is not alive.

pub mod blocking;

mod acquire;
mod checkpoint;
mod connect;
mod error;
mod keeper;
mod lease;
mod losses;

#[cfg(feature = "http")]
pub mod http;

pub use acquire::Acquire;
pub use checkpoint::Checkpoint;
pub use connect::{Builder, IntoResource, Tenure, connect};
#[cfg(feature = "signed")]
pub use error::SigningError;
pub use error::{AcquireError, ConnectError, FinishError, HeedError, Lost, WriteError};
pub use keeper::SealNews;
pub use lease::{Lease, Resumed};
pub use losses::LossCounts;

pub use tenure_authority as authority;
pub use tenure_core as core;
pub use tenure_core::holder::Policy;
pub use tenure_core::{Epoch, GrantId, Loss, OperationId, Outcome, ResourceName, SinkId, Timing, Token, Ttl, Verdict};
#[cfg(feature = "signed")]
pub use tenure_grant as grant;
pub use tenure_sink as sink;

/// The example of the first page, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The page on takeovers, compiled.
#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../../../docs/takeover.md")]
struct TakeoverPage;

/// The page on HTTP, compiled.
#[cfg(all(doctest, feature = "http", feature = "sqlite"))]
#[doc = include_str!("../../../docs/http.md")]
struct HttpPage;

/// The page on the rule `held`, compiled.
#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../../../docs/held.md")]
struct HeldPage;
