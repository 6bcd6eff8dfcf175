//! Reads: those that come together share a round trip.

use super::document::{self, Charter};
use super::keys::Keyspace;
use super::message::OPS_MAX;
use super::shared::{Facts, Shared};
use crate::store::{Read, StoreError, Version, Versions};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use tenure_core::decide::{Keys, View};
use tenure_core::record::SessionRecord;
use tenure_core::{AuthorityClock, Instant, SessionId};
use tokio::sync::oneshot;

/// The reads that wait for the next round trip.
#[derive(Debug, Default)]
pub(super) struct Reads(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    queue: VecDeque<Job>,
    is_busy: bool,
}

#[derive(Debug)]
struct Job {
    keys: Vec<String>,
    answer: oneshot::Sender<Result<Arc<Facts>, StoreError>>,
}

/// So often a read is begun anew because what it needs has moved.
const ROUNDS_MAX: usize = 32;

/// Reads what a request needs.
pub(super) async fn read(shared: &Arc<Shared>, keys: &Keys) -> Result<Read, StoreError> {
    let mut space = shared.space().await?;
    let mut holder = keys.resource.as_ref().and_then(|resource| {
        let known = shared.known.get(&space.lease(resource))?.entry?;
        document::holder_of(&known.value)
    });
    let mut with_quarantine =
        shared.known.get(&shared.charter_key()).and_then(|sight| sight.entry).is_some_and(|entry| {
            // What cannot be read is told of below.
            Charter::of(&entry.value).is_ok_and(|charter| is_to_be_looked_for(shared, &charter))
        });
    for _ in 0..ROUNDS_MAX {
        let facts = facts(shared, wanted(shared, &space, keys, holder, with_quarantine)).await?;
        // After the records.
        let now = shared.observed.now()?;
        let charter_entry = facts.get(&shared.charter_key()).ok_or_else(|| shared.missing())?;
        let charter = Charter::of(&charter_entry.value)?;
        let stands = shared.stands_in(&charter);
        if stands != space {
            space = stands;
            continue;
        }
        if is_to_be_looked_for(shared, &charter) && !with_quarantine {
            with_quarantine = true;
            continue;
        }
        let is_over = is_to_be_looked_for(shared, &charter) && facts.get(&space.quarantine()).is_none();
        let lease = keys.resource.as_ref().and_then(|resource| facts.get(&space.lease(resource)));
        let lease = lease.map(|entry| {
            Ok::<_, StoreError>((entry.changed, document::lease_of(&entry.value, shared.observed.clock(), now)?))
        });
        let lease = lease.transpose()?;
        if let Some((_, lease)) = &lease
            && holder != Some(lease.session)
            && keys.session != Some(lease.session)
        {
            // Another one than was guessed: all is read again, so that it is of one moment.
            holder = Some(lease.session);
            continue;
        }
        let session = |id| session(shared, &space, &facts, id, now);
        let caller = keys.session.map(session).transpose()?.flatten().unzip();
        let holder = lease.as_ref().map(|(_, lease)| session(lease.session)).transpose()?.flatten().unzip();
        let holdings = keys.session.and_then(|id| facts.get(&space.holdings(id)));
        let authority = shared.observed.authority(&charter, charter_entry.changed, is_over, now);
        let observed = shared.identity.observed(facts.cluster, &authority);
        let (lease_version, lease) = lease.unzip();
        return Ok(Read {
            view: View {
                observed: observed.ok_or_else(|| StoreError::Corrupt("the cluster has no id".to_owned()))?,
                authority,
                history: head_of(&space, &facts)?,
                caller: caller.1,
                holdings: holdings.map(|entry| document::holdings_of(&entry.value)).transpose()?.unwrap_or_default(),
                lease,
                holder: holder.1,
                grant_known: keys.grant.is_none_or(|grant| facts.get(&space.grant(grant)).is_some()),
            },
            versions: Versions {
                authority: Some(Version(charter_entry.changed)),
                caller: caller.0.map(Version),
                lease: lease_version.map(Version),
                holder: holder.0.map(Version),
            },
            now,
        });
    }
    Err(StoreError::Unavailable("what was to be read changes hands too often: try again".to_owned()))
}

/// Whether the key of the quarantine says when it is over.
fn is_to_be_looked_for(shared: &Shared, charter: &Charter) -> bool {
    charter.is_marked && charter.quarantine.is_some() && shared.observed.is_real()
}

fn wanted(
    shared: &Shared,
    space: &Keyspace,
    keys: &Keys,
    holder: Option<SessionId>,
    with_quarantine: bool,
) -> Vec<String> {
    let mut wanted = vec![shared.charter_key(), space.head()];
    let mut session = |id: SessionId| {
        wanted.push(space.session(id));
        if shared.trusts_keys() {
            wanted.push(space.alive(id));
        }
    };
    keys.session.into_iter().chain(holder.filter(|holder| keys.session != Some(*holder))).for_each(&mut session);
    wanted.extend(keys.session.map(|id| space.holdings(id)));
    wanted.extend(keys.resource.as_ref().map(|resource| space.lease(resource)));
    wanted.extend(keys.grant.map(|grant| space.grant(grant)));
    wanted.extend(with_quarantine.then(|| space.quarantine()));
    wanted
}

fn head_of(space: &Keyspace, facts: &Facts) -> Result<u64, StoreError> {
    let head = facts.get(&space.head());
    document::count_of(head.map_or("", |entry| entry.value.as_str()))
}

/// A session with its version, as it stands for this process.
pub(super) fn session(
    shared: &Shared,
    space: &Keyspace,
    facts: &Facts,
    id: SessionId,
    now: Instant<AuthorityClock>,
) -> Result<Option<(u64, SessionRecord)>, StoreError> {
    let Some(entry) = facts.get(&space.session(id)) else { return Ok(None) };
    let (record, lease) = document::session_of(&entry.value)?;
    let is_gone = lease.is_some() && shared.trusts_keys() && facts.get(&space.alive(id)).is_none();
    Ok(Some((entry.changed, shared.observed.session(record, entry.changed, is_gone, now))))
}

/// The keys as they stand at a moment after this call.
async fn facts(shared: &Arc<Shared>, keys: Vec<String>) -> Result<Arc<Facts>, StoreError> {
    let (answer, answered) = oneshot::channel();
    if shared.reads.put(Job { keys, answer }) {
        let shared = Arc::clone(shared);
        tokio::spawn(async move { pump(&shared).await });
    }
    let gone = || StoreError::Unavailable("the reading task of this store has ended: connect again".to_owned());
    answered.await.map_err(|_| gone())?
}

/// Reads what waits, until nothing does.
async fn pump(shared: &Shared) {
    while let Some((keys, jobs)) = shared.reads.take() {
        let facts = shared.look(keys).await;
        for job in jobs {
            // Nobody waits any more when the future was dropped.
            let _ = job.answer.send(facts.clone());
        }
    }
}

impl Reads {
    /// Whether nobody is at it yet, so that the caller must see to it.
    fn put(&self, job: Job) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.queue.push_back(job);
        !std::mem::replace(&mut waiting.is_busy, true)
    }

    /// As many as fit into one transaction. `None`: there is none, and whoever asked is not at it any more.
    fn take(&self) -> Option<(BTreeSet<String>, Vec<Job>)> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut keys, mut jobs) = (BTreeSet::new(), Vec::new());
        while let Some(job) = waiting.queue.pop_front() {
            if !jobs.is_empty() && keys.len() + job.keys.len() > OPS_MAX {
                waiting.queue.push_front(job);
                break;
            }
            keys.extend(job.keys.iter().cloned());
            jobs.push(job);
        }
        waiting.is_busy = !jobs.is_empty();
        (!jobs.is_empty()).then_some((keys, jobs))
    }
}
