//! The end of a resource, and what only an operator may do with one.

use super::{Change, Decision, Refusal, Reply, Request, Swap, View, lease_transition, reason};
use crate::record::{Event, LeaseRecord, Phase, SinkMark, Standing, Transition};
use crate::{Actor, AuthorityClock, Epoch, Instant, Reason, SinkId};
use alloc::collections::BTreeSet;

pub(super) fn decide(view: &View, request: &Request, now: Instant<AuthorityClock>) -> Decision {
    let Some(lease) = &view.lease else {
        return match request {
            // A retirement that is repeated after its end finds nothing left to do.
            Request::Retire { .. } | Request::Forgotten { .. } => Decision::answer(Ok(Reply::Retired)),
            _ => Decision::refuse(Refusal::WrongPhase { phase: "absent" }),
        };
    };
    match request {
        Request::Reopen { actor, reason, .. } => reopen(lease, actor, reason, now),
        Request::Unenrol { sink, forgotten, actor, reason, .. } => unenrol(lease, sink, *forgotten, actor, reason, now),
        Request::ReopenSink { sink, actor, reason, .. } => reopen_sink(lease, sink, actor, reason, now),
        Request::Retire { actor, .. } => retire(view, lease, actor, now),
        Request::Forgotten { cut, sink, .. } => forgotten(view, lease, *cut, sink, now),
        Request::ForgetRefused { cut, row, .. } => forget_refused(lease, *cut, *row, now),
        _ => Decision::refuse(Refusal::WrongPhase { phase: lease.phase.name() }),
    }
}

fn reopen(lease: &LeaseRecord, actor: &Actor, why: &Reason, now: Instant<AuthorityClock>) -> Decision {
    if !matches!(lease.phase, Phase::Completed { .. }) {
        return Decision::refuse(Refusal::WrongPhase { phase: lease.phase.name() });
    }
    let after = LeaseRecord { phase: Phase::Free, ..lease.clone() };
    let transition = by(actor, why, lease_transition(&after, Event::Reopened, now));
    Decision::swap(Swap { change: Change::Lease(after), relies_on: None, transition }, Reply::Reopened)
}

fn unenrol(
    lease: &LeaseRecord,
    sink: &SinkId,
    forgotten: Option<Epoch>,
    actor: &Actor,
    why: &Reason,
    now: Instant<AuthorityClock>,
) -> Decision {
    if !lease.sinks.contains_key(sink) {
        return Decision::answer(Ok(Reply::Unenrolled));
    }
    // Whatever was sealed there after its forgetting would be accepted for ever.
    if forgotten.is_some_and(|cut| cut < lease.epoch) {
        return Decision::refuse(Refusal::OldCut { cut: lease.epoch });
    }
    let mut after = lease.clone();
    after.sinks.remove(sink);
    let transition = by(actor, &about(sink, why), lease_transition(&after, Event::Unenrolled, now));
    Decision::swap(Swap { change: Change::Lease(after), relies_on: None, transition }, Reply::Unenrolled)
}

/// A mark only gets weaker here, and nothing is granted or announced by it. A report of a seal that was under way finds
/// no generation bound, and is refused.
fn reopen_sink(
    lease: &LeaseRecord,
    sink: &SinkId,
    actor: &Actor,
    why: &Reason,
    now: Instant<AuthorityClock>,
) -> Decision {
    let mut after = lease.clone();
    let Some(mark) = after.sinks.get_mut(sink) else {
        return Decision::refuse(Refusal::NotEnrolled { sink: sink.clone() });
    };
    *mark = SinkMark { excused: mark.excused, ..SinkMark::default() };
    // The restore may have brought back what was forgotten.
    if let Phase::Retiring { forgotten, .. } = &mut after.phase {
        forgotten.remove(sink);
    }
    // Recorded also when the mark was clear: each reopening happened.
    let transition = by(actor, &about(sink, why), lease_transition(&after, Event::SinkReopened, now));
    Decision::swap(Swap { change: Change::Lease(after), relies_on: None, transition }, Reply::SinkReopened)
}

fn retire(view: &View, lease: &LeaseRecord, actor: &Actor, now: Instant<AuthorityClock>) -> Decision {
    let cut = match &lease.phase {
        Phase::Retiring { cut, .. } => return go_on(view, lease, *cut, now),
        // A holder that has ended holds nothing; a living one is asked to release first.
        Phase::Sealing | Phase::Held if matches!(view.holder_standing(now), Standing::Valid | Standing::Overdue) => {
            return Decision::refuse(Refusal::WrongPhase { phase: lease.phase.name() });
        }
        Phase::Free | Phase::Completed { .. } | Phase::Sealing | Phase::Held => lease.epoch,
    };
    let after = LeaseRecord { phase: Phase::Retiring { cut, forgotten: BTreeSet::new() }, ..lease.clone() };
    let transition = Transition { actor: Some(actor.clone()), ..lease_transition(&after, Event::Retiring, now) };
    Decision::first(Swap { change: Change::Lease(after), relies_on: None, transition })
}

/// Forgets at the sinks first, then raises the floor, then drops the record. In this order: between two steps the
/// resource is closed by at least one of them.
fn go_on(view: &View, lease: &LeaseRecord, cut: Epoch, now: Instant<AuthorityClock>) -> Decision {
    let Phase::Retiring { forgotten, .. } = &lease.phase else {
        return Decision::refuse(Refusal::WrongPhase { phase: lease.phase.name() });
    };
    let waiting: BTreeSet<_> = lease.sinks.keys().filter(|sink| !forgotten.contains(*sink)).cloned().collect();
    if !waiting.is_empty() {
        return Decision::answer(Ok(Reply::Retiring { cut, waiting }));
    }
    if view.authority.floor < Some(cut) {
        let mut authority = view.authority.clone();
        authority.floor = Some(cut);
        let transition = lease_transition(lease, Event::FloorRaised, now);
        return Decision::first(Swap { change: Change::Authority(authority), relies_on: None, transition });
    }
    let transition = lease_transition(lease, Event::Retired, now);
    Decision::swap(
        Swap { change: Change::DropLease(lease.resource.clone()), relies_on: None, transition },
        Reply::Retired,
    )
}

fn forgotten(view: &View, lease: &LeaseRecord, told: Epoch, sink: &SinkId, now: Instant<AuthorityClock>) -> Decision {
    let Phase::Retiring { cut, forgotten } = &lease.phase else {
        return Decision::refuse(Refusal::WrongPhase { phase: lease.phase.name() });
    };
    if told != *cut {
        return Decision::refuse(Refusal::OldCut { cut: *cut });
    }
    if forgotten.contains(sink) || !lease.sinks.contains_key(sink) {
        return go_on(view, lease, *cut, now);
    }
    let mut forgotten = forgotten.clone();
    forgotten.insert(sink.clone());
    let after = LeaseRecord { phase: Phase::Retiring { cut: *cut, forgotten }, ..lease.clone() };
    let transition = Transition { why: reason(sink), ..lease_transition(&after, Event::Forgotten, now) };
    Decision::first(Swap { change: Change::Lease(after), relies_on: None, transition })
}

fn forget_refused(lease: &LeaseRecord, told: Epoch, row: Epoch, now: Instant<AuthorityClock>) -> Decision {
    let Phase::Retiring { cut, .. } = &lease.phase else {
        return Decision::refuse(Refusal::WrongPhase { phase: lease.phase.name() });
    };
    if told != *cut {
        return Decision::refuse(Refusal::OldCut { cut: *cut });
    }
    let raised = row.max(*cut);
    // Every sink must forget again at the higher cut: what one forgot at the lower cut may come back in between.
    let after = LeaseRecord {
        epoch: lease.epoch.max(raised),
        phase: Phase::Retiring { cut: raised, forgotten: BTreeSet::new() },
        ..lease.clone()
    };
    let transition = Transition {
        why: reason(&format_args!("a receiver has epoch {row}")),
        ..lease_transition(&after, Event::Retiring, now)
    };
    let waiting = after.sinks.keys().cloned().collect();
    Decision::swap(
        Swap { change: Change::Lease(after), relies_on: None, transition },
        Reply::Retiring { cut: raised, waiting },
    )
}

/// The reason with the sink that it is about; alone, when both together are too long.
fn about(sink: &SinkId, why: &Reason) -> Reason {
    reason(&format_args!("{sink}: {why}")).unwrap_or_else(|| why.clone())
}

fn by(actor: &Actor, why: &Reason, transition: Transition) -> Transition {
    Transition { actor: Some(actor.clone()), why: Some(why.clone()), ..transition }
}
