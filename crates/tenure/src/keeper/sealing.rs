//! The seals of a grant: every receiver described, bound, sealed and marked, and the takeover announced. No receiver waits for
//! another one; one that fails is asked again after a growing pause.

mod lane;
mod news;

pub(crate) use news::News;
pub use news::SealNews;

use super::Shared;
use super::ask::Answered;
use super::kept::Kept;
use lane::{Lane, PATIENCE};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tenure_authority::AuthorityError;
use tenure_core::decide::{Refusal, Request};
use tenure_core::fence::{Rule, Sealing};
use tenure_core::holder::{HeldLease, LeasePhase, LeaseStep};
use tenure_core::{Generation, HolderClock, Instant, Loss, SinkId};
use tenure_sink::{Description, Sink, SinkError};
use tokio::task::{Id, JoinError, JoinSet};

/// Why the seals of a grant did not come to their end.
pub(super) enum Trouble {
    /// The lease is lost; its phase says why.
    Lost,
    Refused(Refusal),
    Sink(SinkId, SinkError),
    Authority(AuthorityError),
}

/// For how long it is tried, without whom it may end, and who hears of it.
#[derive(Default)]
pub(super) struct Limits<'a> {
    /// Until when receivers and authority are asked again. `None`: for as long as the lease is held, also where a receiver says
    /// that asking again is of no use.
    pub(super) until: Option<Instant<HolderClock>>,
    /// Who may be excused, and from when on.
    pub(super) excuse: Option<(Instant<HolderClock>, &'a BTreeSet<SinkId>)>,
    pub(super) news: Option<&'a News>,
    /// Told when the authority has marked a seal.
    pub(super) marked: Option<&'a (dyn Fn(&SinkId) + Send + Sync)>,
}

/// A receiver that is excused was tried at least once; a try that is not over must have lasted for so long.
const SHORTEST_TRY: Duration = Duration::from_secs(1);

/// The authority is told of what several receivers have come to in one step: of those that come within so long after the
/// first, as long as the others are at their first try. A receiver waits for its bind.
const GATHER_BINDS: Duration = Duration::from_millis(10);

/// Nobody waits for a mark but the announcement, which waits for all.
const GATHER_MARKS: Duration = Duration::from_millis(200);

/// Does what the lease asks for until the takeover is announced; or, where it is already, until every receiver is sealed.
pub(super) async fn drive(
    shared: &Arc<Shared>,
    kept: &Arc<Kept>,
    sinks: &[Arc<dyn Sink>],
    lease: &mut HeldLease,
    limits: &Limits<'_>,
) -> Result<(), Trouble> {
    let announces = !lease.may_write();
    let mut drive = Drive {
        shared,
        kept,
        sinks,
        lease,
        limits,
        lanes: BTreeMap::new(),
        under_way: JoinSet::new(),
        asked: HashMap::new(),
        telling: false,
        gathers_until: None,
    };
    while !(announces && drive.lease.may_write()) {
        if matches!(drive.lease.phase(), LeasePhase::Lost(_)) {
            return Err(Trouble::Lost);
        }
        if let Some(sink) = drive.lease.without_adapter() {
            return Err(Trouble::Refused(Refusal::NoAdapter { sink: sink.clone() }));
        }
        let now = match shared.now() {
            Ok(now) if kept.gate.is_open(now) => now,
            _ => {
                drive.lease.lose(kept.loss());
                return Err(Trouble::Lost);
            }
        };
        drive.excuse(now);
        let steps = drive.lease.next_steps();
        if steps.is_empty() {
            return Ok(());
        }
        drive.begin(steps, now)?;
        drive.give_up(now)?;
        drive.follow(now).await?;
    }
    Ok(())
}

struct Drive<'a> {
    shared: &'a Arc<Shared>,
    kept: &'a Arc<Kept>,
    sinks: &'a [Arc<dyn Sink>],
    lease: &'a mut HeldLease,
    limits: &'a Limits<'a>,
    lanes: BTreeMap<SinkId, Lane>,
    under_way: JoinSet<Done>,
    /// Which receiver a task asks.
    asked: HashMap<Id, SinkId>,
    /// Whether the authority is being told of something.
    telling: bool,
    /// Until when more is waited for that it can be told in the same step.
    gathers_until: Option<Instant<HolderClock>>,
}

/// A receiver that is to be asked now.
struct Try {
    sink: Arc<dyn Sink>,
    /// How long its answer is waited for.
    patience: Duration,
}

enum Done {
    Described(SinkId, Result<Description, SinkError>),
    Sealed(SinkId, Generation, Result<Sealing, SinkError>),
    Told(LeaseStep, Answered),
}

impl Drive<'_> {
    /// Lets the policy do without whoever it names and could not be sealed by now.
    fn excuse(&mut self, now: Instant<HolderClock>) {
        let Some((from, names)) = self.limits.excuse.filter(|(from, _)| now.reached(from)) else { return };
        let is_late = |sink: &&SinkId| {
            let lane = self.lanes.get(*sink).and_then(|lane| lane.excusable_from(SHORTEST_TRY));
            lane.is_some_and(|lane| now.reached(&lane.max(from)))
        };
        self.lease.excuse(names.iter().filter(is_late).cloned().collect());
    }

    /// Starts whatever can be done now.
    fn begin(&mut self, steps: Vec<LeaseStep>, now: Instant<HolderClock>) -> Result<(), Trouble> {
        let mut to_tell = None;
        for step in steps {
            match step {
                LeaseStep::Describe(id) => {
                    let Some(Try { sink, patience }) = self.turn(&id, now)? else { continue };
                    let Some(token) = self.lease.token().cloned() else { return Err(Trouble::Lost) };
                    let shared = Arc::clone(self.shared);
                    let task = self.under_way.spawn({
                        let id = id.clone();
                        async move {
                            let described = in_time(&shared, &*sink, patience, sink.describe(&token.resource)).await;
                            Done::Described(id, described)
                        }
                    });
                    self.asked.insert(task.id(), id);
                }
                LeaseStep::Seal { sink: id, generation, enrolled } => {
                    let Some(Try { sink, patience }) = self.turn(&id, now)? else { continue };
                    let Some(token) = self.lease.token().cloned() else { return Err(Trouble::Lost) };
                    let (shared, all) = (Arc::clone(self.shared), self.sinks.to_vec());
                    let task = self.under_way.spawn({
                        let id = id.clone();
                        async move {
                            let seal = shared.seal(&*sink, &token, &generation, &enrolled, &all);
                            let sealed = in_time(&shared, &*sink, patience, seal).await;
                            Done::Sealed(id, generation, sealed)
                        }
                    });
                    self.asked.insert(task.id(), id);
                }
                // An announcement that is possible comes before all else, and a bind lets a receiver go on.
                step @ LeaseStep::Announce { .. } => to_tell = Some(step),
                step => to_tell = to_tell.or(Some(step)),
            }
        }
        match to_tell {
            Some(step) if !self.telling && !self.gathers(&step, now) => self.tell(step, now),
            Some(_) => Ok(()),
            None => {
                self.gathers_until = None;
                Ok(())
            }
        }
    }

    /// The receiver, if it may be asked now.
    fn turn(&mut self, id: &SinkId, now: Instant<HolderClock>) -> Result<Option<Try>, Trouble> {
        let lane = self.lanes.entry(id.clone()).or_default();
        // After the end of the time nobody is asked a second time.
        let in_time = lane.failures == 0 || self.limits.until.is_none_or(|until| !now.reached(&until));
        if !in_time || !lane.is_ready(now) {
            return Ok(None);
        }
        let found = self.sinks.iter().find(|sink| sink.id() == id).cloned();
        let sink = found.ok_or_else(|| Trouble::Refused(Refusal::NoAdapter { sink: id.clone() }))?;
        lane.begins(now);
        // A try that is under way when the time is over is waited for, but not for long.
        let left = self.limits.until.map_or(Duration::MAX, |until| until.since(&now).max(PATIENCE));
        Ok(Some(Try { sink, patience: lane.patience().min(left) }))
    }

    /// Whether more may come soon that can be told in the same step.
    fn gathers(&mut self, step: &LeaseStep, now: Instant<HolderClock>) -> bool {
        let span = match step {
            LeaseStep::Bind(_) => GATHER_BINDS,
            LeaseStep::Mark(_) => GATHER_MARKS,
            _ => Duration::ZERO,
        };
        let until = now.after(span);
        let until = self.gathers_until.map_or(until, |earlier| earlier.min(until));
        self.gathers_until = Some(until);
        self.lanes.values().any(Lane::is_at_its_first_try) && !now.reached(&until)
    }

    fn tell(&mut self, step: LeaseStep, now: Instant<HolderClock>) -> Result<(), Trouble> {
        let Some(token) = self.lease.token().cloned() else { return Err(Trouble::Lost) };
        let session = self.kept.id;
        let request = match &step {
            LeaseStep::Enrol(sinks) => Request::Enrol { token, sinks: sinks.clone() },
            LeaseStep::Bind(generations) => Request::Bind { token, session, generations: generations.clone() },
            LeaseStep::Mark(generations) => Request::Sealed { token, generations: generations.clone() },
            LeaseStep::Announce { excused } => Request::Announce { token, session, excused: excused.clone() },
            // The rest begins or ends a lease, and is not asked for in between.
            _ => return Ok(()),
        };
        let (shared, attempt) = (Arc::clone(self.shared), self.kept.timing.attempt());
        let until = self.limits.until.unwrap_or_else(|| now.after(attempt));
        (self.telling, self.gathers_until) = (true, None);
        self.under_way.spawn(async move {
            let answer = shared.insist(&request, attempt, until).await;
            Done::Told(step, answer)
        });
        Ok(())
    }

    /// Ends it when the time is over and a receiver that nobody excuses has failed.
    fn give_up(&mut self, now: Instant<HolderClock>) -> Result<(), Trouble> {
        let unsealed = self.lease.unsealed_sinks();
        let is_over = self.limits.until.is_some_and(|until| now.reached(&until));
        let lost = self.lanes.iter_mut().filter(|(sink, lane)| {
            unsealed.contains(*sink) && !lane.is_busy() && lane.failures > 0 && !self.lease.may_excuse(sink)
        });
        match lost.filter(|_| is_over).find_map(|(sink, lane)| Some((sink.clone(), lane.error.take()?))) {
            Some((sink, error)) => Err(Trouble::Sink(sink, error)),
            None => Ok(()),
        }
    }

    /// Waits for whatever comes next: an answer, or the time for something.
    async fn follow(&mut self, now: Instant<HolderClock>) -> Result<(), Trouble> {
        let next = self.next(now);
        let done = tokio::select! {
            biased;
            Some(done) = self.under_way.join_next_with_id() => done,
            () = self.shared.pause_until(now, next) => return Ok(()),
        };
        let now = self.shared.now().unwrap_or(now);
        match self.what_came(done) {
            Done::Described(id, described) => {
                self.lane(&id).answered();
                match described {
                    Ok(found) => {
                        let enrolled = found.row.map(|row| row.enrolled).unwrap_or_default();
                        self.lease.handle_described(&id, found.generation, enrolled);
                        Ok(())
                    }
                    Err(error) => self.failed(&id, error, now),
                }
            }
            Done::Sealed(id, generation, sealed) => {
                self.lane(&id).answered();
                match sealed {
                    Ok(sealing) => {
                        let moves = match &sealing {
                            Sealing::WrongGeneration { .. } => self.lane(&id).moves(),
                            Sealing::Seal(_) => {
                                self.sealed(&id);
                                false
                            }
                            _ => false,
                        };
                        self.lease.handle_seal(&id, &generation, sealing.into());
                        if moves { self.failed(&id, moving(&id), now) } else { Ok(()) }
                    }
                    Err(error) => self.failed(&id, error, now),
                }
            }
            Done::Told(step, answer) => {
                self.telling = false;
                self.told(&step, answer)
            }
        }
    }

    /// When something may have to be done although nothing has come.
    fn next(&self, now: Instant<HolderClock>) -> Instant<HolderClock> {
        let lanes = self.lanes.iter().flat_map(|(sink, lane)| {
            let named = self.limits.excuse.filter(|(_, names)| names.contains(sink));
            let excusable = named.zip(lane.excusable_from(SHORTEST_TRY)).map(|((from, _), lane)| lane.max(from));
            [lane.again(), excusable].into_iter().flatten()
        });
        let all = lanes.chain(self.gathers_until).chain(self.limits.until).chain(self.kept.gate.deadline());
        // What has passed was looked at already.
        all.filter(|at| !now.reached(at)).min().unwrap_or_else(|| now.after(Duration::from_secs(1)))
    }

    fn what_came(&mut self, done: Result<(Id, Done), JoinError>) -> Done {
        match done {
            Ok((task, done)) => {
                self.asked.remove(&task);
                done
            }
            Err(panicked) => match self.asked.remove(&panicked.id()) {
                Some(id) => {
                    let (place, why) = (id.to_string(), "the receiver's own code has panicked".to_owned());
                    Done::Described(id, Err(SinkError::Failed { place, doing: "sealing", why }))
                }
                // Nobody heard the answer, which is what a lost one is.
                None => Done::Told(LeaseStep::Enrol(BTreeSet::new()), Err(AuthorityError::Unknown)),
            },
        }
    }

    fn lane(&mut self, id: &SinkId) -> &mut Lane {
        self.lanes.entry(id.clone()).or_default()
    }

    fn failed(&mut self, id: &SinkId, error: SinkError, now: Instant<HolderClock>) -> Result<(), Trouble> {
        let may_be_excused = self.limits.excuse.is_some_and(|(_, names)| names.contains(id));
        if !error.is_transient() && self.limits.until.is_some() && !may_be_excused {
            return Err(Trouble::Sink(id.clone(), error));
        }
        let failures = self.lane(id).failures.saturating_add(1);
        self.tell_news(|| SealNews::Failed { sink: id.clone(), failures, error: error.to_string() });
        self.lane(id).failed(now, error);
        Ok(())
    }

    fn sealed(&mut self, id: &SinkId) {
        if self.lane(id).failures > 0 || self.lease.may_write() {
            self.tell_news(|| SealNews::Sealed { sink: id.clone() });
        }
        self.lane(id).sealed();
    }

    fn tell_news(&self, what: impl FnOnce() -> SealNews) {
        if let Some(token) = self.lease.token() {
            let what = what();
            news::trace(&self.shared.owner, token, &what);
            if let Some(news) = self.limits.news {
                news.tell(&what);
            }
        }
    }

    fn told(&mut self, step: &LeaseStep, answer: Answered) -> Result<(), Trouble> {
        match answer {
            Ok(Ok(_)) => {
                match step {
                    LeaseStep::Enrol(sinks) => self.lease.handle_enrolled(sinks),
                    LeaseStep::Bind(generations) => self.lease.handle_bound(generations),
                    LeaseStep::Mark(generations) => {
                        self.lease.handle_marked(generations);
                        generations.keys().for_each(|sink| {
                            if let Some(marked) = self.limits.marked {
                                marked(sink);
                            }
                        });
                    }
                    LeaseStep::Announce { excused } => {
                        for sink in excused {
                            self.tell_news(|| SealNews::Excused { sink: sink.clone() });
                        }
                        self.lease.handle_announced();
                    }
                    _ => {}
                }
                Ok(())
            }
            Ok(Err(Refusal::NotCurrent { .. } | Refusal::Completed { .. } | Refusal::SessionEnded { .. })) => {
                self.lease.lose(Loss::SealRefused);
                Err(Trouble::Lost)
            }
            Ok(Err(refusal)) => Err(Trouble::Refused(refusal)),
            Err(error) => Err(Trouble::Authority(error)),
        }
    }
}

/// One try of a receiver. One that does not answer has not been heard of: the next try may reach it.
async fn in_time<T>(
    shared: &Shared,
    sink: &dyn Sink,
    patience: Duration,
    answer: impl Future<Output = Result<T, SinkError>>,
) -> Result<T, SinkError> {
    tokio::select! {
        biased;
        answer = answer => answer,
        () = shared.pause(patience) => {
            let (place, why) = (sink.id().to_string(), format!("no answer came within {patience:?}"));
            Err(SinkError::Unreachable { place, why })
        }
    }
}

fn moving(id: &SinkId) -> SinkError {
    let why = "its generation changes each time that it is looked at, as if two servers answered under one address";
    SinkError::Unreachable { place: id.to_string(), why: why.to_owned() }
}

/// The receivers that are enrolled and sealed.
pub(super) fn sealed_sinks(sinks: &[Arc<dyn Sink>]) -> BTreeSet<SinkId> {
    let sealed = sinks.iter().filter(|sink| sink.rule() != Rule::HighWater);
    sealed.map(|sink| sink.id().clone()).collect()
}

/// All receivers that a grant is signed for: those of the wish, which may be written to, and those that are enrolled.
pub(super) fn names_of(sinks: &[Arc<dyn Sink>], enrolled: &BTreeSet<SinkId>) -> BTreeSet<SinkId> {
    sinks.iter().map(|sink| sink.id()).chain(enrolled).cloned().collect()
}
