use super::records::{Worker, grant_id, resource, session_id};
use super::{Subject, block_on};
use crate::WallTime;
use crate::store::{HistoryQuery, Order, Page, Recorded};
use std::time::Duration;
use tenure_core::decide::Change;
use tenure_core::record::{EndReason, Event};

pub(super) fn history_is_in_order_and_complete(subject: &Subject) {
    let worker = Worker::open_long(&subject.store, 1).expect("a session");
    for n in 0..10 {
        let token = worker.acquire("r", grant_id(n), &[]).expect("a grant").token;
        worker.renew(n).expect("a renewal");
        worker.release(&token).expect("a release");
    }
    let rows = subject.history();
    let numbers: Vec<_> = rows.iter().map(|row| row.number).collect();
    assert_eq!(numbers, (1..=21).collect::<Vec<_>>(), "each step has the next number, a renewal has none");
    assert_eq!(subject.read_resource("r").view.history, 21);
    let events: Vec<_> = rows.iter().map(|row| row.transition.event).collect();
    assert_eq!(events[..3], [Event::Opened, Event::Granted, Event::Released]);
    let granted = &rows[1].transition;
    assert_eq!((granted.resource.as_ref(), granted.session), (Some(&resource("r")), Some(worker.session)));
    assert_eq!((granted.epoch.map(|epoch| epoch.get()), granted.grant), (Some(1), Some(grant_id(0))));
    assert_eq!(granted.actor.as_ref().map(tenure_core::Actor::as_str), Some("worker-1"));
    assert_eq!(in_pages(subject, &HistoryQuery { limit: 4, ..HistoryQuery::default() }), rows);
}

/// Only one resource's rows, from either end, in pages that end between its rows, and beyond either end.
pub(super) fn history_is_read_by_resource_and_from_either_end(subject: &Subject) {
    let worker = Worker::open_long(&subject.store, 1).expect("a session");
    for n in 0..9 {
        let name = ["a", "b", "a b"][usize::try_from(n % 3).expect("small")];
        let token = worker.acquire(name, grant_id(n), &[]).expect("a grant").token;
        worker.release(&token).expect("a release");
    }
    let rows = subject.history();
    for name in [None, Some("a"), Some("b"), Some("a b"), Some("c")] {
        let resource = name.map(resource);
        let about = |row: &&Recorded| resource.is_none() || row.transition.resource == resource;
        let mut expected: Vec<_> = rows.iter().filter(about).cloned().collect();
        assert_eq!(expected.len(), [19, 6, 0][usize::from(name.is_some()) + usize::from(name == Some("c"))]);
        for order in [Order::OldestFirst, Order::NewestFirst] {
            for limit in [1, 4, 100, usize::MAX] {
                let query = HistoryQuery { resource: resource.clone(), order, after: None, limit };
                assert_eq!(in_pages(subject, &query), expected, "{query:?}");
            }
            let beyond = |after| {
                let query =
                    HistoryQuery { resource: resource.clone(), order, after: Some(after), ..Default::default() };
                block_on(subject.store.history(query)).expect("a page")
            };
            let (below, above) = (beyond(0), beyond(u64::MAX));
            let (all, none) = if order == Order::OldestFirst { (below, above) } else { (above, below) };
            assert_eq!((all, none), (expected.clone(), Vec::new()), "{order:?}");
            expected.reverse();
        }
    }
}

/// On the wall clock of this machine, whatever the store's own clock says.
pub(super) fn history_tells_when_people_saw_it(subject: &Subject) {
    let before = WallTime::now();
    subject.opened(1);
    subject.pass(Duration::from_millis(5));
    subject.opened(2);
    let after = WallTime::now();
    for row in subject.history() {
        assert!(before <= row.wall && row.wall <= after, "{before:?} {row:?} {after:?}");
    }
}

/// All rows of a query, `limit` by `limit`.
fn in_pages(subject: &Subject, query: &HistoryQuery) -> Vec<Recorded> {
    let (mut found, mut query) = (Vec::new(), query.clone());
    loop {
        let page = block_on(subject.store.history(query.clone())).expect("a page");
        assert!(page.len() <= query.limit);
        query.after = page.last().map(|row| row.number).or(query.after);
        let is_last = page.len() < query.limit;
        found.extend(page);
        assert!(found.len() < 1_000, "pages that repeat themselves have no end: {query:?}");
        if is_last {
            let rest = block_on(subject.store.history(query)).expect("a page");
            assert!(rest.is_empty() || found.is_empty(), "a short page is the last one");
            return found;
        }
    }
}

pub(super) fn resources_are_listed_in_pages(subject: &Subject) {
    let worker = Worker::open_long(&subject.store, 1).expect("a session");
    let mut names = ["b", "a", "é", "a b", "Z", "a/c", "%", "中", "a'"];
    for (n, name) in (0..).zip(&names) {
        worker.acquire(name, grant_id(n), &["index"]).expect("a grant");
    }
    names.sort_unstable();
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = block_on(subject.store.leases(Page { after, limit: 2 })).expect("a page");
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 2);
        after = Some(last.lease.resource.clone());
        for listed in page {
            let read = subject.read_resource(listed.lease.resource.as_str());
            assert_eq!((Some(&listed.lease), &listed.holder), (read.view.lease.as_ref(), &read.view.holder));
            assert!(read.now.reached(&listed.now));
            found.push(listed.lease.resource.to_string());
        }
    }
    assert_eq!(found, names);
    let mut grants = block_on(subject.store.grants(worker.session)).expect("the grants");
    grants.sort();
    let grants: Vec<_> = grants.into_iter().map(|lease| lease.resource.to_string()).collect();
    assert_eq!(grants, names);
    assert!(block_on(subject.store.grants(session_id(2))).expect("the grants").is_empty());
}

/// The idle ones, and among them first those that nobody has ended, then those that ended longest ago.
pub(super) fn idle_sessions_come_first_come_first(subject: &Subject) {
    let mut ended = Vec::new();
    for n in 1..=3 {
        let opened = subject.opened(n);
        let now = subject.read_session(opened.id).now;
        subject.make(Change::Session(opened.ended(EndReason::Closed, now)), Event::Ended);
        ended.push(opened.id);
        subject.pass(Duration::from_millis(5));
    }
    let overdue = subject.opened(4);
    subject.pass(overdue.ttl.get());
    let live = subject.opened(5);
    let idle = |limit| block_on(subject.store.idle_sessions(limit)).expect("the idle sessions");
    let all: Vec<_> = [overdue.id].into_iter().chain(ended).collect();
    assert_eq!(idle(10), all);
    assert_eq!(idle(2), all[..2]);
    assert!(!all.contains(&live.id));
}
