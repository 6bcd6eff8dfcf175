//! Moments and how long ago they were. Deadlines are judged on the authority's clock; only what is shown is put onto the
//! wall clock.

use crate::refusal::millis;
use crate::span::Span;
use jiff::Timestamp;
use jiff::tz::TimeZone;
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
        let (ahead, behind) = (millis(instant.since(&self.store)), millis(self.store.since(&instant)));
        WallTime::from_millis(self.wall.as_millis().saturating_add(ahead).saturating_sub(behind))
    }

    /// How long ago it was: `12 min 4 s ago`, or `in 87 s`.
    pub(crate) fn relative(&self, wall: WallTime) -> String {
        let (now, then) = (self.wall.as_millis(), wall.as_millis());
        if then > now {
            return format!("in {}", Span(Duration::from_millis(then - now)));
        }
        format!("{} ago", Span(Duration::from_millis(now - then)))
    }

    /// In the local zone, as short as it can be: the time only when it was today.
    pub(crate) fn short(&self, wall: WallTime) -> String {
        let zone = TimeZone::system();
        let [now, then] = [self.wall, wall].map(|wall| timestamp(wall).to_zoned_datetime(zone.clone()));
        let form = if now.date() == then.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M" };
        then.strftime(form).to_string()
    }

    /// Both: `2026-05-04 14:03:11 (12 min 4 s ago)`.
    pub(crate) fn both(&self, wall: WallTime) -> String {
        format!("{} ({})", absolute(wall), self.relative(wall))
    }
}

/// In the local zone: `2026-05-04 14:03:11`.
pub(crate) fn absolute(wall: WallTime) -> String {
    timestamp(wall).to_zoned_datetime(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
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
