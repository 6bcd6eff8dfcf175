//! What became of a grant, as the history tells it.

use crate::screen::when::{both, earlier, rfc3339};
use crate::span::millis;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;
use tenure::authority::{Authority, HistoryQuery, Order, Read, WallTime};
use tenure::blocking::wait_for;
use tenure::core::record::{Event, Transition};
use tenure::core::{AuthorityClock, Instant, Token};

/// How a grant ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fate {
    event: Event,
    actor: Option<String>,
    why: Option<String>,
    /// How long ago; `None` when it was on another clock, before a reboot.
    ago: Option<Duration>,
}

/// An answer is worth more than a long story.
const ROWS: usize = 512;

/// Looks for the end of a grant, from the resource's newest row back to the row that granted it. `None` when that is not
/// found: the token was never granted here, or long ago.
pub(super) fn of(authority: &Authority, token: &Token, read: &Read) -> Option<Fate> {
    let query = HistoryQuery {
        resource: Some(token.resource.clone()),
        order: Order::NewestFirst,
        limit: ROWS,
        ..HistoryQuery::default()
    };
    let rows = wait_for(authority.store().history(query)).ok()?;
    let mut next = None;
    for row in rows.iter().map(|row| &row.transition) {
        let is_this = row.grant == Some(token.grant);
        match row.event {
            Event::Granted if is_this => return next,
            // What stands nearest behind the grant ended it.
            Event::Granted => next = Some(fate(row, read.now)),
            event if is_this && ends(event) => next = Some(fate(row, read.now)),
            _ => {}
        }
    }
    None
}

const fn ends(event: Event) -> bool {
    matches!(event, Event::Released | Event::Completed | Event::Revoked | Event::Refused | Event::Retiring)
}

fn fate(row: &Transition, now: Instant<AuthorityClock>) -> Fate {
    Fate {
        event: row.event,
        actor: row.actor.as_ref().map(ToString::to_string),
        why: row.why.as_ref().map(ToString::to_string),
        ago: now.reached(&row.at).then(|| now.since(&row.at)),
    }
}

impl Fate {
    pub(super) fn json(&self) -> Value {
        json!({
            "event": self.event.name(),
            "actor": self.actor,
            "why": self.why,
            "at": self.ago.map(|span| rfc3339(earlier(WallTime::now(), span))),
            "ago_ms": self.ago.map(millis),
        })
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let actor = self.actor.as_deref().unwrap_or("somebody");
        match self.event {
            Event::Granted => write!(f, "{actor} was granted the next epoch")?,
            Event::Released => write!(f, "{actor} released it")?,
            Event::Completed => write!(f, "{actor} completed the resource")?,
            Event::Revoked => write!(f, "{actor} took it away")?,
            Event::Refused => f.write_str("a receiver refused it")?,
            Event::Retiring => write!(f, "{actor} retired the resource")?,
            other => write!(f, "{}", other.name())?,
        }
        if let Some(span) = self.ago {
            let now = WallTime::now();
            write!(f, " at {}", both(now, earlier(now, span)))?;
        }
        self.why.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
    }
}
