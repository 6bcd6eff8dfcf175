//! The store itself: who it is, and whether it went back in time.

use super::{Change, Reply, Request, Swap, View, reason};
use crate::record::{Event, Transition};
use crate::{AuthorityClock, Instant, Token};
use core::time::Duration;

/// For so long after a quarantine a grant at a sink that the history does not know says nothing new: it was lost with the
/// history for which the store was in quarantine, and whoever had it has long ceased to believe. Without this, each
/// resource that was granted in the lost history would quarantine the whole store once more, one after the other.
///
/// A week, since many jobs run once a week. Another loss within it is still noticed by the store's identity, by what
/// callers have seen, and by its witness.
pub const EXPLAINED_FOR: Duration = Duration::from_hours(7 * 24);

pub(super) fn hello(view: &View, now: Instant<AuthorityClock>) -> Reply {
    Reply::Hello { now, seen: view.seen(), max_ttl: view.authority.max_ttl }
}

/// The quarantine, when the store shows that its history went back: another identity, a caller that has seen more than
/// there is, or a grant at a sink that the history does not know.
pub(super) fn went_back(view: &View, request: &Request, now: Instant<AuthorityClock>) -> Option<Swap> {
    let why = if view.observed != view.authority.identity {
        "the store's identity changed"
    } else if request.seen().is_some_and(|seen| seen > view.seen()) {
        "a caller has seen a later history than this store has"
    } else if !view.grant_known
        && !explained(view, now)
        && matches!(request, Request::Refused { token, .. } if stands(view, token))
    {
        "a receiver has a grant that this history does not know"
    } else {
        return None;
    };
    Some(Swap {
        change: Change::Authority(view.authority.quarantined(
            view.observed.clone(),
            request.seen().unwrap_or_default(),
            now,
        )),
        relies_on: None,
        transition: Transition {
            at: now,
            event: Event::Quarantined,
            resource: None,
            session: None,
            epoch: None,
            grant: None,
            actor: None,
            why: reason(&why),
        },
    })
}

/// Whether the grant stands in the present incarnation. Without the second half, one report would quarantine for ever.
fn stands(view: &View, token: &Token) -> bool {
    view.lease.as_ref().is_some_and(|lease| lease.is_current(token))
        && view.holder.as_ref().is_some_and(|holder| holder.incarnation == view.authority.incarnation)
}

/// Whether a quarantine stands behind an unknown grant already.
fn explained(view: &View, now: Instant<AuthorityClock>) -> bool {
    view.authority.quarantined_until.is_some_and(|until| !now.reached(&until.after(EXPLAINED_FOR)))
}
