//! Records as rows.

use crate::WallTime;
use crate::store::{Recorded, Version};
use rusqlite::types::Type;
use rusqlite::{Error, Result, Row};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::time::Duration;
use tenure_core::record::{
    AuthorityRecord, EndReason, Event, Holdings, LeaseRecord, Owner, Phase, SessionRecord, SessionState, SinkMark,
    Transition,
};
use tenure_core::{
    AuthorityClock, Epoch, Generation, GrantId, InstanceId, Instant, ResourceName, SessionId, SinkId, Ttl,
};

/// The columns that [`authority`] reads, in its order.
macro_rules! authority_columns {
    () => {
        "m.identity, m.incarnation, m.floor, m.max_ttl_ns, m.quarantined_until_ns, m.version, m.origin, \
         m.versions_dropped, m.origin_after"
    };
}
/// The columns that [`session`] reads, in its order.
macro_rules! session_columns {
    ($of:literal) => {
        concat!(
            $of,
            ".id, ",
            $of,
            ".owner_name, ",
            $of,
            ".owner_instance, ",
            $of,
            ".on_this_host, ",
            $of,
            ".ttl_ns, ",
            $of,
            ".deadline_ns, ",
            $of,
            ".renew_seq, ",
            $of,
            ".incarnation, ",
            $of,
            ".ended, ",
            $of,
            ".ended_at_ns, ",
            $of,
            ".version, ",
            $of,
            ".holdings"
        )
    };
}
/// The columns that [`lease`] reads, in its order.
macro_rules! lease_columns {
    () => {
        "l.resource, l.epoch, l.grant_id, l.session_id, l.owner_name, l.owner_instance, l.since_ns, l.phase, \
         l.outcome, l.cut, l.forgotten, l.sinks, l.version"
    };
}
/// A piece of the history as [`recorded`] reads it: the condition on the number, then the order.
macro_rules! history {
    ($after:literal, $order:literal) => {
        concat!(
            "SELECT number, at_ns, event, resource, session_id, epoch, grant_id, actor, why, \
             CAST(round(unixepoch(wall, 'subsec') * 1000) AS INTEGER) FROM history \
             WHERE ",
            $after,
            " AND (?2 IS NULL OR resource = ?2) ORDER BY ",
            $order,
            " LIMIT ?3"
        )
    };
}
pub(super) use {authority_columns, history, lease_columns, session_columns};

pub(super) const AUTHORITY_WIDTH: usize = 9;
pub(super) const SESSION_WIDTH: usize = 12;
pub(super) const LEASE_WIDTH: usize = 13;

/// The row that belongs to the file as a whole.
pub(super) struct Meta {
    pub(super) authority: AuthorityRecord,
    pub(super) version: Version,
    pub(super) origin: String,
    pub(super) versions_dropped: u64,
    pub(super) origin_after: u64,
}

/// A session, with what its row keeps beside it.
pub(super) struct SessionRow {
    pub(super) session: SessionRecord,
    pub(super) version: Version,
    pub(super) holdings: Holdings,
}

pub(super) fn authority(row: &Row<'_>, at: usize) -> Result<Meta> {
    let ttl = Ttl::new(Duration::from_nanos(unsigned(row, at + 3)?)).map_err(|error| damaged(at + 3, error))?;
    Ok(Meta {
        authority: AuthorityRecord {
            identity: text(row, at)?,
            incarnation: unsigned(row, at + 1)?,
            floor: optional_epoch(row, at + 2)?,
            max_ttl: ttl,
            quarantined_until: row.get::<_, Option<i64>>(at + 4)?.map(instant_from),
        },
        version: Version(unsigned(row, at + 5)?),
        origin: row.get(at + 6)?,
        versions_dropped: unsigned(row, at + 7)?,
        origin_after: unsigned(row, at + 8)?,
    })
}

pub(super) fn session(row: &Row<'_>, at: usize) -> Result<Option<SessionRow>> {
    if row.get_ref(at)?.as_blob_or_null().is_ok_and(|id| id.is_none()) {
        return Ok(None);
    }
    let ttl = Ttl::new(Duration::from_nanos(unsigned(row, at + 4)?)).map_err(|error| damaged(at + 4, error))?;
    let state = match row.get_ref(at + 8)?.as_str_or_null().map_err(|error| damaged(at + 8, error))? {
        None => SessionState::Live,
        Some(why) => SessionState::Ended { why: end_reason(why, at + 8)?, at: instant_from(row.get(at + 9)?) },
    };
    let session = SessionRecord {
        id: SessionId::from_bits(bits(row, at)?),
        owner: Owner { name: text(row, at + 1)?, instance: InstanceId::from_bits(bits(row, at + 2)?) },
        on_this_host: row.get(at + 3)?,
        ttl,
        deadline: instant_from(row.get(at + 5)?),
        renew_seq: unsigned(row, at + 6)?,
        incarnation: unsigned(row, at + 7)?,
        state,
    };
    Ok(Some(SessionRow {
        session,
        version: Version(unsigned(row, at + 10)?),
        holdings: Holdings::from_bits(bits(row, at + 11)?),
    }))
}

pub(super) fn lease(row: &Row<'_>, at: usize) -> Result<Option<(LeaseRecord, Version)>> {
    if row.get_ref(at)?.as_str_or_null().is_ok_and(|name| name.is_none()) {
        return Ok(None);
    }
    let resource: ResourceName = text(row, at)?;
    let lease = LeaseRecord {
        resource,
        epoch: epoch(row, at + 1)?,
        grant: GrantId::from_bits(bits(row, at + 2)?),
        session: SessionId::from_bits(bits(row, at + 3)?),
        owner: Owner { name: text(row, at + 4)?, instance: InstanceId::from_bits(bits(row, at + 5)?) },
        since: instant_from(row.get(at + 6)?),
        phase: phase(row, at + 7)?,
        sinks: sinks_from(row, at + 11)?,
    };
    Ok(Some((lease, Version(unsigned(row, at + 12)?))))
}

pub(super) fn recorded(row: &Row<'_>) -> Result<Recorded> {
    let name = row.get_ref(2)?.as_str().map_err(|error| damaged(2, error))?;
    let event = Event::ALL.into_iter().find(|event| event.name() == name).ok_or_else(|| unknown(2, name))?;
    let transition = Transition {
        at: instant_from(row.get(1)?),
        event,
        resource: optional_text(row, 3)?,
        session: optional_bits(row, 4)?.map(SessionId::from_bits),
        epoch: optional_epoch(row, 5)?,
        grant: optional_bits(row, 6)?.map(GrantId::from_bits),
        actor: optional_text(row, 7)?,
        why: optional_text(row, 8)?,
    };
    let wall = WallTime::from_millis(row.get::<_, i64>(9)?.try_into().unwrap_or(0));
    Ok(Recorded { number: unsigned(row, 0)?, wall, transition })
}

/// Nanoseconds as a column; the end of SQLite's numbers when it lies beyond, 292 years after the clock's beginning.
pub(super) fn instant_to(instant: Instant<AuthorityClock>) -> i64 {
    i64::try_from(instant.as_nanos()).unwrap_or(i64::MAX)
}

pub(super) fn instant_from(nanos: i64) -> Instant<AuthorityClock> {
    Instant::from_nanos(nanos.try_into().unwrap_or(0))
}

pub(super) fn nanos_of(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

fn end_reason(name: &str, at: usize) -> Result<EndReason> {
    EndReason::ALL.into_iter().find(|why| why.name() == name).ok_or_else(|| unknown(at, name))
}

/// The columns that a phase fills: phase, outcome, cut, forgotten.
pub(super) type PhaseColumns<'phase> = (&'static str, Option<&'phase str>, Option<i64>, Option<String>);

pub(super) fn phase_columns(phase: &Phase) -> Result<PhaseColumns<'_>> {
    Ok(match phase {
        Phase::Free | Phase::Sealing | Phase::Held => (phase.name(), None, None, None),
        Phase::Completed { outcome } => (phase.name(), Some(outcome.as_str()), None, None),
        Phase::Retiring { cut, forgotten } => {
            let forgotten: Vec<_> = forgotten.iter().map(SinkId::as_str).collect();
            (phase.name(), None, Some(cut.as_i64()), Some(to_json(&forgotten)?))
        }
    })
}

pub(super) fn phase(row: &Row<'_>, at: usize) -> Result<Phase> {
    Ok(match row.get_ref(at)?.as_str().map_err(|error| damaged(at, error))? {
        "free" => Phase::Free,
        "sealing" => Phase::Sealing,
        "held" => Phase::Held,
        "completed" => Phase::Completed { outcome: text(row, at + 1)? },
        "retiring" => {
            let names: Vec<String> = from_json(row, at + 3)?;
            let names = names.iter().map(SinkId::new).collect::<std::result::Result<BTreeSet<_>, _>>();
            Phase::Retiring { cut: epoch(row, at + 2)?, forgotten: names.map_err(|error| damaged(at + 3, error))? }
        }
        other => return Err(unknown(at, other)),
    })
}

/// How a sink's mark is written. Its own type, so that the columns do not change when the core's types do.
#[derive(Serialize, Deserialize)]
struct Mark {
    bound: Option<String>,
    sealed: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    excused: bool,
}

pub(super) fn sinks_to(sinks: &BTreeMap<SinkId, SinkMark>) -> Result<String> {
    if sinks.is_empty() {
        return Ok("{}".to_owned());
    }
    let mark = |mark: &SinkMark| Mark {
        bound: mark.bound.as_ref().map(ToString::to_string),
        sealed: mark.sealed,
        excused: mark.excused,
    };
    to_json(&sinks.iter().map(|(sink, of)| (sink.as_str(), mark(of))).collect::<BTreeMap<_, _>>())
}

fn sinks_from(row: &Row<'_>, at: usize) -> Result<BTreeMap<SinkId, SinkMark>> {
    if row.get_ref(at)?.as_str() == Ok("{}") {
        return Ok(BTreeMap::new());
    }
    let marks: BTreeMap<String, Mark> = from_json(row, at)?;
    let mark = |(sink, mark): (String, Mark)| {
        let bound = mark.bound.map(Generation::new).transpose();
        Ok((SinkId::new(sink)?, SinkMark { bound: bound?, sealed: mark.sealed, excused: mark.excused }))
    };
    let marks: std::result::Result<_, tenure_core::NameError> = marks.into_iter().map(mark).collect();
    marks.map_err(|error| damaged(at, error))
}

fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::ToSqlConversionFailure(Box::new(error)))
}

fn from_json<T: for<'text> Deserialize<'text>>(row: &Row<'_>, at: usize) -> Result<T> {
    let text = row.get_ref(at)?.as_str().map_err(|error| damaged(at, error))?;
    serde_json::from_str(text).map_err(|error| damaged(at, error))
}

fn text<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(row: &Row<'_>, at: usize) -> Result<T> {
    let text = row.get_ref(at)?.as_str().map_err(|error| damaged(at, error))?;
    text.parse().map_err(|error| damaged(at, error))
}

fn optional_text<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    row: &Row<'_>,
    at: usize,
) -> Result<Option<T>> {
    match row.get_ref(at)?.as_str_or_null().map_err(|error| damaged(at, error))? {
        Some(text) => text.parse().map(Some).map_err(|error| damaged(at, error)),
        None => Ok(None),
    }
}

pub(super) fn bits(row: &Row<'_>, at: usize) -> Result<u128> {
    row.get(at).map(u128::from_be_bytes)
}

fn optional_bits(row: &Row<'_>, at: usize) -> Result<Option<u128>> {
    Ok(row.get::<_, Option<[u8; 16]>>(at)?.map(u128::from_be_bytes))
}

pub(super) fn epoch(row: &Row<'_>, at: usize) -> Result<Epoch> {
    Epoch::try_from(row.get::<_, i64>(at)?).map_err(|error| damaged(at, error))
}

fn optional_epoch(row: &Row<'_>, at: usize) -> Result<Option<Epoch>> {
    let epoch = row.get::<_, Option<i64>>(at)?.map(Epoch::try_from).transpose();
    epoch.map_err(|error| damaged(at, error))
}

/// A count that is only compared for equality or never reaches the sign: all 64 bits are kept.
pub(super) fn unsigned(row: &Row<'_>, at: usize) -> Result<u64> {
    row.get::<_, i64>(at).map(i64::cast_unsigned)
}

fn damaged(at: usize, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::FromSqlConversionFailure(at, Type::Text, Box::new(error))
}

fn unknown(at: usize, word: &str) -> Error {
    Error::FromSqlConversionFailure(at, Type::Text, format!("the word {word:?} is not known here").into())
}
