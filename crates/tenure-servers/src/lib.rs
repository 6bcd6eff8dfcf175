//! Real servers for tests and benches: PostgreSQL, Redis with Sentinel, etcd, PgBouncer, S3, Chroma, and a proxy that loses
//! answers.
//!
//! ```no_run
//! use tenure_servers::{Postgres, Redis};
//!
//! // One server for the whole test process, a database for this test.
//! let url = Postgres::shared().database();
//! // A server of this test's own, to be killed.
//! let redis = Redis::options().appendfsync("always").start();
//! redis.kill();
//! redis.restart();
//! ```
//!
//! Every server listens on free ports of 127.0.0.1, keeps its files in a temporary folder, answers before `start`
//! returns, and ends with its value. A shared server ends with the test process. So does everything else: the `keeper`
//! ends what a killed test process leaves behind.
//!
//! Nothing here returns an error. A test that has no server has failed: every function panics when a server is not
//! installed (and says what brings it), does not start or does not answer within
//! [`PATIENCE`], and the message holds the end of the server's log.
#![expect(clippy::panic, reason = "made for tests, and a test that has no server has failed")]

mod chroma;
pub mod etcd;
mod folder;
mod http;
mod installed;
mod island;
mod keeper;
mod patience;
mod pgbouncer;
mod ports;
pub mod postgres;
mod process;
pub mod proxy;
pub mod redis;
mod s3;
mod sentinels;
mod snapshot;
mod tls;
mod tree;

pub use chroma::Chroma;
pub use etcd::Etcd;
pub use island::Island;
pub use patience::{PATIENCE, eventually, within};
pub use pgbouncer::PgBouncer;
pub use postgres::Postgres;
pub use proxy::Proxy;
pub use redis::Redis;
pub use s3::S3;
pub use sentinels::Sentinels;
pub use snapshot::Snapshot;
pub use tls::Certificates;
