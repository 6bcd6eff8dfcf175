//! Renewals in time: the holder's own session against the authority's, with answers that come late, twice or never.
//!
//! I6 is asked here: nobody may take over while a holder that obeys its own deadline still believes.

use super::store::{Contract, ModelStore};
use super::{breaks, holds};
use stateright::{Model, Property};
use std::collections::BTreeSet;
use std::time::Duration;
use tenure_core::decide::{Reply, Request};
use tenure_core::holder::{HeldSession, Policy, RenewAnswer, SessionStep};
use tenure_core::record::{Owner, Seen};
use tenure_core::{AuthorityClock, HolderClock, InstanceId, Instant, OwnerName, SessionId, Timing, Ttl, invariants};

/// Six ticks of life, one of margin, a renewal every two.
const TTL: u32 = 6;
const MARGIN: u32 = 1;

#[derive(Clone)]
struct Renewal {
    ticks: u8,
    /// The holder's clock stands still in every so-manyth tick; never when `None`.
    stands_still_every: Option<u8>,
    counted_from: CountedFrom,
}

/// Where the holder's own deadline is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CountedFrom {
    /// The first sending of the renewal that was granted: the rule.
    FirstSending,
    /// Its newest sending.
    NewestSending,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    tick: u8,
    store: ModelStore,
    session: HeldSession,
    /// A holder without the rule: its own account of the deadline, and when it sent the newest renewal.
    own_deadline: Instant<HolderClock>,
    newest_sending: Instant<HolderClock>,
    /// Renewals and answers that may still arrive, and may arrive again.
    requests: BTreeSet<u64>,
    answers: BTreeSet<(u64, bool)>,
    repeated: bool,
    moved_back: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Tick,
    /// The holder's renewal falls due, or is tried again.
    Next,
    /// A renewal arrives.
    Renew(u64),
    /// An answer arrives; it is the granting one or not.
    Answer(u64, bool),
    /// Somebody ends the session, and takes over.
    End,
}

fn tick() -> Duration {
    Ttl::MIN.get()
}

fn id() -> SessionId {
    SessionId::from_bits(1)
}

impl Renewal {
    fn authority_time(&self, state: &State) -> Instant<AuthorityClock> {
        Instant::from_nanos(1).after(tick() * u32::from(state.tick))
    }

    fn holder_time(&self, tick_number: u8) -> Instant<HolderClock> {
        let stood_still = self.stands_still_every.map_or(0, |every| tick_number / every);
        Instant::from_nanos(1).after(tick() * u32::from(tick_number - stood_still))
    }

    fn believes(&self, state: &State) -> bool {
        let now = self.holder_time(state.tick);
        match self.counted_from {
            CountedFrom::FirstSending => state.session.clone().standing(now).is_ok(),
            CountedFrom::NewestSending => !now.reached(&state.own_deadline),
        }
    }
}

fn timing() -> Timing {
    let ttl = Ttl::new(tick() * TTL).unwrap();
    Timing::of(ttl).with_margin(tick() * MARGIN).unwrap()
}

impl Model for Renewal {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut store = ModelStore::new(Contract::KEPT, Ttl::MAX);
        let now = Instant::from_nanos(1);
        let owner = Owner { name: OwnerName::new("w").unwrap(), instance: InstanceId::from_bits(1) };
        let open = Request::Open {
            id: id(),
            owner,
            on_this_host: false,
            ttl: timing().ttl(),
            asked_at: now,
            seen: Seen::default(),
        };
        assert!(store.execute(&open, now).answer.is_ok());
        let sent = self.holder_time(0);
        vec![State {
            tick: 0,
            store,
            session: HeldSession::opened(id(), timing(), Policy::Patient, sent),
            own_deadline: sent.after(timing().belief()),
            newest_sending: sent,
            requests: BTreeSet::new(),
            answers: BTreeSet::new(),
            repeated: false,
            moved_back: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.tick < self.ticks {
            actions.push(Action::Tick);
        }
        actions.push(Action::Next);
        actions.extend(state.requests.iter().map(|n| Action::Renew(*n)));
        actions.extend(state.answers.iter().map(|(n, granted)| Action::Answer(*n, *granted)));
        actions.push(Action::End);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        let (now, here) = (self.authority_time(state), self.holder_time(state.tick));
        match action {
            Action::Tick => next.tick += 1,
            Action::Next => {
                if let SessionStep::Renew { n, .. } = next.session.next_step(here) {
                    next.repeated |= !next.requests.insert(n);
                    next.newest_sending = here;
                }
            }
            Action::Renew(n) => {
                let before = state.store.session(id())?.clone();
                let answer = next.store.execute(&Request::Renew { id: id(), n, seen: Seen::default() }, now).answer;
                let after = next.store.session(id())?;
                next.moved_back |= !invariants::sessions_move_one_way(&before, after);
                next.answers.insert((n, matches!(answer, Ok(Reply::Renewed { .. }))));
            }
            Action::Answer(n, granted) => {
                let answer = if granted {
                    RenewAnswer::Granted { holdings: Default::default(), seen: Seen::default() }
                } else {
                    RenewAnswer::Refused
                };
                if next.session.handle_renewed(n, here, answer).is_some() {
                    next.own_deadline = next.own_deadline.max(next.newest_sending.after(timing().belief()));
                }
            }
            Action::End => {
                if !now.reached(&state.store.session(id())?.deadline) {
                    return None;
                }
                next.store.execute(&Request::Sweep { id: id() }, now);
            }
        }
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("I6 no takeover while a holder believes", |model: &Self, state: &State| {
                state.store.is_live(id()) || !model.believes(state)
            }),
            Property::always("sessions move one way", |_, state: &State| !state.moved_back),
            Property::sometimes("a session outlives its first ttl", |model: &Self, state: &State| {
                u32::from(state.tick) > TTL && state.store.is_live(id()) && model.believes(state)
            }),
            Property::sometimes("a session is taken over", |_, state: &State| !state.store.is_live(id())),
            Property::sometimes("a renewal was sent again", |_, state: &State| state.repeated),
        ]
    }
}

const I6: &str = "I6 no takeover while a holder believes";

fn renewal(ticks: u8) -> Renewal {
    Renewal { ticks, stands_still_every: None, counted_from: CountedFrom::FirstSending }
}

#[test]
fn i6_no_takeover_while_a_holder_believes() {
    holds("renewal", renewal(13), 79_249);
}

/// The authority grants the first sending and its answer is lost. The repeat is answered with the same success, which
/// moves nothing: counted from the repeat, the holder would believe longer than its session lives.
#[test]
fn a_deadline_counted_from_a_repeated_renewal_breaks_i6() {
    breaks("counted from the repeat", Renewal { counted_from: CountedFrom::NewestSending, ..renewal(13) }, I6);
}

#[test]
fn the_margin_covers_a_holders_clock_that_is_slow_by_less_than_it() {
    holds("a slow clock", Renewal { stands_still_every: Some(6), ..renewal(12) }, 29_816);
    breaks("a clock slower than the margin", Renewal { stands_still_every: Some(2), ..renewal(12) }, I6);
}
