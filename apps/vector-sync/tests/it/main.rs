//! The program as people run it, and its parts on real servers.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, that is how to fail")]

mod site;
mod worker;

mod conformance;
mod drills;
mod embed;
mod faults;
mod source;
mod verbs;
mod watching;
