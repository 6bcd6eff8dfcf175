//! Each server is started for real, harmed, and asked what is left.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, that is how to fail")]

mod chroma;
mod etcd;
mod left_behind;
mod postgres;
mod proxy;
mod redis;
mod s3;
