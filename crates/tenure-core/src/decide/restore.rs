//! After a restore: what an operator declares, and what the sinks teach.

use super::{Change, Decision, Refusal, Reply, Request, Swap, View, lease_transition};
use crate::record::{Event, LeaseRecord, Owner, Phase, Seen, SinkMark, Standing, Transition};
use crate::{
    Actor, AuthorityClock, Epoch, GrantId, InstanceId, Instant, OwnerName, Reason, ResourceName, SessionId, SinkId, Ttl,
};
use alloc::collections::BTreeSet;

pub(super) fn decide(view: &View, request: &Request, now: Instant<AuthorityClock>) -> Decision {
    match request {
        Request::Restore { longest_ttl, actor, reason } => restore(view, *longest_ttl, actor, reason, now),
        Request::Learn { resource, epoch, grant, sinks, actor } => {
            let row = Row { epoch: *epoch, grant: *grant, sinks };
            learn(view, resource, &row, actor, now)
        }
        Request::LearnFloor { floor, actor } => learn_floor(view, *floor, actor, now),
        _ => Decision::refuse(Refusal::WrongPhase { phase: "absent" }),
    }
}

/// The owner of a grant of which only a sink knows: it keeps no names.
const UNKNOWN: &str = "unknown";

/// What a sink has of a resource.
struct Row<'request> {
    epoch: Epoch,
    grant: GrantId,
    sinks: &'request BTreeSet<SinkId>,
}

fn restore(
    view: &View,
    longest_ttl: Option<Ttl>,
    actor: &Actor,
    reason: &Reason,
    now: Instant<AuthorityClock>,
) -> Decision {
    // Nothing was granted since it began, so a further restore to a state within it has lost nothing.
    if let Some(remaining) = view.authority.quarantine(now) {
        return Decision::answer(Ok(Reply::Restored { incarnation: view.authority.incarnation, remaining }));
    }
    let span = longest_ttl.map_or(view.authority.max_ttl, |ttl| ttl.min(view.authority.max_ttl));
    let mut after = view.authority.quarantined(view.observed.clone(), Seen::default(), now);
    after.quarantined_until = Some(now.after(span.get()));
    let reply =
        Reply::Restored { incarnation: after.incarnation, remaining: after.quarantine(now).unwrap_or_default() };
    let transition = Transition { why: Some(reason.clone()), ..store_transition(Event::Restored, actor, now) };
    Decision::swap(Swap { change: Change::Authority(after), relies_on: None, transition }, reply)
}

fn learn(view: &View, resource: &ResourceName, row: &Row<'_>, actor: &Actor, now: Instant<AuthorityClock>) -> Decision {
    let after = match (&view.lease, OwnerName::new(UNKNOWN)) {
        (Some(lease), _) => lease.taught(row),
        (None, Ok(name)) => fresh(resource, row, name, now),
        (None, Err(_)) => return Decision::refuse(Refusal::WrongPhase { phase: "absent" }),
    };
    if view.lease.as_ref() == Some(&after) {
        return Decision::answer(Ok(Reply::Learnt));
    }
    // A holder of the present incarnation finds out by itself: the sink refuses its seal, and it reports that.
    if let Some(lease) = view.lease.as_ref().filter(|lease| lease.is_granted())
        && matches!(view.holder_standing(now), Standing::Valid | Standing::Overdue)
        && let Some(holder) = &view.holder
    {
        return Decision::refuse(Refusal::Busy {
            owner: lease.owner.clone(),
            epoch: lease.epoch,
            held_for: now.since(&lease.since),
            remaining: holder.deadline.since(&now),
            sealing: lease.phase == Phase::Sealing,
        });
    }
    // The row's grant, so that the history knows it from now on.
    let transition = Transition {
        session: None,
        epoch: Some(row.epoch),
        grant: Some(row.grant),
        actor: Some(actor.clone()),
        ..lease_transition(&after, Event::Learnt, now)
    };
    Decision::swap(Swap { change: Change::Lease(after), relies_on: None, transition }, Reply::Learnt)
}

fn learn_floor(view: &View, floor: Epoch, actor: &Actor, now: Instant<AuthorityClock>) -> Decision {
    if view.authority.floor >= Some(floor) {
        return Decision::answer(Ok(Reply::Learnt));
    }
    let mut after = view.authority.clone();
    after.floor = Some(floor);
    let transition = Transition { epoch: Some(floor), ..store_transition(Event::FloorRaised, actor, now) };
    Decision::swap(Swap { change: Change::Authority(after), relies_on: None, transition }, Reply::Learnt)
}

impl LeaseRecord {
    /// The record that also knows what the row knows. It is the same one when there is nothing new in it.
    fn taught(&self, row: &Row<'_>) -> Self {
        let rises = row.epoch > self.epoch;
        if !rises && row.sinks.iter().all(|sink| self.sinks.contains_key(sink)) {
            return self.clone();
        }
        let mut after = self.clone();
        after.epoch = self.epoch.max(row.epoch);
        for sink in row.sinks {
            after.sinks.entry(sink.clone()).or_default();
        }
        match &mut after.phase {
            // Its session is void: what is left of the grant must not stand under an epoch that was never its own.
            phase @ (Phase::Sealing | Phase::Held) => *phase = Phase::Free,
            // As when a sink refuses to forget: all of them forget again, at the higher cut.
            Phase::Retiring { cut, forgotten } if row.epoch > *cut => {
                *cut = row.epoch;
                forgotten.clear();
            }
            Phase::Free | Phase::Completed { .. } | Phase::Retiring { .. } => {}
        }
        after
    }
}

/// A resource of which only a sink knows.
fn fresh(resource: &ResourceName, row: &Row<'_>, name: OwnerName, now: Instant<AuthorityClock>) -> LeaseRecord {
    LeaseRecord {
        resource: resource.clone(),
        epoch: row.epoch,
        // A late request for that grant does not get it a second time.
        grant: row.grant,
        session: SessionId::from_bits(0),
        owner: Owner { name, instance: InstanceId::from_bits(0) },
        since: now,
        phase: Phase::Free,
        sinks: row.sinks.iter().map(|sink| (sink.clone(), SinkMark::default())).collect(),
    }
}

fn store_transition(event: Event, actor: &Actor, now: Instant<AuthorityClock>) -> Transition {
    Transition {
        at: now,
        event,
        resource: None,
        session: None,
        epoch: None,
        grant: None,
        actor: Some(actor.clone()),
        why: None,
    }
}
