//! Who holds a resource now, in words and as JSON; or why nobody does.

use crate::problem::Problem;
use crate::span::Span;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;
use tenure::authority::{Authority, Read};
use tenure::blocking::wait_for;
use tenure::core::record::{LeaseRecord, Phase, SessionRecord, Standing};
use tenure::core::{Owner, ResourceName, Token};

/// Reads how a resource stands.
pub(crate) fn look(authority: &Authority, resource: &ResourceName) -> Result<Read, Problem> {
    Ok(wait_for(authority.inspect(resource))?)
}

/// Whoever holds a resource: its grant stands, its session is live, and its deadline lies ahead.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    pub(crate) owner: Owner,
    pub(crate) token: Token,
    /// For how long already.
    pub(crate) held_for: Duration,
    /// For how long still, unless it is renewed.
    pub(crate) remaining: Duration,
    /// Whether its receivers are still being sealed.
    pub(crate) sealing: bool,
}

impl Holder {
    pub(crate) fn of(read: &Read) -> Option<Self> {
        let lease = read.view.lease.as_ref().filter(|lease| lease.is_granted())?;
        let session = read.view.holder.as_ref().filter(|_| standing(read) == Standing::Valid)?;
        Some(Self {
            owner: lease.owner.clone(),
            token: lease.token(),
            held_for: read.now.since(&lease.since),
            remaining: session.deadline.since(&read.now),
            sealing: lease.phase == Phase::Sealing,
        })
    }

    /// What every verb's JSON says of a holder.
    pub(crate) fn json(&self) -> Value {
        json!({
            "owner": self.owner.name.as_str(),
            "instance": self.owner.instance.to_string(),
            "epoch": self.token.epoch.get(),
            "grant": self.token.grant.to_string(),
            "since": utc(ago(self.held_for)),
            "held_for_ms": millis(self.held_for),
            "until": utc(ahead(self.remaining)),
            "remaining_ms": millis(self.remaining),
            "sealing": self.sealing,
        })
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} holds it under epoch {} since {} ({}), for {} more unless it is renewed{}",
            self.owner,
            self.token.epoch,
            local(ago(self.held_for)),
            Span(self.held_for),
            Span(self.remaining),
            if self.sealing { "; its receivers are still being sealed" } else { "" }
        )
    }
}

/// How the session stands on which the newest grant stands.
pub(crate) fn standing(read: &Read) -> Standing {
    SessionRecord::standing(read.view.holder.as_ref(), &read.view.authority, read.now)
}

/// Why nobody holds a resource; for one that [`Holder::of`] found no holder of.
pub(crate) fn nobody(read: &Read) -> String {
    let Some(lease) = &read.view.lease else {
        return "nobody ever held it, or it was retired".to_owned();
    };
    let LeaseRecord { epoch, owner, .. } = lease;
    match &lease.phase {
        Phase::Free => format!("nobody holds it; its last epoch is {epoch}, of {owner}"),
        Phase::Completed { outcome } => format!("{owner} has completed it under epoch {epoch}: {outcome:?}"),
        Phase::Retiring { cut, .. } => format!("it is being retired at epoch {cut}"),
        Phase::Sealing | Phase::Held => {
            let why = match (standing(read), &read.view.holder) {
                (Standing::Ended(why), _) => why.to_string(),
                (Standing::Overdue, Some(session)) => {
                    format!("its deadline passed {} ago", Span(read.now.since(&session.deadline)))
                }
                _ => "its session is gone".to_owned(),
            };
            format!("nobody holds it; the lease of {owner} under epoch {epoch} has ended: {why}")
        }
    }
}

/// The present moment less a span.
pub(crate) fn ago(span: Duration) -> Timestamp {
    moved(-signed(span))
}

fn ahead(span: Duration) -> Timestamp {
    moved(signed(span))
}

fn moved(span: SignedDuration) -> Timestamp {
    let now = Timestamp::now();
    now.checked_add(span).unwrap_or(now)
}

fn signed(span: Duration) -> SignedDuration {
    SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX)
}

/// A moment for machines: RFC 3339, UTC, milliseconds.
pub(crate) fn utc(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// A moment for people, in their own time zone.
pub(crate) fn local(at: Timestamp) -> String {
    at.to_zoned_datetime(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// A span for machines.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
