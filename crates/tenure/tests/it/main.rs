//! The worker's side against real stores: what is held, what is lost, what is left behind.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, that is how to fail")]

mod faults;
mod receivers;
mod stage;

mod cancel;
mod causes;
mod crashes;
mod drills;
mod ends;
mod examples;
mod field;
mod held;
mod http;
mod keeping;
mod sealing;
mod signed;
mod sticky;
mod takeover;
mod waiting;
mod witness;
