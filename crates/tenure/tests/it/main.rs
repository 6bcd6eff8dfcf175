//! The worker's side against real stores: what is held, what is lost, what is left behind.

mod stage;

mod causes;
mod ends;
mod field;
mod sticky;
