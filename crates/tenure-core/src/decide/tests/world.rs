use crate::decide::{Change, Refusal, Reply, Request, Then, View, decide};
use crate::record::{AuthorityRecord, Holdings, LeaseRecord, Owner, Seen, SessionRecord};
use crate::{
    AuthorityClock, GrantId, InstanceId, Instant, Outcome, OwnerName, Reason, ResourceName, SessionId, SinkId,
    StoreIdentity, Token, Ttl,
};
use alloc::collections::{BTreeMap, BTreeSet};
use core::time::Duration;

/// Records, a clock, and no races: each request is decided and its changes are made in one go.
#[derive(Clone)]
pub(super) struct World {
    pub(super) now: Instant<AuthorityClock>,
    pub(super) authority: AuthorityRecord,
    pub(super) sessions: BTreeMap<SessionId, SessionRecord>,
    pub(super) leases: BTreeMap<ResourceName, LeaseRecord>,
    /// How many changes were made.
    pub(super) changes: u64,
    /// What the newest row of the history says of its reason.
    pub(super) why: Option<Reason>,
    /// Whether the history knows what a sink shows.
    pub(super) grant_known: bool,
    fresh: u128,
}

pub(super) const TTL: Ttl = Ttl::DEFAULT;

impl World {
    pub(super) fn new() -> Self {
        Self {
            now: Instant::from_nanos(1),
            authority: AuthorityRecord::new(StoreIdentity::new("store").unwrap(), Ttl::MAX),
            sessions: BTreeMap::new(),
            leases: BTreeMap::new(),
            changes: 0,
            why: None,
            grant_known: true,
            fresh: 0,
        }
    }

    pub(super) fn ask(&mut self, request: &Request) -> Result<Reply, Refusal> {
        loop {
            let decision = decide(&self.view(request), request, self.now);
            if let Some(swap) = decision.swap {
                self.changes += 1;
                self.why.clone_from(&swap.transition.why);
                match swap.change {
                    Change::Authority(record) => self.authority = record,
                    Change::Session(record) => drop(self.sessions.insert(record.id, record)),
                    Change::DropSession(id) => drop(self.sessions.remove(&id)),
                    Change::Lease(record) => drop(self.leases.insert(record.resource.clone(), record)),
                    Change::DropLease(resource) => drop(self.leases.remove(&resource)),
                }
            }
            if let Then::Answer(answer) = decision.then {
                return answer;
            }
        }
    }

    /// Asks, and asks the very same again: the answer was lost. Both answers are equal and the second changes nothing.
    pub(super) fn ask_twice(&mut self, request: &Request) -> Result<Reply, Refusal> {
        let first = self.ask(request);
        let (sessions, leases) = (self.sessions.clone(), self.leases.clone());
        let again = self.ask(request);
        assert_eq!((&self.sessions, &self.leases), (&sessions, &leases), "{request:?}");
        assert_eq!(first, again, "{request:?}");
        first
    }

    fn view(&self, request: &Request) -> View {
        let keys = request.keys();
        let lease = keys.resource.as_ref().and_then(|resource| self.leases.get(resource));
        let standing = self.leases.values().filter_map(LeaseRecord::holding);
        View {
            authority: self.authority.clone(),
            observed: self.authority.identity.clone(),
            // Left at zero, so that answers that tell it can be compared.
            history: 0,
            caller: keys.session.and_then(|id| self.sessions.get(&id)).cloned(),
            holdings: standing
                .filter(|(session, _)| Some(*session) == keys.session)
                .map(|(_, grant)| grant)
                .collect::<Holdings>(),
            lease: lease.cloned(),
            holder: lease.and_then(|lease| self.sessions.get(&lease.session)).cloned(),
            grant_known: self.grant_known,
        }
    }

    pub(super) fn pass(&mut self, span: Duration) {
        self.now = self.now.after(span);
    }

    fn fresh(&mut self) -> u128 {
        self.fresh += 1;
        self.fresh
    }

    /// A process start with this owner name, with a session.
    pub(super) fn worker(&mut self, name: &str) -> Worker {
        let id = SessionId::from_bits(self.fresh());
        let owner = Owner { name: OwnerName::new(name).unwrap(), instance: InstanceId::from_bits(self.fresh()) };
        let request = Request::Open {
            id,
            owner: owner.clone(),
            on_this_host: false,
            ttl: TTL,
            asked_at: self.now,
            seen: Seen::default(),
        };
        assert!(matches!(self.ask(&request), Ok(Reply::Opened { .. })));
        Worker { session: id, owner }
    }

    /// A new request for a resource, without sinks: what is granted is held at once.
    pub(super) fn wish(&mut self, worker: &Worker, name: &str) -> Request {
        self.wish_with(worker, name, &[])
    }

    pub(super) fn wish_with(&mut self, worker: &Worker, name: &str, sinks: &[&str]) -> Request {
        let grant = GrantId::from_bits(self.fresh());
        let sinks: BTreeSet<_> = sinks.iter().map(|name| SinkId::new(name).unwrap()).collect();
        Request::Acquire { resource: resource(name), grant, session: worker.session, sinks }
    }

    pub(super) fn granted(&mut self, worker: &Worker, name: &str) -> Token {
        let wish = self.wish(worker, name);
        match self.ask(&wish) {
            Ok(Reply::Granted(granted)) => granted.token,
            other => panic!("{other:?}"),
        }
    }
}

pub(super) struct Worker {
    pub(super) session: SessionId,
    pub(super) owner: Owner,
}

impl Worker {
    pub(super) fn renew(&self, n: u64) -> Request {
        Request::Renew { id: self.session, n, seen: Seen::default() }
    }

    pub(super) fn check(&self, token: &Token) -> Request {
        Request::Check { token: token.clone(), session: self.session }
    }

    pub(super) fn complete(&self, token: &Token, outcome: &str) -> Request {
        Request::Complete { token: token.clone(), session: self.session, outcome: Outcome::new(outcome).unwrap() }
    }
}

pub(super) fn release(token: &Token) -> Request {
    Request::Release { token: token.clone() }
}

pub(super) fn resource(name: &str) -> ResourceName {
    ResourceName::new(name).unwrap()
}
