//! Swaps that were decided on records from memory.

use super::records::{TTL, Worker, grant_id, held, swap};
use super::{Subject, block_on};
use crate::store::{After, RecallOutcome, Recalled, Versions};
use std::time::Duration;
use tenure_core::decide::{Change, Keys, Swap};
use tenure_core::record::{Event, SessionRecord};

/// The same change as by a plain swap, and the answer tells how things stand after it.
pub(super) fn a_recalled_swap_is_made_like_another(subject: &Subject) {
    let holder = subject.opened(1);
    let read = subject.read_resource("r");
    let lease = held("r", 1, grant_id(1), &holder, read.now);
    let granting = Swap { relies_on: Some(holder.id), ..swap(Change::Lease(lease.clone()), Event::Granted, read.now) };
    let Some(after) = made(subject, granting.clone(), &read.versions, None) else { return };
    let read = subject.read(&Keys { session: Some(holder.id), resource: Some(lease.resource.clone()), grant: None });
    assert_eq!(read.view.lease.as_ref(), Some(&lease));
    assert_eq!((Some(after.version), after.history), (read.versions.lease, read.view.history));
    assert!(read.now >= after.now && after.now.reached(&lease.since));
    assert_eq!(read.view.holdings, lease.holding().map(|(_, grant)| grant).into_iter().collect());
    assert_eq!(refused(subject, granting, &Versions { lease: None, ..read.versions }), Some(()), "it is not absent");
    let mut ended = holder.clone();
    ended.state = holder.ended(tenure_core::record::EndReason::Closed, read.now).state;
    subject.make(Change::Session(ended), Event::Ended);
    let next = held("r", 2, grant_id(2), &holder, read.now);
    let relying = Swap { relies_on: Some(holder.id), ..swap(Change::Lease(next), Event::Granted, read.now) };
    assert_eq!(refused(subject, relying, &read.versions), Some(()), "its session has ended");
}

/// A floor, an incarnation or a quarantine that came since is not passed over.
pub(super) fn a_recalled_swap_needs_the_same_store_record(subject: &Subject) {
    let holder = subject.opened(1);
    let before = subject.read_resource("r");
    let lease = held("r", 1, grant_id(1), &holder, before.now);
    let mut authority = before.view.authority.clone();
    authority.floor = Some(lease.epoch);
    subject.make(Change::Authority(authority), Event::FloorRaised);
    let granting = swap(Change::Lease(lease), Event::Granted, before.now);
    let Some(()) = refused(subject, granting, &before.versions) else { return };
    let after = subject.read_resource("r");
    assert!(after.view.lease.is_none());
    assert_eq!(after.view.history, before.view.history + 1);
}

/// The deadline of a renewal is judged and set by the store's clock at the moment of the swap, however old the reading is
/// that it was decided on: a holder believes for a ttl from when it sent.
pub(super) fn a_recalled_renewal_is_judged_at_the_swap(subject: &Subject) {
    let session = subject.opened(1);
    let worker = Worker::resume(&subject.store, session.id);
    let token = worker.acquire("r", grant_id(1), &["index"]).map(|granted| granted.token);
    assert!(token.is_ok(), "{token:?}");
    let read = subject.read_session(session.id);
    subject.pass(TTL / 4);
    let renewed = SessionRecord { renew_seq: 1, ..session.clone() };
    let renewing =
        || Swap { relies_on: Some(session.id), ..swap(Change::Session(renewed.clone()), Event::Renewed, read.now) };
    let Some(after) = made(subject, renewing(), &read.versions, Some(&session)) else { return };
    let now = subject.read_session(session.id);
    let deadline = now.view.caller.as_ref().map(|session| session.deadline);
    assert_eq!(deadline, Some(after.now.after(TTL)));
    assert!(after.now >= read.now.after(TTL / 4));
    assert_eq!((after.history, after.holdings), (now.view.history, now.view.holdings));
    assert_ne!(after.holdings, tenure_core::record::Holdings::default());
    // At the deadline itself it is too late, whoever has ended the session or not.
    let left = now.view.caller.as_ref().map_or(TTL, |session| session.deadline.since(&now.now));
    let again = || Swap { change: Change::Session(SessionRecord { renew_seq: 2, ..renewed.clone() }), ..renewing() };
    if subject.exact {
        subject.pass(left - Duration::from_nanos(1));
        let made = made(subject, again(), &now.versions, now.view.caller.as_ref()).expect("one nanosecond before");
        subject.pass(TTL);
        let read = subject.read_session(session.id);
        assert_eq!(read.versions.caller, Some(made.version));
        assert_eq!(outcome(subject, again(), &read.versions, read.view.caller.as_ref()), Some(RecallOutcome::Changed));
    } else {
        subject.pass(left);
        assert_eq!(outcome(subject, again(), &now.versions, now.view.caller.as_ref()), Some(RecallOutcome::Changed));
    }
}

fn made(subject: &Subject, swap: Swap, versions: &Versions, renewed: Option<&SessionRecord>) -> Option<After> {
    match outcome(subject, swap, versions, renewed)? {
        RecallOutcome::Done(after) => Some(after),
        other => unreachable!("{other:?}"),
    }
}

fn refused(subject: &Subject, swap: Swap, versions: &Versions) -> Option<()> {
    let outcome = outcome(subject, swap, versions, None)?;
    assert_eq!(outcome, RecallOutcome::Changed);
    Some(())
}

/// `None` when the store has no recalled swaps.
fn outcome(
    subject: &Subject,
    swap: Swap,
    versions: &Versions,
    renewed: Option<&SessionRecord>,
) -> Option<RecallOutcome> {
    let expected = match &swap.change {
        Change::Session(_) | Change::DropSession(_) => versions.caller,
        Change::Lease(_) | Change::DropLease(_) => versions.lease,
        Change::Authority(_) => versions.authority,
    };
    let recalled = Recalled {
        swap,
        expected,
        authority: versions.authority.expect("a store has a record"),
        valid_before: renewed.map(|session| session.deadline),
    };
    Some(block_on(subject.store.swap_recalled(recalled)?).expect("an answer"))
}
