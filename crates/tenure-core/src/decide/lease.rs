//! Leases: granted, sealed, announced, given up.

use super::{
    Change, Decision, Granted, Refusal, Reply, Request, SinkRefusal, Swap, View, lease_transition, reason, session,
};
use crate::record::{EndReason, Event, LeaseRecord, Phase, SessionRecord, SinkMark, Standing, Transition};
use crate::{
    AuthorityClock, Epoch, Generation, GrantId, Instant, Outcome, Reason, ResourceName, SessionId, SinkId, Token,
};
use alloc::collections::{BTreeMap, BTreeSet};

pub(super) fn decide(view: &View, request: &Request, now: Instant<AuthorityClock>) -> Decision {
    match request {
        Request::Acquire { resource, grant, sinks, .. } => acquire(view, resource, *grant, sinks, now),
        Request::Enrol { token, sinks } => enrol(view, token, sinks, now),
        Request::Bind { token, session, generations } => bind(view, token, *session, generations, now),
        Request::Sealed { token, generations } => sealed(view, token, generations, now),
        Request::Announce { token, session, excused } => announce(view, token, *session, excused, now),
        Request::Refused { token, shown } => refused(view, token, *shown, now),
        Request::Check { token, session } => match standing_grant(view, token, *session, now) {
            Ok(lease) if lease.phase == Phase::Held => Decision::answer(Ok(Reply::Stands)),
            Ok(lease) => Decision::refuse(Refusal::NotAnnounced { waiting: unsealed(lease, &BTreeSet::new()) }),
            Err(refusal) => Decision::refuse(refusal),
        },
        Request::Release { token } => release(view, token, now),
        Request::Complete { token, session, outcome } => complete(view, token, *session, outcome, now),
        Request::Revoke { only, actor, reason, .. } => match &view.lease {
            Some(lease) if lease.is_granted() && only.is_some_and(|epoch| epoch != lease.epoch) => {
                Decision::refuse(not_current(view))
            }
            Some(lease) if lease.is_granted() => {
                let freed = LeaseRecord { phase: Phase::Free, ..lease.clone() };
                let transition = Transition {
                    actor: Some(actor.clone()),
                    why: Some(reason.clone()),
                    ..lease_transition(&freed, Event::Revoked, now)
                };
                let reply = Reply::Revoked { token: lease.token(), owner: lease.owner.clone() };
                Decision::swap(Swap { change: Change::Lease(freed), relies_on: None, transition }, reply)
            }
            Some(lease) => Decision::refuse(Refusal::WrongPhase { phase: lease.phase.name() }),
            None => Decision::refuse(Refusal::WrongPhase { phase: "absent" }),
        },
        _ => Decision::refuse(Refusal::WrongPhase { phase: "absent" }),
    }
}

fn acquire(
    view: &View,
    resource: &ResourceName,
    grant: GrantId,
    sinks: &BTreeSet<SinkId>,
    now: Instant<AuthorityClock>,
) -> Decision {
    if let Some(remaining) = view.authority.quarantine(now) {
        return Decision::refuse(Refusal::Quarantined { remaining });
    }
    let caller = match valid_caller(view, now) {
        Ok(caller) => caller,
        Err(refusal) => return refuse_for_good(view, refusal, now),
    };
    let Some(lease) = &view.lease else {
        return grant_next(view, None, resource, grant, caller, sinks, now);
    };
    match &lease.phase {
        Phase::Completed { outcome } => Decision::refuse(completed_by(lease, outcome)),
        Phase::Retiring { cut, .. } => Decision::refuse(Refusal::Retiring { cut: *cut }),
        // A late duplicate of a request whose grant was given up since: no grant comes back.
        Phase::Free if lease.grant == grant => Decision::refuse(not_current(view)),
        Phase::Free => grant_next(view, Some(lease), resource, grant, caller, sinks, now),
        Phase::Sealing | Phase::Held if lease.session == caller.id => {
            Decision::answer(Ok(Reply::Granted(Granted::of(lease))))
        }
        Phase::Sealing | Phase::Held => match (view.holder_standing(now), &view.holder) {
            (Standing::Valid, Some(holder)) => Decision::refuse(Refusal::Busy {
                owner: lease.owner.clone(),
                epoch: lease.epoch,
                held_for: now.since(&lease.since),
                remaining: holder.deadline.since(&now),
                sealing: lease.phase == Phase::Sealing,
            }),
            (Standing::Overdue, Some(holder)) => {
                Decision::first(session::ending(holder, EndReason::Expired, None, now))
            }
            _ => grant_next(view, Some(lease), resource, grant, caller, sinks, now),
        },
    }
}

fn grant_next(
    view: &View,
    before: Option<&LeaseRecord>,
    resource: &ResourceName,
    grant: GrantId,
    caller: &SessionRecord,
    sinks: &BTreeSet<SinkId>,
    now: Instant<AuthorityClock>,
) -> Decision {
    let enrolled = before.into_iter().flat_map(|lease| lease.sinks.keys());
    if let Some(sink) = enrolled.clone().find(|sink| !sinks.contains(*sink)) {
        return Decision::refuse(Refusal::NoAdapter { sink: sink.clone() });
    }
    let floor = view.authority.floor.max(before.map(|lease| lease.epoch));
    let Ok(epoch) = Epoch::above(floor) else { return Decision::refuse(Refusal::EpochsExhausted) };
    let granted = LeaseRecord {
        resource: resource.clone(),
        epoch,
        grant,
        session: caller.id,
        owner: caller.owner.clone(),
        since: now,
        phase: if sinks.is_empty() { Phase::Held } else { Phase::Sealing },
        // The marks of the former grant are void: this one is registered nowhere yet.
        sinks: sinks.iter().map(|sink| (sink.clone(), SinkMark::default())).collect(),
    };
    let reply = Reply::Granted(Granted::of(&granted));
    let transition = lease_transition(&granted, Event::Granted, now);
    Decision::swap(Swap { change: Change::Lease(granted), relies_on: Some(caller.id), transition }, reply)
}

fn enrol(view: &View, token: &Token, sinks: &BTreeSet<SinkId>, now: Instant<AuthorityClock>) -> Decision {
    let lease = match current(view, token) {
        Ok(lease) => lease,
        Err(refusal) => return Decision::refuse(refusal),
    };
    if sinks.iter().all(|sink| lease.sinks.contains_key(sink)) {
        return Decision::answer(Ok(Reply::Enrolled));
    }
    let mut after = lease.clone();
    for sink in sinks {
        after.sinks.entry(sink.clone()).or_default();
    }
    let transition = Transition { why: reason(&names(sinks)), ..lease_transition(&after, Event::Enrolled, now) };
    Decision::swap(Swap { change: Change::Lease(after), relies_on: None, transition }, Reply::Enrolled)
}

fn bind(
    view: &View,
    token: &Token,
    session: SessionId,
    generations: &BTreeMap<SinkId, Generation>,
    now: Instant<AuthorityClock>,
) -> Decision {
    let lease = match standing_grant(view, token, session, now) {
        Ok(lease) => lease,
        Err(refusal) => return refuse_for_good(view, refusal, now),
    };
    let mut after = lease.clone();
    for (sink, generation) in generations {
        let Some(mark) = after.sinks.get_mut(sink) else {
            return Decision::refuse(Refusal::NotEnrolled { sink: sink.clone() });
        };
        if mark.bound.as_ref() != Some(generation) {
            *mark = SinkMark { bound: Some(generation.clone()), sealed: false, ..*mark };
        }
    }
    // Confirmed even when nothing changes, and by a swap all the same: the session must be Live *now*, not when it was
    // read, or a re-seal would go out for a grant that has been overtaken.
    let transition = lease_transition(&after, Event::Bound, now);
    Decision::swap(Swap { change: Change::Lease(after), relies_on: Some(session), transition }, Reply::Bound)
}

fn sealed(
    view: &View,
    token: &Token,
    generations: &BTreeMap<SinkId, Generation>,
    now: Instant<AuthorityClock>,
) -> Decision {
    let lease = match current(view, token) {
        Ok(lease) => lease,
        Err(refusal) => return Decision::refuse(refusal),
    };
    let mut after = lease.clone();
    for (sink, generation) in generations {
        match after.sinks.get_mut(sink) {
            None => return Decision::refuse(Refusal::NotEnrolled { sink: sink.clone() }),
            Some(mark) if mark.bound.as_ref() == Some(generation) => (mark.sealed, mark.excused) = (true, false),
            Some(_) => return Decision::refuse(Refusal::NotBound { sink: sink.clone() }),
        }
    }
    if after == *lease {
        return Decision::answer(Ok(Reply::Marked));
    }
    let back: BTreeSet<_> = lease.excused().difference(&after.excused()).cloned().collect();
    let transition = Transition {
        why: if back.is_empty() { None } else { reason(&format_args!("not excused any more: {}", names(&back))) },
        ..lease_transition(&after, Event::Sealed, now)
    };
    Decision::swap(Swap { change: Change::Lease(after), relies_on: None, transition }, Reply::Marked)
}

fn announce(
    view: &View,
    token: &Token,
    session: SessionId,
    excused: &BTreeSet<SinkId>,
    now: Instant<AuthorityClock>,
) -> Decision {
    let lease = match standing_grant(view, token, session, now) {
        Ok(lease) => lease,
        Err(refusal) => return refuse_for_good(view, refusal, now),
    };
    if lease.phase == Phase::Held {
        return Decision::answer(Ok(Reply::Announced));
    }
    let waiting = unsealed(lease, excused);
    if !waiting.is_empty() {
        return Decision::refuse(Refusal::NotAnnounced { waiting });
    }
    let mut after = LeaseRecord { phase: Phase::Held, ..lease.clone() };
    after.sinks.values_mut().for_each(|mark| mark.excused = !mark.sealed);
    let without = after.excused();
    let transition = Transition {
        why: if without.is_empty() { None } else { reason(&format_args!("without {}", names(&without))) },
        ..lease_transition(&after, Event::Announced, now)
    };
    Decision::swap(Swap { change: Change::Lease(after), relies_on: Some(session), transition }, Reply::Announced)
}

fn refused(view: &View, token: &Token, shown: SinkRefusal, now: Instant<AuthorityClock>) -> Decision {
    // The answer was lost: what the sink showed is learnt already.
    if let Some(lease) = &view.lease
        && (lease.phase == Phase::Free && lease.grant == token.grant)
        && lease.epoch >= token.epoch.max(shown.epoch)
    {
        return Decision::answer(Ok(Reply::Learnt));
    }
    let lease = match current(view, token) {
        Ok(lease) => lease,
        Err(refusal) => return Decision::refuse(refusal),
    };
    let after = LeaseRecord { phase: Phase::Free, epoch: lease.epoch.max(shown.epoch), ..lease.clone() };
    let transition = Transition {
        why: reason(&format_args!("a receiver has epoch {}", shown.epoch)),
        ..lease_transition(&after, Event::Refused, now)
    };
    Decision::swap(Swap { change: Change::Lease(after), relies_on: None, transition }, Reply::Learnt)
}

fn release(view: &View, token: &Token, now: Instant<AuthorityClock>) -> Decision {
    match &view.lease {
        Some(lease) if lease.is_current(token) => {
            let after = LeaseRecord { phase: Phase::Free, ..lease.clone() };
            let transition = Transition { why: left_open(lease), ..lease_transition(&after, Event::Released, now) };
            Decision::swap(Swap { change: Change::Lease(after), relies_on: None, transition }, Reply::Released)
        }
        Some(lease) if lease.phase == Phase::Free && lease.token() == *token => Decision::answer(Ok(Reply::Released)),
        _ => Decision::refuse(not_current(view)),
    }
}

fn complete(
    view: &View,
    token: &Token,
    session: SessionId,
    outcome: &Outcome,
    now: Instant<AuthorityClock>,
) -> Decision {
    if let Some(lease) = &view.lease
        && matches!(&lease.phase, Phase::Completed { outcome: stored } if stored == outcome)
        && lease.token() == *token
    {
        return Decision::answer(Ok(Reply::Completed));
    }
    let lease = match standing_grant(view, token, session, now) {
        Ok(lease) => lease,
        Err(refusal) => return refuse_for_good(view, refusal, now),
    };
    if lease.phase != Phase::Held {
        return Decision::refuse(Refusal::NotAnnounced { waiting: unsealed(lease, &BTreeSet::new()) });
    }
    let after = LeaseRecord { phase: Phase::Completed { outcome: outcome.clone() }, ..lease.clone() };
    let transition = Transition { why: left_open(lease), ..lease_transition(&after, Event::Completed, now) };
    Decision::swap(Swap { change: Change::Lease(after), relies_on: Some(session), transition }, Reply::Completed)
}

/// Refuses what relies on the caller's session. One whose time is over is ended first: the same request may have been decided
/// before that, and its change still be on its way. It would be made after the refusal.
fn refuse_for_good(view: &View, refusal: Refusal, now: Instant<AuthorityClock>) -> Decision {
    match (refusal, view.caller_standing(now)) {
        (Refusal::SessionEnded { .. }, Standing::Overdue) => session::overdue(view, now),
        (refusal, _) => Decision::refuse(refusal),
    }
}

/// What whoever reads the history must know of a grant that ends: where a former one may be accepted still.
fn left_open(lease: &LeaseRecord) -> Option<Reason> {
    let open = lease.excused();
    if open.is_empty() { None } else { reason(&format_args!("never sealed: {}", names(&open))) }
}

fn valid_caller(view: &View, now: Instant<AuthorityClock>) -> Result<&SessionRecord, Refusal> {
    let caller = view.caller.as_ref().ok_or(Refusal::SessionEnded { why: None })?;
    match view.caller_standing(now) {
        Standing::Valid => Ok(caller),
        Standing::Overdue => Err(Refusal::SessionEnded { why: Some(EndReason::Expired) }),
        Standing::Ended(why) => Err(Refusal::SessionEnded { why: Some(why) }),
        Standing::Missing => Err(Refusal::SessionEnded { why: None }),
    }
}

fn current<'view>(view: &'view View, token: &Token) -> Result<&'view LeaseRecord, Refusal> {
    view.lease.as_ref().filter(|lease| lease.is_current(token)).ok_or_else(|| not_current(view))
}

/// The current grant, while its own session is valid.
fn standing_grant<'view>(
    view: &'view View,
    token: &Token,
    session: SessionId,
    now: Instant<AuthorityClock>,
) -> Result<&'view LeaseRecord, Refusal> {
    let lease = current(view, token)?;
    let caller = valid_caller(view, now)?;
    if lease.session == session && caller.id == session { Ok(lease) } else { Err(not_current(view)) }
}

fn not_current(view: &View) -> Refusal {
    match &view.lease {
        Some(lease @ LeaseRecord { phase: Phase::Completed { outcome }, .. }) => completed_by(lease, outcome),
        lease => Refusal::NotCurrent {
            epoch: lease.as_ref().map(|lease| lease.epoch),
            owner: lease.as_ref().filter(|lease| lease.is_granted()).map(|lease| lease.owner.clone()),
        },
    }
}

fn completed_by(lease: &LeaseRecord, outcome: &Outcome) -> Refusal {
    Refusal::Completed { outcome: outcome.clone(), epoch: lease.epoch, owner: lease.owner.clone() }
}

fn unsealed(lease: &LeaseRecord, excused: &BTreeSet<SinkId>) -> BTreeSet<SinkId> {
    let waiting = lease.sinks.iter().filter(|(sink, mark)| !mark.sealed && !excused.contains(*sink));
    waiting.map(|(sink, _)| sink.clone()).collect()
}

/// So many names fit into a reason, however long they are.
const NAMES_MAX: usize = 100;

fn names(sinks: &BTreeSet<SinkId>) -> alloc::string::String {
    let names: alloc::vec::Vec<_> = sinks.iter().take(NAMES_MAX).map(SinkId::as_str).collect();
    match sinks.len().saturating_sub(NAMES_MAX) {
        0 => names.join(", "),
        more => alloc::format!("{} and {more} more", names.join(", ")),
    }
}
