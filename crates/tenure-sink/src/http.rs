//! Receivers behind HTTP: signed tokens on a service's own routes, and routes by which a holder seals.
//!
//! # What is not guaranteed
//!
//! * **Not** that a request which passes [`TokenLayer`] may write. The layer says who asks; the handler must still hand the
//!   [`Token`](tenure_core::Token) to its fence, in the transaction of its write. A layer cannot do that: it is not in the
//!   transaction.
//! * **Not** that [`OnceLayer`] is a fence. It is for services that have no transaction of their own, and its page says what
//!   it leaves open.
//! * **Not** secrecy. A signed grant is a password until it expires, and so is the operator's secret: use TLS.
//!
//! # What a service does
//!
//! | part | what it is for |
//! |---|---|
#![cfg_attr(
    feature = "http",
    doc = "| [`TokenLayer`] | reads and verifies `Tenure-Token` and `Idempotency-Key` on the routes that write |"
)]
#![cfg_attr(feature = "http", doc = "| [`answer`] | a verdict as the response that a client understands |")]
#![cfg_attr(
    feature = "http",
    doc = "| [`Routes`] | lets holders describe and seal the fence, and an operator forget and reopen |"
)]
#![cfg_attr(feature = "http", doc = "| [`KeySet`] | serves the public keys of an authority, for receivers |")]
#![cfg_attr(feature = "http-client", doc = "| [`HttpSink`] | the same fence, as the holder sees it |")]
//!
//! | header | in | meaning |
//! |---|---|---|
//! | `Tenure-Token` | request | the signed grant |
//! | `Idempotency-Key` | request | the operation: a structured string (`"pay-7"`), or the bare text |
//! | `Tenure-Replay: true` | response | the operation was applied before; the body is its outcome |
//! | `Tenure-Epoch` | response | under which epoch that was |
//!
//! A refusal is a problem document (RFC 9457); its `type` is one of [`Kind`]'s names behind `urn:tenure:problem:`.

mod key;
mod problem;
mod wire;

#[cfg(feature = "http-client")]
mod client;
#[cfg(feature = "http")]
mod key_set;
#[cfg(feature = "http")]
mod once;
#[cfg(feature = "http")]
mod routes;
#[cfg(feature = "http")]
mod token;

#[cfg(feature = "http-client")]
pub use client::HttpSink;
pub use key::{parse_key, written_key};
#[cfg(feature = "http")]
pub use key_set::KeySet;
#[cfg(feature = "http")]
pub use once::{Journal, OnceLayer, OnceService};
pub use problem::{Kind, Problem};
#[cfg(feature = "http")]
pub use routes::Routes;
#[cfg(feature = "http")]
pub use token::{TokenLayer, TokenService, answer, answer_error};

use http::HeaderName;

/// The request's signed grant.
pub const TENURE_TOKEN: HeaderName = HeaderName::from_static("tenure-token");

/// The request's operation.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// On the response to a replay.
pub const TENURE_REPLAY: HeaderName = HeaderName::from_static("tenure-replay");

/// The epoch under which the operation of a replay was applied.
pub const TENURE_EPOCH: HeaderName = HeaderName::from_static("tenure-epoch");
