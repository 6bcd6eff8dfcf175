//! Somebody's turn at a tenant: a lease, and calls to the index under it.

use crate::index::{Index, IndexError, WriteError};
use crate::outcome::Outcome;
use crate::patience::{Patience, Stopwatch, within};
use crate::point::{Point, Points};
use crate::stage::Stage;
use crate::tell::{News, Tell};
use crate::tenant::Tenant;
use std::cell::Cell;
use std::time::Duration;
use tenure::core::decide::Refusal;
use tenure::{AcquireError, HeedError, Lease, Lost, SinkId, Tenure, Token, Verdict};

/// What a turn is taken with.
#[derive(Clone, Copy)]
pub struct With<'a> {
    /// Whose.
    pub tenant: &'a Tenant,
    /// Where.
    pub index: &'a dyn Index,
    /// How long and how often.
    pub settings: &'a Settings,
    /// For drills.
    pub points: &'a Points,
    /// Who is told.
    pub tell: &'a dyn Tell,
}

/// How long and how often.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long the lease lasts without a renewal. Renewals have a thread of their own: a call may last longer.
    pub ttl: Duration,
    /// How long to wait for whoever has the tenant.
    pub wait: Duration,
    /// How long a call to the index is repeated before the round fails, or is unknown.
    pub patience: Duration,
    /// How many versions before the live one are kept for a rollback.
    pub keep: usize,
    /// Whether to publish what is live already, or was rolled back from.
    pub again: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let (ttl, wait, patience) = (Duration::from_secs(120), Duration::from_secs(30), Duration::from_secs(60));
        Self { ttl, wait, patience, keep: 1, again: false }
    }
}

/// A turn: it ends when the lease is lost, whatever is under way.
pub struct Turn<'a> {
    with: With<'a>,
    tenure: &'a Tenure,
    lease: Lease,
    sink: SinkId,
    stage: Stage,
    watch: Stopwatch,
    took: Vec<(Stage, u64)>,
    rights: Cell<Duration>,
}

/// Why a turn does not go on.
#[derive(Debug)]
pub enum Stop {
    /// The lease is lost.
    Lost(Lost),
    /// An answer was lost, and asking did not help.
    Unknown(String),
    /// It cannot be done.
    Failed(String),
    /// There is nothing more to do.
    Ended(Box<Outcome>),
}

impl From<Lost> for Stop {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(format!(
            "the file for chunks cannot be used ({error}): make room, or name another folder in TMPDIR"
        ))
    }
}

/// How long the authority may take to say who has come after: it only makes a message better.
const WHO_NEXT: Duration = Duration::from_secs(5);

impl<'a> Turn<'a> {
    /// Acquires the tenant and has the index sealed.
    ///
    /// # Errors
    /// How the turn ended before it began.
    pub async fn take(with: With<'a>, tenure: &'a Tenure) -> Result<Self, Outcome> {
        let failed = |why: String| Outcome::Failed { stage: Stage::Acquiring, epoch: None, why };
        let watch = Stopwatch::start();
        let sink = with.index.sink(with.tenant).await.map_err(|error| failed(error.to_string()))?;
        let id = sink.id().clone();
        let Settings { ttl, wait, .. } = *with.settings;
        let wish = tenure.acquire(with.tenant.resource()).ttl(ttl).wait(wait).sink(sink).label(with.tenant.as_str());
        let lease = wish.await.map_err(|error| match error {
            AcquireError::Refused { refusal: Refusal::Busy { .. } | Refusal::Quarantined { .. }, .. }
            | AcquireError::HeldHere { .. } => Outcome::Held { who: error.to_string() },
            error => failed(error.to_string()),
        })?;
        with.tell.tell(with.tenant, &News::Acquired { epoch: lease.epoch().get() });
        Ok(Self {
            with,
            tenure,
            lease,
            sink: id,
            stage: Stage::Acquiring,
            watch: Stopwatch::start(),
            took: Vec::new(),
            rights: Cell::new(watch.spent()),
        })
    }

    /// What it was taken with.
    #[must_use]
    pub const fn with(&self) -> &With<'a> {
        &self.with
    }

    /// The token to show.
    #[must_use]
    pub fn token(&self) -> &Token {
        self.lease.token()
    }

    /// The turn's epoch.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.lease.epoch().get()
    }

    /// Where the turn is.
    #[must_use]
    pub const fn stage(&self) -> Stage {
        self.stage
    }

    /// How long the stages took so far.
    pub fn took(&mut self) -> Vec<(Stage, u64)> {
        self.clock();
        self.took.clone()
    }

    /// How long the right to write has cost so far, in milliseconds: to acquire it, to seal, and all checkpoints.
    #[must_use]
    pub fn rights(&self) -> f64 {
        self.rights.get().as_secs_f64() * 1e3
    }

    /// Goes on to a stage, by way of a checkpoint.
    ///
    /// # Errors
    /// [`Stop::Lost`].
    pub async fn enter(&mut self, stage: Stage) -> Result<(), Stop> {
        self.clock();
        self.stage = stage;
        self.checkpoint().await
    }

    fn clock(&mut self) {
        let spent = self.watch.lap();
        match self.took.last_mut() {
            Some((last, took)) if *last == self.stage => *took += spent,
            _ => self.took.push((self.stage, spent)),
        }
    }

    /// Asks the authority whether the turn is still this one's.
    ///
    /// # Errors
    /// [`Stop::Lost`].
    pub async fn checkpoint(&self) -> Result<(), Stop> {
        let watch = Stopwatch::start();
        let owned = self.lease.ensure_owned().await;
        self.rights.set(self.rights.get() + watch.spent());
        owned?;
        Ok(())
    }

    /// A drill's moment.
    pub fn pass(&self, point: Point) {
        self.with.points.pass(point);
    }

    /// Says how far the stage has got.
    pub fn tell(&self, done: u64, total: Option<u64>) {
        self.with.tell.tell(self.with.tenant, &News::Going { stage: self.stage, done, total });
    }

    /// Says that something was not as it should be.
    pub fn warn(&self, what: String) {
        self.with.tell.tell(self.with.tenant, &News::Warning { what });
    }

    /// Waits for work, and drops it when the lease is lost.
    ///
    /// # Errors
    /// [`Stop::Lost`].
    pub async fn guard<Work: Future>(&self, work: Work) -> Result<Work::Output, Stop> {
        Ok(self.lease.guard(work).await?)
    }

    /// Makes a call to the index, and repeats it while that may help: every call may be repeated.
    ///
    /// # Errors
    /// [`Stop`].
    pub async fn insist<T>(&self, call: impl AsyncFn() -> Result<T, WriteError>) -> Result<T, Stop> {
        let (mut patience, mut unknown) = (Patience::new(self.with.settings.patience), false);
        loop {
            let why = match self.guard(call()).await? {
                Ok(answer) => return Ok(answer),
                Err(WriteError::Refused(verdict)) => match self.heed(&verdict).await? {
                    None => continue,
                    Some(why) => why,
                },
                Err(WriteError::Unknown(why)) => {
                    unknown = true;
                    why
                }
                Err(WriteError::Index(error)) if error.is_transient() => error.to_string(),
                Err(error) => return Err(Stop::Failed(error.to_string())),
            };
            if patience.is_over() {
                let why = format!("{why}; it was tried for {:.0?}", patience.spent());
                // What one try may have done, a later one that failed has not undone.
                return Err(if unknown { Stop::Unknown(why) } else { Stop::Failed(why) });
            }
            if patience.is_long() {
                self.warn(format!("{}: {why}; it is tried again", self.stage));
            }
            self.guard(patience.pause()).await?;
        }
    }

    /// The same for a call that only reads.
    ///
    /// # Errors
    /// [`Stop`].
    pub async fn read<T>(&self, call: impl AsyncFn() -> Result<T, IndexError>) -> Result<T, Stop> {
        self.insist(async || Ok(call().await?)).await
    }

    /// Shows the lease what the fence said. `None`: it is sealed again, and the call may be repeated at once; otherwise why it is
    /// not, for the moment.
    ///
    /// # Errors
    /// [`Stop`].
    pub async fn heed(&self, verdict: &Verdict) -> Result<Option<String>, Stop> {
        self.warn(format!("the index refused a write: {verdict}"));
        match self.lease.heed(&self.sink, verdict).await {
            Ok(()) => Ok(None),
            Err(HeedError::Lost(lost)) => Err(Stop::Lost(lost)),
            Err(HeedError::Sink { error, .. }) if error.is_transient() => Ok(Some(error.to_string())),
            Err(error) => Err(Stop::Failed(error.to_string())),
        }
    }

    /// Gives the turn back, and says how it ended.
    pub async fn end(self, result: Result<Outcome, Stop>) -> Outcome {
        let (stage, epoch) = (self.stage, self.epoch());
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(Stop::Ended(outcome)) => *outcome,
            Err(Stop::Lost(lost)) => return self.lost(lost).await,
            Err(Stop::Unknown(why)) => Outcome::Unknown { stage, epoch, why },
            Err(Stop::Failed(why)) => Outcome::Failed { stage, epoch: Some(epoch), why },
        };
        // A lease that is not given back ends by itself; the outcome is what it is.
        if let Err(error) = self.lease.release().await {
            tracing::warn!(%error, "the lease was not given back");
        }
        outcome
    }

    /// Whether somebody has come after, and whether this turn's version had gone live before.
    async fn lost(self, lost: Lost) -> Outcome {
        let (stage, epoch, With { tenant, index, .. }) = (self.stage, self.epoch(), self.with);
        let resource = tenant.resource();
        let asked = within(WHO_NEXT, self.tenure.authority().inspect(&resource)).await;
        let moves = match stage < Stage::Switching {
            true => Vec::new(),
            false => within(WHO_NEXT, index.switches(tenant)).await.and_then(Result::ok).unwrap_or_default(),
        };
        let version = moves.iter().find(|moved| moved.by == epoch).map(|moved| moved.version);
        match asked.and_then(Result::ok).and_then(|read| read.view.lease) {
            Some(record) if record.epoch.get() > epoch => Outcome::Superseded {
                stage,
                epoch,
                by: record.epoch.get(),
                who: Some(record.owner.to_string()),
                version,
            },
            _ => Outcome::Lost { stage, epoch, loss: lost.loss, version },
        }
    }
}
