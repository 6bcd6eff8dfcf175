use super::actor::Actor;
use super::ground::Ground;
use super::receiver::{Kind, Receiver, Row};
use super::worker::{AUTHORITY, CLOCK, RESOURCE, TICK};
use super::{DemoError, Stage};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure::authority::{Authority, Clock, FileClock, store};
use tenure::core::decide::{Keys, View};
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
    /// The epoch before the first one: what is shown and compared counts from there.
    pub(super) base: u64,
    /// How the receiver may lose what it has accepted.
    pub(super) may_lose: Option<&'static str>,
}

/// The authority's row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct LeaseRow {
    resource: String,
    owner: String,
    epoch: u64,
    /// In ticks; in real time there are none.
    deadline: Option<u64>,
    pub(super) result: Option<String>,
}

impl Incident {
    pub(super) fn verdict(&self, event: &str) -> &str {
        let found = self.events.iter().find(|(name, _)| *name == event);
        found.and_then(|(_, result)| result.as_str()).unwrap_or_default()
    }
}

/// A acquires and is stopped; B takes over at A's deadline, writes and completes; A wakes up, writes and completes.
pub(super) fn takeover(stage: &Stage, dir: &Path, kind: Kind) -> Result<Incident, DemoError> {
    let mut scene = Scene::set(stage, dir, "takeover", kind)?;
    let mut events = Vec::new();
    let mut a = scene.enter("A")?;
    events.push(("A_acquire", scene.first(&a.order("acquire")?)));
    a.stop()?;
    scene.tick(10)?;
    let mut b = scene.enter("B")?;
    events.push(("B_acquire", scene.counted(&b.order("acquire")?)));
    events.push(("B_write", b.order("write new")?["verdict"].clone()));
    events.push(("B_complete", b.order("complete new")?["accepted"].clone()));
    b.leave()?;
    scene.tick(11)?;
    a.wake()?;
    events.push(("A_write", a.order("write old")?["verdict"].clone()));
    let late = a.order("complete old")?;
    events.push(("A_complete", late["accepted"].clone()));
    a.leave()?;
    let told = |by: &str| late[by].as_str().unwrap_or_default().to_owned();
    scene.end(events, Some((told("by_holder"), told("by_authority"))))
}

/// A acquires and is stopped; B takes over and sends nothing yet; A wakes up and writes, B writes, A writes again.
pub(super) fn gap(stage: &Stage, dir: &Path, kind: Kind) -> Result<Incident, DemoError> {
    let mut scene = Scene::set(stage, dir, "gap", kind)?;
    let mut a = scene.enter("A")?;
    scene.first(&a.order("acquire")?);
    a.stop()?;
    scene.tick(10)?;
    let mut b = scene.enter("B")?;
    b.order("acquire")?;
    scene.tick(11)?;
    a.wake()?;
    let events = vec![
        ("A_write_1", a.order("write old")?["verdict"].clone()),
        ("B_write", b.order("write new")?["verdict"].clone()),
        ("A_write_2", a.order("write old")?["verdict"].clone()),
    ];
    // The rows are read while B holds the resource; then both may leave.
    let incident = scene.end(events, None)?;
    a.leave()?;
    b.leave()?;
    Ok(incident)
}

/// The name of a scene, and of its folder.
pub(super) fn scene(what: &str, kind: Kind) -> String {
    format!("{what}-{}", kind.name())
}

/// One folder with its receiver, and on a ground of its own with its clock and its authority.
struct Scene<'a> {
    ground: &'a Ground,
    resource: String,
    dir: PathBuf,
    kind: Kind,
    /// The receiver's address.
    at: String,
    receiver: Receiver,
    /// The epoch before A's.
    base: u64,
}

impl<'a> Scene<'a> {
    fn set(stage: &'a Stage, dir: &Path, what: &str, kind: Kind) -> Result<Self, DemoError> {
        let scene = scene(what, kind);
        let dir = dir.join(&scene);
        std::fs::create_dir(&dir).map_err(|error| DemoError::File { path: dir.clone(), error })?;
        let at = stage.receivers.address(what, kind, &dir);
        let (receiver, resource) = (Receiver::at(&at, kind)?, stage.ground.resource(&scene));
        let set = Self { ground: &stage.ground, resource, dir, kind, at, receiver, base: 0 };
        set.tick(0)?;
        if let Ground::Own = set.ground {
            let url = format!("sqlite:{}?create=true", set.dir.join(AUTHORITY).display());
            drop(store::connect(&url, set.clock()?)?);
        }
        set.receiver.create()?;
        Ok(set)
    }

    /// Moves the clock. In real time the next one to ask waits for the deadline instead.
    fn tick(&self, tick: u32) -> Result<(), DemoError> {
        if let Ground::Shared(_) = self.ground {
            return Ok(());
        }
        let path = self.dir.join(CLOCK);
        let millis = u64::try_from((TICK * tick).as_millis()).unwrap_or(u64::MAX);
        FileClock::set_millis(&path, millis).map_err(|error| DemoError::File { path, error })
    }

    fn clock(&self) -> Result<Clock, DemoError> {
        Ok(Clock::File(FileClock::open(self.dir.join(CLOCK))?))
    }

    fn enter(&self, name: &'static str) -> Result<Actor, DemoError> {
        Actor::enter(name, (&self.dir, self.kind, &self.at), (self.ground, &self.resource))
    }

    /// A's epoch, from which all others are counted: a store that has retired resources begins above its floor.
    fn first(&mut self, acquired: &Value) -> Value {
        self.base = acquired["epoch"].as_u64().unwrap_or_default().saturating_sub(1);
        self.counted(acquired)
    }

    fn counted(&self, acquired: &Value) -> Value {
        json!(acquired["epoch"].as_u64().unwrap_or_default().saturating_sub(self.base))
    }

    fn end(
        &self,
        events: Vec<(&'static str, Value)>,
        late_complete: Option<(String, String)>,
    ) -> Result<Incident, DemoError> {
        let sink = self.receiver.row(&self.dir, &self.resource, self.base)?;
        let may_lose = self.receiver.sink()?.and_then(|sink| sink.may_lose());
        Ok(Incident {
            kind: self.kind,
            events,
            late_complete,
            lease: self.lease_row()?,
            sink,
            base: self.base,
            may_lose,
        })
    }

    fn lease_row(&self) -> Result<LeaseRow, DemoError> {
        let (lease, deadline) = match self.ground {
            Ground::Own => {
                let url = format!("sqlite:{}", self.dir.join(AUTHORITY).display());
                let view = self.view(&Authority::new(store::connect(&url, self.clock()?)?))?;
                let deadline = view.holder.map(|session| Duration::from_nanos(session.deadline.as_nanos()));
                let ticks = deadline.ok_or_else(|| self.missing())?.as_nanos() / TICK.as_nanos();
                (view.lease, Some(u64::try_from(ticks).unwrap_or(u64::MAX)))
            }
            Ground::Shared(shared) => (self.view(shared.authority())?.lease, None),
        };
        let lease = lease.ok_or_else(|| self.missing())?;
        Ok(LeaseRow {
            resource: RESOURCE.to_owned(),
            owner: lease.owner.name.to_string(),
            epoch: lease.epoch.get().saturating_sub(self.base),
            deadline,
            result: match lease.phase {
                Phase::Completed { outcome } => Some(outcome.to_string()),
                _ => None,
            },
        })
    }

    fn view(&self, authority: &Authority) -> Result<View, DemoError> {
        let keys = Keys { resource: ResourceName::new(&self.resource).ok(), ..Keys::default() };
        Ok(blocking::wait_for(authority.store().read(&keys))?.view)
    }

    fn missing(&self) -> DemoError {
        let why = format!("the row of {} is not there: {}", self.resource, json!(self.kind.name()));
        DemoError::NoResult { path: self.dir.join(AUTHORITY), why }
    }
}
