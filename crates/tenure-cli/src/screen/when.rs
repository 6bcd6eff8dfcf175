//! Moments and how long ago they were. Deadlines are judged on the authority's clock; only what is shown is put onto the
//! wall clock.

use crate::span::{Span, millis};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};
use std::time::Duration;
use tenure::authority::WallTime;
use tenure::core::{AuthorityClock, Instant};

/// One moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// On the store's.
    pub(crate) store: Instant<AuthorityClock>,
    /// On the wall.
    pub(crate) wall: WallTime,
}

impl Now {
    /// The wall clock beside a reading of the store's clock that was just made.
    pub(crate) fn beside(store: Instant<AuthorityClock>) -> Self {
        Self { store, wall: WallTime::now() }
    }

    /// Where an instant of the store's clock lies on the wall clock.
    pub(crate) fn wall_of(&self, instant: Instant<AuthorityClock>) -> WallTime {
        later(earlier(self.wall, self.store.since(&instant)), instant.since(&self.store))
    }
}

pub(crate) fn earlier(wall: WallTime, span: Duration) -> WallTime {
    WallTime::from_millis(wall.as_millis().saturating_sub(millis(span)))
}

pub(crate) fn later(wall: WallTime, span: Duration) -> WallTime {
    WallTime::from_millis(wall.as_millis().saturating_add(millis(span)))
}

/// How long ago it was: `12 min 4 s ago`, or `in 87 s`.
pub(crate) fn relative(now: WallTime, wall: WallTime) -> String {
    let (now, then) = (now.as_millis(), wall.as_millis());
    if then > now {
        return format!("in {}", Span(Duration::from_millis(then - now)));
    }
    format!("{} ago", Span(Duration::from_millis(now - then)))
}

/// In the local zone, for a column: the time only when it was today, and to the minute otherwise.
pub(crate) fn short(now: WallTime, wall: WallTime) -> String {
    let form = if is_today(now, wall) { "%H:%M:%S" } else { "%Y-%m-%d %H:%M" };
    zoned(wall).strftime(form).to_string()
}

/// In the local zone and how long ago, for a sentence: `2026-05-04 14:03:11 (12 min 4 s ago)`, without the date when it
/// was today.
pub(crate) fn both(now: WallTime, wall: WallTime) -> String {
    let at = if is_today(now, wall) { zoned(wall).strftime("%H:%M:%S").to_string() } else { absolute(wall) };
    format!("{at} ({})", relative(now, wall))
}

/// In the local zone: `2026-05-04 14:03:11`.
pub(crate) fn absolute(wall: WallTime) -> String {
    zoned(wall).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn is_today(now: WallTime, wall: WallTime) -> bool {
    zoned(now).date() == zoned(wall).date()
}

fn zoned(wall: WallTime) -> ZonedDateTime {
    timestamp(wall).to_zoned_datetime(TimeZone::system())
}

/// For JSON: RFC 3339 in UTC, to the millisecond.
pub(crate) fn rfc3339(wall: WallTime) -> String {
    format!("{:.3}", timestamp(wall))
}

/// Reads what [`rfc3339`] writes.
pub(crate) fn parse(text: &str) -> Option<WallTime> {
    let millis = text.parse::<Timestamp>().ok()?.as_millisecond();
    u64::try_from(millis).ok().map(WallTime::from_millis)
}

fn timestamp(wall: WallTime) -> Timestamp {
    let millis = i64::try_from(wall.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
