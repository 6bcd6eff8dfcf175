//! What moves from one store to another.

use super::Recorded;
use std::collections::BTreeMap;
use std::time::Duration;
use tenure_core::record::{AuthorityRecord, Event, LeaseRecord, Transition};
use tenure_core::{Actor, AuthorityClock, Epoch, Instant, Reason, ResourceName, StoreIdentity, Ttl};

/// The store that was exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Which store it was.
    pub identity: StoreIdentity,
    /// Its incarnation.
    pub incarnation: u64,
    /// Its floor.
    pub floor: Option<Epoch>,
    /// The longest ttl that its sessions could have.
    pub max_ttl: Ttl,
    /// How long a holder that it had granted may still have believed when it was exported: the longest ttl of a session
    /// that was Live, or what was left of its own quarantine. `None` when there was none.
    pub belief: Option<Duration>,
}

/// What a store held when it was exported, and fits together: no resource is left out or lies behind its own history.
///
/// Provided that nobody uses the exported store any more, a store that takes this over gives no epoch twice, forgets no
/// receiver, and grants nothing while a holder of the former store may still believe.
#[derive(Clone, Debug)]
pub struct Import {
    source: Source,
    rows: Vec<Recorded>,
    leases: Vec<LeaseRecord>,
    by: Actor,
}

/// Why an exported content must not be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// No store has this incarnation.
    #[error("its incarnation {0} is none that a store has: they begin at 1")]
    Incarnation(u64),
    /// A holder cannot believe for so long.
    #[error("its holders may believe for {belief:?}, but the longest ttl is {max_ttl:?}")]
    Belief {
        /// How long.
        belief: Duration,
        /// The longest ttl.
        max_ttl: Duration,
    },
    /// A row is missing, or stands at another place.
    #[error("the history goes on with number {found}, where {expected} comes next: a row is missing or misplaced")]
    Number {
        /// The place of the row, from 0.
        at: usize,
        /// The number that comes next.
        expected: u64,
        /// The row's number.
        found: u64,
    },
    /// A resource has two records.
    #[error("the resource {resource} has a record already")]
    Twice {
        /// The place of the second record, from 0.
        at: usize,
        /// The resource.
        resource: ResourceName,
    },
    /// A record lies behind the history; with it, an epoch would be granted a second time.
    #[error("the resource {resource} has epoch {epoch}, but row {number} of the history has epoch {granted}")]
    Behind {
        /// The place of the record, from 0.
        at: usize,
        /// The resource.
        resource: ResourceName,
        /// The record's epoch.
        epoch: Epoch,
        /// The number of the row that is ahead.
        number: u64,
        /// That row's epoch.
        granted: Epoch,
    },
    /// A resource of the history has no record, and the floor does not cover it.
    #[error("the resource {resource} has no record, and the floor is below epoch {granted} of row {number}")]
    Absent {
        /// The place of the row, from 0.
        at: usize,
        /// The resource.
        resource: ResourceName,
        /// The number of the row.
        number: u64,
        /// That row's epoch.
        granted: Epoch,
    },
}

impl Import {
    /// Checks that the parts fit together. `by` is who imports, for the history.
    ///
    /// # Errors
    /// [`ImportError`]: the content is damaged or was put together by hand; export again.
    pub fn new(source: Source, rows: Vec<Recorded>, leases: Vec<LeaseRecord>, by: Actor) -> Result<Self, ImportError> {
        if !(1..=i64::MAX.cast_unsigned()).contains(&source.incarnation) {
            return Err(ImportError::Incarnation(source.incarnation));
        }
        let max_ttl = source.max_ttl.get();
        if let Some(belief) = source.belief.filter(|belief| *belief > max_ttl) {
            return Err(ImportError::Belief { belief, max_ttl });
        }
        let mut newest: BTreeMap<&ResourceName, (Epoch, usize, u64)> = BTreeMap::new();
        for (at, (row, expected)) in rows.iter().zip(1..).enumerate() {
            if row.number != expected {
                return Err(ImportError::Number { at, expected, found: row.number });
            }
            if let (Some(resource), Some(epoch)) = (&row.transition.resource, row.transition.epoch) {
                let highest = newest.entry(resource).or_insert((epoch, at, row.number));
                if highest.0 < epoch {
                    *highest = (epoch, at, row.number);
                }
            }
        }
        let mut seen = BTreeMap::new();
        for (at, lease) in leases.iter().enumerate() {
            if seen.insert(&lease.resource, at).is_some() {
                return Err(ImportError::Twice { at, resource: lease.resource.clone() });
            }
            if let Some((granted, _, number)) = newest.remove(&lease.resource).filter(|(top, _, _)| *top > lease.epoch)
            {
                let (resource, epoch) = (lease.resource.clone(), lease.epoch);
                return Err(ImportError::Behind { at, resource, epoch, number, granted });
            }
        }
        let uncovered = newest.into_iter().find(|(_, (granted, _, _))| source.floor < Some(*granted));
        if let Some((resource, (granted, at, number))) = uncovered {
            return Err(ImportError::Absent { at, resource: resource.clone(), number, granted });
        }
        Ok(Self { source, rows, leases, by })
    }

    /// The store that was exported.
    #[must_use]
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// Its history, to be written as it is.
    #[must_use]
    pub fn rows(&self) -> &[Recorded] {
        &self.rows
    }

    /// The resources, as they are to be written: no grant stands, and every receiver is to be sealed anew.
    pub fn leases(&self, now: Instant<AuthorityClock>) -> impl Iterator<Item = LeaseRecord> {
        self.leases.iter().map(move |lease| lease.imported(now))
    }

    /// The importing store's own record, as it is to be written in the place of `own`.
    #[must_use]
    pub fn authority(&self, own: &AuthorityRecord, now: Instant<AuthorityClock>) -> AuthorityRecord {
        AuthorityRecord {
            identity: own.identity.clone(),
            // Above whatever a caller has seen of the former store, and no session of that one counts here.
            incarnation: own.incarnation.max(self.source.incarnation).saturating_add(1),
            floor: self.source.floor,
            max_ttl: self.source.max_ttl,
            quarantined_until: self.source.belief.map(|belief| now.after(belief)),
        }
    }

    /// The last row, which tells of the import.
    #[must_use]
    pub fn transition(&self, now: Instant<AuthorityClock>) -> Transition {
        Transition {
            at: now,
            event: Event::Quarantined,
            resource: None,
            session: None,
            epoch: None,
            grant: None,
            actor: Some(self.by.clone()),
            why: Reason::new(format!("imported from {}", self.source.identity)).ok(),
        }
    }
}

#[cfg(test)]
mod tests;
