//! The command as a user runs it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, that is how to fail")]

mod demo;
mod look;
