//! A store in this process's memory.

use super::{
    After, Answer, Capabilities, Durability, Hint, HistoryQuery, Import, Listed, Order, Page, Read, RecallOutcome,
    Recalled, Recorded, Scope, Store, StoreError, SwapOutcome, TimeSource, Version, Versions, Wake, Wakes,
};
use crate::{Clock, WallTime};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::decide::{Change, Keys, Swap, View};
use tenure_core::record::{AuthorityRecord, Event, Holdings, LeaseRecord, SessionRecord, SessionState, Transition};
use tenure_core::{AuthorityClock, Instant, ResourceName, SessionId, StoreIdentity, Ttl};

/// A store in memory, for tests and for workers of one process.
///
/// It is as durable as the process: clause 5 of the contract holds for nothing else. When the process ends, everything
/// that was ever granted is forgotten, and only the sinks remember; so never give real work to it.
#[derive(Debug)]
pub struct MemoryStore {
    clock: Clock,
    wakes: Wakes,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    authority: AuthorityRecord,
    authority_version: Version,
    sessions: HashMap<SessionId, (SessionRecord, Version)>,
    leases: BTreeMap<ResourceName, (LeaseRecord, Version)>,
    /// Apart from the sessions, so that a grant does not change a session's version. No entry is an empty set.
    holdings: HashMap<SessionId, Holdings>,
    history: Vec<(WallTime, Transition)>,
    /// The newest version given to any record; one count for all, so that none comes back after a record was dropped.
    newest: Version,
    /// The highest reading of the clock so far.
    highest: u64,
}

impl MemoryStore {
    /// An empty store.
    ///
    /// # Errors
    /// [`StoreError::Entropy`] when there are no random bits for the store's identity.
    pub fn new(clock: Clock, max_ttl: Ttl) -> Result<Self, StoreError> {
        let identity = StoreIdentity::new(format!("memory:{:032x}", crate::random_bits()?))
            .map_err(|error| StoreError::Corrupt(error.to_string()))?;
        let state = State {
            authority: AuthorityRecord::new(identity, max_ttl),
            authority_version: Version(1),
            sessions: HashMap::new(),
            leases: BTreeMap::new(),
            holdings: HashMap::new(),
            history: Vec::new(),
            newest: Version(1),
            highest: 0,
        };
        Ok(Self { clock, wakes: Wakes::default(), state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A step that panicked did so before its first change: see `State::swap`.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn now(&mut self, clock: &Clock) -> Result<Instant<AuthorityClock>, StoreError> {
        let nanos = clock.now_nanos()?;
        if nanos < self.highest {
            return Err(StoreError::ClockWentBack { by: Duration::from_nanos(self.highest - nanos) });
        }
        self.highest = nanos;
        Ok(Instant::from_nanos(nanos))
    }

    fn read(&self, keys: &Keys, now: Instant<AuthorityClock>) -> Read {
        let session = |id: SessionId| self.sessions.get(&id).cloned().unzip();
        let (caller, caller_version) = keys.session.map_or((None, None), session);
        let (lease, lease_version) = keys.resource.as_ref().and_then(|name| self.leases.get(name)).cloned().unzip();
        let (holder, holder_version) =
            lease.as_ref().map_or((None, None), |lease: &LeaseRecord| session(lease.session));
        let known = |grant| self.history.iter().rev().any(|(_, row)| row.grant == Some(grant));
        Read {
            view: View {
                authority: self.authority.clone(),
                observed: self.authority.identity.clone(),
                history: self.history.len() as u64,
                holdings: keys.session.and_then(|id| self.holdings.get(&id)).copied().unwrap_or_default(),
                caller,
                lease,
                holder,
                grant_known: keys.grant.is_none_or(known),
            },
            versions: Versions {
                authority: Some(self.authority_version),
                caller: caller_version,
                lease: lease_version,
                holder: holder_version,
            },
            now,
        }
    }

    /// Checks everything first, and changes only then.
    fn swap(&mut self, swap: Swap, expected: Option<Version>) -> SwapOutcome {
        let lease_version = |name: &ResourceName| self.leases.get(name).map(|(_, version)| *version);
        let session_version = |id: &SessionId| self.sessions.get(id).map(|(_, version)| *version);
        let version = match &swap.change {
            Change::Authority(_) => Some(self.authority_version),
            Change::Session(session) => session_version(&session.id),
            Change::DropSession(id) => session_version(id),
            Change::Lease(lease) => lease_version(&lease.resource),
            Change::DropLease(resource) => lease_version(resource),
        };
        if version != expected || swap.relies_on.is_some_and(|id| !self.is_live(id)) {
            return SwapOutcome::Changed;
        }
        self.newest = Version(self.newest.0 + 1);
        let newest = self.newest;
        match swap.change {
            Change::Authority(authority) => {
                self.authority = authority;
                self.authority_version = newest;
            }
            Change::Session(session) => {
                self.sessions.insert(session.id, (session, newest));
            }
            Change::DropSession(id) => {
                self.sessions.remove(&id);
            }
            Change::Lease(lease) => {
                let after = lease.holding();
                let before = self.leases.insert(lease.resource.clone(), (lease, newest));
                let before = before.and_then(|(lease, _)| lease.holding());
                self.toggle([before, after]);
            }
            Change::DropLease(resource) => {
                let before = self.leases.remove(&resource).and_then(|(lease, _)| lease.holding());
                self.toggle([before, None]);
            }
        }
        if swap.transition.event != Event::Renewed {
            self.history.push((WallTime::now(), swap.transition));
        }
        SwapOutcome::Done
    }

    fn swap_recalled(&mut self, recalled: Recalled, now: Instant<AuthorityClock>) -> RecallOutcome {
        let Recalled { mut swap, expected, authority, valid_before } = recalled;
        if authority != self.authority_version || valid_before.is_some_and(|deadline| now.reached(&deadline)) {
            return RecallOutcome::Changed;
        }
        let session = swap.transition.session;
        if let (Change::Session(renewed), Some(_)) = (&mut swap.change, valid_before) {
            renewed.deadline = now.after(renewed.ttl.get());
        }
        match self.swap(swap, expected) {
            SwapOutcome::Done => RecallOutcome::Done(After {
                version: self.newest,
                now,
                history: self.history.len() as u64,
                holdings: session.and_then(|id| self.holdings.get(&id)).copied().unwrap_or_default(),
            }),
            SwapOutcome::Changed => RecallOutcome::Changed,
            SwapOutcome::Unknown => RecallOutcome::Unknown,
        }
    }

    fn import(&mut self, content: &Import, now: Instant<AuthorityClock>) -> SwapOutcome {
        if !self.history.is_empty() {
            return SwapOutcome::Changed;
        }
        self.newest = Version(self.newest.0 + 1);
        let newest = self.newest;
        self.history.extend(content.rows().iter().map(|row| (row.wall, row.transition.clone())));
        self.history.push((WallTime::now(), content.transition(now)));
        self.leases = content.leases(now).map(|lease| (lease.resource.clone(), (lease, newest))).collect();
        self.authority = content.authority(&self.authority, now);
        self.authority_version = newest;
        SwapOutcome::Done
    }

    fn is_live(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_some_and(|(session, _)| {
            session.state == SessionState::Live && session.incarnation == self.authority.incarnation
        })
    }

    /// Takes the former grant out of its session's fingerprint and puts the new one into its own.
    fn toggle(&mut self, holdings: [Option<(SessionId, tenure_core::record::Grant)>; 2]) {
        for (session, grant) in holdings.into_iter().flatten() {
            let toggled = self.holdings.get(&session).copied().unwrap_or_default().toggled(grant);
            if toggled == Holdings::default() {
                self.holdings.remove(&session);
            } else {
                self.holdings.insert(session, toggled);
            }
        }
    }
}

impl Store for MemoryStore {
    fn read<'a>(&'a self, keys: &'a Keys) -> Answer<'a, Result<Read, StoreError>> {
        Box::pin(async move {
            let mut state = self.state();
            let now = state.now(&self.clock)?;
            Ok(state.read(keys, now))
        })
    }

    fn swap(&self, swap: Swap, expected: Option<Version>) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        Box::pin(async move {
            let mut state = self.state();
            let now = state.now(&self.clock)?;
            if swap.made_before().is_some_and(|end| now.reached(&end)) {
                return Ok(SwapOutcome::Changed);
            }
            let (resource, hint) = (swap.transition.resource.clone(), Hint::of(&swap.change));
            let outcome = state.swap(swap, expected);
            if let Some(resource) = resource.filter(|_| outcome == SwapOutcome::Done) {
                // Under the lock of the state, so that hints are told in the order of the changes.
                self.wakes.tell(&resource, hint);
            }
            Ok(outcome)
        })
    }

    fn grants(&self, session: SessionId) -> Answer<'_, Result<Vec<LeaseRecord>, StoreError>> {
        Box::pin(async move {
            let stands = |lease: &&LeaseRecord| lease.holding().is_some_and(|(id, _)| id == session);
            Ok(self.state().leases.values().map(|(lease, _)| lease).filter(stands).cloned().collect())
        })
    }

    fn leases(&self, page: Page<ResourceName>) -> Answer<'_, Result<Vec<Listed>, StoreError>> {
        use std::ops::Bound::{Excluded, Unbounded};
        Box::pin(async move {
            let mut state = self.state();
            let now = state.now(&self.clock)?;
            let after = page.after.map_or(Unbounded, Excluded);
            let listed = |(lease, _): &(LeaseRecord, Version)| {
                let holder = state.sessions.get(&lease.session).map(|(session, _)| session.clone());
                Listed { lease: lease.clone(), holder, now }
            };
            Ok(state.leases.range((after, Unbounded)).take(page.limit).map(|(_, row)| listed(row)).collect())
        })
    }

    fn history(&self, query: HistoryQuery) -> Answer<'_, Result<Vec<Recorded>, StoreError>> {
        Box::pin(async move {
            let state = self.state();
            let after = query.after.map(|after| usize::try_from(after).unwrap_or(usize::MAX));
            // The place of a row is its number less one.
            let first = after.filter(|_| query.order == Order::OldestFirst).unwrap_or(0);
            let end =
                after.filter(|_| query.order == Order::NewestFirst).map_or(usize::MAX, |after| after.saturating_sub(1));
            let piece = state.history.get(first..end.min(state.history.len())).unwrap_or_default();
            let rows = piece.iter().enumerate().map(|(at, (wall, row))| ((first + at) as u64 + 1, *wall, row));
            let asked = |(_, _, row): &(u64, WallTime, &Transition)| {
                query.resource.as_ref().is_none_or(|resource| row.resource.as_ref() == Some(resource))
            };
            let recorded =
                |(number, wall, row): (u64, WallTime, &Transition)| Recorded { number, wall, transition: row.clone() };
            Ok(match query.order {
                Order::OldestFirst => rows.filter(asked).take(query.limit).map(recorded).collect(),
                Order::NewestFirst => rows.rev().filter(asked).take(query.limit).map(recorded).collect(),
            })
        })
    }

    fn import(&self, content: Import) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        Box::pin(async move {
            let mut state = self.state();
            let now = state.now(&self.clock)?;
            let outcome = state.import(&content, now);
            self.wakes.tell_all();
            Ok(outcome)
        })
    }

    fn idle_sessions(&self, limit: usize) -> Answer<'_, Result<Vec<SessionId>, StoreError>> {
        Box::pin(async move {
            let mut state = self.state();
            let now = state.now(&self.clock)?;
            // First those that nobody has ended yet, then those that ended longest ago: a bounded sweep always gets on.
            let since = |session: &SessionRecord| match session.state {
                SessionState::Live if session.incarnation != state.authority.incarnation => Some((0, session.deadline)),
                SessionState::Live => now.reached(&session.deadline).then_some((0, session.deadline)),
                SessionState::Ended { at, .. } => Some((1, at)),
            };
            let idle = state.sessions.values().filter_map(|(session, _)| Some((since(session)?, session.id)));
            let mut idle: Vec<_> = idle.collect();
            idle.sort_unstable();
            idle.truncate(limit);
            Ok(idle.into_iter().map(|(_, id)| id).collect())
        })
    }

    fn swap_recalled(&self, recalled: Recalled) -> Option<Answer<'_, Result<RecallOutcome, StoreError>>> {
        Some(Box::pin(async move {
            let mut state = self.state();
            let now = state.now(&self.clock)?;
            let (resource, hint) = (recalled.swap.transition.resource.clone(), Hint::of(&recalled.swap.change));
            let outcome = state.swap_recalled(recalled, now);
            if let (Some(resource), RecallOutcome::Done(_)) = (resource, outcome) {
                self.wakes.tell(&resource, hint);
            }
            Ok(outcome)
        }))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { scope: Scope::Process, durability: Durability::Process, clock: TimeSource::Host, wakes: true }
    }

    fn watch(&self, resource: &ResourceName) -> Option<Wake> {
        Some(self.wakes.watch(resource))
    }
}
