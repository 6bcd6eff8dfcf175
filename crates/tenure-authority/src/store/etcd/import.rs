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
use tenure_core::record::Transition;
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
    if document::count_of(&head.value)? > 0 || !shared.identity.stands(&own.record.identity) {
        return Ok(SwapOutcome::Changed);
    }
    let part = format!("{:032x}", crate::random_bits()?);
    let aside = Keyspace::new(&shared.client.settings().name, &part);
    let record = content.authority(&own.record, now);
    let quarantine = record.quarantined_until.map(|until| until.since(&now));
    let lease = match quarantine.filter(|_| shared.observed.is_real()) {
        Some(span) => alive::grant(shared, span).await,
        None => None,
    };
    let charter = Charter { part, quarantine, record: record.clone(), is_marked: lease.is_some() };
    let mut moved = Txn {
        compare: vec![
            Compare::Changed(entry.key.clone(), entry.changed),
            Compare::Value(head.key.clone(), head.value.clone()),
        ],
        success: vec![
            Op::Put { key: shared.charter_key(), value: charter.to_text()?, lease: None },
            Op::DeleteAll { prefix: space.all() },
        ],
        failure: Vec::new(),
    };
    if lease.is_some() {
        moved.success.push(Op::Put { key: aside.quarantine(), value: String::new(), lease });
    }
    let outcome = match fill(shared, &aside, content, now).await {
        Ok(()) => {
            let before = shared.identity.highest();
            match shared.client.write(&moved).await {
                Ok(answered) if !shared.check(&answered, before) => Ok(SwapOutcome::Unknown),
                Ok(answered) if answered.succeeded => {
                    shared.observed.made_authority(&record, answered.revision);
                    Ok(SwapOutcome::Done)
                }
                Ok(_) => Ok(SwapOutcome::Changed),
                Err(fault) if fault.is_certain() => Err(shared.error(fault)),
                Err(_) => Ok(SwapOutcome::Unknown),
            }
        }
        Err(error) => Err(error),
    };
    shared.known.forget();
    if matches!(outcome, Ok(SwapOutcome::Changed) | Err(_)) {
        // What was written aside is nobody's. When this fails as well, it stays there and harms nobody.
        let remove = Txn { success: vec![Op::DeleteAll { prefix: aside.all() }], ..Txn::default() };
        let _ = shared.client.write(&remove).await;
    }
    outcome
}

async fn fill(
    shared: &Shared,
    aside: &Keyspace,
    content: &Import,
    now: Instant<AuthorityClock>,
) -> Result<(), StoreError> {
    let mut batch = Batch { shared, steps: Vec::new(), bytes: 0, grants: BTreeSet::new() };
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

/// Writes to keys that nobody else knows, so that it may be repeated.
struct Batch<'store> {
    shared: &'store Shared,
    steps: Vec<Op>,
    bytes: usize,
    grants: BTreeSet<GrantId>,
}

impl Batch<'_> {
    async fn row(&mut self, aside: &Keyspace, number: u64, wall: WallTime, row: &Transition) -> Result<(), StoreError> {
        self.put(aside.row(number), document::row_to(wall, row)?).await?;
        if let Some(resource) = &row.resource {
            self.put(aside.about(resource, number), String::new()).await?;
        }
        match row.grant.filter(|grant| self.grants.insert(*grant)) {
            Some(grant) => self.put(aside.grant(grant), String::new()).await,
            None => Ok(()),
        }
    }

    async fn put(&mut self, key: String, value: String) -> Result<(), StoreError> {
        let bytes = key.len() + value.len() + 64;
        if self.steps.len() == OPS_MAX || self.bytes + bytes > BYTES_MAX {
            self.send().await?;
        }
        self.bytes += bytes;
        self.steps.push(Op::Put { key, value, lease: None });
        Ok(())
    }

    async fn send(&mut self) -> Result<(), StoreError> {
        self.bytes = 0;
        let txn = Txn { success: std::mem::take(&mut self.steps), ..Txn::default() };
        let answered = self.shared.client.ask("/v3/kv/txn", &txn.body()).await;
        answered.map(|_| ()).map_err(|fault| self.shared.error(fault))
    }
}
