//! Who holds a resource: who, where, since when, under which epoch, for how long still, and what would help. Or why nobody
//! holds it.

use crate::owner::Who;
use crate::problem::Problem;
use crate::screen::state::Seen;
use crate::screen::when::{both, earlier, later, rfc3339};
use crate::screen::{clean, quoted};
use crate::span::{Span, millis};
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;
use tenure::authority::{Authority, Read, TimeSource, WallTime};
use tenure::blocking::wait_for;
use tenure::core::decide::Refusal;
use tenure::core::record::{LeaseRecord, Owner, Phase, SessionRecord, Standing};
use tenure::core::{Epoch, GrantId, InstanceId, ResourceName};

/// Where the authority's time comes from.
pub(crate) fn time_of(authority: &Authority) -> TimeSource {
    authority.store().capabilities().clock
}

/// Reads how a resource stands.
pub(crate) fn look(authority: &Authority, resource: &ResourceName) -> Result<Read, Problem> {
    Ok(wait_for(authority.inspect(resource))?)
}

/// Whoever holds a resource: its grant stands, its session is live, and its deadline lies ahead.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    resource: ResourceName,
    pub(crate) who: Who,
    instance: InstanceId,
    pub(crate) epoch: Epoch,
    /// A refusal does not tell it.
    grant: Option<GrantId>,
    /// When this was known.
    at: WallTime,
    /// For how long already.
    held_for: Duration,
    /// For how long still, unless it is renewed.
    pub(crate) remaining: Duration,
    /// Whether that is more than it has: see [`Seen::at_most`].
    at_most: bool,
    /// Whether its receivers are still being sealed.
    pub(crate) sealing: bool,
    /// Whether it has the name and place of whoever asks, and its process is not there any more.
    is_predecessor: bool,
}

impl Holder {
    /// Whoever holds what was read, from an authority with such a clock; `me` asks.
    pub(crate) fn of(read: &Read, source: TimeSource, me: &Who) -> Option<Self> {
        let lease = read.view.lease.as_ref()?;
        Self::seen(&Seen::new(lease, read.view.holder.as_ref(), &read.view.authority, (read.now, source)), me)
    }

    /// Whoever holds what was seen a moment ago; `me` asks.
    pub(crate) fn seen(seen: &Seen<'_>, me: &Who) -> Option<Self> {
        let (remaining, _) = seen.left()?;
        let LeaseRecord { resource, epoch, grant, owner, phase, .. } = seen.lease;
        let spans = (seen.since_grant(), remaining);
        let holder = Self::new(resource, owner, (*epoch, Some(*grant)), spans, *phase == Phase::Sealing, me);
        Some(Self { at_most: seen.at_most, ..holder })
    }

    /// Reads a refusal of `me` by an authority with such a clock; `None` when it is about something else.
    pub(crate) fn refusing(resource: &ResourceName, refusal: &Refusal, source: TimeSource, me: &Who) -> Option<Self> {
        let Refusal::Busy { owner, epoch, held_for, remaining, sealing } = refusal else { return None };
        let holder = Self::new(resource, owner, (*epoch, None), (*held_for, *remaining), *sealing, me);
        Some(Self { at_most: source == TimeSource::Observed, ..holder })
    }

    fn new(
        resource: &ResourceName,
        owner: &Owner,
        (epoch, grant): (Epoch, Option<GrantId>),
        (held_for, remaining): (Duration, Duration),
        sealing: bool,
        me: &Who,
    ) -> Self {
        let who = Who::parse(owner.name.as_str());
        let is_predecessor = who.is_running() == Some(false) && who.place == me.place;
        let (resource, instance, at) = (resource.clone(), owner.instance, WallTime::now());
        let at_most = false;
        Self { resource, who, instance, epoch, grant, at, held_for, remaining, at_most, sealing, is_predecessor }
    }

    /// For how long still, for a sentence: `87 s`, `at most 87 s`.
    pub(crate) fn left(&self) -> String {
        format!("{}{}", if self.at_most { "at most " } else { "" }, Span(self.remaining))
    }

    /// Nobody renews it any more, so that it is certainly free after what remains.
    pub(crate) fn is_dead(&self) -> bool {
        self.who.is_running() == Some(false)
    }

    /// Since when, for a sentence.
    pub(crate) fn since(&self) -> String {
        both(self.at, earlier(self.at, self.held_for))
    }

    /// Who holds it, and what whoever asked may do now.
    pub(crate) fn refusal(&self) -> String {
        let next = if self.is_dead() {
            format!("Try again then, or give --wait {}s", self.remaining.as_secs() + 1)
        } else {
            format!(
                "Wait for it (--wait), end that process, or take its right away: tenure takeover {} --reason TEXT",
                quoted(self.resource.as_str())
            )
        };
        format!("{self}. {next}")
    }

    /// What every verb's JSON says of a holder.
    pub(crate) fn json(&self) -> Value {
        json!({
            "owner": self.who.to_string(),
            "place": self.who.place,
            "pid": self.who.pid,
            "running": self.who.is_running(),
            "predecessor": self.is_predecessor,
            "instance": self.instance.to_string(),
            "epoch": self.epoch.get(),
            "grant": self.grant.map(|grant| grant.to_string()),
            "since": rfc3339(earlier(self.at, self.held_for)),
            "held_for_ms": millis(self.held_for),
            "until": rfc3339(later(self.at, self.remaining)),
            "remaining_ms": millis(self.remaining),
            "remaining_at_most": self.at_most,
            "sealing": self.sealing,
        })
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, who, epoch, .. } = self;
        let pid = who.pid.map(|pid| format!("pid {pid}")).unwrap_or_default();
        let by = match who.is_running() {
            _ if self.is_predecessor => format!("your predecessor ({pid}, which is not there any more)"),
            _ if who.pid.is_none() => format!("{},", clean(&who.place)),
            Some(true) => format!("{}, {pid}, which runs here,", clean(&who.place)),
            Some(false) => format!("{}, {pid}, which is not there any more,", clean(&who.place)),
            None => format!("{}, {pid} there,", clean(&who.place)),
        };
        let sealing = if self.sealing { " and is sealing its receivers" } else { "" };
        let (resource, since, remaining) = (clean(resource.as_str()), self.since(), self.left());
        write!(f, "{resource} is held by {by} under epoch {epoch}, since {since}{sealing}; ")?;
        match self.is_dead() {
            true if self.is_predecessor => write!(f, "free in {remaining}"),
            true => write!(f, "free in {remaining}, since nobody renews it"),
            false => write!(f, "{remaining} left unless it is renewed"),
        }
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
    let (epoch, owner) = (lease.epoch, clean(lease.owner.name.as_str()));
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

#[cfg(test)]
mod tests;
