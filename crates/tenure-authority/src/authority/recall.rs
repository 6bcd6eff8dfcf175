//! What one authority remembers of a store that is a round trip away.

use crate::BootClock;
use crate::store::{After, Read, Recalled, Version};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::decide::{Change, Keys, Reply, Request, Swap, Then, View, decide};
use tenure_core::record::{AuthorityRecord, Event, LeaseRecord, SessionRecord};
use tenure_core::{AuthorityClock, Instant, ResourceName, SessionId, StoreIdentity};

/// Records as they were last seen, with their versions. A request is decided on them, and the swap checks that they still
/// stand: one round trip instead of two. Nothing is ever answered from memory alone.
#[derive(Debug, Default)]
pub(super) struct Recall(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Which store all of it is of, and in which incarnation: in another life versions may come a second time.
    life: Option<(StoreIdentity, u64)>,
    store: Option<Stored>,
    sessions: HashMap<SessionId, (SessionRecord, Version)>,
    leases: HashMap<ResourceName, (LeaseRecord, Version)>,
}

#[derive(Debug)]
struct Stored {
    record: AuthorityRecord,
    version: Version,
    history: u64,
    now: Instant<AuthorityClock>,
    /// When `now` was heard of, on this machine's clock.
    heard: u64,
}

/// So many records at most; then all of them are forgotten, which costs one reading each.
const KNOWN_MAX: usize = 16_384;

/// A reading of the store's clock is too old to be carried on after this long.
const CLOCK_AGE_MAX: Duration = Duration::from_mins(1);

/// What the two clocks may differ by while it is carried on: a thousandth, twice what NTP corrects at most (500 ppm).
const CLOCK_DRIFT: u64 = 1_000;

/// A swap that was decided on what is remembered, and the answer once it is made.
pub(super) struct Guess {
    pub(super) recalled: Recalled,
    pub(super) reply: Reply,
}

impl Recall {
    /// The swap of a request, if everything that it needs is remembered and a plain swap is all that it takes. `now`:
    /// the store's clock, if it can be told; otherwise the last reading is carried on.
    pub(super) fn guess(&self, keys: &Keys, request: &Request, now: Option<Instant<AuthorityClock>>) -> Option<Guess> {
        if !is_plain(request) {
            return None;
        }
        let (read, version) = self.known().view(keys, now)?;
        let decision = decide(&read.view, request, read.now);
        let (Some(swap), Then::Answer(Ok(reply))) = (decision.swap, decision.then) else { return None };
        let expected = super::expected_version(&read, &swap);
        Some(Guess { recalled: recalled(swap, expected, version, &read.view), reply })
    }

    /// Remembers what was read.
    pub(super) fn saw(&self, keys: &Keys, read: &Read) {
        let mut known = self.known();
        let Some(version) = read.versions.authority.filter(|_| read.view.observed == read.view.authority.identity)
        else {
            *known = Known::default();
            return;
        };
        let life = (read.view.authority.identity.clone(), read.view.authority.incarnation);
        if known.life.as_ref() != Some(&life) {
            *known = Known { life: Some(life), ..Known::default() };
        }
        known.store = Some(Stored {
            record: read.view.authority.clone(),
            version,
            history: read.view.history,
            now: read.now,
            heard: BootClock.now_nanos(),
        });
        let sessions = [(&read.view.caller, read.versions.caller), (&read.view.holder, read.versions.holder)];
        for (session, version) in sessions {
            if let (Some(session), Some(version)) = (session, version) {
                known.keep_session(session.clone(), version);
            }
        }
        match (&keys.resource, &read.view.lease, read.versions.lease) {
            (_, Some(lease), Some(version)) => known.keep_lease(lease.clone(), version),
            (Some(resource), None, _) => drop(known.leases.remove(resource)),
            _ => {}
        }
    }

    /// Remembers what a swap has made of things.
    pub(super) fn made(&self, swap: Swap, after: After) {
        let mut known = self.known();
        if let Some(store) = &mut known.store {
            (store.history, store.now, store.heard) = (after.history, after.now, BootClock.now_nanos());
        }
        let is_renewal = swap.transition.event == Event::Renewed;
        match swap.change {
            Change::Authority(_) => *known = Known::default(),
            Change::Session(session) => {
                // As the store has stamped it.
                let deadline = if is_renewal { after.now.after(session.ttl.get()) } else { session.deadline };
                let session = SessionRecord { deadline, ..session };
                known.keep_session(session, after.version);
            }
            Change::DropSession(id) => drop(known.sessions.remove(&id)),
            Change::Lease(lease) => known.keep_lease(lease, after.version),
            Change::DropLease(resource) => drop(known.leases.remove(&resource)),
        }
    }

    /// What a request needs is not as it was remembered, or cannot be told.
    pub(super) fn forget(&self, keys: &Keys) {
        let mut known = self.known();
        known.store = None;
        if let Some(id) = keys.session {
            known.sessions.remove(&id);
        }
        if let Some(resource) = &keys.resource {
            known.leases.remove(resource);
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stored {
    /// The last reading of the store's clock, carried on by this machine's. `None`: it is too old for that.
    fn carried_on(&self) -> Option<Instant<AuthorityClock>> {
        let elapsed = BootClock.now_nanos().saturating_sub(self.heard);
        if elapsed > u64::try_from(CLOCK_AGE_MAX.as_nanos()).unwrap_or(u64::MAX) {
            return None;
        }
        // Never ahead of the store's clock: what is decided on it was true when it was sent.
        Some(self.now.after(Duration::from_nanos(elapsed - elapsed / CLOCK_DRIFT)))
    }
}

impl Known {
    fn view(&self, keys: &Keys, now: Option<Instant<AuthorityClock>>) -> Option<(Read, Version)> {
        let store = self.store.as_ref()?;
        let now = now.or_else(|| store.carried_on())?;
        let caller = keys.session.map(|id| self.sessions.get(&id)).map_or(Some(None), |found| found.map(Some))?;
        let lease =
            keys.resource.as_ref().map(|name| self.leases.get(name)).map_or(Some(None), |found| found.map(Some))?;
        // A session that is not remembered is not one that has ended: without it, nobody could say whether the grant stands.
        let granted = lease.filter(|(lease, _)| lease.is_granted());
        let holder = granted.map_or(Some(None), |(lease, _)| self.sessions.get(&lease.session).map(Some))?;
        let (caller, lease, holder) = (caller.cloned().unzip(), lease.cloned().unzip(), holder.cloned().unzip());
        let view = View {
            observed: store.record.identity.clone(),
            authority: store.record.clone(),
            history: store.history,
            caller: caller.0,
            holdings: tenure_core::record::Holdings::default(),
            lease: lease.0,
            holder: holder.0,
            grant_known: true,
        };
        let versions = crate::store::Versions {
            authority: Some(store.version),
            caller: caller.1,
            lease: lease.1,
            holder: holder.1,
        };
        Some((Read { view, versions, now }, store.version))
    }

    fn keep_session(&mut self, session: SessionRecord, version: Version) {
        self.make_room(self.sessions.contains_key(&session.id));
        self.sessions.insert(session.id, (session, version));
    }

    fn keep_lease(&mut self, lease: LeaseRecord, version: Version) {
        self.make_room(self.leases.contains_key(&lease.resource));
        self.leases.insert(lease.resource.clone(), (lease, version));
    }

    fn make_room(&mut self, is_known: bool) {
        if !is_known && self.sessions.len() + self.leases.len() >= KNOWN_MAX {
            self.sessions.clear();
            self.leases.clear();
        }
    }
}

/// The swap with all conditions that its decision stands on, so that the store checks them in the same step.
pub(super) fn recalled(swap: Swap, expected: Option<Version>, authority: Version, view: &View) -> Recalled {
    let is_renewal = swap.transition.event == Event::Renewed;
    let valid_before = view.caller.as_ref().filter(|_| is_renewal).map(|session| session.deadline);
    Recalled { swap, expected, authority, valid_before }
}

/// The answer, with what only the store knows at the moment of the swap.
pub(super) fn answered(reply: Reply, after: After) -> Reply {
    match reply {
        Reply::Renewed { seen, .. } => Reply::Renewed {
            seen: tenure_core::record::Seen { number: after.history, ..seen },
            holdings: after.holdings,
        },
        other => other,
    }
}

/// Whether a request mostly takes one swap, and its answer says nothing of other records. Asking, opening, and what an
/// operator wants are read for.
const fn is_plain(request: &Request) -> bool {
    matches!(
        request,
        Request::Renew { .. }
            | Request::Acquire { .. }
            | Request::Enrol { .. }
            | Request::Bind { .. }
            | Request::Sealed { .. }
            | Request::Announce { .. }
            | Request::Release { .. }
            | Request::Complete { .. }
    )
}
