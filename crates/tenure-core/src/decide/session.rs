//! Sessions: opened once, renewed while they live, ended one way.

use super::{Change, Decision, Refusal, Reply, Request, Swap, View, actor_of, session_transition};
use crate::record::{EndReason, Event, SessionRecord, SessionState, Standing, Transition};
use crate::{Actor, AuthorityClock, Instant, Reason};
use core::time::Duration;

/// How long an ended session is kept, and how old an opening may be at most. They must be one number: a late opening
/// would revive a session that was swept before.
pub const SWEEP_AGE: Duration = Duration::from_hours(1);

pub(super) fn decide(view: &View, request: &Request, now: Instant<AuthorityClock>) -> Decision {
    match request {
        Request::Open { .. } => open(view, request, now),
        Request::Renew { n, .. } => renew(view, *n, now),
        Request::Close { .. } => end(view, EndReason::Closed, None, now),
        Request::RevokeSession { actor, reason, .. } => end(view, EndReason::Revoked, Some((actor, reason)), now),
        Request::Sweep { .. } => sweep(view, now),
        _ => Decision::refuse(Refusal::SessionEnded { why: None }),
    }
}

fn open(view: &View, request: &Request, now: Instant<AuthorityClock>) -> Decision {
    let Request::Open { id, owner, on_this_host, ttl, asked_at, .. } = request else {
        return Decision::refuse(Refusal::OpeningTooOld);
    };
    if let Some(remaining) = view.authority.quarantine(now) {
        return Decision::refuse(Refusal::Quarantined { remaining });
    }
    match view.caller_standing(now) {
        Standing::Valid => return Decision::answer(Ok(Reply::Opened { seen: view.seen() })),
        Standing::Overdue => return overdue(view, now),
        Standing::Ended(why) => return Decision::refuse(Refusal::SessionEnded { why: Some(why) }),
        Standing::Missing => {}
    }
    // An authority time that lies ahead was not read from this store.
    if now.since(asked_at) >= SWEEP_AGE || !now.reached(asked_at) {
        return Decision::refuse(Refusal::OpeningTooOld);
    }
    if *ttl > view.authority.max_ttl {
        return Decision::refuse(Refusal::TtlTooLong { max: view.authority.max_ttl });
    }
    let session = SessionRecord {
        id: *id,
        owner: owner.clone(),
        on_this_host: *on_this_host,
        ttl: *ttl,
        deadline: now.after(ttl.get()),
        renew_seq: 0,
        incarnation: view.authority.incarnation,
        state: SessionState::Live,
    };
    let transition = session_transition(&session, Event::Opened, now);
    Decision::swap(
        Swap { change: Change::Session(session), relies_on: None, transition },
        Reply::Opened { seen: view.seen() },
    )
}

fn renew(view: &View, n: u64, now: Instant<AuthorityClock>) -> Decision {
    let Some(session) = &view.caller else { return Decision::refuse(Refusal::SessionEnded { why: None }) };
    match view.caller_standing(now) {
        Standing::Valid => {}
        Standing::Overdue => return overdue(view, now),
        Standing::Ended(why) => return Decision::refuse(Refusal::SessionEnded { why: Some(why) }),
        Standing::Missing => return Decision::refuse(Refusal::SessionEnded { why: None }),
    }
    let reply = Reply::Renewed { seen: view.seen(), holdings: view.holdings };
    if n.checked_add(1) == Some(session.renew_seq) {
        // The answer was lost: the same success, and the deadline stays.
        return Decision::answer(Ok(reply));
    }
    let next = match n.checked_add(1) {
        Some(next) if n == session.renew_seq => next,
        _ => return Decision::refuse(Refusal::OutOfStep { expected: session.renew_seq }),
    };
    let renewed = SessionRecord { deadline: now.after(session.ttl.get()), renew_seq: next, ..session.clone() };
    let transition = session_transition(&renewed, Event::Renewed, now);
    Decision::swap(Swap { change: Change::Session(renewed), relies_on: Some(session.id), transition }, reply)
}

fn end(view: &View, why: EndReason, by: Option<(&Actor, &Reason)>, now: Instant<AuthorityClock>) -> Decision {
    let live = view.caller.as_ref().filter(|session| session.state == SessionState::Live);
    match live {
        Some(session) => Decision::swap(ending(session, why, by, now), Reply::Ended),
        // Whatever ended it, it has ended: that is what was asked for.
        None => Decision::answer(Ok(Reply::Ended)),
    }
}

/// Ends the caller's session, whose time is over; then it is refused.
pub(super) fn overdue(view: &View, now: Instant<AuthorityClock>) -> Decision {
    match &view.caller {
        Some(session) => Decision::first(ending(session, EndReason::Expired, None, now)),
        None => Decision::refuse(Refusal::SessionEnded { why: None }),
    }
}

/// The swap that ends a session. Anybody may send it once the deadline has passed.
pub(super) fn ending(
    session: &SessionRecord,
    why: EndReason,
    by: Option<(&Actor, &Reason)>,
    now: Instant<AuthorityClock>,
) -> Swap {
    let ended = session.ended(why, now);
    let transition = Transition {
        actor: by.map_or_else(|| actor_of(ended.owner.name.as_str()), |(actor, _)| Some(actor.clone())),
        why: by.map_or_else(|| super::reason(&why), |(_, reason)| Some(reason.clone())),
        ..session_transition(&ended, Event::Ended, now)
    };
    Swap { change: Change::Session(ended), relies_on: None, transition }
}

fn sweep(view: &View, now: Instant<AuthorityClock>) -> Decision {
    let Some(session) = &view.caller else { return Decision::answer(Ok(Reply::Ended)) };
    match session.state {
        SessionState::Live if view.caller_standing(now) == Standing::Overdue => overdue(view, now),
        // Of a former incarnation: it has ended without a row of its own, and could never be removed otherwise.
        SessionState::Live if view.caller_standing(now) == Standing::Ended(EndReason::Restored) => {
            Decision::first(ending(session, EndReason::Restored, None, now))
        }
        SessionState::Ended { at, .. } if now.since(&at) >= SWEEP_AGE => Decision::swap(
            Swap {
                change: Change::DropSession(session.id),
                relies_on: None,
                transition: session_transition(session, Event::Swept, now),
            },
            Reply::Ended,
        ),
        SessionState::Ended { .. } => Decision::answer(Ok(Reply::Ended)),
        SessionState::Live => Decision::answer(Ok(Reply::Stands)),
    }
}
