//! One round: A is stopped, overtaken by B, and woken.

use super::holder::{Given, Holder};
use super::reading::Reading;
use super::stage::{Control, LeasePlan, Stage};
use super::verdict::{ControlFacts, Facts, Judgement, judge, judge_with};
use super::worker::{Ended, Line, Worker};
use crate::owner::Who;
use crate::problem::Problem;
use crate::span::Span;
use serde::Serialize;
use std::time::Duration;
use tenure::ResourceName;
use tenure::authority::{Authority, Clock, store};
use tenure::blocking::wait_for;
use tenure::core::decide::{Reply, Request};
use tenure::core::{Actor, Epoch, Reason};

/// How much longer than A's lease B waits for its turn.
const TURN: Duration = Duration::from_secs(10);

/// All that was seen in a round.
#[derive(Debug, Serialize)]
pub(super) struct Round {
    #[serde(flatten)]
    pub(super) judgement: Judgement,
    pub(super) steps: Vec<Step>,
    pub(super) values: Values,
    pub(super) a: Account,
    pub(super) b: Option<Account>,
    /// What the authority says at the end; `None` without leases.
    pub(super) authority: Option<Says>,
    pub(super) control: Option<ControlRun>,
}

/// Something that was done, and when.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    pub(super) at: String,
    pub(super) step: &'static str,
    pub(super) text: String,
}

/// What the receiver held, reading by reading.
#[derive(Debug, Default, Serialize)]
pub(super) struct Values {
    /// While A was stopped at its marker.
    pub(super) before_b: Option<Reading>,
    pub(super) after_b: Option<Reading>,
    /// After A went on and ended.
    pub(super) after_a: Option<Reading>,
}

/// What came of one worker.
#[derive(Debug, Default, Serialize)]
pub(super) struct Account {
    pub(super) epoch: Option<u64>,
    /// How long it was stopped.
    pub(super) stopped_ms: Option<u64>,
    /// How many processes were stopped.
    pub(super) processes: Option<usize>,
    pub(super) ended: String,
    /// The exit status of its first process; none after a signal.
    pub(super) exit_status: Option<i32>,
    /// Why its lease was lost, by its holder's own account.
    pub(super) lost: Option<String>,
    pub(super) lines: Vec<Line>,
}

/// The authority's record of the resource.
#[derive(Debug, Serialize)]
pub(super) struct Says {
    pub(super) resource: String,
    pub(super) phase: String,
    /// The newest grant.
    pub(super) epoch: u64,
    pub(super) owner: String,
}

/// A alone, stopped and woken.
#[derive(Debug, Serialize)]
pub(super) struct ControlRun {
    pub(super) paused: Option<Reading>,
    pub(super) after: Option<Reading>,
    pub(super) a: Account,
}

impl Round {
    fn new() -> Self {
        Self {
            judgement: Judgement::undecided("the round did not come to its end"),
            steps: Vec::new(),
            values: Values::default(),
            a: Account::default(),
            b: None,
            authority: None,
            control: None,
        }
    }

    pub(super) fn play(stage: &Stage) -> Result<Self, Problem> {
        let mut round = Self::new();
        round.judgement = round.incident(stage)?;
        stage.narrator.done();
        Ok(round)
    }

    fn incident(&mut self, stage: &Stage) -> Result<Judgement, Problem> {
        let plan = &stage.plan;
        self.reset(stage)?;
        // Before anything is started: a command of the user's that cannot be run is found here.
        self.read(stage, "read_at_start")?;
        self.read_refusals(stage)?;
        let holder_a = self.acquire_first(stage)?;
        let mut a = Worker::start(stage, "A", holder_a.as_ref().map(|holder| &holder.grant))?;
        self.a.epoch = holder_a.as_ref().map(|holder| holder.grant.epoch);
        self.step(stage, "a_started", "A is started");
        stage.narrator.wait(format!("A runs to its marker; at most {}", Span(plan.timeout)));
        match a.run_to_marker(stage)? {
            Ended::Stopped { processes } => {
                self.a.processes = Some(processes);
                self.step(stage, "a_stopped", &format!("A is stopped at its marker: {}", count(processes)));
            }
            ended => {
                self.a.close(&a, &ended);
                return Ok(Judgement::undecided(a.missed_marker(&ended)));
            }
        }
        let paused = self.read(stage, "read_before_b")?;
        self.values.before_b = Some(paused.clone());
        let holder_b = match self.hand_over(stage, holder_a.as_ref())? {
            Ok(holder) => holder,
            Err(why) => {
                a.kill();
                self.a.close(&a, &Ended::Killed { how: "ended by the probe while it was stopped".to_owned() });
                return Ok(Judgement::undecided(format!(
                    "B did not get the lease: {why}; if A was stopped inside a transaction, print the marker before it"
                )));
            }
        };
        let b = self.successor(stage, holder_b)?;
        let after_b = self.read(stage, "read_after_b")?;
        self.values.after_b = Some(after_b.clone());
        let before = self.read_refusals(stage)?;
        let again = self.read(stage, "read_again")?;

        let stopped = a.paused();
        self.a.stopped_ms = u64::try_from(stopped.as_millis()).ok();
        if let Some(holder) = &holder_a {
            holder.wake();
        }
        a.wake();
        self.step(stage, "a_woken", &format!("A is woken after {}", Span(stopped)));
        stage.narrator.wait(format!("A goes on to its end; at most {}", Span(plan.timeout)));
        let ended = a.run_to_end(stage)?;
        self.step(stage, "a_ended", &format!("A has ended: {}", ended.how()));
        let after_a = self.read(stage, "read_after_a")?;
        self.values.after_a = Some(after_a.clone());
        let after = self.read_refusals(stage)?;
        self.a.close(&a, &ended);
        self.a.lost = finish(stage, holder_a)?;
        self.authority = authority_says(stage)?;
        let facts = Facts {
            paused,
            b,
            after_b: [after_b, again],
            a: ended,
            after_a,
            refusals: before.zip(after).map(|(before, after)| [before, after]),
            tried: a.tried().map(str::to_owned),
            asked_tried: plan.tried.is_some(),
        };
        drop(a);
        if let Some(judgement) = judge(&facts) {
            return Ok(judgement);
        }
        let control = match plan.control {
            Control::Auto => Some(self.control(stage, stopped)?),
            Control::Never => None,
        };
        Ok(judge_with(&facts, control.as_ref()))
    }

    fn reset(&mut self, stage: &Stage) -> Result<(), Problem> {
        let Some(line) = &stage.plan.reset else { return Ok(()) };
        match Reading::take(stage, "--reset", line)? {
            Reading::Value(_) => self.step(stage, "reset", "the target is reset"),
            failed @ Reading::Failed(_) => {
                return Err(Problem::failure(format_args!("--reset: {line:?} failed: {failed}")));
            }
        }
        Ok(())
    }

    fn acquire_first(&mut self, stage: &Stage) -> Result<Option<Holder>, Problem> {
        let Some(lease) = &stage.plan.lease else { return Ok(None) };
        let holder = Holder::start(stage, "probe-A", TURN)??;
        let text = format!("A holds {} under epoch {}", lease.resource, holder.grant.epoch);
        self.step(stage, "a_acquired", &text);
        Ok(Some(holder))
    }

    /// Ends A's lease and begins B's. The inner error says why B did not get it.
    fn hand_over(
        &mut self,
        stage: &Stage,
        holder_a: Option<&Holder>,
    ) -> Result<Result<Option<Holder>, Problem>, Problem> {
        let (Some(lease), Some(holder_a)) = (&stage.plan.lease, holder_a) else { return Ok(Ok(None)) };
        holder_a.stop()?;
        if lease.expires {
            stage.narrator.wait(format!("B waits for the end of A's lease; at most {}", Span(lease.ttl)));
        } else {
            self.step(stage, "a_revoked", &revoke(lease, holder_a.grant.epoch)?);
        }
        match Holder::start(stage, "probe-B", lease.ttl + TURN)? {
            Ok(holder) => {
                let how = if lease.expires { "A's lease has expired; " } else { "" };
                let text = format!("{how}B holds {} under epoch {}", lease.resource, holder.grant.epoch);
                self.step(stage, "b_acquired", &text);
                Ok(Ok(Some(holder)))
            }
            Err(why) => Ok(Err(why)),
        }
    }

    /// Runs B from its beginning to its end.
    fn successor(&mut self, stage: &Stage, holder: Option<Holder>) -> Result<Ended, Problem> {
        let mut b = Worker::start(stage, "B", holder.as_ref().map(|holder| &holder.grant))?;
        self.step(stage, "b_started", "B is started");
        stage.narrator.wait(format!("B runs to its end; at most {}", Span(stage.plan.timeout)));
        let ended = b.run_to_end(stage)?;
        self.step(stage, "b_ended", &format!("B has ended: {}", ended.how()));
        let mut account = Account { epoch: holder.as_ref().map(|holder| holder.grant.epoch), ..Account::default() };
        account.close(&b, &ended);
        account.lost = finish(stage, holder)?;
        self.b = Some(account);
        Ok(ended)
    }

    /// Runs A once more, stopped for as long as before, and without a B.
    fn control(&mut self, stage: &Stage, stopped: Duration) -> Result<ControlFacts, Problem> {
        self.step(stage, "control", "the control run: A alone, stopped for as long, and with its lease");
        self.reset(stage)?;
        let holder = match &stage.plan.lease {
            Some(_) => Some(Holder::start(stage, "probe-A", TURN)??),
            None => None,
        };
        let mut a = Worker::start(stage, "A", holder.as_ref().map(|holder| &holder.grant))?;
        let mut run = ControlRun { paused: None, after: None, a: Account::default() };
        run.a.epoch = holder.as_ref().map(|holder| holder.grant.epoch);
        let reached = match a.run_to_marker(stage)? {
            Ended::Stopped { processes } => {
                run.a.processes = Some(processes);
                Ok(())
            }
            ended => Err(a.missed_marker(&ended)),
        };
        let paused = self.read(stage, "read_control_before")?;
        stage.narrator.wait(format!("A stays stopped for {}", Span(stopped)));
        a.stay(stage, stopped.saturating_sub(a.paused()))?;
        run.a.stopped_ms = u64::try_from(a.paused().as_millis()).ok();
        a.wake();
        stage.narrator.wait(format!("A goes on to its end; at most {}", Span(stage.plan.timeout)));
        let ended = a.run_to_end(stage)?;
        self.step(stage, "control_ended", &format!("A has ended: {}", ended.how()));
        let after = self.read(stage, "read_control_after")?;
        run.a.close(&a, &ended);
        run.a.lost = finish(stage, holder)?;
        (run.paused, run.after) = (Some(paused.clone()), Some(after.clone()));
        self.control = Some(run);
        Ok(ControlFacts { reached, paused, ended, after })
    }

    fn read(&mut self, stage: &Stage, step: &'static str) -> Result<Reading, Problem> {
        let reading = Reading::take(stage, "--read", &stage.plan.read)?;
        self.step(stage, step, &format!("the receiver: {reading}"));
        Ok(reading)
    }

    fn read_refusals(&mut self, stage: &Stage) -> Result<Option<Reading>, Problem> {
        let Some(line) = &stage.plan.refusals else { return Ok(None) };
        let reading = Reading::take(stage, "--refusals", line)?;
        self.step(stage, "refusals", &format!("the receiver's refusals: {reading}"));
        Ok(Some(reading))
    }

    fn step(&mut self, stage: &Stage, step: &'static str, text: &str) {
        stage.narrator.done();
        stage.narrator.tell(text);
        self.steps.push(Step { at: jiff::Timestamp::now().to_string(), step, text: text.to_owned() });
    }
}

impl Account {
    fn close(&mut self, worker: &Worker, ended: &Ended) {
        self.ended = ended.how().to_owned();
        self.exit_status = worker.exit_status();
        self.lines = worker.lines();
    }
}

fn finish(stage: &Stage, holder: Option<Holder>) -> Result<Option<String>, Problem> {
    let given = holder.map(|holder| holder.finish(stage)).transpose()?;
    Ok(given.and_then(|Given { lost }| lost))
}

fn authority(lease: &LeasePlan) -> Result<Authority, Problem> {
    Ok(Authority::new(store::connect(&lease.url, Clock::from_env()?)?))
}

/// Takes A's lease away, as an operator would.
fn revoke(lease: &LeasePlan, epoch: u64) -> Result<String, Problem> {
    let request = Request::Revoke {
        resource: ResourceName::new(&lease.resource)?,
        only: Epoch::new(epoch).ok(),
        actor: Actor::new(Who::here(Some("probe")).process().to_string())?,
        reason: Reason::new("A is stopped: what does its late write do?")?,
    };
    match wait_for(authority(lease)?.execute(&request))? {
        Ok(Reply::Revoked { token, owner }) => Ok(format!("epoch {} of {} is revoked", token.epoch, owner.name)),
        Ok(_) => Err(Problem::failure("the authority gave another answer than that it revoked A's lease")),
        Err(refusal) => Err(Problem::failure(format_args!("A's lease could not be revoked: {refusal}"))),
    }
}

fn authority_says(stage: &Stage) -> Result<Option<Says>, Problem> {
    let Some(lease) = &stage.plan.lease else { return Ok(None) };
    let read = wait_for(authority(lease)?.inspect(&ResourceName::new(&lease.resource)?))?;
    Ok(read.view.lease.map(|record| Says {
        resource: record.resource.to_string(),
        phase: record.phase.name().to_owned(),
        epoch: record.epoch.get(),
        owner: record.owner.name.to_string(),
    }))
}

fn count(processes: usize) -> String {
    format!("{processes} process{}", if processes == 1 { "" } else { "es" })
}
