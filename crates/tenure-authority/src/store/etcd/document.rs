//! What stands at the keys. The records are as in `store::json`, each with a few fields of this store's own in front.

use crate::store::json::{self, JsonError};
use crate::store::{Recorded, StoreError};
use crate::{Clock, WallTime};
use serde::Deserialize;
use std::fmt::Write;
use std::time::Duration;
use tenure_core::record::{AuthorityRecord, Holdings, LeaseRecord, SessionRecord, Transition};
use tenure_core::{AuthorityClock, Instant, SessionId};

/// The version of the keys and documents.
pub(super) const SCHEMA: i64 = 1;

/// The store's own record, with where the rest stands.
#[derive(Clone, Debug)]
pub(super) struct Charter {
    /// The part of the keys in which everything else stands.
    pub(super) part: String,
    /// Its `quarantined_until` is on the clock of whoever wrote it.
    pub(super) record: AuthorityRecord,
    /// How long the quarantine is, from when it is first seen.
    pub(super) quarantine: Option<Duration>,
    /// When it ends, by the wall clock of whoever wrote it, in milliseconds: only for what lies days back.
    pub(super) quarantine_end_ms: Option<u64>,
    /// Whether a key that etcd removes at the end of the quarantine was put beside it.
    pub(super) is_marked: bool,
}

#[derive(Deserialize)]
struct OfCharter {
    schema: i64,
    #[serde(default)]
    part: String,
    #[serde(default)]
    quarantine_ns: Option<u64>,
    #[serde(default)]
    quarantine_end_wall_ms: Option<u64>,
    #[serde(default)]
    marked: bool,
}

impl Charter {
    /// As it is written now.
    pub(super) fn new(part: String, record: AuthorityRecord, now: Instant<AuthorityClock>, is_marked: bool) -> Self {
        let quarantine = record.quarantined_until.map(|until| until.since(&now));
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let quarantine_end_ms = record.quarantined_until.map(|until| {
            // One of the two is nothing.
            let (ahead, ago) = (until.since(&now), now.since(&until));
            WallTime::now().as_millis().saturating_add(millis(ahead)).saturating_sub(millis(ago))
        });
        Self { part, record, quarantine, quarantine_end_ms, is_marked }
    }

    pub(super) fn to_text(&self) -> Result<String, StoreError> {
        let mut own = format!("\"schema\":{SCHEMA},\"part\":\"{}\",\"marked\":{}", self.part, self.is_marked);
        if let Some(span) = self.quarantine {
            let _ = write!(own, ",\"quarantine_ns\":{}", u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
        }
        if let Some(end) = self.quarantine_end_ms {
            let _ = write!(own, ",\"quarantine_end_wall_ms\":{end}");
        }
        Ok(with(&own, &json::authority_to(&self.record).map_err(damaged)?))
    }

    pub(super) fn of(text: &str) -> Result<Self, StoreError> {
        let own: OfCharter = field("a store's record", text)?;
        if own.schema != SCHEMA {
            let advice = if own.schema > SCHEMA {
                "use the program that made it, or a newer one"
            } else {
                "use the program that made it, and export from there"
            };
            return Err(StoreError::Schema { found: own.schema, known: SCHEMA, advice });
        }
        Ok(Self {
            part: own.part,
            record: json::authority_from(text).map_err(damaged)?,
            quarantine: own.quarantine_ns.map(Duration::from_nanos),
            quarantine_end_ms: own.quarantine_end_wall_ms,
            is_marked: own.marked,
        })
    }
}

/// The length of the history, as it stands at the head.
pub(super) fn count_of(head: &str) -> Result<u64, StoreError> {
    let count = head.split(' ').next().and_then(|count| count.parse().ok());
    count.ok_or_else(|| StoreError::Corrupt(format!("the head of the history is {head:?}")))
}

/// A head that no other state of any store has: what went back in time and came forward another way is not mistaken for
/// what was read before.
pub(super) fn head(count: u64) -> Result<String, StoreError> {
    Ok(format!("{count} {:032x}", crate::random_bits()?))
}

/// A session, with the lease of etcd that its holder keeps alive.
pub(super) fn session_to(record: &SessionRecord, lease: Option<i64>) -> Result<String, StoreError> {
    let record = json::session_to(record).map_err(damaged)?;
    Ok(lease.map_or_else(|| record.clone(), |lease| with(&format!("\"etcd_lease\":{lease}"), &record)))
}

pub(super) fn session_of(text: &str) -> Result<(SessionRecord, Option<i64>), StoreError> {
    #[derive(Deserialize)]
    struct Own {
        #[serde(default)]
        etcd_lease: Option<i64>,
    }
    let own: Own = field("a session", text)?;
    Ok((json::session_from(text).map_err(damaged)?, own.etcd_lease))
}

/// A resource. Its `since` is for people, and is told on whatever clock reads it.
pub(super) fn lease_to(record: &LeaseRecord, clock: &Clock) -> Result<String, StoreError> {
    let now = clock.now_nanos()?;
    let ago = Duration::from_nanos(now.saturating_sub(record.since.as_nanos()));
    let wall = WallTime::now().as_millis().saturating_sub(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX));
    let own = format!("\"clock\":{},\"since_wall_ms\":{wall}", quoted(&clock.origin()));
    Ok(with(&own, &json::lease_to(record).map_err(damaged)?))
}

pub(super) fn lease_of(text: &str, clock: &Clock, now: Instant<AuthorityClock>) -> Result<LeaseRecord, StoreError> {
    #[derive(Deserialize)]
    struct Own {
        clock: String,
        since_wall_ms: u64,
    }
    let own: Own = field("a resource", text)?;
    let mut record = json::lease_from(text).map_err(damaged)?;
    if own.clock != clock.origin() {
        let ago = Duration::from_millis(WallTime::now().as_millis().saturating_sub(own.since_wall_ms));
        let ago = u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX);
        record.since = Instant::from_nanos(now.as_nanos().saturating_sub(ago));
    }
    Ok(record)
}

/// A row of the history.
pub(super) fn row_to(wall: WallTime, row: &Transition) -> Result<String, StoreError> {
    Ok(with(&format!("\"wall_ms\":{}", wall.as_millis()), &json::transition_to(row).map_err(damaged)?))
}

pub(super) fn row_of(number: u64, text: &str) -> Result<Recorded, StoreError> {
    #[derive(Deserialize)]
    struct Own {
        wall_ms: u64,
    }
    let own: Own = field("a row of the history", text)?;
    let transition = json::transition_from(text).map_err(damaged)?;
    Ok(Recorded { number, wall: WallTime::from_millis(own.wall_ms), transition })
}

/// An object with more fields in front of its own.
fn with(own: &str, object: &str) -> String {
    format!("{{{own},{}", object.strip_prefix('{').unwrap_or(object))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn field<T: for<'text> Deserialize<'text>>(what: &str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("{what} cannot be read: {error}")))
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn damaged(error: JsonError) -> StoreError {
    StoreError::Corrupt(error.to_string())
}

/// The session on which the newest grant of a resource stands.
pub(super) fn holder_of(lease: &str) -> Option<SessionId> {
    json::lease_from(lease).ok().map(|lease| lease.session)
}

/// What stands on a resource's session, and under which grant the history knows it.
pub(super) fn lease_raw(text: &str) -> Result<LeaseRecord, StoreError> {
    json::lease_from(text).map_err(damaged)
}

pub(super) fn holdings_to(holdings: Holdings) -> String {
    format!("{:032x}", holdings.bits())
}

pub(super) fn holdings_of(text: &str) -> Result<Holdings, StoreError> {
    let bits = u128::from_str_radix(text, 16);
    bits.map(Holdings::from_bits).map_err(|_| StoreError::Corrupt(format!("a fingerprint is {text:?}")))
}
