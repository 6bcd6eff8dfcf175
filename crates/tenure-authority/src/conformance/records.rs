//! The people and things of the suite.

use super::{Subject, block_on};
use crate::store::{HistoryQuery, Read, Recorded, SwapOutcome, Version};
use crate::{Authority, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::decide::{Change, Granted, Keys, Refusal, Reply, Request, Swap};
use tenure_core::record::{
    Event, Grant, LeaseRecord, Owner, Phase, Seen, SessionRecord, SessionState, SinkMark, Transition,
};
use tenure_core::{
    AuthorityClock, Epoch, GrantId, InstanceId, Instant, OwnerName, ResourceName, SessionId, SinkId, Token, Ttl,
};

/// Short enough that a store on a real clock can wait for it.
pub(super) const TTL: Duration = Duration::from_millis(1_000);

/// Long enough for whatever a slow machine makes of many requests.
const LONG: Duration = Duration::from_secs(100);

/// The `max_ttl` of a subject.
pub(super) const MAX_TTL: Ttl = Ttl::DEFAULT;

pub(super) fn ttl() -> Ttl {
    Ttl::new(TTL).expect("within bounds")
}

pub(super) fn resource(name: &str) -> ResourceName {
    ResourceName::new(name).expect("a name")
}

pub(super) fn sink(name: &str) -> SinkId {
    SinkId::new(name).expect("a name")
}

/// The n-th owner of a test.
pub(super) fn owner(n: u64) -> Owner {
    let name = OwnerName::new(format!("worker-{n}")).expect("a name");
    Owner { name, instance: InstanceId::from_bits(spread(n ^ 0xaaaa)) }
}

/// The n-th session of a test.
pub(super) fn session_id(n: u64) -> SessionId {
    SessionId::from_bits(spread(n))
}

/// The grant of this id under an epoch.
pub(super) fn grant(epoch: u64, n: u64) -> Grant {
    Grant { epoch: Epoch::new(epoch).expect("an epoch"), id: grant_id(n) }
}

/// The n-th grant of a test.
pub(super) fn grant_id(n: u64) -> GrantId {
    GrantId::from_bits(spread(n ^ 0x5555_0000))
}

/// Bits that look drawn, and are the same in each run.
fn spread(n: u64) -> u128 {
    let mut bits = u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    bits ^= bits >> 61;
    bits = bits.wrapping_mul(0xd1b5_4a32_d192_ed03_8cb9_2ba7_2f3d_8dd7);
    bits ^ (bits >> 57)
}

/// A Live session, as an opening at `now` makes it.
pub(super) fn session(n: u64, read: &Read) -> SessionRecord {
    SessionRecord {
        id: session_id(n),
        owner: owner(n),
        on_this_host: n.is_multiple_of(2),
        ttl: ttl(),
        deadline: read.now.after(TTL),
        renew_seq: 0,
        incarnation: read.view.authority.incarnation,
        state: SessionState::Live,
    }
}

/// A resource that is held by a session.
pub(super) fn held(
    name: &str,
    epoch: u64,
    grant: GrantId,
    by: &SessionRecord,
    now: Instant<AuthorityClock>,
) -> LeaseRecord {
    LeaseRecord {
        resource: resource(name),
        epoch: Epoch::new(epoch).expect("an epoch"),
        grant,
        session: by.id,
        owner: by.owner.clone(),
        since: now,
        phase: Phase::Held,
        sinks: BTreeMap::from([(sink("index"), SinkMark { bound: None, sealed: false, excused: true })]),
    }
}

/// The swap that makes a change, with a row of the history.
pub(super) fn swap(change: Change, event: Event, now: Instant<AuthorityClock>) -> Swap {
    let (resource, session, grant, epoch) = match &change {
        Change::Lease(lease) => {
            (Some(lease.resource.clone()), Some(lease.session), Some(lease.grant), Some(lease.epoch))
        }
        Change::DropLease(name) => (Some(name.clone()), None, None, None),
        Change::Session(session) => (None, Some(session.id), None, None),
        Change::DropSession(id) => (None, Some(*id), None, None),
        Change::Authority(_) => (None, None, None, None),
    };
    let transition = Transition { at: now, event, resource, session, epoch, grant, actor: None, why: None };
    Swap { change, relies_on: None, transition }
}

impl Subject {
    pub(super) fn read(&self, keys: &Keys) -> Read {
        block_on(self.store.read(keys)).expect("a read")
    }

    pub(super) fn read_session(&self, id: SessionId) -> Read {
        self.read(&Keys { session: Some(id), ..Keys::default() })
    }

    pub(super) fn read_resource(&self, name: &str) -> Read {
        self.read(&Keys { resource: Some(resource(name)), ..Keys::default() })
    }

    pub(super) fn swap(&self, swap: Swap, expected: Option<Version>) -> SwapOutcome {
        block_on(self.store.swap(swap, expected)).expect("a swap")
    }

    /// Makes a change under whatever version stands now.
    pub(super) fn make(&self, change: Change, event: Event) {
        let read = match &change {
            Change::Session(session) => self.read_session(session.id),
            Change::DropSession(id) => self.read_session(*id),
            Change::Lease(lease) => self.read_resource(lease.resource.as_str()),
            Change::DropLease(name) => self.read_resource(name.as_str()),
            Change::Authority(_) => self.read(&Keys::default()),
        };
        let expected = match &change {
            Change::Session(_) | Change::DropSession(_) => read.versions.caller,
            Change::Lease(_) | Change::DropLease(_) => read.versions.lease,
            Change::Authority(_) => read.versions.authority,
        };
        assert_eq!(self.swap(swap(change, event, read.now), expected), SwapOutcome::Done);
    }

    /// Opens the n-th session by a bare swap.
    pub(super) fn opened(&self, n: u64) -> SessionRecord {
        let opened = session(n, &self.read(&Keys::default()));
        self.make(Change::Session(opened.clone()), Event::Opened);
        opened
    }

    pub(super) fn history(&self) -> Vec<Recorded> {
        block_on(self.store.history(HistoryQuery::default())).expect("the history")
    }

    pub(super) fn authority(&self) -> Authority {
        Authority::new(Arc::clone(&self.store))
    }
}

/// What a worker does, through the [`Authority`].
pub(super) struct Worker {
    authority: Authority,
    pub(super) session: SessionId,
}

impl Worker {
    /// Opens the n-th session, which its deadline may end soon.
    pub(super) fn open(store: &Arc<dyn Store>, n: u64) -> Result<Self, Refusal> {
        Self::open_for(store, n, TTL)
    }

    /// Opens the n-th session for a worker that makes many requests and never renews.
    pub(super) fn open_long(store: &Arc<dyn Store>, n: u64) -> Result<Self, Refusal> {
        Self::open_for(store, n, LONG)
    }

    fn open_for(store: &Arc<dyn Store>, n: u64, span: Duration) -> Result<Self, Refusal> {
        let worker = Self { authority: Authority::new(Arc::clone(store)), session: session_id(n) };
        let (now, seen) = worker.hello();
        let opening = Request::Open {
            id: worker.session,
            owner: owner(n),
            on_this_host: n.is_multiple_of(2),
            ttl: Ttl::new(span).expect("within bounds"),
            asked_at: now,
            seen,
        };
        worker.ask(&opening).map(|_| worker)
    }

    /// A worker whose session is open already.
    pub(super) fn resume(store: &Arc<dyn Store>, session: SessionId) -> Self {
        Self { authority: Authority::new(Arc::clone(store)), session }
    }

    pub(super) fn hello(&self) -> (Instant<AuthorityClock>, Seen) {
        match self.ask(&Request::Hello { seen: Seen::default() }) {
            Ok(Reply::Hello { now, seen, .. }) => (now, seen),
            other => unreachable!("a hello is answered with a hello, not {other:?}"),
        }
    }

    pub(super) fn ask(&self, request: &Request) -> Result<Reply, Refusal> {
        loop {
            match block_on(self.authority.execute(request)) {
                Ok(answer) => return answer,
                // The suite races on purpose.
                Err(crate::AuthorityError::Contended) => std::thread::yield_now(),
                Err(error) => unreachable!("{request:?}: {error}"),
            }
        }
    }

    pub(super) fn acquire(&self, name: &str, grant: GrantId, sinks: &[&str]) -> Result<Granted, Refusal> {
        let sinks: BTreeSet<_> = sinks.iter().map(|name| sink(name)).collect();
        match self.ask(&Request::Acquire { resource: resource(name), grant, session: self.session, sinks })? {
            Reply::Granted(granted) => Ok(granted),
            other => unreachable!("an acquire is answered with a grant, not {other:?}"),
        }
    }

    pub(super) fn renew(&self, n: u64) -> Result<Reply, Refusal> {
        self.ask(&Request::Renew { id: self.session, n, seen: Seen::default() })
    }

    pub(super) fn release(&self, token: &Token) -> Result<Reply, Refusal> {
        self.ask(&Request::Release { token: token.clone() })
    }
}
