//! Records as JSON, for stores that keep documents. Instants and spans are nanoseconds of the store's clock (`*_ns`), ids
//! are 32 hexadecimal digits.
//!
//! The types here are their own, so that what is stored does not change when the core's types do.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::time::Duration;
use tenure_core::record::{
    AuthorityRecord, EndReason, Event, LeaseRecord, Owner, Phase, SessionRecord, SessionState, SinkMark, Transition,
};
use tenure_core::{Epoch, Generation, InstanceId, Instant, SinkId, Ttl};

/// What a document says does not make sense.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{what} cannot be read: {why}")]
pub(crate) struct JsonError {
    what: &'static str,
    why: String,
}

type Result<T> = std::result::Result<T, JsonError>;

#[derive(Serialize, Deserialize)]
struct Authority {
    identity: String,
    incarnation: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    floor: Option<u64>,
    max_ttl_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    quarantined_until_ns: Option<u64>,
}

pub(crate) fn authority_to(record: &AuthorityRecord) -> Result<String> {
    write(
        "a store's record",
        &Authority {
            identity: record.identity.to_string(),
            incarnation: record.incarnation,
            floor: record.floor.map(Epoch::get),
            max_ttl_ns: nanos(record.max_ttl.get()),
            quarantined_until_ns: record.quarantined_until.map(|until| until.as_nanos()),
        },
    )
}

pub(crate) fn authority_from(text: &str) -> Result<AuthorityRecord> {
    const WHAT: &str = "a store's record";
    let found: Authority = read(WHAT, text)?;
    Ok(AuthorityRecord {
        identity: parsed(WHAT, &found.identity)?,
        incarnation: found.incarnation,
        floor: found.floor.map(|floor| epoch(WHAT, floor)).transpose()?,
        max_ttl: ttl(WHAT, found.max_ttl_ns)?,
        quarantined_until: found.quarantined_until_ns.map(Instant::from_nanos),
    })
}

#[derive(Serialize, Deserialize)]
struct Session {
    id: String,
    owner: String,
    instance: String,
    on_this_host: bool,
    ttl_ns: u64,
    deadline_ns: u64,
    renew_seq: u64,
    incarnation: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    ended: Option<Ended>,
}

#[derive(Serialize, Deserialize)]
struct Ended {
    why: String,
    at_ns: u64,
}

pub(crate) fn session_to(record: &SessionRecord) -> Result<String> {
    let ended = match record.state {
        SessionState::Live => None,
        SessionState::Ended { why, at } => Some(Ended { why: why.name().to_owned(), at_ns: at.as_nanos() }),
    };
    write(
        "a session",
        &Session {
            id: record.id.to_string(),
            owner: record.owner.name.to_string(),
            instance: record.owner.instance.to_string(),
            on_this_host: record.on_this_host,
            ttl_ns: nanos(record.ttl.get()),
            deadline_ns: record.deadline.as_nanos(),
            renew_seq: record.renew_seq,
            incarnation: record.incarnation,
            ended,
        },
    )
}

pub(crate) fn session_from(text: &str) -> Result<SessionRecord> {
    const WHAT: &str = "a session";
    let found: Session = read(WHAT, text)?;
    let state = match found.ended {
        None => SessionState::Live,
        Some(ended) => {
            let why = EndReason::ALL.into_iter().find(|why| why.name() == ended.why);
            let why = why.ok_or_else(|| unknown(WHAT, &ended.why))?;
            SessionState::Ended { why, at: Instant::from_nanos(ended.at_ns) }
        }
    };
    Ok(SessionRecord {
        id: parsed(WHAT, &found.id)?,
        owner: owner(WHAT, &found.owner, &found.instance)?,
        on_this_host: found.on_this_host,
        ttl: ttl(WHAT, found.ttl_ns)?,
        deadline: Instant::from_nanos(found.deadline_ns),
        renew_seq: found.renew_seq,
        incarnation: found.incarnation,
        state,
    })
}

#[derive(Serialize, Deserialize)]
struct Lease {
    resource: String,
    epoch: u64,
    grant: String,
    session: String,
    owner: String,
    instance: String,
    since_ns: u64,
    phase: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    cut: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    forgotten: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    sinks: BTreeMap<String, Mark>,
}

#[derive(Serialize, Deserialize)]
struct Mark {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    bound: Option<String>,
    sealed: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    excused: bool,
}

pub(crate) fn lease_to(record: &LeaseRecord) -> Result<String> {
    let (mut outcome, mut until, mut gone) = (None, None, Vec::new());
    match &record.phase {
        Phase::Free | Phase::Sealing | Phase::Held => {}
        Phase::Completed { outcome: reached } => outcome = Some(reached.to_string()),
        Phase::Retiring { cut, forgotten } => {
            until = Some(cut.get());
            gone = forgotten.iter().map(ToString::to_string).collect();
        }
    }
    let mark = |mark: &SinkMark| Mark {
        bound: mark.bound.as_ref().map(ToString::to_string),
        sealed: mark.sealed,
        excused: mark.excused,
    };
    write(
        "a resource",
        &Lease {
            resource: record.resource.to_string(),
            epoch: record.epoch.get(),
            grant: record.grant.to_string(),
            session: record.session.to_string(),
            owner: record.owner.name.to_string(),
            instance: record.owner.instance.to_string(),
            since_ns: record.since.as_nanos(),
            phase: record.phase.name().to_owned(),
            outcome,
            cut: until,
            forgotten: gone,
            sinks: record.sinks.iter().map(|(sink, of)| (sink.to_string(), mark(of))).collect(),
        },
    )
}

pub(crate) fn lease_from(text: &str) -> Result<LeaseRecord> {
    const WHAT: &str = "a resource";
    let found: Lease = read(WHAT, text)?;
    let missing = || JsonError { what: WHAT, why: format!("its phase {:?} lacks a part", found.phase) };
    let phase = match found.phase.as_str() {
        "free" => Phase::Free,
        "sealing" => Phase::Sealing,
        "held" => Phase::Held,
        "completed" => Phase::Completed { outcome: parsed(WHAT, found.outcome.as_deref().ok_or_else(missing)?)? },
        "retiring" => {
            let forgotten = found.forgotten.iter().map(|sink| parsed(WHAT, sink)).collect::<Result<BTreeSet<_>>>()?;
            Phase::Retiring { cut: epoch(WHAT, found.cut.ok_or_else(missing)?)?, forgotten }
        }
        other => return Err(unknown(WHAT, other)),
    };
    let sinks = found.sinks.iter().map(|(sink, mark)| {
        let bound = mark.bound.as_deref().map(|bound| parsed::<Generation>(WHAT, bound)).transpose()?;
        Ok((parsed::<SinkId>(WHAT, sink)?, SinkMark { bound, sealed: mark.sealed, excused: mark.excused }))
    });
    Ok(LeaseRecord {
        resource: parsed(WHAT, &found.resource)?,
        epoch: epoch(WHAT, found.epoch)?,
        grant: parsed(WHAT, &found.grant)?,
        session: parsed(WHAT, &found.session)?,
        owner: owner(WHAT, &found.owner, &found.instance)?,
        since: Instant::from_nanos(found.since_ns),
        phase,
        sinks: sinks.collect::<Result<_>>()?,
    })
}

#[derive(Serialize, Deserialize)]
struct Row {
    at_ns: u64,
    event: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    resource: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    epoch: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    grant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    actor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    why: Option<String>,
}

/// A row of the history, without its number and its wall-clock time, which the store adds.
pub(crate) fn transition_to(row: &Transition) -> Result<String> {
    write(
        "a row of the history",
        &Row {
            at_ns: row.at.as_nanos(),
            event: row.event.name().to_owned(),
            resource: text(row.resource.as_ref()),
            session: text(row.session.as_ref()),
            epoch: row.epoch.map(Epoch::get),
            grant: text(row.grant.as_ref()),
            actor: text(row.actor.as_ref()),
            why: text(row.why.as_ref()),
        },
    )
}

pub(crate) fn transition_from(text: &str) -> Result<Transition> {
    const WHAT: &str = "a row of the history";
    fn optional<T: std::str::FromStr<Err: Display>>(text: Option<&str>) -> Result<Option<T>> {
        text.map(|text| parsed(WHAT, text)).transpose()
    }
    let found: Row = read(WHAT, text)?;
    let event = Event::ALL.into_iter().find(|event| event.name() == found.event);
    Ok(Transition {
        at: Instant::from_nanos(found.at_ns),
        event: event.ok_or_else(|| unknown(WHAT, &found.event))?,
        resource: optional(found.resource.as_deref())?,
        session: optional(found.session.as_deref())?,
        epoch: found.epoch.map(|found| epoch(WHAT, found)).transpose()?,
        grant: optional(found.grant.as_deref())?,
        actor: optional(found.actor.as_deref())?,
        why: optional(found.why.as_deref())?,
    })
}

fn write(what: &'static str, value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| JsonError { what, why: error.to_string() })
}

fn read<T: for<'text> Deserialize<'text>>(what: &'static str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| JsonError { what, why: error.to_string() })
}

fn text<T: Display>(value: Option<&T>) -> Option<String> {
    value.map(ToString::to_string)
}

fn parsed<T: std::str::FromStr<Err: Display>>(what: &'static str, text: &str) -> Result<T> {
    text.parse().map_err(|error: T::Err| JsonError { what, why: error.to_string() })
}

fn owner(what: &'static str, name: &str, instance: &str) -> Result<Owner> {
    Ok(Owner { name: parsed(what, name)?, instance: parsed::<InstanceId>(what, instance)? })
}

fn epoch(what: &'static str, number: u64) -> Result<Epoch> {
    Epoch::new(number).map_err(|error| JsonError { what, why: error.to_string() })
}

fn ttl(what: &'static str, nanos: u64) -> Result<Ttl> {
    Ttl::new(Duration::from_nanos(nanos)).map_err(|error| JsonError { what, why: error.to_string() })
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn unknown(what: &'static str, word: &str) -> JsonError {
    JsonError { what, why: format!("the word {word:?} is not known here") }
}

#[cfg(test)]
mod tests;
