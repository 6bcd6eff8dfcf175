//! A service behind HTTP: a shop whose values stand in SQLite, with the fence in the transaction of each write.

mod alone;
mod bad_input;
mod conformance;
mod once;
mod raw;
mod service;
mod wire;
