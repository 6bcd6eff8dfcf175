use super::records::{MAX_TTL, TTL, Worker, grant_id, resource, sink};
use super::{Subject, block_on};
use crate::store::memory::MemoryStore;
use crate::store::{HistoryQuery, Import, Page, Source, SwapOutcome};
use crate::{Clock, Store, WallTime};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenure_core::decide::{Keys, Refusal, Reply, Request};
use tenure_core::record::{Event, LeaseRecord, Phase, Seen, SinkMark};
use tenure_core::{Actor, Epoch, Generation, Outcome};

/// A store with a resource in each phase, on a clock far ahead of the subject's, exported.
fn exported() -> Import {
    let nanos = Arc::new(AtomicU64::new(9_000_000_000_000_000));
    let store: Arc<dyn Store> =
        Arc::new(MemoryStore::new(Clock::Manual(Arc::clone(&nanos)), MAX_TTL).expect("random bits"));
    let worker = Worker::open(&store, 1).expect("a session");
    let session = worker.session;
    let acquired = |name, n, sinks| worker.acquire(name, grant_id(n), sinks).expect("a grant").token;
    worker.release(&acquired("free", 1, &["index"])).expect("a release");
    acquired("sealing", 2, &["index", "ledger"]);
    let held = acquired("held", 3, &["index"]);
    let generations = [(sink("index"), Generation::new("index-1").expect("a name"))];
    let bind = Request::Bind { token: held.clone(), session, generations: generations.clone().into() };
    worker.ask(&bind).expect("an answer");
    worker.ask(&Request::Sealed { token: held.clone(), generations: generations.into() }).expect("an answer");
    worker.ask(&Request::Announce { token: held, session, excused: BTreeSet::new() }).expect("an answer");
    let token = acquired("completed", 4, &[]);
    worker.ask(&Request::Complete { token, session, outcome: outcome() }).expect("an answer");
    for n in 5..8 {
        worker.release(&acquired("retired", n, &[])).expect("a release");
    }
    worker.release(&acquired("retiring", 8, &["index"])).expect("a release");
    for name in ["retired", "retiring"] {
        let actor = Actor::new("operator").expect("a name");
        worker.ask(&Request::Retire { resource: resource(name), actor }).expect("an answer");
    }
    // Another life of the store, so that an incarnation shows.
    let seen = Seen { incarnation: 4, number: 0 };
    worker.ask(&Request::Hello { seen }).expect("an answer");
    nanos.fetch_add(u64::try_from(MAX_TTL.get().as_nanos()).expect("small"), Ordering::AcqRel);
    let authority = block_on(store.read(&Keys::default())).expect("a read").view.authority;
    assert_eq!((authority.incarnation, authority.floor), (5, Epoch::new(3).ok()));
    let source = Source {
        identity: authority.identity,
        incarnation: authority.incarnation,
        floor: authority.floor,
        max_ttl: MAX_TTL,
        belief: Some(TTL),
    };
    let mut rows = block_on(store.history(HistoryQuery::default())).expect("the history");
    for (row, millis) in rows.iter_mut().zip([0, 1, 999, 1_000, 86_399_999, 951_782_400_000, 253_402_207_200_000]) {
        row.wall = WallTime::from_millis(millis);
    }
    let leases = block_on(store.leases(Page { after: None, limit: 100 })).expect("the resources");
    let leases = leases.into_iter().map(|listed| listed.lease).collect();
    Import::new(source, rows, leases, Actor::new("mover").expect("a name")).expect("it fits together")
}

fn outcome() -> Outcome {
    Outcome::new("7 files").expect("an outcome")
}

fn import(subject: &Subject, content: &Import) -> SwapOutcome {
    block_on(subject.store.import(content.clone())).expect("an import")
}

pub(super) fn what_was_exported_is_there_and_nobody_holds(subject: &Subject) {
    let content = exported();
    let before = subject.read(&Keys::default());
    assert_eq!(import(subject, &content), SwapOutcome::Done);
    let rows = subject.history();
    let (last, imported) = rows.split_last().expect("rows");
    assert_eq!(imported, content.rows(), "numbers, wall-clock times and all");
    assert_eq!((last.number, last.transition.event), (imported.len() as u64 + 1, Event::Quarantined));
    assert_eq!(last.transition.actor.as_ref().map(Actor::as_str), Some("mover"));
    let why = last.transition.why.as_ref().map(tenure_core::Reason::as_str);
    assert_eq!(why, Some(format!("imported from {}", content.source().identity).as_str()));
    let read = subject.read(&Keys { grant: Some(grant_id(3)), ..Keys::default() });
    assert!(read.view.grant_known, "a grant of the former store is known");
    assert_eq!(read.view.history, last.number);
    let authority = &read.view.authority;
    assert_eq!(authority.identity, before.view.authority.identity, "it stays itself");
    assert_eq!((authority.incarnation, authority.floor), (6, Epoch::new(3).ok()));
    assert_eq!(authority.max_ttl, MAX_TTL);
    let left = authority.quarantine(read.now).expect("a quarantine");
    assert!(left <= TTL, "{left:?}");
    let listed = block_on(subject.store.leases(Page { after: None, limit: 100 })).expect("the resources");
    let phases: Vec<_> = listed.iter().map(|row| (row.lease.resource.as_str(), row.lease.phase.clone())).collect();
    let retiring = Phase::Retiring { cut: Epoch::FIRST, forgotten: BTreeSet::new() };
    let expected = [
        ("completed", Phase::Completed { outcome: outcome() }),
        ("free", Phase::Free),
        ("held", Phase::Free),
        ("retiring", retiring),
        ("sealing", Phase::Free),
    ];
    assert_eq!(phases, expected);
    for row in &listed {
        assert_eq!(row.holder, None);
        assert!(row.lease.sinks.values().all(|mark| *mark == SinkMark::default()), "{row:?}");
        assert!(before.now <= row.lease.since && row.lease.since <= row.now, "{row:?}");
    }
    let sinks = |at: usize| listed[at].lease.sinks.keys().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!((sinks(2), sinks(4)), (vec!["index".to_owned()], vec!["index".to_owned(), "ledger".to_owned()]));
    let grants = block_on(subject.store.grants(content_session(&content))).expect("the grants");
    assert_eq!(grants, Vec::<LeaseRecord>::new());
}

fn content_session(content: &Import) -> tenure_core::SessionId {
    content.rows().first().and_then(|row| row.transition.session).expect("a session was opened")
}

/// Nothing is granted before the former holders have stopped believing; then every epoch is above the former ones, and no
/// receiver may be left out.
pub(super) fn an_imported_authority_goes_on_above(subject: &Subject) {
    let content = exported();
    assert_eq!(import(subject, &content), SwapOutcome::Done);
    assert!(matches!(Worker::open(&subject.store, 2), Err(Refusal::Quarantined { .. })));
    let old = Worker::resume(&subject.store, content_session(&content));
    assert!(matches!(old.renew(0), Err(Refusal::SessionEnded { .. })), "a session of the former store is none here");
    subject.pass(TTL);
    let worker = Worker::open(&subject.store, 3).expect("a session");
    assert!(
        matches!(worker.acquire("held", grant_id(20), &[]), Err(Refusal::NoAdapter { sink: left }) if left == sink("index"))
    );
    let epoch = |name, n, sinks: &[&str]| worker.acquire(name, grant_id(n), sinks).expect("a grant").token.epoch.get();
    assert_eq!(epoch("held", 21, &["index"]), 4, "above the floor");
    assert_eq!(epoch("retired", 22, &[]), 4, "above every epoch that it had");
    let refused = worker.acquire("completed", grant_id(23), &[]);
    assert!(matches!(refused, Err(Refusal::Completed { outcome: stored, .. }) if stored == outcome()));
    let refused = worker.acquire("retiring", grant_id(24), &["index"]);
    assert!(matches!(refused, Err(Refusal::Retiring { .. })));
    match worker.ask(&Request::Hello { seen: Seen { incarnation: 5, number: u64::MAX } }) {
        Ok(Reply::Hello { seen, .. }) => assert_eq!(seen.incarnation, 6, "what was seen there is no later history"),
        other => unreachable!("a hello is answered with a hello, not {other:?}"),
    }
    assert_eq!(subject.history().len(), content.rows().len() + 4);
}

pub(super) fn a_store_with_a_history_stays_as_it_is(subject: &Subject) {
    let content = exported();
    subject.opened(9);
    let (rows, view) = (subject.history(), subject.read_resource("held").view);
    assert_eq!(import(subject, &content), SwapOutcome::Changed);
    subject.pass(Duration::from_millis(1));
    assert_eq!((subject.history(), subject.read_resource("held").view), (rows, view));
    assert!(block_on(subject.store.leases(Page { after: None, limit: 1 })).expect("the resources").is_empty());
}
