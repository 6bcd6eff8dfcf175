//! Writing: whatever waits goes into one transaction.

use super::alive;
use super::document::{self, Charter};
use super::fault::Fault;
use super::keys::Keyspace;
use super::message::{Answered, Entry, OPS_MAX, Op, Txn};
use super::plan::{Plan, Verdict};
use super::shared::Shared;
use crate::store::{After, RecallOutcome, Recalled, StoreError, SwapOutcome, Version};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenure_core::decide::{Change, Swap};
use tenure_core::record::{Event, Holdings, SessionState};
use tenure_core::{AuthorityClock, Instant};
use tokio::sync::oneshot;

/// What came of a swap, or why it was certainly not made.
type Made = Result<RecallOutcome, StoreError>;

/// Renewals write neither the history nor its head, so they need not wait for what does.
#[derive(Debug, Default)]
pub(super) struct Writes {
    steps: Mutex<Waiting>,
    renewals: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    queue: VecDeque<Job>,
    is_busy: bool,
}

/// A swap that waits.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) swap: Swap,
    pub(super) expected: Option<Version>,
    /// The highest revision that was seen when it was asked for: it was decided on nothing newer.
    pub(super) floor: u64,
    /// The lease of etcd that stands for the session, or for the quarantine.
    pub(super) lease: Option<i64>,
    /// Whether that lease has no key yet.
    pub(super) is_new_lease: bool,
    /// What else must hold, when it was decided on records from memory.
    remembered: Option<Remembered>,
    answer: oneshot::Sender<Made>,
}

/// The further conditions of a [`Recalled`].
#[derive(Debug)]
struct Remembered {
    authority: Version,
    valid_before: Option<Instant<AuthorityClock>>,
}

impl Job {
    pub(super) fn is_renewal(&self) -> bool {
        is_renewal(&self.swap)
    }

    /// Whether its further conditions hold now, under this version of the store's own record. A renewal that is made
    /// then counts from then.
    fn may_be_made(&mut self, authority: Version, now: Instant<AuthorityClock>) -> bool {
        if self.swap.made_before().is_some_and(|end| now.reached(&end)) {
            return false;
        }
        let Some(remembered) = &self.remembered else { return true };
        if remembered.authority != authority || remembered.valid_before.is_some_and(|deadline| now.reached(&deadline)) {
            return false;
        }
        let is_judged = remembered.valid_before.is_some();
        if let (true, Change::Session(session)) = (is_judged, &mut self.swap.change) {
            session.deadline = now.after(session.ttl.get());
        }
        true
    }
}

fn is_renewal(swap: &Swap) -> bool {
    let is_live = matches!(&swap.change, Change::Session(session) if session.state == SessionState::Live);
    is_live && swap.transition.event == Event::Renewed
}

/// So often a transaction is put together anew because somebody else was faster. Each time another one was made.
const ROUNDS_MAX: usize = 64;

/// Makes a swap, together with others that wait.
pub(super) async fn swap(
    shared: &Arc<Shared>,
    swap: Swap,
    expected: Option<Version>,
) -> Result<SwapOutcome, StoreError> {
    Ok(match put(shared, swap, expected, None).await? {
        RecallOutcome::Done(_) => SwapOutcome::Done,
        RecallOutcome::Changed => SwapOutcome::Changed,
        RecallOutcome::Unknown => SwapOutcome::Unknown,
    })
}

/// Makes a swap under further conditions.
pub(super) async fn swap_recalled(shared: &Arc<Shared>, recalled: Recalled) -> Made {
    let Recalled { swap, expected, authority, valid_before } = recalled;
    put(shared, swap, expected, Some(Remembered { authority, valid_before })).await
}

async fn put(shared: &Arc<Shared>, swap: Swap, expected: Option<Version>, remembered: Option<Remembered>) -> Made {
    let floor = shared.identity.highest();
    shared.space().await?;
    let lease = alive::before(shared, &swap, expected).await?;
    let is_new_lease = lease.is_some();
    let (answer, answered) = oneshot::channel();
    let renews = is_renewal(&swap);
    let job = Job { swap, expected, floor, lease, is_new_lease, remembered, answer };
    if shared.writes.put(renews, job) {
        let shared = Arc::clone(shared);
        tokio::spawn(async move { pump(&shared, renews).await });
    }
    // An error means that whoever wrote ended without a word.
    answered.await.unwrap_or(Ok(RecallOutcome::Unknown))
}

impl Writes {
    fn lane(&self, renews: bool) -> MutexGuard<'_, Waiting> {
        let lane = if renews { &self.renewals } else { &self.steps };
        lane.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody is at it yet, so that the caller must see to it.
    fn put(&self, renews: bool, job: Job) -> bool {
        let mut waiting = self.lane(renews);
        waiting.queue.push_back(job);
        !std::mem::replace(&mut waiting.is_busy, true)
    }

    fn take(&self, renews: bool) -> VecDeque<Job> {
        let mut waiting = self.lane(renews);
        let most = waiting.queue.len().min(OPS_MAX);
        let jobs: VecDeque<Job> = waiting.queue.drain(..most).collect();
        waiting.is_busy = !jobs.is_empty();
        jobs
    }
}

async fn pump(shared: &Arc<Shared>, renews: bool) {
    loop {
        let mut jobs = shared.writes.take(renews);
        if jobs.is_empty() {
            return;
        }
        if renews {
            alive::keep(shared, &mut jobs).await;
        }
        make(shared, jobs).await;
    }
}

/// Makes all of these, in as few transactions as they fit into.
async fn make(shared: &Arc<Shared>, mut jobs: VecDeque<Job>) {
    let mut rounds = 0;
    // So many go into one transaction at most. It shrinks when the server refuses one for what a single swap asks.
    let mut most = usize::MAX;
    while !jobs.is_empty() {
        rounds += 1;
        if rounds > ROUNDS_MAX {
            // They are decided anew; whoever asks has a bound of its own.
            return jobs.into_iter().for_each(|job| tell(job, Ok(RecallOutcome::Changed)));
        }
        let (draft, later) = match draft(shared, jobs, most).await {
            Ok(drafted) => drafted,
            Err(none_left) => {
                jobs = none_left;
                continue;
            }
        };
        let Draft { txn, space, now, taken } = draft;
        jobs = later;
        let before = shared.identity.highest();
        match shared.write(&txn).await {
            Ok(answered) => {
                if !shared.check(&answered, before) {
                    // Another store has answered. It had what this one had, or it would not have made anything.
                    let outcome = if answered.succeeded { RecallOutcome::Unknown } else { RecallOutcome::Changed };
                    taken.into_iter().for_each(|job| tell(job, Ok(outcome)));
                } else if answered.succeeded {
                    rounds = 0;
                    made(shared, Draft { txn, space, now, taken }, &answered);
                } else {
                    let keys: Vec<String> = txn.compare.iter().map(|compare| compare.key().to_owned()).collect();
                    shared.learn(&keys, answered);
                    taken.into_iter().rev().for_each(|job| jobs.push_front(job));
                }
            }
            Err(fault) if fault.is_without_lease() => {
                // It took too long: the records name none, and everybody watches for themselves.
                for mut job in taken.into_iter().rev() {
                    if job.is_new_lease {
                        job.lease = None;
                    }
                    jobs.push_front(job);
                }
            }
            Err(fault @ Fault::Said { .. }) if fault.is_certain() && taken.len() > 1 => {
                most = if fault.is_too_large() { taken.len() / 2 } else { 1 };
                taken.into_iter().rev().for_each(|job| jobs.push_front(job));
            }
            Err(fault) if fault.is_certain() => {
                let error = shared.error(fault);
                taken.into_iter().for_each(|job| tell(job, Err(error.clone())));
            }
            Err(fault) => {
                tracing::warn!(?fault, "the store cannot tell whether {} swaps were made", taken.len());
                taken.into_iter().for_each(|job| tell(job, Ok(RecallOutcome::Unknown)));
            }
        }
    }
}

/// A transaction, where it takes place, when it was judged, and what it makes.
struct Draft {
    txn: Txn,
    space: Keyspace,
    now: Instant<AuthorityClock>,
    taken: Vec<Job>,
}

/// Judges the swaps, and puts those that may be made into a transaction; the others are answered, or come later. `Err`:
/// there is no transaction yet, and these are left.
async fn draft(
    shared: &Arc<Shared>,
    mut jobs: VecDeque<Job>,
    most: usize,
) -> Result<(Draft, VecDeque<Job>), VecDeque<Job>> {
    let judged = match charter(shared).await {
        // Right before it is sent.
        Ok(charter) => shared.observed.now().map(|now| (charter, now)),
        Err(error) => Err(error),
    };
    let (charter, now) = match judged {
        Ok(judged) => judged,
        Err(error) => {
            jobs.into_iter().for_each(|job| tell(job, Err(error.clone())));
            return Err(VecDeque::new());
        }
    };
    let stands = shared.identity.stands(&charter.1.record);
    let space = shared.stands_in(&charter.1);
    let version = Version(charter.2);
    let mut plan = Plan::new(&shared.known, &shared.observed, charter, space);
    let (mut taken, mut later, mut look) = (Vec::new(), VecDeque::new(), BTreeSet::new());
    while let Some(mut job) = jobs.pop_front() {
        let is_right_store = stands || matches!(job.swap.change, Change::Authority(_));
        if !is_right_store || !job.may_be_made(version, now) {
            tell(job, Ok(RecallOutcome::Changed));
            continue;
        }
        if taken.len() >= most {
            later.push_back(job);
            continue;
        }
        match plan.join(&job) {
            Ok(Verdict::Joined) => taken.push(job),
            Ok(Verdict::Changed) => tell(job, Ok(RecallOutcome::Changed)),
            Ok(Verdict::Later) => later.push_back(job),
            Ok(Verdict::Look(keys)) => {
                look.extend(keys);
                later.push_back(job);
            }
            Err(error) => tell(job, Err(error)),
        }
    }
    if !look.is_empty() {
        // All together, so that what waits for the look goes with the others.
        taken.into_iter().rev().for_each(|job| later.push_front(job));
        let look: Vec<String> = look.into_iter().collect();
        for piece in look.chunks(OPS_MAX) {
            if let Err(error) = shared.look(piece.iter().cloned()).await {
                later.drain(..).for_each(|job| tell(job, Err(error.clone())));
            }
        }
        return Err(later);
    }
    if plan.is_empty() {
        return Err(later);
    }
    match plan.into_txn() {
        Ok((txn, space)) => Ok((Draft { txn, space, now, taken }, later)),
        Err(error) => {
            taken.into_iter().for_each(|job| tell(job, Err(error.clone())));
            Err(later)
        }
    }
}

/// The store's record as it is known, with its key and its revision.
async fn charter(shared: &Shared) -> Result<(String, Charter, u64), StoreError> {
    let key = shared.charter_key();
    let entry = match shared.known.get(&key).and_then(|sight| sight.entry) {
        Some(entry) => entry,
        None => {
            let facts = shared.look([key.clone()]).await?;
            facts.get(&key).cloned().ok_or_else(|| shared.missing())?
        }
    };
    Ok((key, Charter::of(&entry.value)?, entry.changed))
}

/// Takes down what was made, and tells it.
fn made(shared: &Shared, draft: Draft, answered: &Answered) {
    let revision = answered.revision;
    // What was read in the transaction, or written where it is told of.
    let mut stood: HashMap<&str, &str> = HashMap::new();
    for (at, op) in draft.txn.success.iter().enumerate() {
        match op {
            Op::Put { key, value, lease: None } if is_remembered(key) => {
                stood.insert(key, value);
                let entry = Entry { key: key.clone(), value: value.clone(), changed: revision };
                shared.known.saw(revision, key, Some(entry));
            }
            Op::Delete { key } => shared.known.saw(revision, key, None),
            Op::Range(range) => {
                let entry = answered.read.get(at).and_then(|read| read.first());
                stood.extend(entry.map(|entry| (range.key.as_str(), entry.value.as_str())));
                shared.known.saw(revision, &range.key, entry.cloned());
            }
            Op::Put { .. } | Op::DeleteAll { .. } => {}
        }
    }
    let head = stood.get(draft.space.head().as_str()).copied();
    // Only a change of the store's own record may write no row, and nobody asks it.
    let history = head.map_or(Ok(0), document::count_of);
    for job in draft.taken {
        let mut holdings = Ok(Holdings::default());
        match &job.swap.change {
            Change::Session(session) => {
                shared.observed.made(session, revision);
                if let Some(text) = stood.get(draft.space.holdings(session.id).as_str()) {
                    holdings = document::holdings_of(text);
                }
            }
            Change::Authority(record) => shared.observed.made_authority(record, draft.now, revision),
            Change::DropSession(_) | Change::Lease(_) | Change::DropLease(_) => {}
        }
        let outcome = match (&history, holdings) {
            (Ok(history), Ok(holdings)) => {
                let version = Version(revision);
                RecallOutcome::Done(After { version, now: draft.now, history: *history, holdings })
            }
            // Made, but how things stand cannot be told: whoever reads is told what is wrong.
            _ => RecallOutcome::Unknown,
        };
        tell(job, Ok(outcome));
    }
}

/// What no swap will look at again need not be kept.
fn is_remembered(key: &str) -> bool {
    !["/history/", "/about/", "/grant/", "/held/"].iter().any(|part| key.contains(part))
}

fn tell(job: Job, outcome: Made) {
    // Nobody waits any more when the future was dropped; the swap is made or not all the same.
    let _ = job.answer.send(outcome);
}

/// The lease of etcd that stands in a session's record.
pub(super) fn lease_of(value: &str) -> Option<i64> {
    document::session_of(value).ok().and_then(|(_, lease)| lease)
}
