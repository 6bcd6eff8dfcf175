//! The lines of an export. Their form is a promise: what this version writes, later ones read.

use crate::screen::when::{Now, parse, rfc3339};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;
use tenure::authority::{Recorded, Source};
use tenure::core::record::{Event, LeaseRecord, Owner, Phase, SinkMark, Transition};
use tenure::core::{
    Actor, Epoch, Generation, GrantId, InstanceId, Instant, Outcome, OwnerName, Reason, ResourceName, SessionId,
    SinkId, StoreIdentity, Ttl,
};

pub(crate) const FORMAT: &str = "tenure-export";
pub(crate) const VERSION: u32 = 1;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Line {
    /// The first one.
    Export(Header),
    /// A row of the history.
    Row(Row),
    /// A resource.
    Resource(Resource),
}

/// What is exported, and how many lines follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub(crate) format: String,
    pub(crate) version: u32,
    pub(crate) store: String,
    pub(crate) incarnation: u64,
    pub(crate) floor: Option<u64>,
    pub(crate) max_ttl_ms: u64,
    /// The longest ttl of a session that is live and stands under a resource; null when there is none.
    pub(crate) longest_live_ttl_ms: Option<u64>,
    /// What is left of the store's own quarantine.
    pub(crate) quarantine_ms: Option<u64>,
    pub(crate) rows: u64,
    pub(crate) resources: u64,
    pub(crate) exported_at: String,
}

/// A row of the history. `at_ns` is the reading of the store's own clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    number: u64,
    at: String,
    at_ns: u64,
    event: String,
    resource: Option<String>,
    epoch: Option<u64>,
    grant: Option<String>,
    session: Option<String>,
    actor: Option<String>,
    why: Option<String>,
}

/// A resource. `since` is for people: an import does not read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resource {
    resource: String,
    phase: String,
    epoch: u64,
    grant: String,
    session: String,
    owner: String,
    instance: String,
    since: String,
    receivers: BTreeMap<String, Receiver>,
    outcome: Option<String>,
    cut: Option<u64>,
    forgotten: Option<Vec<String>>,
}

/// How far a grant got with a receiver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Receiver {
    generation: Option<String>,
    sealed: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    excused: bool,
}

/// Whole milliseconds, rounded up: nobody believes for longer.
pub(crate) fn millis_up(span: Duration) -> u64 {
    u64::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

impl Header {
    /// What it says of the store.
    pub(crate) fn source(&self) -> Result<Source, String> {
        if self.format != FORMAT {
            return Err(format!("format: {:?} is not {FORMAT:?}", self.format));
        }
        if self.version != VERSION {
            return Err(format!(
                "version: {} is not {VERSION}: use the release that wrote it, or a newer one",
                self.version
            ));
        }
        let max_ttl =
            Ttl::new(Duration::from_millis(self.max_ttl_ms)).map_err(|error| format!("max_ttl_ms: {error}"))?;
        let belief = self.longest_live_ttl_ms.max(self.quarantine_ms).map(Duration::from_millis);
        Ok(Source {
            identity: StoreIdentity::new(&self.store).map_err(|error| format!("store: {error}"))?,
            incarnation: self.incarnation,
            floor: optional("floor", self.floor, Epoch::new)?,
            max_ttl,
            belief,
        })
    }
}

impl Row {
    pub(crate) fn of(row: &Recorded) -> Self {
        let step = &row.transition;
        Self {
            number: row.number,
            at: rfc3339(row.wall),
            at_ns: step.at.as_nanos(),
            event: step.event.name().to_owned(),
            resource: step.resource.as_ref().map(ToString::to_string),
            epoch: step.epoch.map(Epoch::get),
            grant: step.grant.map(|grant| grant.to_string()),
            session: step.session.map(|session| session.to_string()),
            actor: step.actor.as_ref().map(ToString::to_string),
            why: step.why.as_ref().map(ToString::to_string),
        }
    }

    /// The row, or which field is wrong and why.
    pub(crate) fn recorded(&self) -> Result<Recorded, String> {
        let event = Event::ALL.into_iter().find(|event| event.name() == self.event);
        let transition = Transition {
            at: Instant::from_nanos(self.at_ns),
            event: event.ok_or_else(|| format!("event: {:?} is none", self.event))?,
            resource: text("resource", self.resource.as_deref())?,
            session: text("session", self.session.as_deref())?,
            epoch: optional("epoch", self.epoch, Epoch::new)?,
            grant: text("grant", self.grant.as_deref())?,
            actor: text::<Actor>("actor", self.actor.as_deref())?,
            why: text::<Reason>("why", self.why.as_deref())?,
        };
        let wall = parse(&self.at).ok_or_else(|| format!("at: {:?} is no time in RFC 3339 since 1970", self.at))?;
        Ok(Recorded { number: self.number, wall, transition })
    }
}

impl Resource {
    pub(crate) fn of(lease: &LeaseRecord, now: &Now) -> Self {
        let (outcome, cut, forgotten) = match &lease.phase {
            Phase::Free | Phase::Sealing | Phase::Held => (None, None, None),
            Phase::Completed { outcome } => (Some(outcome.to_string()), None, None),
            Phase::Retiring { cut, forgotten } => {
                (None, Some(cut.get()), Some(forgotten.iter().map(ToString::to_string).collect()))
            }
        };
        let receiver = |(id, mark): (&SinkId, &SinkMark)| {
            let generation = mark.bound.as_ref().map(ToString::to_string);
            (id.to_string(), Receiver { generation, sealed: mark.sealed, excused: mark.excused })
        };
        Self {
            resource: lease.resource.to_string(),
            phase: lease.phase.name().to_owned(),
            epoch: lease.epoch.get(),
            grant: lease.grant.to_string(),
            session: lease.session.to_string(),
            owner: lease.owner.name.to_string(),
            instance: lease.owner.instance.to_string(),
            since: rfc3339(now.wall_of(lease.since)),
            receivers: lease.sinks.iter().map(receiver).collect(),
            outcome,
            cut,
            forgotten,
        }
    }

    /// The record, or which field is wrong and why. Since when it is held is not vouched for in another store.
    pub(crate) fn lease(&self) -> Result<LeaseRecord, String> {
        let mut sinks = BTreeMap::new();
        for (id, receiver) in &self.receivers {
            let bound = text::<Generation>("generation", receiver.generation.as_deref())?;
            sinks.insert(
                named::<SinkId>("receivers", id)?,
                SinkMark { bound, sealed: receiver.sealed, excused: receiver.excused },
            );
        }
        Ok(LeaseRecord {
            resource: named::<ResourceName>("resource", &self.resource)?,
            epoch: Epoch::new(self.epoch).map_err(|error| format!("epoch: {error}"))?,
            grant: named::<GrantId>("grant", &self.grant)?,
            session: named::<SessionId>("session", &self.session)?,
            owner: Owner {
                name: named::<OwnerName>("owner", &self.owner)?,
                instance: named::<InstanceId>("instance", &self.instance)?,
            },
            since: Instant::from_nanos(0),
            phase: self.phase()?,
            sinks,
        })
    }

    fn phase(&self) -> Result<Phase, String> {
        let needs = |field: &str| format!("phase: a resource that is {} has {field}", self.phase);
        Ok(match self.phase.as_str() {
            "free" => Phase::Free,
            "sealing" => Phase::Sealing,
            "held" => Phase::Held,
            "completed" => {
                let outcome = text::<Outcome>("outcome", self.outcome.as_deref())?;
                Phase::Completed { outcome: outcome.ok_or_else(|| needs("an outcome"))? }
            }
            "retiring" => {
                let cut = optional("cut", self.cut, Epoch::new)?.ok_or_else(|| needs("a cut"))?;
                let forgotten = self.forgotten.as_deref().unwrap_or_default().iter();
                let forgotten =
                    forgotten.map(|id| named::<SinkId>("forgotten", id)).collect::<Result<BTreeSet<_>, _>>();
                Phase::Retiring { cut, forgotten: forgotten? }
            }
            other => return Err(format!("phase: {other:?} is none")),
        })
    }
}

fn named<T: FromStr<Err: Display>>(field: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!("{field}: {error}"))
}

fn text<T: FromStr<Err: Display>>(field: &str, value: Option<&str>) -> Result<Option<T>, String> {
    value.map(|value| named(field, value)).transpose()
}

fn optional<T, E: Display>(
    field: &str,
    value: Option<u64>,
    new: impl FnOnce(u64) -> Result<T, E>,
) -> Result<Option<T>, String> {
    value.map(new).transpose().map_err(|error| format!("{field}: {error}"))
}
