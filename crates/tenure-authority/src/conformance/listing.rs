use super::records::{Worker, grant_id, resource, session_id};
use super::{Subject, block_on};
use crate::store::Page;
use std::time::Duration;
use tenure_core::decide::Change;
use tenure_core::record::{EndReason, Event};

pub(super) fn history_is_in_order_and_complete(subject: &Subject) {
    let worker = Worker::open(&subject.store, 1).expect("a session");
    for n in 0..10 {
        let token = worker.acquire("r", grant_id(n), &[]).expect("a grant").token;
        worker.renew(n).expect("a renewal");
        worker.release(&token).expect("a release");
    }
    let rows = subject.history();
    let numbers: Vec<_> = rows.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=21).collect::<Vec<_>>(), "each step has the next number, a renewal has none");
    assert_eq!(subject.read_resource("r").view.history, 21);
    let events: Vec<_> = rows.iter().map(|(_, row)| row.event).collect();
    assert_eq!(events[..3], [Event::Opened, Event::Granted, Event::Released]);
    let (_, granted) = &rows[1];
    assert_eq!((granted.resource.as_ref(), granted.session), (Some(&resource("r")), Some(worker.session)));
    assert_eq!((granted.epoch.map(|epoch| epoch.get()), granted.grant), (Some(1), Some(grant_id(0))));
    assert_eq!(granted.actor.as_ref().map(tenure_core::Actor::as_str), Some("worker-1"));
    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let page = block_on(subject.store.history(Page { after, limit: 4 })).expect("a page");
        let Some((last, _)) = page.last() else { break };
        assert!(page.len() <= 4);
        after = Some(*last);
        pages.extend(page);
    }
    assert_eq!(pages, rows);
}

pub(super) fn resources_are_listed_in_pages(subject: &Subject) {
    let worker = Worker::open(&subject.store, 1).expect("a session");
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
