//! The JSON forms that all verbs share: times in RFC 3339, spans in milliseconds, epochs as numbers, ids as hex text.

use super::state::Seen;
use super::when::{Now, rfc3339};
use crate::holder::Holder;
use crate::owner::Who;
use crate::span::millis;
use serde_json::{Value, json};
use tenure::authority::Recorded;
use tenure::core::record::{LeaseRecord, Owner, Phase, Standing};

/// A resource. `remaining_at_most` is true where the store has no clock of its own. `owner`, `epoch`, `grant`, `since` and `session` are of its newest grant, whether it stands or not; `holder`
/// is null unless it does, and says what every verb says of a holder.
pub(crate) fn lease(seen: &Seen<'_>, now: &Now, me: &Who) -> Value {
    let lease = seen.lease;
    let (outcome, cut) = match &lease.phase {
        Phase::Completed { outcome } => (Some(outcome.as_str()), None),
        Phase::Retiring { cut, .. } => (None, Some(cut.get())),
        Phase::Free | Phase::Sealing | Phase::Held => (None, None),
    };
    json!({
        "resource": lease.resource.as_str(),
        "state": seen.state.name(),
        "epoch": lease.epoch.get(),
        "grant": lease.grant.to_string(),
        "token": lease.token().to_string(),
        "holder": Holder::seen(seen, me).map(|holder| holder.json()),
        "owner": owner(&lease.owner),
        "since": rfc3339(now.wall_of(lease.since)),
        "since_ms": millis(now.store.since(&lease.since)),
        "session": session(seen, now),
        "remaining_ms": seen.left().map(|(left, _)| millis(left)),
        "remaining_at_most": seen.left().map(|_| seen.at_most),
        "receivers": receivers(lease),
        "outcome": outcome,
        "cut": cut,
    })
}

/// An owner. `running` is null when its process cannot be looked for from here.
pub(crate) fn owner(owner: &Owner) -> Value {
    let who = Who::parse(owner.name.as_str());
    json!({
        "name": owner.name.as_str(),
        "place": who.place,
        "pid": who.pid,
        "running": who.is_running(),
        "instance": owner.instance.to_string(),
    })
}

/// The session of the newest grant.
pub(crate) fn session(seen: &Seen<'_>, now: &Now) -> Value {
    let (standing, why) = match seen.standing {
        Standing::Valid => ("valid", None),
        Standing::Overdue => ("overdue", None),
        Standing::Ended(why) => ("ended", Some(why.to_string())),
        Standing::Missing => ("missing", None),
    };
    json!({
        "id": seen.lease.session.to_string(),
        "standing": standing,
        "why": why,
        "ttl_ms": seen.holder.map(|holder| millis(holder.ttl.get())),
        "deadline": seen.holder.map(|holder| rfc3339(now.wall_of(holder.deadline))),
    })
}

/// The enrolled receivers.
pub(crate) fn receivers(lease: &LeaseRecord) -> Value {
    let excused = lease.excused();
    let receiver = |(id, mark): (&tenure::core::SinkId, &tenure::core::record::SinkMark)| {
        json!({
            "id": id.as_str(),
            "generation": mark.bound.as_ref().map(tenure::core::Generation::as_str),
            "sealed": mark.sealed,
            "excused": excused.contains(id),
        })
    };
    lease.sinks.iter().map(receiver).collect()
}

/// A row of the history.
pub(crate) fn row(row: &Recorded) -> Value {
    let step = &row.transition;
    json!({
        "number": row.number,
        "at": rfc3339(row.wall),
        "event": step.event.name(),
        "resource": step.resource.as_ref().map(tenure::core::ResourceName::as_str),
        "epoch": step.epoch.map(tenure::core::Epoch::get),
        "grant": step.grant.map(|grant| grant.to_string()),
        "session": step.session.map(|session| session.to_string()),
        "actor": step.actor.as_ref().map(tenure::core::Actor::as_str),
        "why": step.why.as_ref().map(tenure::core::Reason::as_str),
    })
}
