//! The rule `held`: receivers that read the authority in their own database, with authorities that grant and renew.

mod postgres;
mod sqlite;

use crate::receivers::id;
use std::collections::BTreeSet;
use tenure::authority::{Authority, random_bits};
use tenure::blocking::wait_for;
use tenure::core::decide::{Refusal, Reply, Request};
use tenure::core::fence::{HeldRow, Hold, Sealing};
use tenure::core::record::{Owner, Seen};
use tenure::core::{Actor, Ending, InstanceId, Instant, OwnerName, Reason, SessionId};
use tenure::sink::Sink;
use tenure::{Epoch, GrantId, Outcome, ResourceName, SinkId, Token, Ttl};

const RESOURCE: &str = "tenant-7";

fn resource() -> ResourceName {
    ResourceName::new(RESOURCE).unwrap()
}

/// A holder that sends what it is told to, and nothing by itself.
struct Holder {
    authority: Authority,
    session: SessionId,
}

impl Holder {
    fn open(authority: &Authority, name: &str, ttl: Ttl) -> Self {
        let holder = Self { authority: authority.clone(), session: SessionId::from_bits(random_bits().unwrap()) };
        holder.ask(&Request::Open {
            id: holder.session,
            owner: Owner { name: OwnerName::new(name).unwrap(), instance: InstanceId::from_bits(1) },
            on_this_host: true,
            ttl,
            asked_at: wait_for(authority.inspect(&resource())).unwrap().now,
            seen: Seen::default(),
        });
        holder
    }

    fn try_ask(&self, request: &Request) -> Result<Reply, Refusal> {
        wait_for(self.authority.execute(request)).unwrap()
    }

    fn ask(&self, request: &Request) -> Reply {
        self.try_ask(request).unwrap_or_else(|refusal| panic!("{request:?}: {refusal:?}"))
    }

    fn acquire(&self, sinks: &[&str]) -> Token {
        let (grant, sinks) = (GrantId::from_bits(random_bits().unwrap()), sinks.iter().map(|name| id(name)).collect());
        match self.ask(&Request::Acquire { resource: resource(), grant, session: self.session, sinks }) {
            Reply::Granted(granted) => granted.token,
            other => panic!("{other:?}"),
        }
    }

    fn deadline(&self) -> Instant<tenure::core::AuthorityClock> {
        let keys = tenure::core::decide::Keys { session: Some(self.session), ..Default::default() };
        wait_for(self.authority.store().read(&keys)).unwrap().view.caller.unwrap().deadline
    }
}

fn by() -> (Actor, Reason) {
    (Actor::new("operator").unwrap(), Reason::new("a test").unwrap())
}

fn revoke(authority: &Authority) {
    let (actor, reason) = by();
    let request = Request::Revoke { resource: resource(), only: None, actor, reason };
    wait_for(authority.execute(&request)).unwrap().unwrap();
}

/// Registers a token, as a candidate does before it announces.
fn seal(sink: &dyn Sink, token: &Token) {
    let generation = wait_for(sink.describe(&token.resource)).unwrap().generation;
    let sealed = wait_for(sink.seal(token, &generation, &BTreeSet::from([sink.id().clone()]))).unwrap();
    assert!(matches!(sealed, Sealing::Seal(_)), "{sealed:?}");
}

/// A row of the view that an authority offers: epoch, grant, owner, since, deadline, ending, ended.
type Row = (i64, String, String, i64, Option<i64>, Option<String>, Option<i64>);

fn read(row: Row) -> HeldRow {
    let (epoch, grant, owner, since, deadline, ending, ended) = row;
    let at = |nanos: i64| Instant::from_nanos(u64::try_from(nanos).unwrap());
    HeldRow {
        epoch: Epoch::try_from(epoch).unwrap(),
        grant: grant.parse().unwrap(),
        owner: OwnerName::new(&owner).unwrap(),
        since: at(since),
        hold: match ending {
            Some(ending) => Hold::Over { why: Ending::from_name(&ending).unwrap(), at: ended.map(at) },
            None => Hold::Until(at(deadline.unwrap())),
        },
    }
}

/// Takes a resource through all that can become of a grant. After each step the store's view says what core says of the
/// records. Returns the endings that were seen.
fn view_says_what_core_says(authority: &Authority, view: impl Fn() -> Option<Row>) -> Vec<&'static str> {
    let mut seen = Vec::new();
    let mut compare = |step: &str| {
        let read_now = wait_for(authority.inspect(&resource())).unwrap();
        let lease = read_now.view.lease.as_ref();
        let expected = lease.map(|lease| HeldRow::of(lease, read_now.view.holder.as_ref(), &read_now.view.authority));
        let said = view().map(read);
        assert_eq!(said, expected, "after: {step}");
        seen.push(match said.map(|row| row.hold) {
            None => "unknown",
            Some(Hold::Until(_)) => "stands",
            Some(Hold::Over { why, .. }) => why.name(),
        });
    };
    let (actor, reason) = by();
    let holder = |name: &str| Holder::open(authority, name, Ttl::DEFAULT);
    compare("nothing");
    let alice = holder("alice");
    let token = alice.acquire(&["shop"]);
    compare("granted, and being sealed");
    alice.ask(&Request::Release { token });
    compare("released");
    alice.ask(&Request::Unenrol {
        resource: resource(),
        sink: SinkId::new("shop").unwrap(),
        forgotten: None,
        actor: actor.clone(),
        reason: reason.clone(),
    });
    let token = alice.acquire(&[]);
    alice.ask(&Request::Announce { token: token.clone(), session: alice.session, excused: BTreeSet::new() });
    compare("announced");
    let outcome = Outcome::new("done").unwrap();
    alice.ask(&Request::Complete { token, session: alice.session, outcome });
    compare("completed");
    alice.ask(&Request::Reopen { resource: resource(), actor: actor.clone(), reason: reason.clone() });
    compare("reopened");
    alice.acquire(&[]);
    alice.ask(&Request::RevokeSession { id: alice.session, actor: actor.clone(), reason: reason.clone() });
    compare("its session was ended by an operator");
    let bob = holder("bob");
    bob.acquire(&[]);
    compare("taken over");
    bob.ask(&Request::Close { id: bob.session });
    compare("its session was closed");
    let carol = holder("carol");
    carol.acquire(&["shop"]);
    carol.ask(&Request::Restore { longest_ttl: None, actor: actor.clone(), reason });
    compare("the store was put back");
    carol.ask(&Request::Retire { resource: resource(), actor });
    compare("retiring");
    seen
}
