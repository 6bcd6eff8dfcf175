//! The command as a user runs it.

#![expect(clippy::unwrap_used, reason = "in a test, that is how to fail")]

mod site;

mod child;
mod demo;
mod operate;
mod probe;
mod rig;
mod silence;
