use super::Subject;
use super::records::{Worker, grant, grant_id, held, session, session_id, swap};
use crate::store::{SwapOutcome, Version};
use std::collections::BTreeSet;
use std::time::Duration;
use tenure_core::decide::{Change, Keys, Reply, Swap};
use tenure_core::record::{EndReason, Event, Holdings, LeaseRecord, Phase, SessionRecord};
use tenure_core::{AuthorityClock, Instant};

/// A swap that relies on a session which is gone leaves record, holdings and history as they were, and so does one whose
/// version is another; each kind of change is tried.
pub(super) fn a_swap_is_all_or_nothing(subject: &Subject) {
    let holder = subject.opened(1);
    let now = subject.read(&Keys::default()).now;
    let lease = held("r", 1, grant_id(1), &holder, now);
    subject.make(Change::Lease(lease.clone()), Event::Granted);
    let keys = Keys { session: Some(holder.id), resource: Some(lease.resource.clone()), grant: None };
    let before = subject.read(&keys);
    let next = LeaseRecord { grant: grant_id(2), phase: Phase::Free, ..lease.clone() };
    let mut authority = before.view.authority.clone();
    authority.incarnation += 1;
    let wrong = Some(Version(u64::MAX / 3));
    let changes = [
        (Change::Lease(next), before.versions.lease),
        (Change::DropLease(lease.resource), before.versions.lease),
        (Change::Session(holder.ended(EndReason::Closed, now)), before.versions.caller),
        (Change::DropSession(holder.id), before.versions.caller),
        (Change::Authority(authority), before.versions.authority),
    ];
    for (change, right) in changes {
        let made = swap(change, Event::Released, now);
        let relying = Swap { relies_on: Some(session_id(99)), ..made.clone() };
        assert_eq!(subject.swap(relying, right), SwapOutcome::Changed, "{made:?}");
        assert_eq!(subject.swap(made.clone(), wrong), SwapOutcome::Changed, "{made:?}");
        assert_eq!(subject.swap(made.clone(), None), SwapOutcome::Changed, "{made:?}");
        let after = subject.read(&keys);
        assert_eq!(after.view, before.view, "{made:?}");
        assert_eq!(format!("{:?}", after.versions), format!("{:?}", before.versions), "{made:?}");
    }
}

pub(super) fn a_changed_version_refuses(subject: &Subject) {
    let holder = subject.opened(1);
    let read = subject.read_resource("r");
    let lease = held("r", 1, grant_id(1), &holder, read.now);
    let make = || swap(Change::Lease(lease.clone()), Event::Granted, read.now);
    assert_eq!(read.versions.lease, None);
    assert_eq!(subject.swap(make(), None), SwapOutcome::Done);
    assert_eq!(subject.swap(make(), None), SwapOutcome::Changed, "it is not absent any more");
    let first = subject.read_resource("r").versions.lease;
    assert_eq!(subject.swap(make(), first), SwapOutcome::Done);
    // The record is the same, its version is not.
    assert_eq!(subject.swap(make(), first), SwapOutcome::Changed);
}

pub(super) fn no_version_comes_back(subject: &Subject) {
    let now = subject.read(&Keys::default()).now;
    let opened = session(1, &subject.read(&Keys::default()));
    let (mut sessions, mut leases) = (BTreeSet::new(), BTreeSet::new());
    for round in 0..3 {
        for _ in 0..=round {
            subject.make(Change::Session(opened.clone()), Event::Opened);
            let version = subject.read_session(opened.id).versions.caller.expect("a session");
            assert!(sessions.insert(version), "the session had {version:?} before");
            subject.make(Change::Lease(held("r", 1, grant_id(1), &opened, now)), Event::Granted);
            let version = subject.read_resource("r").versions.lease.expect("a resource");
            assert!(leases.insert(version), "the resource had {version:?} before");
        }
        subject.make(Change::DropLease(super::records::resource("r")), Event::Retired);
        subject.make(Change::DropSession(opened.id), Event::Swept);
        assert_eq!(subject.read_session(opened.id).versions.caller, None);
        assert_eq!(subject.read_resource("r").versions.lease, None);
    }
}

pub(super) fn an_ended_session_is_not_relied_on(subject: &Subject) {
    let holder = subject.opened(1);
    let read = subject.read_resource("r");
    let lease = held("r", 1, grant_id(1), &holder, read.now);
    let grant = Swap { relies_on: Some(holder.id), ..swap(Change::Lease(lease), Event::Granted, read.now) };
    // It was Live when it was read, and ends before the swap.
    subject.make(Change::Session(holder.ended(EndReason::Expired, read.now)), Event::Ended);
    assert_eq!(subject.swap(grant.clone(), read.versions.lease), SwapOutcome::Changed);
    subject.make(Change::DropSession(holder.id), Event::Swept);
    assert_eq!(subject.swap(grant, read.versions.lease), SwapOutcome::Changed, "a missing session counts as ended");
    assert!(subject.read_resource("r").view.lease.is_none());
}

pub(super) fn an_overdue_session_still_stands(subject: &Subject) {
    let holder = subject.opened(1);
    subject.pass(holder.ttl.get());
    let read = subject.read_resource("r");
    assert!(read.now.reached(&holder.deadline));
    let lease = held("r", 1, grant_id(1), &holder, read.now);
    let grant = Swap { relies_on: Some(holder.id), ..swap(Change::Lease(lease), Event::Granted, read.now) };
    assert_eq!(subject.swap(grant, None), SwapOutcome::Done);
}

pub(super) fn a_session_of_a_former_incarnation_is_not_relied_on(subject: &Subject) {
    let holder = subject.opened(1);
    let read = subject.read_resource("r");
    let lease = held("r", 1, grant_id(1), &holder, read.now);
    let mut raised = read.view.authority.clone();
    raised.incarnation += 1;
    subject.make(Change::Authority(raised), Event::Quarantined);
    let grant = Swap { relies_on: Some(holder.id), ..swap(Change::Lease(lease), Event::Granted, read.now) };
    assert_eq!(subject.swap(grant, None), SwapOutcome::Changed);
    assert!(subject.read_resource("r").view.lease.is_none());
}

pub(super) fn holdings_follow_the_grants(subject: &Subject) {
    let (a, b) = (subject.opened(1), subject.opened(2));
    let now = subject.read(&Keys::default()).now;
    let holdings = |id| subject.read_session(id).view.holdings;
    let set = |grants: &[(u64, u64)]| grants.iter().map(|(epoch, n)| grant(*epoch, *n)).collect::<Holdings>();
    let put = |lease: LeaseRecord| subject.make(Change::Lease(lease), Event::Granted);
    put(held("r", 1, grant_id(1), &a, now));
    put(LeaseRecord { phase: Phase::Sealing, ..held("s", 1, grant_id(2), &a, now) });
    assert_eq!(holdings(a.id), set(&[(1, 1), (1, 2)]), "a grant counts while it is sealed and while it is held");
    put(held("s", 1, grant_id(2), &a, now));
    assert_eq!(holdings(a.id), set(&[(1, 1), (1, 2)]), "an announcement changes nothing");
    put(held("r", 2, grant_id(3), &b, now));
    assert_eq!((holdings(a.id), holdings(b.id)), (set(&[(1, 2)]), set(&[(2, 3)])), "a takeover moves it");
    put(LeaseRecord { phase: Phase::Free, ..held("s", 1, grant_id(2), &a, now) });
    assert_eq!(holdings(a.id), Holdings::default(), "a release takes it out");
    let outcome = tenure_core::Outcome::new("done").expect("an outcome");
    put(LeaseRecord { phase: Phase::Completed { outcome }, ..held("r", 2, grant_id(3), &b, now) });
    assert_eq!(holdings(b.id), Holdings::default(), "a completion takes it out");
    put(held("r", 3, grant_id(4), &b, now));
    put(held("t", 1, grant_id(5), &b, now));
    let cut = tenure_core::Epoch::FIRST;
    put(LeaseRecord { phase: Phase::Retiring { cut, forgotten: [].into() }, ..held("r", 3, grant_id(4), &b, now) });
    assert_eq!(holdings(b.id), set(&[(1, 5)]), "a retirement takes it out");
    subject.make(Change::DropLease(super::records::resource("t")), Event::Retired);
    assert_eq!(holdings(b.id), Holdings::default(), "so does the end of the record");
    let grants = super::block_on(subject.store.grants(b.id)).expect("the grants");
    assert!(grants.is_empty());
    // What stands on a session that was swept counts again if its record comes back.
    put(held("u", 1, grant_id(6), &a, now));
    subject.make(Change::DropSession(a.id), Event::Swept);
    subject.make(Change::Session(a.clone()), Event::Opened);
    assert_eq!(holdings(a.id), set(&[(1, 6)]));
    let grants = super::block_on(subject.store.grants(a.id)).expect("the grants");
    assert_eq!(
        grants.iter().filter_map(LeaseRecord::holding).map(|(_, grant)| grant).collect::<Holdings>(),
        set(&[(1, 6)])
    );
}

/// A renewal that was read before a grant keeps the grant, and a grant that was read before a renewal is made.
pub(super) fn a_renewal_and_a_grant_do_not_disturb_each_other(subject: &Subject) {
    let worker = Worker::open(&subject.store, 1).expect("a session");
    let read = subject.read_session(worker.session);
    let before = read.view.caller.expect("a session");
    let renewed =
        SessionRecord { renew_seq: before.renew_seq + 1, deadline: read.now.after(before.ttl.get()), ..before.clone() };
    let renewal =
        Swap { relies_on: Some(before.id), ..swap(Change::Session(renewed.clone()), Event::Renewed, read.now) };
    worker.acquire("r", grant_id(1), &[]).expect("a grant");
    assert_eq!(subject.swap(renewal, read.versions.caller), SwapOutcome::Done);
    let after = subject.read_session(worker.session).view;
    assert_eq!(after.caller, Some(renewed));
    assert_eq!(after.holdings, [grant(1, 1)].into_iter().collect());
    match worker.renew(1) {
        Ok(Reply::Renewed { holdings, .. }) => assert_eq!(holdings, after.holdings),
        other => unreachable!("a renewal is answered with one, not {other:?}"),
    }
}

/// A renewal is the change that comes most often, and a store may have a shorter way for it: it asks for the relied-on session
/// all the same, be it the renewed one, another one or none.
pub(super) fn a_renewal_needs_the_session_that_it_relies_on(subject: &Subject) {
    let (renewed, other) = (subject.opened(1), subject.opened(2));
    let renew = |relies_on| {
        let read = subject.read_session(renewed.id);
        let before = read.view.caller.expect("a session");
        let after = SessionRecord { renew_seq: before.renew_seq + 1, ..before };
        let renewal = Swap { relies_on, ..swap(Change::Session(after), Event::Renewed, read.now) };
        subject.swap(renewal, read.versions.caller)
    };
    for relies_on in [None, Some(renewed.id), Some(other.id)] {
        assert_eq!(renew(relies_on), SwapOutcome::Done, "{relies_on:?}");
    }
    let read = subject.read_session(other.id);
    subject.make(Change::Session(other.ended(EndReason::Closed, read.now)), Event::Ended);
    for relies_on in [other.id, session_id(99)] {
        assert_eq!(renew(Some(relies_on)), SwapOutcome::Changed, "{relies_on:?}");
    }
    assert_eq!(renew(Some(renewed.id)), SwapOutcome::Done);
    let mut raised = read.view.authority;
    raised.incarnation += 1;
    subject.make(Change::Authority(raised), Event::Quarantined);
    assert_eq!(renew(Some(renewed.id)), SwapOutcome::Changed, "it is of a former incarnation");
}

/// A quarantine is counted from the reading that it was decided on, and sessions of the former incarnation are renewed
/// until it is made: one that comes late would end while their holders still believe. What comes late was decided on an
/// older reading, so that no store has to be waited for: a store whose time cannot be driven passed this unlooked at, and
/// made it however late.
pub(super) fn a_quarantine_that_comes_late_is_decided_anew(subject: &Subject) {
    let before = subject.read(&Keys::default());
    let decided = |at: Instant<AuthorityClock>| {
        let (view, observed) = (&before.view, before.view.observed.clone());
        swap(Change::Authority(view.authority.quarantined(observed, view.seen(), at)), Event::Quarantined, at)
    };
    let earlier = |now: &Instant<AuthorityClock>, span: Duration| {
        Instant::from_nanos(now.as_nanos() - u64::try_from(span.as_nanos()).expect("some seconds"))
    };
    let bound = decided(before.now).made_before().expect("it is bounded").since(&before.now);
    // A clock that began with its store is not so old yet.
    subject.pass(bound.saturating_sub(Duration::from_nanos(before.now.as_nanos())));
    let now = subject.read(&Keys::default()).now;
    // At the instant itself, where time stands still in between.
    assert_eq!(subject.swap(decided(earlier(&now, bound)), before.versions.authority), SwapOutcome::Changed);
    let read = subject.read(&Keys::default());
    assert_eq!((&read.view.authority, read.view.history), (&before.view.authority, 0), "nothing was changed");
    let left = if subject.exact { Duration::from_nanos(1) } else { bound };
    assert_eq!(subject.swap(decided(earlier(&read.now, bound - left)), read.versions.authority), SwapOutcome::Done);
    assert_eq!(subject.read(&Keys::default()).view.authority.incarnation, before.view.authority.incarnation + 1);
}
