//! Listings: in pieces, all of them as of one revision.

use super::document;
use super::fault::Fault;
use super::keys::{Keyspace, rest};
use super::message::{Entry, OPS_MAX, Range, Txn, end_of};
use super::reader;
use super::shared::{Facts, Shared};
use crate::store::{HistoryQuery, Listed, Order, Page, Recorded, StoreError};
use std::collections::{BTreeSet, HashSet};
use tenure_core::record::{LeaseRecord, SessionRecord, SessionState};
use tenure_core::{AuthorityClock, Instant, ResourceName, SessionId};

/// So many keys are read at once.
const PIECE: usize = 500;

/// The grants that stand on a session.
pub(super) async fn grants(shared: &Shared, id: SessionId) -> Result<Vec<LeaseRecord>, StoreError> {
    let view = Snapshot::take(shared).await?;
    let prefix = view.space.helds(id);
    let names = view.all(&prefix, true, usize::MAX).await?;
    let keys =
        names.iter().filter_map(|entry| rest(&entry.key, &prefix)).filter_map(|name| ResourceName::new(name).ok());
    let keys: Vec<String> = keys.map(|name| view.space.lease(&name)).collect();
    let mut found = Vec::with_capacity(keys.len());
    for piece in keys.chunks(OPS_MAX) {
        for entry in view.each(piece).await?.into_iter().flatten() {
            let lease = document::lease_of(&entry.value, shared.observed.clock(), view.now()?)?;
            found.extend(lease.holding().is_some_and(|(session, _)| session == id).then_some(lease));
        }
    }
    Ok(found)
}

/// The resources of a page, each with its session.
pub(super) async fn leases(shared: &Shared, page: Page<ResourceName>) -> Result<Vec<Listed>, StoreError> {
    let view = Snapshot::take(shared).await?;
    let prefix = view.space.leases();
    // Right behind that one.
    let from = page.after.map_or_else(|| prefix.clone(), |after| format!("{}\0", view.space.lease(&after)));
    let entries = view.range(from, end_of(&prefix), false, page.limit).await?;
    let now = view.now()?;
    let leases = entries.iter().map(|entry| document::lease_of(&entry.value, shared.observed.clock(), now));
    let leases: Vec<LeaseRecord> = leases.collect::<Result<_, _>>()?;
    let ids: BTreeSet<SessionId> = leases.iter().map(|lease| lease.session).collect();
    let sessions = view.sessions(&ids.into_iter().collect::<Vec<_>>()).await?;
    let now = view.now()?;
    let listed = |lease: LeaseRecord| {
        let holder = sessions.iter().find(|session| session.id == lease.session).cloned();
        Listed { lease, holder, now }
    };
    Ok(leases.into_iter().map(listed).collect())
}

/// The rows that a query asks for.
pub(super) async fn history(shared: &Shared, query: HistoryQuery) -> Result<Vec<Recorded>, StoreError> {
    let view = Snapshot::take(shared).await?;
    // The numbers have no gaps, so that a piece from either end is a span of them.
    let (first, end) = match (query.order, query.after) {
        (_, None) => (1, view.count + 1),
        (Order::OldestFirst, Some(after)) => (after.saturating_add(1), view.count + 1),
        (Order::NewestFirst, Some(after)) => (1, after.min(view.count + 1)),
    };
    let limit = u64::try_from(query.limit).unwrap_or(u64::MAX);
    let mut rows = match &query.resource {
        None => {
            let (first, end) = match query.order {
                Order::OldestFirst => (first, end.min(first.saturating_add(limit))),
                Order::NewestFirst => (first.max(end.saturating_sub(limit)), end),
            };
            let entries = if first < end {
                view.range(view.space.row(first), view.space.row(end), false, usize::MAX).await?
            } else {
                Vec::new()
            };
            (first..end)
                .zip(entries)
                .map(|(number, entry)| document::row_of(number, &entry.value))
                .collect::<Result<_, _>>()?
        }
        Some(resource) if first < end => {
            let (from, to) = (view.space.about(resource, first), view.space.about(resource, end));
            let most = if query.order == Order::OldestFirst { query.limit } else { usize::MAX };
            let index = view.range(from, to, true, most).await?;
            let prefix = view.space.abouts(resource);
            let numbers = index.iter().filter_map(|entry| rest(&entry.key, &prefix)?.parse().ok());
            let mut numbers: Vec<u64> = numbers.collect();
            if query.order == Order::NewestFirst {
                numbers.drain(..numbers.len().saturating_sub(query.limit));
            }
            view.rows(&numbers).await?
        }
        Some(_) => Vec::new(),
    };
    if query.order == Order::NewestFirst {
        rows.reverse();
    }
    rows.truncate(query.limit);
    Ok(rows)
}

/// The sessions that a sweep looks at.
pub(super) async fn idle_sessions(shared: &Shared, limit: usize) -> Result<Vec<SessionId>, StoreError> {
    let view = Snapshot::take(shared).await?;
    let prefix = view.space.alives();
    let alive = if shared.trusts_keys() { view.all(&prefix, true, usize::MAX).await? } else { Vec::new() };
    let alive: HashSet<&str> = alive.iter().filter_map(|entry| rest(&entry.key, &prefix)).collect();
    let entries = view.all(&view.space.sessions(), false, usize::MAX).await?;
    let now = view.now()?;
    // First those that nobody has ended yet, then those that ended longest ago. The order of the ends is that of their
    // revisions: when others saw them is nobody's business.
    let mut idle = Vec::new();
    for entry in &entries {
        let (record, lease) = document::session_of(&entry.value)?;
        let is_gone = lease.is_some() && shared.trusts_keys() && !alive.contains(record.id.to_string().as_str());
        let record = shared.observed.session(record, entry.changed, is_gone, now);
        let since = match record.state {
            SessionState::Live if record.incarnation != view.incarnation => Some((0, record.deadline.as_nanos())),
            SessionState::Live => now.reached(&record.deadline).then_some((0, record.deadline.as_nanos())),
            SessionState::Ended { .. } => Some((1, entry.changed)),
        };
        idle.extend(since.map(|since| (since, record.id)));
    }
    idle.sort_unstable();
    idle.truncate(limit);
    Ok(idle.into_iter().map(|(_, id)| id).collect())
}

/// The store as it was at one revision.
struct Snapshot<'store> {
    shared: &'store Shared,
    space: Keyspace,
    revision: u64,
    count: u64,
    incarnation: u64,
}

impl<'store> Snapshot<'store> {
    async fn take(shared: &'store Shared) -> Result<Self, StoreError> {
        let mut space = shared.space().await?;
        // A second round, when the store has moved to another part.
        for _ in 0..8 {
            let facts = shared.look([shared.charter_key(), space.head()]).await?;
            let charter = facts.get(&shared.charter_key()).ok_or_else(|| shared.missing())?;
            let charter = document::Charter::of(&charter.value)?;
            let stands = shared.stands_in(&charter);
            if stands != space {
                space = stands;
                continue;
            }
            let count = document::count_of(facts.get(&space.head()).map_or("", |entry| entry.value.as_str()))?;
            let Facts { revision, .. } = *facts;
            return Ok(Self { shared, space, revision, count, incarnation: charter.record.incarnation });
        }
        Err(StoreError::Unavailable("the store moves too often: try again".to_owned()))
    }

    fn now(&self) -> Result<Instant<AuthorityClock>, StoreError> {
        self.shared.observed.now()
    }

    async fn all(&self, prefix: &str, keys_only: bool, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.range(prefix.to_owned(), end_of(prefix), keys_only, limit).await
    }

    async fn range(
        &self,
        mut from: String,
        end: String,
        keys_only: bool,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let mut found = Vec::new();
        while found.len() < limit {
            let most = PIECE.min(limit - found.len());
            let range = Range { key: from, end: Some(end.clone()), limit: most, revision: self.revision, keys_only };
            let piece = self.read([range]).await?.pop().unwrap_or_default();
            let is_last = piece.len() < most;
            from = piece.last().map(|last| format!("{}\0", last.key)).unwrap_or_default();
            found.extend(piece);
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    /// What stands at each key.
    async fn each(&self, keys: &[String]) -> Result<Vec<Option<Entry>>, StoreError> {
        let one = |key: &String| Range { revision: self.revision, ..Range::one(key) };
        let read = self.read(keys.iter().map(one)).await?;
        Ok(read.into_iter().map(|entries| entries.into_iter().next()).collect())
    }

    async fn rows(&self, numbers: &[u64]) -> Result<Vec<Recorded>, StoreError> {
        let mut rows = Vec::with_capacity(numbers.len());
        for piece in numbers.chunks(OPS_MAX) {
            let keys: Vec<String> = piece.iter().map(|number| self.space.row(*number)).collect();
            for (number, entry) in piece.iter().zip(self.each(&keys).await?) {
                let entry = entry.ok_or_else(|| StoreError::Corrupt(format!("row {number} of the history is gone")))?;
                rows.push(document::row_of(*number, &entry.value)?);
            }
        }
        Ok(rows)
    }

    async fn sessions(&self, ids: &[SessionId]) -> Result<Vec<SessionRecord>, StoreError> {
        let mut found = Vec::new();
        for piece in ids.chunks(OPS_MAX / 2) {
            let keys = piece.iter().flat_map(|id| [self.space.session(*id), self.space.alive(*id)]);
            let keys: Vec<String> = keys.collect();
            let entries = self.each(&keys).await?;
            let facts = Facts::of(self.revision, entries);
            for id in piece {
                let session = reader::session(self.shared, &self.space, &facts, *id, self.now()?)?;
                found.extend(session.map(|(_, session)| session));
            }
        }
        Ok(found)
    }

    async fn read(&self, ranges: impl IntoIterator<Item = Range>) -> Result<Vec<Vec<Entry>>, StoreError> {
        match self.shared.read(&Txn::reading(ranges)).await {
            Ok(answered) => Ok(answered.read),
            Err(fault) if fault.is_compacted() => Err(Self::overtaken(&fault)),
            Err(fault) => Err(self.shared.error(fault)),
        }
    }

    fn overtaken(fault: &Fault) -> StoreError {
        StoreError::Unavailable(format!("the store was compacted while it was being listed ({fault:?}): try again"))
    }
}
