//! The command as a user runs it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, that is how to fail")]

mod site;

mod bucket_receiver;
mod child;
mod demo;
mod first_page;
mod forms;
mod help;
mod keys;
mod look;
mod operate;
mod postgres_receiver;
mod probe;
mod receipts;
mod redis_receiver;
mod restore;
mod rig;
mod run;
mod silence;
mod stores;
mod unknown;
