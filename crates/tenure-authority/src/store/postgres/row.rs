//! Records as rows.

use crate::store::{Recorded, Version};
use crate::{StoreError, WallTime};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Display;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenure_core::record::{
    AuthorityRecord, EndReason, Event, Holdings, LeaseRecord, Owner, Phase, SessionRecord, SessionState, SinkMark,
    Transition,
};
use tenure_core::{
    AuthorityClock, Epoch, Generation, GrantId, InstanceId, Instant, ResourceName, SessionId, SinkId, Ttl,
};
use tokio_postgres::Row;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// The columns that [`Columns::session`] reads, in its order.
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
            ".version"
        )
    };
}
/// The columns that [`Columns::lease`] reads, in its order.
macro_rules! lease_columns {
    () => {
        "l.resource, l.epoch, l.grant_id, l.session_id, l.owner_name, l.owner_instance, l.since_ns, l.phase, \
         l.outcome, l.cut, l.forgotten, l.sinks, l.version"
    };
}
pub(super) use {lease_columns, session_columns};

const SESSION_WIDTH: usize = 11;
const LEASE_WIDTH: usize = 13;

type Result<T> = std::result::Result<T, StoreError>;

/// 128 bits as 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits(pub(super) u128);

impl ToSql for Bits {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> std::result::Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0.to_be_bytes());
        Ok(IsNull::No)
    }

    fn accepts(to: &Type) -> bool {
        *to == Type::BYTEA
    }

    to_sql_checked!();
}

impl<'row> FromSql<'row> for Bits {
    fn from_sql(_: &Type, raw: &'row [u8]) -> std::result::Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(u128::from_be_bytes(raw.try_into()?)))
    }

    fn accepts(from: &Type) -> bool {
        *from == Type::BYTEA
    }
}

/// A row, read from left to right.
pub(super) struct Columns<'row> {
    row: &'row Row,
    at: usize,
}

/// A session, with what its row keeps beside it.
pub(super) type SessionRow = (SessionRecord, Version);

impl<'row> Columns<'row> {
    pub(super) fn new(row: &'row Row) -> Self {
        Self { row, at: 0 }
    }

    pub(super) fn next<T: FromSql<'row>>(&mut self) -> Result<T> {
        let at = self.at;
        self.at += 1;
        self.row.try_get(at).map_err(|error| StoreError::Corrupt(error.to_string()))
    }

    /// A count that is only compared for equality or never reaches the sign: all 64 bits are kept.
    pub(super) fn unsigned(&mut self) -> Result<u64> {
        self.next::<i64>().map(i64::cast_unsigned)
    }

    pub(super) fn instant(&mut self) -> Result<Instant<AuthorityClock>> {
        self.next().map(instant_from)
    }

    pub(super) fn optional_instant(&mut self) -> Result<Option<Instant<AuthorityClock>>> {
        Ok(self.next::<Option<i64>>()?.map(instant_from))
    }

    fn bits(&mut self) -> Result<u128> {
        self.next::<Bits>().map(|bits| bits.0)
    }

    fn optional_bits(&mut self) -> Result<Option<u128>> {
        Ok(self.next::<Option<Bits>>()?.map(|bits| bits.0))
    }

    fn text<T: FromStr<Err: Display>>(&mut self) -> Result<T> {
        self.next::<&str>()?.parse().map_err(damaged)
    }

    fn optional_text<T: FromStr<Err: Display>>(&mut self) -> Result<Option<T>> {
        self.next::<Option<&str>>()?.map(|text| text.parse().map_err(damaged)).transpose()
    }

    fn epoch(&mut self) -> Result<Epoch> {
        Epoch::try_from(self.next::<i64>()?).map_err(damaged)
    }

    fn optional_epoch(&mut self) -> Result<Option<Epoch>> {
        self.next::<Option<i64>>()?.map(|epoch| Epoch::try_from(epoch).map_err(damaged)).transpose()
    }

    fn ttl(&mut self) -> Result<Ttl> {
        Ttl::new(Duration::from_nanos(self.unsigned()?)).map_err(damaged)
    }

    fn owner(&mut self) -> Result<Owner> {
        Ok(Owner { name: self.text()?, instance: InstanceId::from_bits(self.bits()?) })
    }

    /// Whether the record is there; its columns are passed over when it is not.
    fn is_there(&mut self, width: usize) -> Result<bool> {
        struct Anything;
        impl FromSql<'_> for Anything {
            fn from_sql(_: &Type, _: &[u8]) -> std::result::Result<Self, Box<dyn Error + Sync + Send>> {
                Ok(Self)
            }
            fn accepts(_: &Type) -> bool {
                true
            }
        }
        let is_there = self.next::<Option<Anything>>()?.is_some();
        self.at = if is_there { self.at - 1 } else { self.at - 1 + width };
        Ok(is_there)
    }

    pub(super) fn authority(&mut self) -> Result<(AuthorityRecord, Version)> {
        let record = AuthorityRecord {
            identity: self.text()?,
            incarnation: self.unsigned()?,
            floor: self.optional_epoch()?,
            max_ttl: self.ttl()?,
            quarantined_until: self.optional_instant()?,
        };
        Ok((record, Version(self.unsigned()?)))
    }

    pub(super) fn holdings(&mut self) -> Result<Holdings> {
        let (high, low) = (self.next::<Option<i64>>()?, self.next::<Option<i64>>()?);
        Ok(holdings(high.unwrap_or(0), low.unwrap_or(0)))
    }

    pub(super) fn session(&mut self) -> Result<Option<SessionRow>> {
        if !self.is_there(SESSION_WIDTH)? {
            return Ok(None);
        }
        let mut session = SessionRecord {
            id: SessionId::from_bits(self.bits()?),
            owner: self.owner()?,
            on_this_host: self.next()?,
            ttl: self.ttl()?,
            deadline: self.instant()?,
            renew_seq: self.unsigned()?,
            incarnation: self.unsigned()?,
            state: SessionState::Live,
        };
        let (ended, at) = (self.next::<Option<&str>>()?, self.optional_instant()?);
        if let Some(why) = ended {
            let reason = EndReason::ALL.into_iter().find(|reason| reason.name() == why);
            let why = reason.ok_or_else(|| unknown(why))?;
            session.state = SessionState::Ended { why, at: at.ok_or_else(|| damaged("an end without its instant"))? };
        }
        Ok(Some((session, Version(self.unsigned()?))))
    }

    pub(super) fn lease(&mut self) -> Result<Option<(LeaseRecord, Version)>> {
        if !self.is_there(LEASE_WIDTH)? {
            return Ok(None);
        }
        let lease = LeaseRecord {
            resource: self.text()?,
            epoch: self.epoch()?,
            grant: GrantId::from_bits(self.bits()?),
            session: SessionId::from_bits(self.bits()?),
            owner: self.owner()?,
            since: self.instant()?,
            phase: self.phase()?,
            sinks: sinks_from(self.next()?)?,
        };
        Ok(Some((lease, Version(self.unsigned()?))))
    }

    fn phase(&mut self) -> Result<Phase> {
        let (name, outcome): (&str, Option<&str>) = (self.next()?, self.next()?);
        let (cut, forgotten) = (self.optional_epoch()?, self.next::<Option<&str>>()?);
        let missing = || damaged(format!("the phase {name:?} lacks a part"));
        Ok(match name {
            "free" => Phase::Free,
            "sealing" => Phase::Sealing,
            "held" => Phase::Held,
            "completed" => {
                let outcome = unescaped(outcome.ok_or_else(missing)?);
                Phase::Completed { outcome: outcome.parse().map_err(damaged)? }
            }
            "retiring" => {
                let names: Vec<String> = from_json(forgotten.ok_or_else(missing)?)?;
                let names = names.iter().map(SinkId::new).collect::<std::result::Result<BTreeSet<_>, _>>();
                Phase::Retiring { cut: cut.ok_or_else(missing)?, forgotten: names.map_err(damaged)? }
            }
            other => return Err(unknown(other)),
        })
    }

    /// Number, instant, wall-clock time, event, resource, session, epoch, grant, actor, why.
    pub(super) fn recorded(&mut self) -> Result<Recorded> {
        let (number, at, wall) = (self.unsigned()?, self.instant()?, self.next::<SystemTime>()?);
        let name: &str = self.next()?;
        let transition = Transition {
            at,
            event: Event::ALL.into_iter().find(|event| event.name() == name).ok_or_else(|| unknown(name))?,
            resource: self.optional_text()?,
            session: self.optional_bits()?.map(SessionId::from_bits),
            epoch: self.optional_epoch()?,
            grant: self.optional_bits()?.map(GrantId::from_bits),
            actor: self.optional_text()?,
            why: self.next::<Option<&str>>()?.map(|why| unescaped(why).parse().map_err(damaged)).transpose()?,
        };
        let millis = wall.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let wall = WallTime::from_millis(u64::try_from(millis).unwrap_or(u64::MAX));
        Ok(Recorded { number, wall, transition })
    }
}

/// Nanoseconds as a column; the end of its numbers when it lies beyond, in the year 2262.
pub(super) fn instant_to(instant: Instant<AuthorityClock>) -> i64 {
    i64::try_from(instant.as_nanos()).unwrap_or(i64::MAX)
}

pub(super) fn instant_from(nanos: i64) -> Instant<AuthorityClock> {
    Instant::from_nanos(nanos.try_into().unwrap_or(0))
}

pub(super) fn wall_to(wall: WallTime) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(wall.as_millis())
}

pub(super) fn nanos_of(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// A fingerprint as two columns.
pub(super) fn halves(holdings: Holdings) -> (i64, i64) {
    let (high, low) = (holdings.bits() >> 64, holdings.bits() & u128::from(u64::MAX));
    let half = |bits: u128| u64::try_from(bits).unwrap_or_default().cast_signed();
    (half(high), half(low))
}

pub(super) fn holdings(high: i64, low: i64) -> Holdings {
    Holdings::from_bits(u128::from(high.cast_unsigned()) << 64 | u128::from(low.cast_unsigned()))
}

/// PostgreSQL's text holds no zero byte.
pub(super) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\\', '\0']) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('\\', "\\\\").replace('\0', "\\0"))
}

fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let (mut plain, mut characters) = (String::with_capacity(text.len()), text.chars());
    while let Some(character) = characters.next() {
        plain.push(match (character, character == '\\') {
            (_, true) if characters.next() == Some('0') => '\0',
            (other, _) => other,
        });
    }
    Cow::Owned(plain)
}

/// What a phase adds to its name: outcome, cut, forgotten.
pub(super) type PhaseColumns<'phase> = (Option<Cow<'phase, str>>, Option<i64>, Option<String>);

pub(super) fn phase_columns(phase: &Phase) -> Result<PhaseColumns<'_>> {
    Ok(match phase {
        Phase::Free | Phase::Sealing | Phase::Held => (None, None, None),
        Phase::Completed { outcome } => (Some(escaped(outcome.as_str())), None, None),
        Phase::Retiring { cut, forgotten } => {
            let forgotten: Vec<_> = forgotten.iter().map(SinkId::as_str).collect();
            (None, Some(cut.as_i64()), Some(to_json(&forgotten)?))
        }
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

fn sinks_from(text: &str) -> Result<BTreeMap<SinkId, SinkMark>> {
    if text == "{}" {
        return Ok(BTreeMap::new());
    }
    let marks: BTreeMap<String, Mark> = from_json(text)?;
    let mark = |(sink, mark): (String, Mark)| {
        let bound = mark.bound.map(Generation::new).transpose();
        Ok((SinkId::new(sink)?, SinkMark { bound: bound?, sealed: mark.sealed, excused: mark.excused }))
    };
    let marks: std::result::Result<_, tenure_core::NameError> = marks.into_iter().map(mark).collect();
    marks.map_err(damaged)
}

fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(damaged)
}

fn from_json<T: for<'text> Deserialize<'text>>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(damaged)
}

fn damaged(error: impl Display) -> StoreError {
    StoreError::Corrupt(error.to_string())
}

fn unknown(word: &str) -> StoreError {
    damaged(format!("the word {word:?} is not known here"))
}

/// A name as a parameter.
pub(super) fn name(resource: Option<&ResourceName>) -> Option<&str> {
    resource.map(ResourceName::as_str)
}

#[cfg(test)]
mod tests;
