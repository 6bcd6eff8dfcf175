//! When this process saw what for the first time: the only measure of another machine's deadlines.

use super::document::Charter;
use crate::{Clock, StoreError, WallTime};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::decide::EXPLAINED_FOR;
use tenure_core::record::{AuthorityRecord, SessionRecord, SessionState};
use tenure_core::{AuthorityClock, Instant, SessionId};

/// This process's clock, and since when each session stands as it does.
///
/// A session's deadline is the first sight of its newest renewal plus its ttl. The holder counts from before it sent
/// that renewal, and the sight is later than the change: so nobody sees a deadline before the holder's own. What this
/// process has changed itself it need not watch: the deadline that it gave counts from a reading of this very clock
/// that was made after the holder's request and before the change.
///
/// An entry that is forgotten is made anew at the next sight. That makes a deadline later, never earlier.
#[derive(Debug)]
pub(super) struct Observed {
    clock: Clock,
    highest: AtomicU64,
    sights: Mutex<Sights>,
}

#[derive(Debug, Default)]
struct Sights {
    /// What was looked at lately, and what was looked at before that; the latter is forgotten when the former is full.
    young: HashMap<SessionId, Sight>,
    old: HashMap<SessionId, Sight>,
    charter: Option<Sight>,
}

/// So many sessions are kept twice at most: some 10 MiB.
const SIGHTS_MAX: usize = 65_536;

#[derive(Clone, Copy, Debug)]
struct Sight {
    /// The revision of the record.
    changed: u64,
    /// What follows: the deadline of a Live session, the instant of the end of an ended one, the end of a quarantine.
    instant: Instant<AuthorityClock>,
    /// Whether this process has made the change, and so knows the instant better than etcd's own leases do.
    is_own: bool,
}

impl Observed {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, highest: AtomicU64::new(0), sights: Mutex::default() }
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Whether time passes by itself, so that etcd's own leases say something about it.
    pub(super) fn is_real(&self) -> bool {
        matches!(self.clock, Clock::Boot(_))
    }

    /// The clock, which must not lie before any reading so far.
    pub(super) fn now(&self) -> Result<Instant<AuthorityClock>, StoreError> {
        // Before the reading, or a reading that another thread makes in between would look like a jump.
        let highest = self.highest.load(Ordering::Acquire);
        let nanos = self.clock.now_nanos()?;
        if nanos < highest {
            return Err(StoreError::ClockWentBack { by: Duration::from_nanos(highest - nanos) });
        }
        self.highest.fetch_max(nanos, Ordering::AcqRel);
        Ok(Instant::from_nanos(nanos))
    }

    /// A session as it stands for this process. `is_gone`: etcd has removed the key that its holder keeps alive.
    pub(super) fn session(
        &self,
        mut record: SessionRecord,
        changed: u64,
        is_gone: bool,
        now: Instant<AuthorityClock>,
    ) -> SessionRecord {
        let first = || match record.state {
            SessionState::Live => now.after(record.ttl.get()),
            SessionState::Ended { .. } => now,
        };
        let sight = self.sights().see(record.id, changed, first);
        match &mut record.state {
            SessionState::Live if is_gone && !sight.is_own => record.deadline = sight.instant.min(now),
            SessionState::Live => record.deadline = sight.instant,
            SessionState::Ended { at, .. } => *at = sight.instant,
        }
        record
    }

    /// This process has made the change itself.
    pub(super) fn made(&self, record: &SessionRecord, changed: u64) {
        let instant = match record.state {
            SessionState::Live => record.deadline,
            SessionState::Ended { at, .. } => at,
        };
        self.sights().young.insert(record.id, Sight { changed, instant, is_own: true });
    }

    /// The store's own record as it stands for this process. `is_gone`: etcd has removed the quarantine's key.
    pub(super) fn authority(
        &self,
        charter: &Charter,
        changed: u64,
        is_gone: bool,
        now: Instant<AuthorityClock>,
    ) -> AuthorityRecord {
        let mut record = charter.record.clone();
        record.quarantined_until = charter.quarantine.map(|span| {
            let mut sights = self.sights();
            let known = sights.charter.filter(|sight| sight.changed == changed);
            let sight = known.unwrap_or_else(|| Sight { changed, instant: now.after(span), is_own: false });
            sights.charter = Some(sight);
            if is_gone && !sight.is_own { sight.instant.min(now) } else { sight.instant }
        });
        let is_long_ago = charter.quarantine_end_ms.is_some_and(|end| {
            let days = u64::try_from(EXPLAINED_FOR.as_millis()).unwrap_or(u64::MAX);
            end.saturating_add(days) <= WallTime::now().as_millis()
        });
        if is_long_ago {
            // Whoever is young has seen it a moment ago all the same.
            record.quarantined_until = record.quarantined_until.filter(|until| !now.reached(until));
        }
        record
    }

    /// This process has changed the store's own record itself, in an answer that has just come to what was put together
    /// then. Until the change was made sessions of the former incarnation were renewed: the quarantine counts from now.
    pub(super) fn made_authority(&self, record: &AuthorityRecord, then: Instant<AuthorityClock>, changed: u64) {
        if let (Some(until), Ok(now)) = (record.quarantined_until, self.now()) {
            let instant = now.after(until.since(&then));
            self.sights().charter = Some(Sight { changed, instant, is_own: true });
        }
    }

    fn sights(&self) -> MutexGuard<'_, Sights> {
        self.sights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sights {
    fn see(&mut self, id: SessionId, changed: u64, first: impl Fn() -> Instant<AuthorityClock>) -> Sight {
        let first = || Sight { changed, instant: first(), is_own: false };
        if let Some(sight) = self.young.get_mut(&id) {
            if sight.changed < changed {
                *sight = first();
            }
            // An answer that was overtaken shows an older record: it says nothing new.
            return if sight.changed == changed { *sight } else { first() };
        }
        let known = self.old.remove(&id).filter(|sight| sight.changed == changed);
        let sight = known.unwrap_or_else(first);
        if self.young.len() >= SIGHTS_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(id, sight);
        sight
    }

    fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Observed {
    /// The store has another past now: its revisions may come a second time.
    pub(super) fn forget(&self) {
        self.sights().forget();
    }
}

#[cfg(test)]
mod tests;
