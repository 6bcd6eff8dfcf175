//! What the desks do: one call of the server for all that waited.

use super::change::{self, Job, Kind, Made, Statements};
use super::desk::{Desk, Line};
use super::fault::Fault;
use super::link::{Lane, Server};
use super::reader;
use crate::StoreError;
use crate::store::{Read, RecallOutcome};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use tenure_core::decide::Keys;
use tokio::sync::oneshot;

/// So many share a call at most: what comes later is not kept waiting for ever.
const BATCH_MAX: usize = 512;

/// How often a batch that others got in the way of is tried.
const TRIES_MAX: usize = 8;

/// A reading that is asked for.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) keys: Keys,
    pub(super) answer: oneshot::Sender<Result<Read, StoreError>>,
}

/// Reads for all that wait.
#[derive(Debug)]
pub(super) struct ReadLine {
    server: Arc<Server>,
    sql: String,
}

impl ReadLine {
    pub(super) fn new(server: &Arc<Server>) -> Self {
        let schema = &server.place.schema;
        // The function's rows are all there before the first of them is answered: the clock comes after the records.
        let sql = format!("SELECT r.*, {schema}.clock_ns() FROM {schema}.read($1, $2, $3) r");
        Self { server: Arc::clone(server), sql }
    }
}

impl Line for ReadLine {
    type Job = Asked;

    fn take(&self, waiting: &mut VecDeque<Asked>) -> Vec<Asked> {
        let most = waiting.len().min(BATCH_MAX);
        waiting.drain(..most).collect()
    }

    fn is_wanted(job: &Asked) -> bool {
        !job.answer.is_closed()
    }

    async fn work(&self, jobs: Vec<Asked>) {
        let keys: Vec<_> = jobs.iter().map(|job| &job.keys).collect();
        match reader::read(&self.server, &self.sql, &keys).await {
            Ok(found) => {
                for (job, found) in jobs.into_iter().zip(found) {
                    // Nobody waits any more when the future was dropped.
                    let _ = job.answer.send(found);
                }
            }
            Err(error) => {
                for job in jobs {
                    let _ = job.answer.send(Err(error.clone()));
                }
            }
        }
    }
}

/// Makes all the changes of one kind that wait.
#[derive(Debug)]
pub(super) struct ChangeLine {
    server: Arc<Server>,
    lane: Lane,
    statements: Statements,
    /// Where renewals wait whose session somebody else holds: in nobody's way.
    held: Option<Arc<Desk<Self>>>,
}

impl ChangeLine {
    pub(super) fn steps(server: &Arc<Server>) -> Self {
        let statements = Statements::new(&server.place.schema);
        Self { server: Arc::clone(server), lane: Lane::Step, statements, held: None }
    }

    pub(super) fn renewals(server: &Arc<Server>) -> Self {
        let held = Desk::new(Self { lane: Lane::Held, ..Self::steps(server) });
        Self { lane: Lane::Renew, held: Some(held), ..Self::steps(server) }
    }

    /// Makes them in one transaction. What others got in the way of is tried again.
    async fn made(&self, jobs: &[Job]) -> Result<Vec<Option<RecallOutcome>>, Fault> {
        let mut tries = 1;
        loop {
            match change::make(&self.server, self.lane, &self.statements, jobs).await {
                Err(Fault::Again(_)) if tries < TRIES_MAX => tries += 1,
                made => return made,
            }
        }
    }

    /// What held one of them up may have nothing to do with the others.
    async fn one_by_one(&self, jobs: Vec<Job>) {
        let mut held = 0;
        let mut left = VecDeque::from(jobs);
        while let Some(job) = left.pop_front() {
            let jobs = [job];
            let made = self.made(&jobs).await;
            held += match made {
                Err(Fault::Held) => 1,
                Err(Fault::Busy) => 2,
                _ => 0,
            };
            if held > 1 {
                jobs.into_iter().for_each(|job| left.push_front(job));
                let (fault, given_up) = (change::held(&self.server).await, left.drain(..).collect());
                answer_all(given_up, &Fault::Certain(fault));
            } else {
                self.answer(jobs.into(), made).await;
            }
        }
    }

    async fn answer(&self, jobs: Vec<Job>, made: Result<Vec<Option<RecallOutcome>>, Fault>) {
        match made {
            Ok(outcomes) => {
                for (job, outcome) in jobs.into_iter().zip(outcomes) {
                    match (outcome, &self.held) {
                        (None, Some(held)) => held.put(&self.server.home, job),
                        (outcome, _) => {
                            // Nobody waits any more when the future was dropped; the change is made or not all the same.
                            let _ = job.answer.send(Ok(outcome.unwrap_or(RecallOutcome::Changed)));
                        }
                    }
                }
            }
            Err(Fault::Held | Fault::Busy) => answer_all(jobs, &Fault::Certain(change::held(&self.server).await)),
            Err(fault) => answer_all(jobs, &fault),
        }
    }
}

impl Line for ChangeLine {
    type Job = Job;

    /// Those of the first one's kind, of each record at most one: the next ones judge by what it left.
    fn take(&self, waiting: &mut VecDeque<Job>) -> Vec<Job> {
        let Some(first) = waiting.pop_front() else { return Vec::new() };
        let kind = first.kind();
        let most = if kind == Kind::One { 1 } else { BATCH_MAX };
        let mut keys = HashSet::from([first.key()]);
        let mut taken = vec![first];
        let mut left = VecDeque::new();
        while let Some(job) = waiting.pop_front() {
            if taken.len() < most && job.kind() == kind && keys.insert(job.key()) {
                taken.push(job);
            } else {
                left.push_back(job);
            }
        }
        *waiting = left;
        taken
    }

    fn is_wanted(job: &Job) -> bool {
        !job.answer.is_closed()
    }

    async fn work(&self, jobs: Vec<Job>) {
        match self.made(&jobs).await {
            Err(Fault::Held) if jobs.len() > 1 && self.lane == Lane::Step => self.one_by_one(jobs).await,
            made => self.answer(jobs, made).await,
        }
    }
}

fn answer_all(jobs: Vec<Job>, fault: &Fault) {
    let made: Made = match fault {
        Fault::Lost(why) => {
            tracing::warn!(why, changes = jobs.len(), "the server did not say whether a change was made");
            Ok(RecallOutcome::Unknown)
        }
        other => Err(other.clone().into_error()),
    };
    for job in jobs {
        let _ = job.answer.send(made.clone());
    }
}
