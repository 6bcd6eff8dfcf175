//! The receivers of effects: where a late write is refused.
//!
//! # What is not guaranteed
//!
//! * **Not** that "after expiry all old writes are rejected". Under [`Rule::Sealed`]: after the takeover is *announced*,
//!   no write of an older grant is accepted at a sealed sink. Under [`Rule::HighWater`] not even that: an old write that
//!   arrives before the new holder's first is accepted.
//! * **Not** that a stopped writer can be got out of the way. On SQLite and on files a process that was stopped inside
//!   its transaction holds the database's write lock or the file lock for as long as it is stopped. A seal then waits a
//!   bounded time and answers [`SinkError::Busy`]; it never goes past. Resuming or ending that process is up to people.
//! * **Not** that a backup that was copied back is noticed. A file carries no history of its own: call
//!   [`Sink::reopen`] after every restore, before any worker starts.
//! * **Not** that effects outside the sink's own transaction are covered. A mail sent between the check and the commit
//!   is sent. What became of such a call is kept in a [`ledger`], which may have to say that nobody knows.
//! * **Not** that tokens are passwords. Whoever reaches the sink is trusted to show only tokens that it was granted. Where
//!   that is too much trust, seal signed grants alone (`SignedOnly`, the feature `signed`).
//!
//! # What is
//!
//! One atomic step: check the token, apply the effect, record the operation. The judgement is
//! [`tenure_core::fence`]'s; a sink reads its row, asks there, and writes what it is told to. It never asks the authority.
//!
//! | sink | where the effect lands | how the step is atomic |
//! |---|---|---|
#![cfg_attr(feature = "sqlite", doc = "| [`sqlite`] | the caller's own tables | the caller's own transaction |")]
#![cfg_attr(feature = "postgres", doc = "| [`postgres`] | the caller's own tables | the caller's own transaction |")]
#![cfg_attr(
    feature = "redis",
    doc = "| [`redis`] | keys of a server | one script; a failover may lose the newest writes |"
)]
#![cfg_attr(
    feature = "object-store",
    doc = "| [`object`] | objects of a store such as S3 | one conditional put of a manifest |"
)]
#![cfg_attr(feature = "file", doc = "| [`mod@file`] | plain files of one folder | one rename, under a file lock |")]
//!
//! [`Rule::Sealed`]: tenure_core::fence::Rule::Sealed
//! [`Rule::HighWater`]: tenure_core::fence::Rule::HighWater

#[cfg(feature = "file")]
pub mod file;
#[cfg(feature = "object-store")]
pub mod object;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "sqlx")]
pub mod sqlx;

#[cfg(any(feature = "http", feature = "http-client"))]
pub mod http;

#[cfg(feature = "conformance")]
pub mod conformance;

pub mod ledger;

mod address;
mod error;
#[cfg(any(feature = "http-client", feature = "object-store"))]
mod home;
mod operation;
#[cfg(feature = "signed")]
mod signed;
mod sink;
#[cfg(any(feature = "http-client", feature = "postgres", feature = "s3"))]
mod trust;

pub use address::{Opened, connect, connect_later, open, shown};
pub use error::{ApplyError, SinkError};
#[cfg(feature = "file")]
pub use file::FileSink;
#[cfg(feature = "object-store")]
pub use object::ObjectSink;
pub use operation::{Found, Lookup, digest_of, one_value_per_epoch};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresFence, PostgresLedger, PostgresSink};
#[cfg(feature = "redis")]
pub use redis::{RedisFence, RedisSink};
#[cfg(feature = "signed")]
pub use signed::SignedOnly;
pub use sink::{Answer, Description, Rows, Sink};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteFence, SqliteLedger, SqliteSink};
