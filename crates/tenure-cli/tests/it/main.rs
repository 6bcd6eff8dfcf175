//! The command as a user runs it.

#![expect(clippy::unwrap_used, reason = "in a test, that is how to fail")]

mod demo;
mod probe;
