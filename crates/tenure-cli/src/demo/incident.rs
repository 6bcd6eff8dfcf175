use super::DemoError;
use super::actor::Actor;
use super::receiver::{Kind, Row};
use super::worker::{AUTHORITY, CLOCK, RESOURCE, TICK};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure::authority::{Clock, FileClock, store};
use tenure::core::decide::Keys;
use tenure::core::record::Phase;
use tenure::{ResourceName, blocking};

/// What happened in front of one receiver, and the rows that were left in both databases.
#[derive(Clone, Debug)]
pub(super) struct Incident {
    pub(super) kind: Kind,
    /// Each step with its result, in the order in which it happened.
    pub(super) events: Vec<(&'static str, Value)>,
    /// How the holder itself and the authority took the late completion.
    pub(super) late_complete: Option<(String, String)>,
    pub(super) lease: LeaseRow,
    pub(super) sink: Row,
}

/// The authority's row, in ticks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct LeaseRow {
    resource: String,
    owner: String,
    epoch: u64,
    deadline: u64,
    pub(super) result: Option<String>,
}

impl Incident {
    pub(super) fn verdict(&self, event: &str) -> &str {
        let found = self.events.iter().find(|(name, _)| *name == event);
        found.and_then(|(_, result)| result.as_str()).unwrap_or_default()
    }
}

/// A acquires and is stopped; B takes over at A's deadline, writes and completes; A wakes up, writes and completes.
pub(super) fn takeover(dir: &Path, kind: Kind) -> Result<Incident, DemoError> {
    let stage = Stage::set(dir, "takeover", kind)?;
    let mut events = Vec::new();
    let mut a = stage.enter("A")?;
    events.push(("A_acquire", a.order("acquire")?["epoch"].clone()));
    a.stop()?;
    stage.tick(10)?;
    let mut b = stage.enter("B")?;
    events.push(("B_acquire", b.order("acquire")?["epoch"].clone()));
    events.push(("B_write", b.order("write new")?["verdict"].clone()));
    events.push(("B_complete", b.order("complete new")?["accepted"].clone()));
    b.leave()?;
    stage.tick(11)?;
    a.wake()?;
    events.push(("A_write", a.order("write old")?["verdict"].clone()));
    let late = a.order("complete old")?;
    events.push(("A_complete", late["accepted"].clone()));
    a.leave()?;
    let told = |by: &str| late[by].as_str().unwrap_or_default().to_owned();
    stage.end(events, Some((told("by_holder"), told("by_authority"))))
}

/// A acquires and is stopped; B takes over and sends nothing yet; A wakes up and writes, B writes, A writes again.
pub(super) fn gap(dir: &Path, kind: Kind) -> Result<Incident, DemoError> {
    let stage = Stage::set(dir, "gap", kind)?;
    let mut a = stage.enter("A")?;
    a.order("acquire")?;
    a.stop()?;
    stage.tick(10)?;
    let mut b = stage.enter("B")?;
    b.order("acquire")?;
    stage.tick(11)?;
    a.wake()?;
    let events = vec![
        ("A_write_1", a.order("write old")?["verdict"].clone()),
        ("B_write", b.order("write new")?["verdict"].clone()),
        ("A_write_2", a.order("write old")?["verdict"].clone()),
    ];
    // The rows are read while B holds the resource; then both may leave.
    let incident = stage.end(events, None)?;
    a.leave()?;
    b.leave()?;
    Ok(incident)
}

/// One folder with its clock and its two databases.
struct Stage {
    dir: PathBuf,
    kind: Kind,
}

impl Stage {
    fn set(dir: &Path, scene: &str, kind: Kind) -> Result<Self, DemoError> {
        let dir = dir.join(format!("{scene}-{}", kind.name()));
        std::fs::create_dir(&dir).map_err(|error| DemoError::File { path: dir.clone(), error })?;
        let stage = Self { dir, kind };
        stage.tick(0)?;
        let url = format!("sqlite:{}?create=true", stage.dir.join(AUTHORITY).display());
        drop(store::connect(&url, stage.clock()?)?);
        kind.create(&stage.dir)?;
        Ok(stage)
    }

    fn tick(&self, tick: u32) -> Result<(), DemoError> {
        let path = self.dir.join(CLOCK);
        let millis = u64::try_from((TICK * tick).as_millis()).unwrap_or(u64::MAX);
        FileClock::set_millis(&path, millis).map_err(|error| DemoError::File { path, error })
    }

    fn clock(&self) -> Result<Clock, DemoError> {
        Ok(Clock::File(FileClock::open(self.dir.join(CLOCK))?))
    }

    fn enter(&self, name: &'static str) -> Result<Actor, DemoError> {
        Actor::enter(name, &self.dir, self.kind)
    }

    fn end(
        &self,
        events: Vec<(&'static str, Value)>,
        late_complete: Option<(String, String)>,
    ) -> Result<Incident, DemoError> {
        let sink = self.kind.row(&self.dir)?;
        Ok(Incident { kind: self.kind, events, late_complete, lease: self.lease_row()?, sink })
    }

    fn lease_row(&self) -> Result<LeaseRow, DemoError> {
        let store = store::connect(&format!("sqlite:{}", self.dir.join(AUTHORITY).display()), self.clock()?)?;
        let keys = Keys { resource: ResourceName::new(RESOURCE).ok(), ..Keys::default() };
        let view = blocking::wait_for(store.read(&keys))?.view;
        let lease = view.lease.ok_or_else(|| self.missing())?;
        let deadline = view.holder.map(|session| Duration::from_nanos(session.deadline.as_nanos()));
        let ticks = deadline.ok_or_else(|| self.missing())?.as_nanos() / TICK.as_nanos();
        Ok(LeaseRow {
            resource: lease.resource.to_string(),
            owner: lease.owner.name.to_string(),
            epoch: lease.epoch.get(),
            deadline: u64::try_from(ticks).unwrap_or(u64::MAX),
            result: match lease.phase {
                Phase::Completed { outcome } => Some(outcome.to_string()),
                _ => None,
            },
        })
    }

    fn missing(&self) -> DemoError {
        let why = format!("the row of {RESOURCE} is not there: {}", json!(self.kind.name()));
        DemoError::NoResult { path: self.dir.join(AUTHORITY), why }
    }
}
