//! The worker's side, without I/O: answers go in by `handle_*`, what to do next comes out as values.

mod gate;
mod grants;
mod lease;
mod session;

pub use gate::Gate;
pub use grants::{Difference, KnownGrants};
pub use lease::{HeldLease, LeasePhase, LeaseStep, SealAnswer};
pub use session::{HeldSession, Policy, RenewAnswer, SessionStep};
