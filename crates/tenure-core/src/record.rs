//! What the authority keeps.

mod authority;
mod history;
mod lease;
mod session;

pub use authority::AuthorityRecord;
pub use history::{Event, Seen, Transition};
pub use lease::{LeaseRecord, Phase, SinkMark};
pub use session::{EndReason, Grant, Holdings, Owner, SessionRecord, SessionState, Standing};
