//! Many swaps as one transaction.

use super::document::{self, Charter};
use super::keys::Keyspace;
use super::known::{Known, Sight};
use super::message::{Compare, OPS_MAX, Op, Range, Txn};
use super::observed::Observed;
use super::writer::Job;
use crate::WallTime;
use crate::store::{StoreError, Version};
use std::collections::{BTreeMap, BTreeSet};
use tenure_core::SessionId;
use tenure_core::decide::{Change, Swap};
use tenure_core::record::{AuthorityRecord, Grant, Holdings, LeaseRecord, SessionRecord, SessionState};

/// What is to happen with a swap.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It goes with the others.
    Joined,
    /// What it was decided on is not as it was.
    Changed,
    /// These keys must be read first.
    Look(Vec<String>),
    /// It does not fit beside the others, and goes with the next ones.
    Later,
}

/// A transaction in the making. Every swap in it is judged alone, on what this process knows; the transaction compares
/// all of that.
#[derive(Debug)]
pub(super) struct Plan<'known> {
    known: &'known Known,
    observed: &'known Observed,
    charter_key: String,
    charter: Charter,
    space: Keyspace,
    compare: BTreeMap<String, Compare>,
    steps: Vec<Op>,
    bytes: usize,
    /// The head as it is known, when a row of the history is written.
    head: Option<(String, u64)>,
    rows: u64,
    holdings: BTreeMap<SessionId, Holdings>,
    grants: BTreeSet<String>,
    /// The records that are changed, by key.
    changed: BTreeSet<String>,
    relied: BTreeSet<SessionId>,
    ended: BTreeSet<SessionId>,
    /// Whether somebody wants to know how long the history is.
    tells_head: bool,
    /// Nothing more may join.
    is_full: bool,
}

/// A server takes 1.5 MiB; base64 makes a third more of it.
const BYTES_MAX: usize = 900_000;

/// What one swap adds to a plan.
#[derive(Default)]
struct Addition {
    compare: Vec<Compare>,
    steps: Vec<Op>,
    toggles: Vec<(SessionId, Grant)>,
    is_row: bool,
    grant: Option<String>,
}

/// What is wrong with a swap, or with what is known.
enum Wrong {
    Changed,
    Look(Vec<String>),
    Error(StoreError),
}

impl From<StoreError> for Wrong {
    fn from(error: StoreError) -> Self {
        Self::Error(error)
    }
}

impl<'known> Plan<'known> {
    pub(super) fn new(
        known: &'known Known,
        observed: &'known Observed,
        (charter_key, charter, changed): (String, Charter, u64),
        space: Keyspace,
    ) -> Self {
        // Whatever is done relies on the incarnation, and on which store this is.
        let compare = Compare::Changed(charter_key.clone(), changed);
        Self {
            known,
            observed,
            compare: BTreeMap::from([(charter_key.clone(), compare)]),
            charter_key,
            charter,
            space,
            steps: Vec::new(),
            bytes: 0,
            head: None,
            rows: 0,
            holdings: BTreeMap::new(),
            grants: BTreeSet::new(),
            changed: BTreeSet::new(),
            relied: BTreeSet::new(),
            ended: BTreeSet::new(),
            tells_head: false,
            is_full: false,
        }
    }

    /// Puts a swap to the others, if it may be made. After anything but `Joined` the plan is as it was.
    pub(super) fn join(&mut self, job: &Job) -> Result<Verdict, StoreError> {
        if self.is_full || self.is_in_the_way(job) {
            return Ok(Verdict::Later);
        }
        let addition = match self.judge(job) {
            Ok(addition) => addition,
            Err(Wrong::Changed) => return Ok(Verdict::Changed),
            Err(Wrong::Look(keys)) => return Ok(Verdict::Look(keys)),
            Err(Wrong::Error(error)) => return Err(error),
        };
        let bytes: usize = addition.steps.iter().map(size).sum();
        let steps = self.steps.len() + addition.steps.len() + self.holdings.len() + addition.toggles.len() + 4;
        let compares = self.compare.len() + addition.compare.len() + addition.toggles.len() + 1;
        let fits = steps <= OPS_MAX && compares <= OPS_MAX && self.bytes + bytes <= BYTES_MAX;
        if !fits && !self.changed.is_empty() {
            self.is_full = true;
            return Ok(Verdict::Later);
        }
        self.add(job, addition, bytes)
    }

    fn add(&mut self, job: &Job, addition: Addition, bytes: usize) -> Result<Verdict, StoreError> {
        let head_key = self.space.head();
        if addition.is_row && self.head.is_none() {
            let Some(head) = self.known.get(&head_key).and_then(|sight| sight.entry) else {
                return Ok(Verdict::Look(vec![head_key]));
            };
            let count = document::count_of(&head.value)?;
            // By its value, which no other state has: not even one with the same revision after a restore.
            self.compare.insert(head_key.clone(), Compare::Value(head_key, head.value.clone()));
            self.head = Some((head.value, count));
        }
        // Which of them are not known was looked up while judging.
        for (id, grant) in addition.toggles {
            let held = self.holdings.get(&id).copied();
            let (key, known) = self.holdings_of(id)?;
            let before = held.or(known.map(|(holdings, _)| holdings)).unwrap_or_default();
            self.holdings.insert(id, before.toggled(grant));
            self.compare.entry(key.clone()).or_insert(Compare::Changed(key, known.map_or(0, |(_, changed)| changed)));
        }
        for compare in addition.compare {
            self.compare.insert(compare.key().to_owned(), compare);
        }
        self.steps.extend(addition.steps);
        self.bytes += bytes;
        if let Some(grant) = addition.grant.filter(|grant| self.grants.insert(grant.clone())) {
            self.put(grant, String::new());
        }
        if addition.is_row {
            self.rows += 1;
            let number = self.head.as_ref().map_or(0, |(_, count)| *count) + self.rows;
            let transition = &job.swap.transition;
            self.put(self.space.row(number), document::row_to(WallTime::now(), transition)?);
            if let Some(resource) = &transition.resource {
                self.put(self.space.about(resource, number), String::new());
            }
        }
        self.tells_head |= job.is_renewal();
        self.changed.insert(self.record_key(&job.swap.change));
        self.relied.extend(job.swap.relies_on);
        match &job.swap.change {
            Change::Authority(_) => self.is_full = true,
            Change::Session(session) => drop(self.ended.insert(session.id)),
            Change::DropSession(id) => drop(self.ended.insert(*id)),
            Change::Lease(_) | Change::DropLease(_) => {}
        }
        Ok(Verdict::Joined)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changed.is_empty()
    }

    /// The transaction, with where it takes place.
    pub(super) fn into_txn(mut self) -> Result<(Txn, Keyspace), StoreError> {
        if let Some((_, count)) = &self.head {
            let head = document::head(count + self.rows)?;
            self.put(self.space.head(), head);
        } else if self.tells_head {
            self.steps.push(Op::Range(Range::one(&self.space.head())));
        }
        for (id, holdings) in std::mem::take(&mut self.holdings) {
            let key = self.space.holdings(id);
            if holdings == Holdings::default() {
                self.steps.push(Op::Delete { key });
            } else {
                self.put(key, document::holdings_to(holdings));
            }
        }
        // What stands there instead is read in the same step, so that a swap which failed is judged anew without
        // asking.
        let failure = self.compare.keys().map(|key| Op::Range(Range::one(key))).collect();
        Ok((Txn { compare: self.compare.into_values().collect(), success: self.steps, failure }, self.space))
    }

    fn put(&mut self, key: String, value: String) {
        self.steps.push(Op::Put { key, value, lease: None });
    }

    /// Whether the plan changes the same record, or what the swap relies on, or the other way round. In one transaction
    /// both would see the state before it.
    fn is_in_the_way(&self, job: &Job) -> bool {
        let session = match &job.swap.change {
            Change::Authority(_) if !self.changed.is_empty() => return true,
            Change::Session(session) => Some(session.id),
            Change::DropSession(id) => Some(*id),
            _ => None,
        };
        self.changed.contains(&self.record_key(&job.swap.change))
            || session.is_some_and(|id| self.relied.contains(&id))
            || job.swap.relies_on.is_some_and(|id| self.ended.contains(&id))
    }

    fn record_key(&self, change: &Change) -> String {
        match change {
            Change::Authority(_) => self.charter_key.clone(),
            Change::Session(session) => self.space.session(session.id),
            Change::DropSession(id) => self.space.session(*id),
            Change::Lease(lease) => self.space.lease(&lease.resource),
            Change::DropLease(resource) => self.space.lease(resource),
        }
    }

    fn judge(&self, job: &Job) -> Result<Addition, Wrong> {
        let Swap { change, relies_on, transition } = &job.swap;
        let mut addition = Addition { is_row: !job.is_renewal(), ..Addition::default() };
        if let Some(id) = relies_on {
            let (key, value) = (self.space.live(*id), self.charter.record.incarnation.to_string());
            // What is not known is hoped for: the comparison says what is.
            if let Some(sight) = self.known.get(&key)
                && sight.entry.as_ref().is_none_or(|entry| entry.value != value)
            {
                return Err(stale(&sight, job, key));
            }
            addition.compare.push(Compare::Value(key, value));
        }
        let key = self.record_key(change);
        let expected = job.expected.map_or(0, |version| version.0);
        let Some(sight) = self.known.get(&key) else { return Err(Wrong::Look(vec![key])) };
        if sight.entry.as_ref().map_or(0, |entry| entry.changed) != expected || job.expected == Some(Version(0)) {
            return Err(stale(&sight, job, key));
        }
        addition.compare.push(Compare::Changed(key.clone(), expected));
        let before = sight.entry.as_ref().map(|entry| entry.value.as_str());
        match change {
            Change::Authority(record) => self.authority(record, job, &mut addition)?,
            Change::Session(session) => self.session(session, job, &mut addition)?,
            Change::DropSession(id) => {
                let keys = [key, self.space.live(*id), self.space.alive(*id)];
                addition.steps.extend(keys.map(|key| Op::Delete { key }));
            }
            Change::Lease(lease) => {
                let before = before.map(document::lease_raw).transpose()?;
                let value = document::lease_to(lease, self.observed.clock())?;
                addition.steps.push(Op::Put { key, value, lease: None });
                self.lease(before.as_ref(), Some(lease), &mut addition);
            }
            Change::DropLease(_) => {
                let before = before.map(document::lease_raw).transpose()?;
                addition.steps.push(Op::Delete { key });
                self.lease(before.as_ref(), None, &mut addition);
            }
        }
        if let (Some(grant), true) = (transition.grant, addition.is_row) {
            let is_known = match (before, change) {
                (Some(before), Change::Lease(_)) => document::lease_raw(before)?.grant == grant,
                _ => false,
            };
            addition.grant = (!is_known).then(|| self.space.grant(grant));
        }
        let unknown = addition.toggles.iter().map(|(id, _)| self.space.holdings(*id));
        let unknown: Vec<String> = unknown.filter(|key| self.known.get(key).is_none()).collect();
        if unknown.is_empty() { Ok(addition) } else { Err(Wrong::Look(unknown)) }
    }

    fn authority(&self, record: &AuthorityRecord, job: &Job, addition: &mut Addition) -> Result<(), Wrong> {
        let now = self.observed.now()?;
        let charter = Charter::new(self.charter.part.clone(), record.clone(), now, job.lease.is_some());
        addition.steps.push(Op::Put { key: self.charter_key.clone(), value: charter.to_text()?, lease: None });
        if job.lease.is_some() {
            addition.steps.push(Op::Put { key: self.space.quarantine(), value: String::new(), lease: job.lease });
        }
        Ok(())
    }

    fn session(&self, session: &SessionRecord, job: &Job, addition: &mut Addition) -> Result<(), Wrong> {
        let (key, live, alive) =
            (self.space.session(session.id), self.space.live(session.id), self.space.alive(session.id));
        let is_live = session.state == SessionState::Live;
        let lease = job.lease.filter(|_| is_live);
        let value = document::session_to(session, lease)?;
        addition.steps.push(Op::Put { key, value, lease: None });
        if !is_live {
            addition.steps.extend([live, alive].map(|key| Op::Delete { key }));
            return Ok(());
        }
        if job.is_renewal() {
            // As it stands in this very step: an older one would hide a grant that was revoked.
            addition.steps.push(Op::Range(Range::one(&self.space.holdings(session.id))));
        } else {
            let value = session.incarnation.to_string();
            addition.steps.push(Op::Put { key: live, value, lease: None });
        }
        if job.is_new_lease && lease.is_some() {
            addition.steps.push(Op::Put { key: alive, value: String::new(), lease });
        }
        Ok(())
    }

    /// Takes the former grant out of its session's fingerprint and puts the new one into its own.
    fn lease(&self, before: Option<&LeaseRecord>, after: Option<&LeaseRecord>, addition: &mut Addition) {
        let (held, holds) = (before.and_then(LeaseRecord::holding), after.and_then(LeaseRecord::holding));
        if held == holds {
            return;
        }
        addition.toggles.extend(held.into_iter().chain(holds));
        let (held, holds) = (held.map(|(id, _)| id), holds.map(|(id, _)| id));
        if held == holds {
            return;
        }
        if let (Some(id), Some(before)) = (held, before) {
            addition.steps.push(Op::Delete { key: self.space.held(id, &before.resource) });
        }
        if let (Some(id), Some(after)) = (holds, after) {
            let key = self.space.held(id, &after.resource);
            addition.steps.push(Op::Put { key, value: String::new(), lease: None });
        }
    }

    fn holdings_of(&self, id: SessionId) -> Result<(String, Option<(Holdings, u64)>), StoreError> {
        let key = self.space.holdings(id);
        let entry = self.known.get(&key).and_then(|sight| sight.entry);
        let known = entry.map(|entry| Ok::<_, StoreError>((document::holdings_of(&entry.value)?, entry.changed)));
        Ok((key, known.transpose()?))
    }
}

/// What is known speaks against the swap: that is the truth if it was seen after the swap was asked for, or at least
/// not before anything that was seen by then.
fn stale(sight: &Sight, job: &Job, key: String) -> Wrong {
    if sight.at >= job.floor { Wrong::Changed } else { Wrong::Look(vec![key]) }
}

fn size(op: &Op) -> usize {
    match op {
        Op::Put { key, value, .. } => key.len() + value.len() + 64,
        Op::Delete { key } | Op::DeleteAll { prefix: key } => key.len() + 64,
        Op::Range(range) => range.key.len() + 64,
    }
}
