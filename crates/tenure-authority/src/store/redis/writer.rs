//! Changes. Those that come while a script is under way share the next one, and so one saving; each is judged alone.

use super::fault::Fault;
use super::replicas;
use super::row::{self, Asked, Conditions, Damage, number};
use super::script::{IMPORT, SWAP};
use super::server::{Answer, Server};
use crate::StoreError;
use crate::store::home::{Home, HomeGone};
use crate::store::json::authority_to;
use crate::store::{After, Import, RecallOutcome, Recalled, SwapOutcome, Version};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::decide::{Keys, Swap};
use tokio::sync::oneshot;

/// Where changes wait.
#[derive(Debug)]
pub(super) struct Writer {
    server: Arc<Server>,
    desk: Arc<Desk>,
}

#[derive(Debug, Default)]
struct Desk(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    /// Whether a task is at it.
    is_busy: bool,
}

#[derive(Debug)]
struct Job {
    asked: Asked,
    answer: oneshot::Sender<Result<RecallOutcome, StoreError>>,
}

/// So many share a script at most: a server does nothing else meanwhile.
const BATCH_MAX: usize = 256;

/// How long an import may take: it is one script, however much it is.
const IMPORT_PATIENCE: Duration = Duration::from_mins(2);

/// How often an import is tried while the store's record changes under it.
const ROUNDS_MAX: usize = 8;

impl Writer {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self { server, desk: Arc::default() }
    }

    pub(super) async fn swap(
        &self,
        home: &Home,
        swap: Swap,
        expected: Option<Version>,
    ) -> Result<SwapOutcome, StoreError> {
        let conditions = Conditions { expected, ..Conditions::default() };
        Ok(match self.put(home, &swap, &conditions).await? {
            RecallOutcome::Done(_) => SwapOutcome::Done,
            RecallOutcome::Changed => SwapOutcome::Changed,
            RecallOutcome::Unknown => SwapOutcome::Unknown,
        })
    }

    pub(super) async fn recalled(&self, home: &Home, recalled: Recalled) -> Result<RecallOutcome, StoreError> {
        self.put(home, &recalled.swap, &Conditions::of(&recalled)).await
    }

    async fn put(&self, home: &Home, swap: &Swap, conditions: &Conditions) -> Result<RecallOutcome, StoreError> {
        let asked = row::change(swap, conditions).map_err(|error| self.server.damaged(&error.into()))?;
        let (answer, answered) = oneshot::channel();
        if self.desk.put(Job { asked, answer }) {
            home.spawn(work(Arc::clone(&self.server), Turn { desk: Arc::clone(&self.desk), is_over: false }));
        }
        // An error means that whoever was at it ended without a word.
        answered.await.unwrap_or(Ok(RecallOutcome::Unknown))
    }
}

impl Desk {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody is at it, so that the caller begins.
    fn put(&self, job: Job) -> bool {
        let mut waiting = self.waiting();
        waiting.jobs.push_back(job);
        !std::mem::replace(&mut waiting.is_busy, true)
    }

    /// What comes next; when there is nothing, nobody is at it any more.
    fn next(&self) -> Vec<Job> {
        let mut waiting = self.waiting();
        let most = waiting.jobs.len().min(BATCH_MAX);
        waiting.is_busy = most > 0;
        waiting.jobs.drain(..most).collect()
    }
}

/// Being at it. When it is dropped before its end, the runtime has ended.
struct Turn {
    desk: Arc<Desk>,
    is_over: bool,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut waiting = self.desk.waiting();
        waiting.is_busy = false;
        for job in waiting.jobs.drain(..) {
            // Nobody had begun with it.
            let _ = job.answer.send(Err(HomeGone.into()));
        }
    }
}

async fn work(server: Arc<Server>, mut turn: Turn) {
    loop {
        let mut batch = turn.desk.next();
        if batch.is_empty() {
            // Whoever comes from now on begins anew.
            turn.is_over = true;
            return;
        }
        let (mut fields, mut args, mut are_told) = (BTreeSet::new(), Vec::new(), Vec::new());
        for job in &mut batch {
            fields.extend(std::mem::take(&mut job.asked.fields));
            args.append(&mut job.asked.args);
            are_told.push(job.asked.is_told);
        }
        let fields: Vec<_> = fields.into_iter().collect();
        let made = made(&server, &fields, &args, &are_told).await;
        let mut outcomes = made.as_ref().ok().into_iter().flatten();
        for job in batch {
            let outcome = match &made {
                Ok(_) => Ok(outcomes.next().copied().unwrap_or(RecallOutcome::Unknown)),
                Err(fault) => failed(fault),
            };
            // Nobody waits any more when the future was dropped; the change is made or not all the same.
            let _ = job.answer.send(outcome);
        }
        // Whoever was answered mostly comes again at once. Without this pause the callers part into two halves that wait
        // for each other, and each script, and each saving, is for one half. Two scripts under way at a time are no gain
        // either: the server is what takes the time.
        tokio::task::yield_now().await;
    }
}

async fn made(
    server: &Arc<Server>,
    fields: &[String],
    args: &[String],
    are_told: &[bool],
) -> Result<Vec<RecallOutcome>, Fault> {
    let link = server.links.get(server).await?;
    let sent = server.replicas.doubt.send();
    let answer = match server.call_on(&link, &SWAP, fields, args, server.place.timeout).await {
        Err(fault) if fault.is_certain => {
            sent.settled();
            return Err(fault);
        }
        said => said?,
    };
    let mut outcomes = outcomes(answer, are_told);
    if outcomes.iter().all(|outcome| *outcome == RecallOutcome::Changed) || replicas::have(server, &link).await {
        sent.settled();
    } else {
        // It stands here, and may be lost with this server. Whoever reads it is told only once the replicas have it.
        let made = outcomes.iter_mut().filter(|outcome| matches!(outcome, RecallOutcome::Done(_)));
        made.for_each(|outcome| *outcome = RecallOutcome::Unknown);
    }
    Ok(outcomes)
}

fn failed(fault: &Fault) -> Result<RecallOutcome, StoreError> {
    if fault.is_certain {
        return Err(fault.error.clone());
    }
    tracing::warn!(error = %fault.error, "the store cannot tell whether a change was made");
    Ok(RecallOutcome::Unknown)
}

/// What came of the changes of a batch: of each whether it has a row of the history. Those that the answer says nothing
/// about, or nothing that makes sense, may have been made; what they look like is to be read.
fn outcomes(mut answer: Answer, are_told: &[bool]) -> Vec<RecallOutcome> {
    let mut outcomes = Vec::with_capacity(are_told.len());
    if let Err(damage) = read_outcomes(&mut answer, are_told, &mut outcomes) {
        tracing::warn!(error = damage.0, "the store does not say what came of some changes");
    }
    outcomes.resize(are_told.len(), RecallOutcome::Unknown);
    outcomes
}

fn read_outcomes(answer: &mut Answer, are_told: &[bool], outcomes: &mut Vec<RecallOutcome>) -> Result<(), Damage> {
    let mut version = number(&answer.expect("the newest version")?)?;
    let mut history = number(&answer.expect("the history's length")?)?;
    for is_told in are_told {
        outcomes.push(match answer.next_of("what came of a change")? {
            None => RecallOutcome::Changed,
            Some(print) => {
                (version, history) = (version + 1, history + u64::from(*is_told));
                let holdings = row::holdings(&print)?;
                RecallOutcome::Done(After { version: Version(version), now: answer.now, history, holdings })
            }
        });
    }
    Ok(())
}

/// Fills an empty store, in one script.
pub(super) async fn import(server: Arc<Server>, content: Import) -> Result<SwapOutcome, StoreError> {
    for _ in 0..ROUNDS_MAX {
        let read = super::reader::read(&server, row::keys(&Keys::default())).await?;
        let args = import_args(&content, &read).map_err(|error| server.damaged(&error.into()))?;
        let link = server.links.get(&server).await.map_err(|fault| fault.error)?;
        let sent = server.replicas.doubt.send();
        match server.call_on(&link, &IMPORT, &[], &args, IMPORT_PATIENCE).await {
            Ok(mut answer) => match answer.next().unwrap_or_default().as_deref() {
                Some("done") if !replicas::have(&server, &link).await => return Ok(SwapOutcome::Unknown),
                said => {
                    sent.settled();
                    match said {
                        Some("done") => return Ok(SwapOutcome::Done),
                        Some("again") => {}
                        _ => return Ok(SwapOutcome::Changed),
                    }
                }
            },
            Err(fault) if fault.is_certain => {
                sent.settled();
                return Err(fault.error);
            }
            Err(fault) => {
                tracing::warn!(error = %fault.error, "the store cannot tell whether an import was made");
                return Ok(SwapOutcome::Unknown);
            }
        }
    }
    Ok(SwapOutcome::Changed)
}

fn import_args(content: &Import, read: &crate::store::Read) -> Result<Vec<String>, crate::store::json::JsonError> {
    let after = content.authority(&read.view.authority, read.now);
    let version = read.versions.authority.map_or(0, |version| version.0);
    let leases: Vec<_> = content.leases(read.now).map(|lease| row::imported(&lease)).collect::<Result<_, _>>()?;
    let last = (crate::WallTime::now(), content.transition(read.now));
    let rows = content.rows().iter().map(|row| (row.wall, row.transition.clone())).chain([last]);
    let rows = rows.map(|(wall, row)| {
        let grant = row.grant.map(row::grant_field).unwrap_or_default();
        Ok([row::row(wall, &row)?, grant])
    });
    let rows: Vec<_> = rows.collect::<Result<_, crate::store::json::JsonError>>()?;
    let head = [version.to_string(), authority_to(&after)?, after.incarnation.to_string()];
    let counts = [rows.len().to_string(), leases.len().to_string()];
    Ok(head.into_iter().chain(counts).chain(rows.into_iter().flatten()).chain(leases.into_iter().flatten()).collect())
}
