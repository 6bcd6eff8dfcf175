//! "Held by another", as a person needs it: who, where, since when, which epoch, how long still, and what would help.

use crate::owner::Who;
use crate::span::Span;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;
use tenure::core::decide::Refusal;
use tenure::{Epoch, ResourceName};

/// Somebody else holds a resource.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    resource: ResourceName,
    who: Who,
    epoch: Epoch,
    held_for: Duration,
    remaining: Duration,
    sealing: bool,
    kin: Kin,
}

/// What the holder is to whoever asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kin {
    /// The same name at the same place, and its process is not there any more.
    Predecessor,
    /// The same name at the same place, and it runs.
    Sibling,
    Other,
}

impl Holder {
    /// Reads a refusal; `None` when it is about something else.
    pub(crate) fn of(resource: &ResourceName, refusal: &Refusal, me: &Who) -> Option<Self> {
        let Refusal::Busy { owner, epoch, held_for, remaining, sealing } = refusal else { return None };
        let who = Who::parse(owner.name.as_str());
        let kin = match who.is_running() {
            Some(false) if who.place == me.place => Kin::Predecessor,
            Some(true) if who.place == me.place => Kin::Sibling,
            _ => Kin::Other,
        };
        let (resource, epoch, held_for, remaining) = (resource.clone(), *epoch, *held_for, *remaining);
        Some(Self { resource, who, epoch, held_for, remaining, sealing: *sealing, kin })
    }

    /// Nobody renews it any more, so that it is certainly free then.
    pub(crate) fn is_dead(&self) -> bool {
        self.who.is_running() == Some(false)
    }

    pub(crate) const fn remaining(&self) -> Duration {
        self.remaining
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "owner": self.who.to_string(),
            "place": self.who.place,
            "pid": self.who.pid,
            "running": self.who.is_running(),
            "predecessor": self.kin == Kin::Predecessor,
            "epoch": self.epoch.get(),
            "held_for_ms": millis(self.held_for),
            "remaining_ms": millis(self.remaining),
            "sealing": self.sealing,
        })
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, who, epoch, .. } = self;
        let (since, remaining) = (Ago(self.held_for), Span(self.remaining));
        let pid = who.pid.map(|pid| format!("pid {pid}")).unwrap_or_default();
        let wait = format!("--wait {}s", self.remaining.as_secs() + 1);
        match self.kin {
            Kin::Predecessor => write!(
                f,
                "{resource} is held by your predecessor ({pid}, which is not there any more) under epoch {epoch}, since \
                 {since}; free in {remaining}. Try again then, or give {wait}"
            ),
            _ => {
                let process = match (who.is_running(), who.pid) {
                    (_, None) => String::new(),
                    (Some(true), _) => format!(", {pid}, which runs here"),
                    (Some(false), _) => format!(", {pid}, which is not there any more"),
                    (None, _) => format!(", {pid} there"),
                };
                let name = &who.place;
                let sealing = if self.sealing { " and is sealing its receivers" } else { "" };
                write!(f, "{resource} is held by {name}{process}, under epoch {epoch}, since {since}{sealing}; ")?;
                match who.is_running() {
                    Some(false) => {
                        write!(f, "free in {remaining}, since nobody renews it. Try again then, or give {wait}")
                    }
                    _ => write!(
                        f,
                        "{remaining} left unless it is renewed. Wait for it (--wait), end that process, or take its right \
                         away: tenure takeover {} --reason TEXT",
                        quoted(resource.as_str())
                    ),
                }
            }
        }
    }
}

/// A moment in the past, as the clock on the wall showed it, and how long ago that was.
pub(crate) struct Ago(pub(crate) Duration);

impl fmt::Display for Ago {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let now = jiff::ZonedDateTime::now();
        match jiff::SignedDuration::try_from(self.0).ok().and_then(|ago| now.checked_sub(ago).ok()) {
            Some(then) if then.date() == now.date() => {
                write!(f, "{} ({} ago)", then.strftime("%H:%M:%S"), Span(self.0))
            }
            Some(then) => write!(f, "{} ({} ago)", then.strftime("%F %H:%M:%S"), Span(self.0)),
            None => write!(f, "{} ago", Span(self.0)),
        }
    }
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Whole milliseconds, for JSON.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
