//! Taking over what another store held.
//!
//! It does not fit into one transaction. So it is written beside the store, into a part of its own, where nobody looks;
//! then one transaction moves the store there, provided that its history is still empty.

use super::alive;
use super::document::{self, Charter};
use super::keys::Keyspace;
use super::message::{Compare, OPS_MAX, Op, Txn};
use super::shared::Shared;
use crate::WallTime;
use crate::store::{Import, StoreError, SwapOutcome};
use std::collections::BTreeSet;
use tenure_core::record::{AuthorityRecord, Transition};
use tenure_core::{AuthorityClock, GrantId, Instant};

/// A server takes 1.5 MiB; base64 makes a third more of it.
const BYTES_MAX: usize = 700_000;

pub(super) async fn import(shared: &Shared, content: &Import) -> Result<SwapOutcome, StoreError> {
    let space = shared.space().await?;
    let facts = shared.look([shared.charter_key(), space.head()]).await?;
    let now = shared.observed.now()?;
    let (Some(entry), Some(head)) = (facts.get(&shared.charter_key()), facts.get(&space.head())) else {
        return Ok(SwapOutcome::Changed);
    };
    let own = Charter::of(&entry.value)?;
    if document::count_of(&head.value)? > 0 || !shared.identity.stands(&own.record) {
        return Ok(SwapOutcome::Changed);
    }
    let part = format!("{:032x}", crate::random_bits()?);
    let aside = Keyspace::new(&shared.client.settings().name, &part);
    // All that is written compares it: what comes late finds the store moved, and is not made.
    let stays = Compare::Changed(entry.key.clone(), entry.changed);
    let outcome = match fill(shared, &aside, &stays, content, now).await {
        Ok(()) => {
            let record = content.authority(&own.record, now);
            let compare = vec![stays.clone(), Compare::Value(head.key.clone(), head.value.clone())];
            move_there(shared, compare, &space, &part, record).await
        }
        Err(Stop::Changed) => Ok(SwapOutcome::Changed),
        Err(Stop::Error(error)) => Err(error),
    };
    shared.known.forget();
    if matches!(outcome, Ok(SwapOutcome::Changed) | Err(_)) {
        // What was written aside is nobody's. When this is not made, it stays there and harms nobody.
        let remove =
            Txn { compare: vec![stays], success: vec![Op::DeleteAll { prefix: aside.all() }], failure: Vec::new() };
        let _ = shared.client.write(&remove).await;
    }
    outcome
}

/// Moves the store to where all is written.
async fn move_there(
    shared: &Shared,
    compare: Vec<Compare>,
    space: &Keyspace,
    part: &str,
    record: AuthorityRecord,
) -> Result<SwapOutcome, StoreError> {
    let aside = Keyspace::new(&shared.client.settings().name, part);
    // What is left of the quarantine after all the writing.
    let mut now = shared.observed.now()?;
    let left = record.quarantined_until.map(|until| until.since(&now)).filter(|left| !left.is_zero());
    let mut lease = match left {
        Some(left) => alive::grant_quarantine(shared, left).await,
        None => None,
    };
    loop {
        let charter = Charter::new(part.to_owned(), record.clone(), now, lease.is_some());
        let mut success = vec![
            Op::Put { key: shared.charter_key(), value: charter.to_text()?, lease: None },
            Op::DeleteAll { prefix: space.all() },
        ];
        if lease.is_some() {
            success.push(Op::Put { key: aside.quarantine(), value: String::new(), lease });
        }
        let moved = Txn { compare: compare.clone(), success, failure: Vec::new() };
        let before = shared.identity.highest();
        return match shared.write(&moved).await {
            Ok(answered) if !shared.check(&answered, before) => Ok(SwapOutcome::Unknown),
            Ok(answered) if answered.succeeded => {
                shared.observed.made_authority(&record, now, answered.revision);
                Ok(SwapOutcome::Done)
            }
            Ok(_) => Ok(SwapOutcome::Changed),
            Err(fault) if fault.is_without_lease() && lease.is_some() => {
                // Everybody has to watch for themselves.
                lease = None;
                now = shared.observed.now()?;
                continue;
            }
            Err(fault) if fault.is_certain() => Err(shared.error(fault)),
            Err(_) => Ok(SwapOutcome::Unknown),
        };
    }
}

/// Why the filling ended.
enum Stop {
    /// The store is not as it was.
    Changed,
    Error(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Error(error)
    }
}

async fn fill(
    shared: &Shared,
    aside: &Keyspace,
    stays: &Compare,
    content: &Import,
    now: Instant<AuthorityClock>,
) -> Result<(), Stop> {
    let mut batch = Batch { shared, stays, steps: Vec::new(), bytes: 0, grants: BTreeSet::new() };
    for row in content.rows() {
        batch.row(aside, row.number, row.wall, &row.transition).await?;
    }
    for lease in content.leases(now) {
        let value = document::lease_to(&lease, shared.observed.clock())?;
        batch.put(aside.lease(&lease.resource), value).await?;
    }
    let last = content.rows().len() as u64 + 1;
    batch.row(aside, last, WallTime::now(), &content.transition(now)).await?;
    batch.put(aside.head(), document::head(last)?).await?;
    batch.send().await
}

/// Writes to keys that nobody else knows, as long as the store stays where it is.
struct Batch<'store> {
    shared: &'store Shared,
    stays: &'store Compare,
    steps: Vec<Op>,
    bytes: usize,
    grants: BTreeSet<GrantId>,
}

impl Batch<'_> {
    async fn row(&mut self, aside: &Keyspace, number: u64, wall: WallTime, row: &Transition) -> Result<(), Stop> {
        self.put(aside.row(number), document::row_to(wall, row)?).await?;
        if let Some(resource) = &row.resource {
            self.put(aside.about(resource, number), String::new()).await?;
        }
        match row.grant.filter(|grant| self.grants.insert(*grant)) {
            Some(grant) => self.put(aside.grant(grant), String::new()).await,
            None => Ok(()),
        }
    }

    async fn put(&mut self, key: String, value: String) -> Result<(), Stop> {
        let bytes = key.len() + value.len() + 64;
        if self.steps.len() == OPS_MAX || self.bytes + bytes > BYTES_MAX {
            self.send().await?;
        }
        self.bytes += bytes;
        self.steps.push(Op::Put { key, value, lease: None });
        Ok(())
    }

    async fn send(&mut self) -> Result<(), Stop> {
        self.bytes = 0;
        let success = std::mem::take(&mut self.steps);
        let txn = Txn { compare: vec![self.stays.clone()], success, failure: Vec::new() };
        let before = self.shared.identity.highest();
        // It may be repeated: the store has not moved, so nobody reads what it writes.
        let answered = self.shared.client.ask_txn(&txn).await.map_err(|fault| self.shared.error(fault))?;
        if self.shared.check(&answered, before) && answered.succeeded { Ok(()) } else { Err(Stop::Changed) }
    }
}
