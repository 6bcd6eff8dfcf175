//! A store that keeps the contract of the real ones, in memory and small enough to be a part of a state.

use std::collections::{BTreeMap, BTreeSet};
use tenure_core::decide::{Change, Keys, Refusal, Reply, Request, Swap, Then, View, decide};
use tenure_core::record::{AuthorityRecord, Event, Holdings, LeaseRecord, Seen, SessionRecord, SessionState};
use tenure_core::{AuthorityClock, GrantId, Instant, ResourceName, SessionId, StoreIdentity, Ttl};

/// The records of an authority, each with its version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ModelStore {
    pub(crate) authority: Versioned<AuthorityRecord>,
    pub(crate) observed: StoreIdentity,
    pub(crate) sessions: BTreeMap<SessionId, Versioned<SessionRecord>>,
    pub(crate) leases: BTreeMap<ResourceName, Versioned<LeaseRecord>>,
    pub(crate) history: u64,
    granted: BTreeSet<GrantId>,
    next_version: u64,
    contract: Contract,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Versioned<T> {
    pub(crate) version: u64,
    pub(crate) record: T,
}

/// What the store does of what it must; a model leaves a clause out to show what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Contract {
    pub(crate) checks_versions: bool,
    pub(crate) checks_reliance: bool,
    /// A model has to stay finite: it counts grants only, and so notices *less* than a store that counts all rows.
    pub(crate) counts_every_row: bool,
}

impl Contract {
    pub(crate) const KEPT: Self = Self { checks_versions: true, checks_reliance: true, counts_every_row: false };
}

/// A version of a record that has changed since: no record ever has it.
pub(crate) const OUTDATED: Option<u64> = Some(u64::MAX);

/// What was read.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) view: View,
    authority: Option<u64>,
    caller: Option<u64>,
    lease: Option<u64>,
    holder: Option<u64>,
}

impl Read {
    /// The version under which a change may be made.
    pub(crate) fn expected(&self, change: &Change) -> Option<u64> {
        let session = |id: &SessionId| match (&self.view.caller, &self.view.holder) {
            (Some(caller), _) if caller.id == *id => self.caller,
            (_, Some(holder)) if holder.id == *id => self.holder,
            _ => None,
        };
        match change {
            Change::Authority(_) => self.authority,
            Change::Session(after) => session(&after.id),
            Change::DropSession(id) => session(id),
            Change::Lease(_) | Change::DropLease(_) => self.lease,
        }
    }
}

/// What one request came to, with each swap that it made.
pub(crate) struct Executed {
    pub(crate) answer: Result<Reply, Refusal>,
    pub(crate) swaps: Vec<Swap>,
}

impl ModelStore {
    pub(crate) fn new(contract: Contract, max_ttl: Ttl) -> Self {
        let identity = StoreIdentity::new("first").unwrap();
        Self {
            authority: Versioned { version: 0, record: AuthorityRecord::new(identity.clone(), max_ttl) },
            observed: identity,
            sessions: BTreeMap::new(),
            leases: BTreeMap::new(),
            history: 0,
            granted: BTreeSet::new(),
            next_version: 1,
            contract,
        }
    }

    /// The newest point of the history.
    pub(crate) fn seen(&self) -> Seen {
        Seen { incarnation: self.authority.record.incarnation, number: self.history }
    }

    pub(crate) fn session(&self, id: SessionId) -> Option<&SessionRecord> {
        self.sessions.get(&id).map(|versioned| &versioned.record)
    }

    pub(crate) fn lease(&self, resource: &ResourceName) -> Option<&LeaseRecord> {
        self.leases.get(resource).map(|versioned| &versioned.record)
    }

    /// The grants that stand on a session.
    pub(crate) fn grants(&self, session: SessionId) -> Vec<&LeaseRecord> {
        let standing = self.leases.values().map(|versioned| &versioned.record);
        standing.filter(|lease| lease.is_granted() && lease.session == session).collect()
    }

    /// Whether a session may still be relied on.
    pub(crate) fn is_live(&self, id: SessionId) -> bool {
        self.session(id).is_some_and(|session| {
            session.state == SessionState::Live && session.incarnation == self.authority.record.incarnation
        })
    }

    pub(crate) fn read(&self, keys: &Keys) -> Read {
        let caller = keys.session.and_then(|id| self.sessions.get(&id));
        let lease = keys.resource.as_ref().and_then(|resource| self.leases.get(resource));
        let holder = lease.and_then(|lease| self.sessions.get(&lease.record.session));
        let holdings: Holdings = keys
            .session
            .into_iter()
            .flat_map(|id| self.grants(id))
            .filter_map(|lease| lease.holding())
            .map(|(_, grant)| grant)
            .collect();
        Read {
            authority: Some(self.authority.version),
            caller: caller.map(|it| it.version),
            lease: lease.map(|it| it.version),
            holder: holder.map(|it| it.version),
            view: View {
                authority: self.authority.record.clone(),
                observed: self.observed.clone(),
                history: self.history,
                caller: caller.map(|it| it.record.clone()),
                holdings,
                lease: lease.map(|it| it.record.clone()),
                holder: holder.map(|it| it.record.clone()),
                grant_known: keys.grant.is_none_or(|grant| self.granted.contains(&grant)),
            },
        }
    }

    /// Makes the change, or returns false and makes none.
    pub(crate) fn swap(&mut self, swap: &Swap, expected: Option<u64>) -> bool {
        let present = match &swap.change {
            Change::Authority(_) => Some(self.authority.version),
            Change::Session(after) => self.sessions.get(&after.id).map(|it| it.version),
            Change::DropSession(id) => self.sessions.get(id).map(|it| it.version),
            Change::Lease(after) => self.leases.get(&after.resource).map(|it| it.version),
            Change::DropLease(resource) => self.leases.get(resource).map(|it| it.version),
        };
        if self.contract.checks_versions && present != expected {
            return false;
        }
        if self.contract.checks_reliance && swap.relies_on.is_some_and(|id| !self.is_live(id)) {
            return false;
        }
        let version = self.next_version;
        self.next_version += 1;
        match swap.change.clone() {
            Change::Authority(record) => self.authority = Versioned { version, record },
            Change::Session(record) => drop(self.sessions.insert(record.id, Versioned { version, record })),
            Change::DropSession(id) => drop(self.sessions.remove(&id)),
            Change::Lease(record) => {
                drop(self.leases.insert(record.resource.clone(), Versioned { version, record }));
            }
            Change::DropLease(resource) => drop(self.leases.remove(&resource)),
        }
        if matches!(swap.transition.event, Event::Granted | Event::Learnt) {
            self.granted.extend(swap.transition.grant);
        }
        if self.contract.counts_every_row
            || matches!(swap.transition.event, Event::Granted | Event::Quarantined | Event::Restored)
        {
            self.history += 1;
        }
        true
    }

    /// Reads, decides and swaps in one step, until there is an answer: for models in which no race is looked at.
    pub(crate) fn execute(&mut self, request: &Request, now: Instant<AuthorityClock>) -> Executed {
        let mut swaps = Vec::new();
        loop {
            let read = self.read(&request.keys());
            let decision = decide(&read.view, request, now);
            if let Some(swap) = decision.swap {
                let expected = read.expected(&swap.change);
                let made = self.swap(&swap, expected);
                assert!(made, "a swap right after its read was refused: {swap:?}");
                swaps.push(swap);
            }
            match decision.then {
                Then::Answer(answer) => {
                    self.renumber(&mut []);
                    return Executed { answer, swaps };
                }
                Then::Again => assert!(swaps.len() < 16, "{request:?} is decided for ever: {swaps:?}"),
            }
        }
    }

    /// Keeps a model finite. A version is only ever compared with the present one of its record, so all that counts is
    /// whether a swap that is under way is still up to date.
    pub(crate) fn renumber(&mut self, under_way: &mut [(&Swap, &mut Option<u64>)]) {
        for (swap, expected) in under_way.iter_mut() {
            let present = match &swap.change {
                Change::Authority(_) => Some(self.authority.version),
                Change::Session(after) => self.sessions.get(&after.id).map(|it| it.version),
                Change::DropSession(id) => self.sessions.get(id).map(|it| it.version),
                Change::Lease(after) => self.leases.get(&after.resource).map(|it| it.version),
                Change::DropLease(resource) => self.leases.get(resource).map(|it| it.version),
            };
            **expected = match (**expected == present, present) {
                (true, Some(_)) => Some(0),
                (true, None) => None,
                (false, _) => OUTDATED,
            };
        }
        self.authority.version = 0;
        self.sessions.values_mut().for_each(|it| it.version = 0);
        self.leases.values_mut().for_each(|it| it.version = 0);
        self.next_version = 1;
    }
}
