//! Sessions and leases are two records, and a request reads in one step and swaps in a later one: every order of two
//! such requests is explored. Time moves in ticks, so that deadlines pass between a read and its swap.

use super::store::{Contract, ModelStore};
use super::{breaks, holds};
use stateright::{Model, Property};
use std::collections::BTreeSet;
use std::time::Duration;
use tenure_core::decide::{Change, Refusal, Request, SWEEP_AGE, Swap, Then, decide};
use tenure_core::record::{Event, Owner, Phase, Seen, SessionState};
use tenure_core::{
    Actor, AuthorityClock, Epoch, GrantId, InstanceId, Instant, Outcome, OwnerName, Reason, ResourceName, SessionId,
    SinkId, Token, Ttl, invariants,
};

#[derive(Clone)]
struct Sessions {
    contract: Contract,
    ticks: u8,
    requests: Vec<Ask>,
    /// The sweep keeps ended sessions for as long as an opening may be under way: the rule.
    sweeps_in_time: bool,
    /// An opening carries the time that was read before it was sent: the rule. Otherwise whoever forwards it stamps it.
    keeps_asked_at: bool,
    /// A session whose time is over is ended before its owner is refused for that: the rule.
    ends_before_it_refuses: bool,
    properties: Vec<Property<Self>>,
}

/// Something that a worker or an operator asks, at any time and any number of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Ask {
    Open(u8),
    Renew(u8),
    Close(u8),
    RevokeSession(u8),
    Sweep(u8),
    Acquire(u8),
    /// Without its sink, by a policy: sealing is not what is looked at here.
    Announce(u8),
    Complete(u8),
    Release(u8),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    tick: u8,
    store: ModelStore,
    /// Requests that have read and decided, and have not swapped yet.
    under_way: Vec<UnderWay>,
    ended: BTreeSet<SessionId>,
    /// Those that a worker was told had ended, while their records still said that they live.
    told_ended: BTreeSet<SessionId>,
    broken: Broken,
    reached: Reached,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct UnderWay {
    ask: Ask,
    swap: Swap,
    expected: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Broken {
    granted_over_a_living_session: bool,
    granted_on_an_ended_session: bool,
    made_after_a_refusal: bool,
    revived: bool,
    moved_back: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Reached {
    swap_refused: bool,
    took_over_ended: bool,
    took_over_missing: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Tick,
    Read(Ask),
    Swap(Box<UnderWay>),
}

/// Half of the time for which ended sessions are kept.
fn tick() -> Duration {
    SWEEP_AGE / 2
}

fn ttl() -> Ttl {
    Ttl::new(tick()).unwrap()
}

fn session(worker: u8) -> SessionId {
    SessionId::from_bits(u128::from(worker) + 1)
}

fn resource() -> ResourceName {
    ResourceName::new("r").unwrap()
}

fn grant(worker: u8) -> GrantId {
    GrantId::from_bits(u128::from(worker) + 1)
}

impl Sessions {
    fn new(ticks: u8, requests: &[Ask]) -> Self {
        Self {
            contract: Contract::KEPT,
            ticks,
            requests: requests.to_vec(),
            sweeps_in_time: true,
            keeps_asked_at: true,
            ends_before_it_refuses: true,
            properties: vec![
                Property::always("no grant while the former session lives", |_, state: &State| {
                    !state.broken.granted_over_a_living_session
                }),
                Property::always("nothing is granted on an ended session", |_, state: &State| {
                    !state.broken.granted_on_an_ended_session
                }),
                Property::always("what was refused is not made", |_, state: &State| !state.broken.made_after_a_refusal),
                Property::always("an ended session stays ended", |_, state: &State| !state.broken.revived),
                Property::always("records move one way", |_, state: &State| !state.broken.moved_back),
                Property::sometimes("a swap is refused", |_, state: &State| state.reached.swap_refused),
            ],
        }
    }

    fn also(mut self, name: &'static str, reached: fn(&Self, &State) -> bool) -> Self {
        self.properties.push(Property::sometimes(name, reached));
        self
    }

    fn now(state: &State) -> Instant<AuthorityClock> {
        Instant::from_nanos(1).after(tick() * u32::from(state.tick))
    }

    /// The request; `None` when its sender has nothing to ask.
    fn request(&self, state: &State, ask: Ask) -> Option<Request> {
        let lease = state.store.lease(&resource());
        let token = |worker: u8| Token {
            resource: resource(),
            epoch: lease.filter(|lease| lease.grant == grant(worker)).map_or(Epoch::FIRST, |lease| lease.epoch),
            grant: grant(worker),
        };
        let first = Instant::from_nanos(1);
        Some(match ask {
            Ask::Open(worker) => Request::Open {
                id: session(worker),
                owner: Owner {
                    name: OwnerName::new("w").unwrap(),
                    instance: InstanceId::from_bits(u128::from(worker)),
                },
                on_this_host: false,
                ttl: ttl(),
                asked_at: if self.keeps_asked_at { first } else { Self::now(state) },
                seen: Seen::default(),
            },
            Ask::Renew(worker) => {
                let n = state.store.session(session(worker)).map_or(0, |session| session.renew_seq);
                // Once a tick, which keeps the model finite.
                if n > u64::from(state.tick) {
                    return None;
                }
                Request::Renew { id: session(worker), n, seen: Seen::default() }
            }
            Ask::Close(worker) => Request::Close { id: session(worker) },
            Ask::RevokeSession(worker) => Request::RevokeSession {
                id: session(worker),
                actor: Actor::new("op").unwrap(),
                reason: Reason::new("").unwrap(),
            },
            Ask::Sweep(worker) => Request::Sweep { id: session(worker) },
            Ask::Acquire(worker) => {
                // A worker that has held once does not ask again: that keeps the model finite.
                if lease.is_some_and(|lease| lease.epoch.get() >= 3) {
                    return None;
                }
                let sinks = BTreeSet::from([SinkId::new("a").unwrap()]);
                Request::Acquire { resource: resource(), grant: grant(worker), session: session(worker), sinks }
            }
            Ask::Announce(worker) => Request::Announce {
                token: token(worker),
                session: session(worker),
                excused: BTreeSet::from([SinkId::new("a").unwrap()]),
            },
            Ask::Complete(worker) => Request::Complete {
                token: token(worker),
                session: session(worker),
                outcome: Outcome::new("done").unwrap(),
            },
            Ask::Release(worker) => Request::Release { token: token(worker) },
        })
    }

    /// What is to be swapped; and the session that the sender is told has ended, though its record does not say so.
    fn read(&self, state: &State, ask: Ask) -> Option<(Option<UnderWay>, Option<SessionId>)> {
        let request = self.request(state, ask)?;
        let read = state.store.read(&request.keys());
        let decision = decide(&read.view, &request, Self::now(state));
        let (mut swap, then) = (decision.swap, decision.then);
        if let (None, Ask::Sweep(worker), false, Then::Answer(Ok(_))) = (&swap, ask, self.sweeps_in_time, &then) {
            // A store that cleans up by itself.
            let ended = read.view.caller.as_ref().filter(|session| session.state != SessionState::Live)?;
            let close = Request::Close { id: ended.id };
            let live = tenure_core::record::SessionRecord { state: SessionState::Live, ..ended.clone() };
            let view = tenure_core::decide::View { caller: Some(live), ..read.view.clone() };
            let transition = decide(&view, &close, Self::now(state)).swap?.transition;
            swap = Some(Swap { change: Change::DropSession(session(worker)), relies_on: None, transition });
        }
        let mut told = None;
        if let (Ask::Acquire(_) | Ask::Announce(_) | Ask::Complete(_), Some(caller)) = (ask, &read.view.caller) {
            let is_refused = matches!(then, Then::Answer(Err(Refusal::SessionEnded { .. })));
            let is_ending = matches!(&swap, Some(Swap { change: Change::Session(after), .. }) if after.id == caller.id);
            if is_ending && !self.ends_before_it_refuses {
                swap = None;
            }
            if swap.is_none() && (is_refused || is_ending) && caller.state == SessionState::Live {
                told = Some(caller.id);
            }
        }
        Some((swap.map(|swap| UnderWay { ask, expected: read.expected(&swap.change), swap }), told))
    }
}

impl State {
    fn swap(&mut self, swap: &Swap, expected: Option<u64>) {
        let before = self.store.clone();
        if !self.store.swap(swap, expected) {
            self.reached.swap_refused = true;
            return;
        }
        match &swap.change {
            Change::Session(after) => {
                let moved_on =
                    before.session(after.id).is_none_or(|before| invariants::sessions_move_one_way(before, after));
                self.broken.moved_back |= !moved_on;
                match after.state {
                    SessionState::Live => self.broken.revived |= self.ended.contains(&after.id),
                    SessionState::Ended { .. } => drop(self.ended.insert(after.id)),
                }
            }
            Change::Lease(after) => {
                let former = before.lease(&resource());
                self.broken.moved_back |= former.is_some_and(|former| !invariants::leases_move_one_way(former, after));
                if swap.transition.event == Event::Granted {
                    let former = former.filter(|former| former.is_granted()).map(|former| former.session);
                    self.broken.granted_over_a_living_session |= former.is_some_and(|id| before.is_live(id));
                    self.reached.took_over_ended |= former.is_some_and(|id| before.session(id).is_some());
                    self.reached.took_over_missing |= former.is_some_and(|id| before.session(id).is_none());
                }
                if matches!(swap.transition.event, Event::Granted | Event::Announced | Event::Completed) {
                    self.broken.granted_on_an_ended_session |= !before.is_live(after.session);
                    self.broken.made_after_a_refusal |= self.told_ended.contains(&after.session);
                }
            }
            Change::Authority(_) | Change::DropSession(_) | Change::DropLease(_) => {}
        }
    }

    fn settle(&mut self) {
        let mut under_way: Vec<_> = self.under_way.iter_mut().map(|it| (&it.swap, &mut it.expected)).collect();
        self.store.renumber(&mut under_way);
        self.under_way.sort();
        self.under_way.dedup();
    }
}

impl Model for Sessions {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let store = ModelStore::new(self.contract, Ttl::MAX);
        vec![State {
            tick: 0,
            store,
            under_way: Vec::new(),
            ended: BTreeSet::new(),
            told_ended: BTreeSet::new(),
            broken: Broken::default(),
            reached: Reached::default(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.tick < self.ticks {
            actions.push(Action::Tick);
        }
        if state.under_way.len() < 2 {
            actions.extend(self.requests.iter().map(|ask| Action::Read(*ask)));
        }
        actions.extend(state.under_way.iter().cloned().map(Box::new).map(Action::Swap));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Tick => next.tick += 1,
            Action::Read(ask) => {
                let (under_way, told) = self.read(state, ask)?;
                next.under_way.extend(under_way);
                next.told_ended.extend(told);
            }
            Action::Swap(it) => {
                next.under_way.retain(|other| *other != *it);
                next.swap(&it.swap, it.expected);
            }
        }
        next.settle();
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.properties.clone()
    }
}

fn two_workers() -> Sessions {
    use Ask::{Acquire, Announce, Close, Complete, Open, Renew};
    let asks = [Open(0), Open(1), Renew(0), Close(0), Acquire(0), Acquire(1), Announce(0), Announce(1), Complete(0)];
    Sessions::new(3, &asks)
        .also("an ended session is overtaken", |_, state| state.reached.took_over_ended)
        .also("a resource is completed", |_, state| {
            state.store.lease(&resource()).is_some_and(|lease| matches!(lease.phase, Phase::Completed { .. }))
        })
}

#[test]
fn no_grant_while_the_former_session_lives_and_none_on_an_ended_one() {
    holds("two workers", two_workers(), 352_715);
}

#[test]
fn a_session_that_ends_between_read_and_swap_is_found_by_the_reliance_check() {
    let contract = Contract { checks_reliance: false, ..Contract::KEPT };
    breaks("reliance not checked", Sessions { contract, ..two_workers() }, "nothing is granted on an ended session");
}

#[test]
fn a_grant_over_a_living_session_is_stopped_by_the_version_check() {
    let contract = Contract { checks_versions: false, ..Contract::KEPT };
    breaks("versions not checked", Sessions { contract, ..two_workers() }, "no grant while the former session lives");
}

/// A request had read and decided, and its change was on its way; a repeat found the session's time over and was refused; then
/// the change was made. A worker was told that its outcome was not accepted, and it was.
#[test]
fn what_was_refused_is_not_made_since_the_session_is_ended_first() {
    let model = Sessions { ends_before_it_refuses: false, ..two_workers() };
    breaks("refused while the session stands", model, "what was refused is not made");
}

fn renewal_against_end() -> Sessions {
    use Ask::{Open, Renew, RevokeSession, Sweep};
    Sessions::new(3, &[Open(0), Renew(0), RevokeSession(0), Sweep(0)])
        .also("a session is renewed after a tick", |_, state| {
            state.tick > 1 && state.store.session(session(0)).is_some_and(|session| session.renew_seq > 1)
        })
}

#[test]
fn a_renewal_that_races_an_end_revives_nothing() {
    holds("renewal against end", renewal_against_end(), 3_604);
    let contract = Contract { checks_versions: false, checks_reliance: false, ..Contract::KEPT };
    breaks(
        "renewal against end, nothing checked",
        Sessions { contract, ..renewal_against_end() },
        "an ended session stays ended",
    );
}

#[test]
fn a_missing_session_counts_as_ended() {
    use Ask::{Acquire, Open, Release, Sweep};
    let asks = [Open(0), Open(1), Acquire(0), Acquire(1), Sweep(0), Release(1)];
    let model =
        Sessions::new(3, &asks).also("a missing session is overtaken", |_, state| state.reached.took_over_missing);
    holds("missing session", model, 40_732);
}

fn late_open() -> Sessions {
    use Ask::{Close, Open, Sweep};
    Sessions::new(6, &[Open(0), Close(0), Sweep(0)])
        .also("a session is gone", |_, state| !state.ended.is_empty() && state.store.session(session(0)).is_none())
}

#[test]
fn a_late_open_revives_nothing() {
    holds("late open", late_open(), 6_497);
    let revived = "an ended session stays ended";
    breaks("late open, swept too early", Sessions { sweeps_in_time: false, ..late_open() }, revived);
    breaks("late open, stamped anew", Sessions { keeps_asked_at: false, ..late_open() }, revived);
}
