//! An authority that remembers decides as one that reads.

use crate::world::{ManualClock, TTL, Worker, grant, resource};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tenure_authority::conformance::block_on;
use tenure_authority::store::Answer;
use tenure_authority::store::memory::MemoryStore;
use tenure_authority::{
    Authority, AuthorityError, BootClock, Capabilities, Clock, HistoryQuery, Import, Listed, Page, Read, RecallOutcome,
    Recalled, Recorded, Scope, Store, StoreError, SwapOutcome, TimeSource, Version,
};
use tenure_core::decide::{Keys, Refusal, Reply, Request, Swap};
use tenure_core::record::{LeaseRecord, Seen};
use tenure_core::{Actor, Outcome, Reason, ResourceName, SessionId, Token, Ttl};

/// A store in memory that counts as one across a network: its answers are round trips.
#[derive(Debug)]
struct Remote {
    store: Arc<MemoryStore>,
    trips: AtomicU64,
    /// Whether it answers nothing.
    is_away: AtomicBool,
}

impl Remote {
    fn new(store: &Arc<MemoryStore>) -> Arc<Self> {
        Arc::new(Self { store: Arc::clone(store), trips: AtomicU64::new(0), is_away: AtomicBool::new(false) })
    }

    /// How many round trips something takes.
    fn trips(&self, of: impl FnOnce()) -> u64 {
        let before = self.trips.load(Ordering::Acquire);
        of();
        self.trips.load(Ordering::Acquire) - before
    }

    fn trip(&self) {
        self.trips.fetch_add(1, Ordering::AcqRel);
    }
}

impl Store for Remote {
    fn read<'a>(&'a self, keys: &'a Keys) -> Answer<'a, Result<Read, StoreError>> {
        self.trip();
        if self.is_away.load(Ordering::Acquire) {
            return Box::pin(async { Err(StoreError::Unavailable("a test".to_owned())) });
        }
        self.store.read(keys)
    }

    fn swap(&self, swap: Swap, expected: Option<Version>) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        self.trip();
        self.store.swap(swap, expected)
    }

    fn swap_recalled(&self, recalled: Recalled) -> Option<Answer<'_, Result<RecallOutcome, StoreError>>> {
        self.trip();
        if self.is_away.load(Ordering::Acquire) {
            return Some(Box::pin(async { Ok(RecallOutcome::Unknown) }));
        }
        self.store.swap_recalled(recalled)
    }

    fn grants(&self, session: SessionId) -> Answer<'_, Result<Vec<LeaseRecord>, StoreError>> {
        self.store.grants(session)
    }

    fn leases(&self, page: Page<ResourceName>) -> Answer<'_, Result<Vec<Listed>, StoreError>> {
        self.store.leases(page)
    }

    fn history(&self, query: HistoryQuery) -> Answer<'_, Result<Vec<Recorded>, StoreError>> {
        self.store.history(query)
    }

    fn idle_sessions(&self, limit: usize) -> Answer<'_, Result<Vec<SessionId>, StoreError>> {
        self.store.idle_sessions(limit)
    }

    fn import(&self, content: Import) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        self.store.import(content)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { scope: Scope::Network, clock: TimeSource::Server, ..self.store.capabilities() }
    }
}

pub(crate) fn memory() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(Clock::Boot(BootClock), Ttl::MAX).expect("a store"))
}

#[test]
fn what_is_remembered_takes_one_round_trip() {
    let remote = Remote::new(&memory());
    let worker = Worker::open(remote.clone(), 1, false);
    let mut token = None;
    assert_eq!(remote.trips(|| token = Some(worker.acquire("r", grant(1)))), 2, "nothing is known of it yet");
    for n in 2..5 {
        let held = token.take().expect("held");
        assert_eq!(remote.trips(|| worker.release(&held)), 1);
        assert_eq!(remote.trips(|| token = Some(worker.acquire("r", grant(n)))), 1);
    }
    assert_eq!(remote.trips(|| drop(worker.renew(0))), 1);
    assert_eq!(remote.trips(|| drop(worker.renew(1))), 1);
    assert_eq!(remote.trips(|| drop(worker.renew(1))), 1, "a repeat is read for");
}

/// Another process has taken the resource meanwhile: what is remembered leads nowhere, and nothing wrong is done.
#[test]
fn what_another_has_done_is_noticed() {
    let store = memory();
    let (a, b) = (Worker::open(Remote::new(&store), 1, false), Worker::open(Remote::new(&store), 2, false));
    let first = a.acquire("r", grant(1));
    a.release(&first);
    let second = b.acquire("r", grant(2));
    match a.ask(&a.acquiring("r", grant(3))) {
        Ok(Err(Refusal::Busy { epoch, .. })) => assert_eq!(epoch, second.epoch),
        other => unreachable!("{other:?}"),
    }
    let revoke = Request::RevokeSession {
        id: a.session,
        actor: Actor::new("operator").expect("a name"),
        reason: Reason::new("a test").expect("a reason"),
    };
    assert!(matches!(b.ask(&revoke), Ok(Ok(Reply::Ended))));
    assert!(matches!(a.renew(0), Err(Refusal::SessionEnded { .. })));
    b.release(&second);
    assert!(matches!(a.ask(&a.acquiring("r", grant(4))), Ok(Err(Refusal::SessionEnded { .. }))));
}

/// A resource was retired and is gone: only the floor keeps its old tokens out, and it is remembered as it was before.
#[test]
fn a_floor_that_rose_meanwhile_is_not_passed_over() {
    let store = memory();
    let (a, b) = (Worker::open(Remote::new(&store), 1, false), Worker::open(Remote::new(&store), 2, false));
    for n in 1..4 {
        a.release(&a.acquire("r", grant(n)));
    }
    a.release(&a.acquire("other", grant(9)));
    let retire = Request::Retire { resource: resource("r"), actor: Actor::new("operator").expect("a name") };
    assert!(matches!(b.ask(&retire), Ok(Ok(Reply::Retired))));
    assert_eq!(a.acquire("r", grant(4)).epoch.get(), 4);
}

/// Two sessions of one process. The holder's renewal was not answered, so what was known of its session was forgotten, and
/// the lease was not. A session that is not remembered is not one that has ended: the other one was granted the resource
/// while the holder lived.
#[test]
fn a_holder_that_is_forgotten_is_not_overtaken() {
    let remote = Remote::new(&memory());
    let holder = Worker::open(remote.clone(), 1, false);
    let other = holder.beside(2);
    let held = holder.acquire("r", grant(1));
    other.release(&other.acquire("s", grant(2)));
    remote.is_away.store(true, Ordering::Release);
    let renewal = Request::Renew { id: holder.session, n: 0, seen: Seen::default() };
    let answer = holder.ask(&renewal);
    assert!(
        matches!(answer, Err(AuthorityError::Unknown)),
        "it may have been made, and could not be looked for: {answer:?}"
    );
    remote.is_away.store(false, Ordering::Release);
    other.renew(0).expect("a renewal");
    match other.ask(&other.acquiring("r", grant(3))) {
        Ok(Err(Refusal::Busy { epoch, .. })) => assert_eq!(epoch, held.epoch),
        answer => unreachable!("{answer:?}"),
    }
    holder.renew(0).expect("the same renewal again");
    holder.release(&held);
}

/// A store that begins another life may give its versions out again: nothing that was remembered of the old one is used.
#[test]
fn nothing_is_remembered_from_before_a_quarantine() {
    let clock = ManualClock::at(Duration::from_hours(1));
    let store = Arc::new(MemoryStore::new(clock.clock(), Ttl::new(TTL).expect("within bounds")).expect("a store"));
    let remote = Remote::new(&store);
    let a = Worker::open(remote.clone(), 1, false);
    for (name, n) in [("r", 1), ("s", 2)] {
        a.release(&a.acquire(name, grant(n)));
    }
    let b = Worker::open(Remote::new(&store), 2, false);
    b.ask(&Request::Hello { seen: Seen { incarnation: 1, number: 1_000_000 } }).expect("an answer").expect("hello");
    clock.set(Duration::from_hours(2));
    let session = Worker::open(Remote::new(&store), 3, false).session;
    let a = Worker { authority: a.authority, session };
    a.acquire("r", grant(3));
    assert_eq!(remote.trips(|| drop(a.acquire("s", grant(4)))), 2, "it is read anew");
}

/// One thing that one of three workers does with one of two resources.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Acquire(usize, usize),
    Release(usize, usize),
    Announce(usize, usize),
    Complete(usize, usize),
    Check(usize, usize),
    Renew(usize),
    RevokeSession(usize),
    Revoke(usize),
    Reopen(usize),
    Retire(usize),
    Quarantine,
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let (worker, resource) = (0..3usize, 0..2usize);
    let both = (worker.clone(), resource.clone());
    prop_oneof![
        6 => both.clone().prop_map(|(w, r)| Step::Acquire(w, r)),
        6 => both.clone().prop_map(|(w, r)| Step::Release(w, r)),
        1 => both.clone().prop_map(|(w, r)| Step::Announce(w, r)),
        1 => both.clone().prop_map(|(w, r)| Step::Complete(w, r)),
        1 => both.prop_map(|(w, r)| Step::Check(w, r)),
        4 => worker.clone().prop_map(Step::Renew),
        1 => worker.prop_map(Step::RevokeSession),
        1 => resource.clone().prop_map(Step::Revoke),
        1 => resource.clone().prop_map(Step::Reopen),
        1 => resource.prop_map(Step::Retire),
        1 => Just(Step::Quarantine),
    ]
}

/// Three workers of one world: each has an authority of its own, as in three processes.
pub(crate) struct World {
    workers: Vec<Worker>,
    renewals: [u64; 3],
    tokens: [[Option<Token>; 2]; 3],
    grants: u64,
}

impl World {
    pub(crate) fn new(open: impl Fn() -> Arc<dyn Store>) -> Self {
        let workers = (0..3).map(|n| Worker::open_for(Duration::from_hours(1), open(), n, false)).collect();
        Self { workers, renewals: [0; 3], tokens: Default::default(), grants: 0 }
    }

    /// Does it, and says what came of it: without times, which differ between two worlds.
    pub(crate) fn does(&mut self, step: &Step) -> String {
        let operator = Actor::new("operator").expect("a name");
        let reason = Reason::new("a test").expect("a reason");
        let name = |r: usize| resource(["r", "s"][r]);
        let nobody = |r: usize| Token { resource: name(r), epoch: tenure_core::Epoch::FIRST, grant: grant(0) };
        let token = |w: usize, r: usize| self.tokens[w][r].clone().unwrap_or_else(|| nobody(r));
        let (by, request) = match step {
            Step::Acquire(w, r) => {
                self.grants += 1;
                let sinks = BTreeSet::new();
                let session = self.workers[*w].session;
                (*w, Request::Acquire { resource: name(*r), grant: grant(self.grants), session, sinks })
            }
            Step::Release(w, r) => (*w, Request::Release { token: token(*w, *r) }),
            Step::Announce(w, r) => {
                let session = self.workers[*w].session;
                (*w, Request::Announce { token: token(*w, *r), session, excused: BTreeSet::new() })
            }
            Step::Complete(w, r) => {
                let (session, outcome) = (self.workers[*w].session, Outcome::new("done").expect("an outcome"));
                (*w, Request::Complete { token: token(*w, *r), session, outcome })
            }
            Step::Check(w, r) => (*w, Request::Check { token: token(*w, *r), session: self.workers[*w].session }),
            Step::Renew(w) => {
                let id = self.workers[*w].session;
                (*w, Request::Renew { id, n: self.renewals[*w], seen: Seen::default() })
            }
            Step::RevokeSession(w) => {
                (0, Request::RevokeSession { id: self.workers[*w].session, actor: operator, reason })
            }
            Step::Revoke(r) => (1, Request::Revoke { resource: name(*r), only: None, actor: operator, reason }),
            Step::Reopen(r) => (2, Request::Reopen { resource: name(*r), actor: operator, reason }),
            Step::Retire(r) => (1, Request::Retire { resource: name(*r), actor: operator }),
            Step::Quarantine => (2, Request::Hello { seen: Seen { incarnation: 1, number: 1_000_000 } }),
        };
        let answer = self.workers[by].ask(&request).expect("an answer");
        match (step, &answer) {
            (Step::Acquire(w, r), Ok(Reply::Granted(granted))) => self.tokens[*w][*r] = Some(granted.token.clone()),
            (Step::Renew(w), Ok(_)) => self.renewals[*w] += 1,
            _ => {}
        }
        match answer {
            Err(Refusal::Busy { owner, epoch, sealing, .. }) => format!("busy: {owner} {epoch} {sealing}"),
            Err(Refusal::Quarantined { .. }) => "quarantined".to_owned(),
            Ok(Reply::Hello { seen, .. }) => format!("hello {seen:?}"),
            other => format!("{other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same steps in two worlds, one whose authorities remember and one whose authorities read: the same answers, and
    /// at the end the same records and the same history.
    #[test]
    fn an_authority_that_remembers_answers_as_one_that_reads(steps in prop::collection::vec(step(), 1..60)) {
        let (remembered, read) = (memory(), memory());
        let mut remembering = World::new(|| Remote::new(&remembered));
        let mut reading = World::new(|| Arc::clone(&read) as Arc<dyn Store>);
        for (at, step) in steps.iter().enumerate() {
            prop_assert_eq!(remembering.does(step), reading.does(step), "step {}: {:?}", at, step);
        }
        prop_assert_eq!(told(&*remembered), told(&*read));
    }
}

/// The history and the resources of a store, without times.
pub(crate) fn told(store: &dyn Store) -> Vec<String> {
    let rows = block_on(store.history(HistoryQuery::default())).expect("the history").into_iter().map(|row| {
        let row = row.transition;
        format!(
            "{} {:?} {:?} {:?} {:?} {:?}",
            row.event.name(),
            row.resource,
            row.session,
            row.epoch,
            row.grant,
            row.why
        )
    });
    let leases =
        block_on(store.leases(Page { after: None, limit: 10 })).expect("the resources").into_iter().map(|row| {
            let state = row.holder.map(|holder| (holder.renew_seq, holder.incarnation));
            format!("{:?} {:?} {state:?}", row.lease.token(), row.lease.phase)
        });
    rows.chain(leases).collect()
}

#[test]
fn a_store_at_hand_is_not_remembered() {
    let store = memory();
    let authority = Authority::new(Arc::clone(&store) as Arc<dyn Store>);
    assert!(format!("{authority:?}").contains("recall: None"));
}
