//! The fences inside a transaction of sqlx's, beside those for each database's own driver. They are the same fences: the same
//! tables, the same verdicts.
//!
//! # What is not guaranteed
//!
//! * **A cancelled `begin()`.** sqlx 0.9.0 leaves an open transaction in its pool when the future of `Pool::begin` is dropped
//!   while PostgreSQL answers; what is then written through that connection without a transaction is answered and never
//!   committed. Put no `begin()` under a timeout or in a `select!`, or test connections before they are handed out
//!   (`PgPoolOptions::before_acquire`).
//! * On SQLite, that the transaction is still open cannot be asked of sqlx: run no `COMMIT` of your own inside it.

#[cfg(feature = "postgres")]
pub use crate::postgres::sqlx::{Admitted as PostgresAdmitted, SqlxPostgresFence};
#[cfg(feature = "sqlite")]
pub use crate::sqlite::sqlx::{Admitted as SqliteAdmitted, SqlxSqliteFence};
