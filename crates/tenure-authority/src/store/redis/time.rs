//! The server's clock, as this process has seen it.

use std::sync::{Mutex, PoisonError};

/// The highest reading, of the server that answered last. Scripts are given it, and let a clock that was set back by less
/// than a second stand still; further back they refuse.
#[derive(Debug, Default)]
pub(super) struct Time(Mutex<Seen>);

#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) identity: String,
    pub(super) micros: u64,
}

impl Time {
    pub(super) fn seen(&self) -> Seen {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Learns of a reading. Answers come in any order: the highest one counts. Another server's clock begins anew.
    pub(super) fn learn(&self, identity: &str, micros: u64) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.identity == identity {
            seen.micros = seen.micros.max(micros);
        } else {
            *seen = Seen { identity: identity.to_owned(), micros };
        }
    }
}
