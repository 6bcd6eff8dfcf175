use super::Subject;
use super::records::{MAX_TTL, Worker, grant_id, session_id};
use crate::store::{
    Answer, Capabilities, HistoryQuery, Import, Listed, Page, Read, Recorded, Scope, Store, StoreError, SwapOutcome,
    Version,
};
use std::sync::Arc;
use tenure_core::decide::{Change, Keys, Refusal, Request, Swap};
use tenure_core::record::{EndReason, Event, LeaseRecord, Seen};
use tenure_core::{ResourceName, SessionId, StoreIdentity};

pub(super) fn another_identity_quarantines(subject: &Subject) {
    let worker = Worker::open(&subject.store, 1).expect("a session");
    let token = worker.acquire("r", grant_id(1), &[]).expect("a grant").token;
    // The same records, in a store that says it is another one: as after a copy or a failover.
    let identity = StoreIdentity::new("a copy").expect("a name");
    let copy: Arc<dyn Store> = Arc::new(Copied { of: Arc::clone(&subject.store), identity: identity.clone() });
    assert!(matches!(Worker::open(&copy, 2), Err(Refusal::Quarantined { .. })));
    let read = subject.read_session(worker.session);
    assert_eq!((&read.view.authority.identity, read.view.authority.incarnation), (&identity, 2));
    assert_eq!(worker_of(&copy, 1).renew(0), Err(Refusal::SessionEnded { why: Some(EndReason::Restored) }));
    assert_eq!(subject.history().last().map(|row| row.transition.event), Some(Event::Quarantined));
    if subject.store.capabilities().scope == Scope::Network {
        // By its own account it is not the copy: nothing is changed any more under that name.
        let opened = super::records::session(3, &subject.read(&Keys::default()));
        let opening = super::records::swap(Change::Session(opened), Event::Opened, read.now);
        assert_eq!(subject.swap(opening, None), SwapOutcome::Changed);
    } else if subject.exact {
        subject.pass(MAX_TTL.get());
        let next = Worker::open(&copy, 3).expect("the quarantine is over");
        let granted = next.acquire("r", grant_id(3), &[]).expect("nobody holds it any more");
        assert_eq!(granted.token.epoch.get(), token.epoch.get() + 1);
        // The sessions of the former incarnation are swept like others, first ended and later removed.
        let sweep = || super::block_on(subject.authority().sweep(10)).expect("a sweep");
        sweep();
        subject.pass(tenure_core::decide::SWEEP_AGE);
        sweep();
        assert!(subject.read_session(worker.session).view.caller.is_none());
    }
}

pub(super) fn a_caller_that_has_seen_more_quarantines(subject: &Subject) {
    let worker = Worker::open(&subject.store, 1).expect("a session");
    let (_, seen) = worker.hello();
    assert!(worker.ask(&Request::Hello { seen }).is_ok());
    assert_eq!(subject.history().len(), 1, "the newest point of the history is no later one");
    let claim = Seen { incarnation: seen.incarnation, number: seen.number + 1 };
    assert!(worker.ask(&Request::Hello { seen: claim }).is_ok());
    assert_eq!(subject.history().last().map(|row| row.transition.event), Some(Event::Quarantined));
    let rows = subject.history().len();
    assert!(worker.ask(&Request::Hello { seen: claim }).is_ok());
    assert_eq!(subject.history().len(), rows, "the same claim quarantines once");
    assert!(matches!(worker.acquire("r", grant_id(1), &[]), Err(Refusal::Quarantined { .. })));
    assert!(matches!(Worker::open(&subject.store, 2), Err(Refusal::Quarantined { .. })));
    if subject.exact {
        subject.pass(MAX_TTL.get());
        assert!(Worker::open(&subject.store, 3).is_ok());
    }
}

fn worker_of(store: &Arc<dyn Store>, n: u64) -> Worker {
    Worker::resume(store, session_id(n))
}

/// A store whose records say one identity, while it has another.
#[derive(Debug)]
struct Copied {
    of: Arc<dyn Store>,
    identity: StoreIdentity,
}

impl Store for Copied {
    fn read<'a>(&'a self, keys: &'a Keys) -> Answer<'a, Result<Read, StoreError>> {
        Box::pin(async move {
            let mut read = self.of.read(keys).await?;
            read.view.observed = self.identity.clone();
            Ok(read)
        })
    }

    fn swap(&self, swap: Swap, expected: Option<Version>) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        self.of.swap(swap, expected)
    }

    fn grants(&self, session: SessionId) -> Answer<'_, Result<Vec<LeaseRecord>, StoreError>> {
        self.of.grants(session)
    }

    fn leases(&self, page: Page<ResourceName>) -> Answer<'_, Result<Vec<Listed>, StoreError>> {
        self.of.leases(page)
    }

    fn history(&self, query: HistoryQuery) -> Answer<'_, Result<Vec<Recorded>, StoreError>> {
        self.of.history(query)
    }

    fn idle_sessions(&self, limit: usize) -> Answer<'_, Result<Vec<SessionId>, StoreError>> {
        self.of.idle_sessions(limit)
    }

    fn import(&self, content: Import) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        self.of.import(content)
    }

    fn capabilities(&self) -> Capabilities {
        self.of.capabilities()
    }
}
