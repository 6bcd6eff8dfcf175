//! The command as a user runs it.

mod demo;
mod probe;
