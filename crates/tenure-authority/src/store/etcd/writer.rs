//! Writing: whatever waits goes into one transaction.

use super::alive;
use super::document::{self, Charter};
use super::fault::Fault;
use super::message::{Answered, OPS_MAX, Op, Txn};
use super::plan::{Plan, Verdict};
use super::shared::Shared;
use crate::store::{StoreError, SwapOutcome, Version};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenure_core::decide::{Change, Swap};
use tenure_core::record::{Event, SessionState};
use tokio::sync::oneshot;

/// What came of a swap, or why it was certainly not made.
pub(super) type Made = Result<SwapOutcome, StoreError>;

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
    answer: oneshot::Sender<Made>,
}

impl Job {
    pub(super) fn is_renewal(&self) -> bool {
        is_renewal(&self.swap)
    }
}

fn is_renewal(swap: &Swap) -> bool {
    let is_live = matches!(&swap.change, Change::Session(session) if session.state == SessionState::Live);
    is_live && swap.transition.event == Event::Renewed
}

/// So often a transaction is put together anew because somebody else was faster. Each time another one was made.
const ROUNDS_MAX: usize = 64;

/// Makes a swap, together with others that wait.
pub(super) async fn swap(shared: &Arc<Shared>, swap: Swap, expected: Option<Version>) -> Made {
    let floor = shared.identity.highest();
    shared.space().await?;
    let lease = alive::before(shared, &swap, expected).await?;
    let is_new_lease = lease.is_some();
    let (answer, answered) = oneshot::channel();
    let renews = is_renewal(&swap);
    let job = Job { swap, expected, floor, lease, is_new_lease, answer };
    if shared.writes.put(renews, job) {
        let shared = Arc::clone(shared);
        tokio::spawn(async move { pump(&shared, renews).await });
    }
    // An error means that whoever wrote ended without a word.
    answered.await.unwrap_or(Ok(SwapOutcome::Unknown))
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
            return jobs.into_iter().for_each(|job| tell(job, Ok(SwapOutcome::Changed)));
        }
        let (plan, later) = match draft(shared, jobs, most).await {
            Ok(drafted) => drafted,
            Err(none_left) => {
                jobs = none_left;
                continue;
            }
        };
        let (txn, taken) = plan;
        jobs = later;
        let before = shared.identity.highest();
        match shared.client.write(&txn).await {
            Ok(answered) => {
                if !shared.check(&answered, before) {
                    // Another store has answered. It had what this one had, or it would not have made anything.
                    let outcome = if answered.succeeded { SwapOutcome::Unknown } else { SwapOutcome::Changed };
                    taken.into_iter().for_each(|job| tell(job, Ok(outcome)));
                } else if answered.succeeded {
                    rounds = 0;
                    made(shared, &txn, &answered, taken);
                } else {
                    let keys: Vec<String> = txn.compare.iter().map(|compare| compare.key().to_owned()).collect();
                    shared.learn(&keys, answered);
                    taken.into_iter().rev().for_each(|job| jobs.push_front(job));
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
                taken.into_iter().for_each(|job| tell(job, Ok(SwapOutcome::Unknown)));
            }
        }
    }
}

type Drafted = ((Txn, Vec<Job>), VecDeque<Job>);

/// Judges the swaps, and puts those that may be made into a transaction; the others are answered, or come later. `Err`:
/// there is no transaction yet, and these are left.
async fn draft(shared: &Arc<Shared>, mut jobs: VecDeque<Job>, most: usize) -> Result<Drafted, VecDeque<Job>> {
    let charter = match charter(shared).await {
        Ok(charter) => charter,
        Err(error) => {
            jobs.into_iter().for_each(|job| tell(job, Err(error.clone())));
            return Err(VecDeque::new());
        }
    };
    let stands = shared.identity.stands(&charter.1.record.identity);
    let space = shared.stands_in(&charter.1);
    let mut plan = Plan::new(&shared.known, &shared.observed, charter, space);
    let (mut taken, mut later, mut look) = (Vec::new(), VecDeque::new(), BTreeSet::new());
    while let Some(job) = jobs.pop_front() {
        if !stands && !matches!(job.swap.change, Change::Authority(_)) {
            tell(job, Ok(SwapOutcome::Changed));
            continue;
        }
        if taken.len() >= most {
            later.push_back(job);
            continue;
        }
        match plan.join(&job) {
            Ok(Verdict::Joined) => taken.push(job),
            Ok(Verdict::Changed) => tell(job, Ok(SwapOutcome::Changed)),
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
        Ok(txn) => Ok(((txn, taken), later)),
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
fn made(shared: &Arc<Shared>, txn: &Txn, answered: &Answered, taken: Vec<Job>) {
    let revision = answered.revision;
    for op in &txn.success {
        match op {
            Op::Put { key, value, lease } if is_remembered(key) => {
                let entry = super::message::Entry { key: key.clone(), value: value.clone(), changed: revision };
                if lease.is_none() {
                    shared.known.saw(revision, key, Some(entry));
                }
            }
            Op::Delete { key } => shared.known.saw(revision, key, None),
            Op::Put { .. } | Op::DeleteAll { .. } | Op::Range(_) => {}
        }
    }
    for job in taken {
        match &job.swap.change {
            Change::Session(session) => shared.observed.made(session, revision),
            Change::Authority(record) => shared.observed.made_authority(record, revision),
            Change::DropSession(_) | Change::Lease(_) | Change::DropLease(_) => {}
        }
        tell(job, Ok(SwapOutcome::Done));
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
