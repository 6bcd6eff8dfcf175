use super::Seen;
use crate::{AuthorityClock, Epoch, Instant, StoreIdentity, Ttl};
use core::time::Duration;

/// One per store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuthorityRecord {
    /// Which store this is.
    pub identity: StoreIdentity,
    /// Raised whenever the store may have gone back in time, and when it takes over another one's history. A session of another incarnation has ended.
    pub incarnation: u64,
    /// Epochs at or below it are never granted to a resource that has no record.
    pub floor: Option<Epoch>,
    /// The longest ttl that a session may have.
    pub max_ttl: Ttl,
    /// No grant and no opening before this instant.
    pub quarantined_until: Option<Instant<AuthorityClock>>,
}

impl AuthorityRecord {
    /// A store that has never granted anything.
    #[must_use]
    pub fn new(identity: StoreIdentity, max_ttl: Ttl) -> Self {
        Self { identity, incarnation: 1, floor: None, max_ttl, quarantined_until: None }
    }

    /// How long the quarantine lasts still; `None` when there is none.
    #[must_use]
    pub fn quarantine(&self, now: Instant<AuthorityClock>) -> Option<Duration> {
        self.quarantined_until.filter(|until| !now.reached(until)).map(|until| until.since(&now))
    }

    /// The record after the store was found to have gone back: every session has ended, and nothing is granted for the
    /// longest time that a holder of the lost history may still believe.
    #[must_use]
    pub fn quarantined(&self, identity: StoreIdentity, seen: Seen, now: Instant<AuthorityClock>) -> Self {
        Self {
            identity,
            // Above whatever a caller has seen of the lost history, or its claim would quarantine once more.
            incarnation: self.incarnation.max(seen.incarnation).saturating_add(1),
            quarantined_until: Some(now.after(self.max_ttl.get())),
            ..self.clone()
        }
    }
}
