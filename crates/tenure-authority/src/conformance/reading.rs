use super::Subject;
use super::records::{Worker, grant_id, held, resource, session_id};
use crate::store::{SwapOutcome, TimeSource};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure_core::decide::{Change, Keys};
use tenure_core::record::{Event, Holdings, Phase};

pub(super) fn a_new_store_is_empty_and_has_an_identity(subject: &Subject) {
    let read =
        subject.read(&Keys { session: Some(session_id(1)), resource: Some(resource("r")), grant: Some(grant_id(1)) });
    assert!(!read.view.authority.identity.as_str().is_empty());
    assert_eq!(read.view.observed, read.view.authority.identity);
    assert_eq!((read.view.authority.incarnation, read.view.authority.floor), (1, None));
    assert_eq!((read.view.history, read.view.holdings), (0, Holdings::default()));
    assert!(read.view.caller.is_none() && read.view.lease.is_none() && read.view.holder.is_none());
    assert!(read.versions.authority.is_some() && read.versions.caller.is_none() && read.versions.lease.is_none());
    assert!(!read.view.grant_known, "no grant was ever given");
    assert!(subject.read(&Keys::default()).view.grant_known, "none was shown");
}

pub(super) fn what_was_swapped_is_read(subject: &Subject) {
    let holder = subject.opened(1);
    let caller = subject.opened(2);
    let mut lease = held("r", 7, grant_id(1), &holder, subject.read(&Keys::default()).now);
    for phase in [
        Phase::Held,
        Phase::Sealing,
        Phase::Free,
        Phase::Completed { outcome: tenure_core::Outcome::new("").expect("an empty outcome is one") },
        Phase::Completed { outcome: tenure_core::Outcome::new("7 files\n\"done\"").expect("an outcome") },
        Phase::Completed { outcome: tenure_core::Outcome::new("\0 \u{1f980} \\u0000").expect("an outcome") },
        Phase::Retiring { cut: lease.epoch, forgotten: [super::records::sink("a \"quoted\" sink")].into() },
    ] {
        lease.phase = phase;
        subject.make(Change::Lease(lease.clone()), Event::Granted);
        let read =
            subject.read(&Keys { session: Some(caller.id), resource: Some(lease.resource.clone()), grant: None });
        assert_eq!(read.view.lease.as_ref(), Some(&lease));
        assert_eq!(read.view.holder.as_ref(), Some(&holder));
        assert_eq!(read.view.caller.as_ref(), Some(&caller));
    }
    let ended = holder.ended(tenure_core::record::EndReason::Revoked, lease.since);
    subject.make(Change::Session(ended.clone()), Event::Ended);
    assert_eq!(subject.read_session(holder.id).view.caller, Some(ended));
    let read = subject.read(&Keys::default());
    let mut authority = read.view.authority.quarantined(read.view.observed.clone(), read.view.seen(), read.now);
    authority.floor = Some(lease.epoch);
    // Whatever a caller claims to have seen: all 64 bits are kept.
    authority.incarnation = u64::MAX;
    subject.make(Change::Authority(authority.clone()), Event::Quarantined);
    let after = subject.read(&Keys::default()).view.authority;
    if subject.store.capabilities().clock == TimeSource::Observed && !subject.exact {
        // It counts from its making, which is a little later.
        assert!(after.quarantined_until > authority.quarantined_until, "{after:?}");
        authority.quarantined_until = after.quarantined_until;
    }
    assert_eq!(after, authority);
}

/// One worker goes through acquire and release, and its history, its lease and its holdings tell the same at each read.
pub(super) fn a_read_is_of_one_moment(subject: &Subject) {
    let worker = Worker::open_long(&subject.store, 1).expect("a session");
    let before = subject.read(&Keys::default()).view.history;
    let keys = Keys { session: Some(worker.session), resource: Some(resource("r")), grant: None };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=200 {
                let token = worker.acquire("r", grant_id(n), &[]).expect("a grant").token;
                worker.release(&token).expect("a release");
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            let view = subject.read(&keys).view;
            let steps = view.history - before;
            let Some(lease) = view.lease else {
                assert_eq!(steps, 0);
                continue;
            };
            let (expected, grant) = match lease.holding() {
                Some((_, grant)) => (2 * lease.epoch.get() - 1, Some(grant)),
                None => (2 * lease.epoch.get(), None),
            };
            assert_eq!(steps, expected, "the history is of another moment than the lease");
            assert_eq!(view.holdings, grant.into_iter().collect(), "the holdings are of another moment than the lease");
            assert_eq!(view.holder.map(|holder| holder.id), Some(worker.session));
        }
    });
}

pub(super) fn the_clock_is_read_after_the_records(subject: &Subject) {
    let worker = Worker::open_long(&subject.store, 1).expect("a session");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=100 {
                subject.pass(Duration::from_nanos(1));
                let token = worker.acquire("r", grant_id(n), &[]).expect("a grant").token;
                worker.release(&token).expect("a release");
            }
            done.store(true, Ordering::Release);
        });
        let mut last = None;
        while !done.load(Ordering::Acquire) {
            let read = subject.read_resource("r");
            if let Some(lease) = &read.view.lease {
                assert!(read.now.reached(&lease.since), "the clock was read before the record was");
            }
            assert!(last <= Some(read.now), "the clock went back");
            last = Some(read.now);
        }
    });
}

pub(super) fn a_grant_that_was_ever_given_is_known(subject: &Subject) {
    let holder = subject.opened(1);
    for n in 1..=3 {
        let lease = held("r", n, grant_id(n), &holder, subject.read(&Keys::default()).now);
        subject.make(Change::Lease(lease), Event::Granted);
    }
    let known = |n| subject.read(&Keys { grant: Some(grant_id(n)), ..Keys::default() }).view.grant_known;
    assert_eq!([known(1), known(2), known(3), known(4)], [true, true, true, false]);
    // A swap that did not happen gave nothing.
    let lost = held("r", 4, grant_id(4), &holder, subject.read(&Keys::default()).now);
    let at = lost.since;
    assert_eq!(subject.swap(super::records::swap(Change::Lease(lost), Event::Granted, at), None), SwapOutcome::Changed);
    assert!(!known(4));
}
