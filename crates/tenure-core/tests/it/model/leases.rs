//! Grants on sessions that live on: other leases keep a session renewed, so no deadline ever clears away what went wrong
//! with one grant. Here the holder's account of its grants is what has to notice.

use super::explore::explore;
use super::holds;
use super::store::{Contract, ModelStore};
use stateright::{Model, Property};
use std::collections::BTreeSet;
use tenure_core::decide::{Reply, Request};
use tenure_core::holder::{HeldLease, KnownGrants, LeasePhase, LeaseStep};
use tenure_core::record::{Grant, Holdings, Owner, Seen};
use tenure_core::{
    Actor, AuthorityClock, GrantId, InstanceId, Instant, Loss, OwnerName, Reason, ResourceName, SessionId, Token, Ttl,
};

const EPOCHS_MAX: u64 = 4;

#[derive(Clone, Copy)]
struct Leases {
    workers: usize,
    wishes: usize,
    /// A request to acquire of the first worker may arrive again, long after its answer. The others then renew without
    /// looking, which keeps the model small.
    duplicates: bool,
    /// A worker may lose its grant alone: a checkpoint went unanswered.
    loses: bool,
    /// A worker may give its grant up, or drop its wish before the answer.
    releases: bool,
    revokes: bool,
    /// A worker may ask the authority whether its grant stands.
    checks: bool,
    /// Whoever loses a grant gives it up: a rule.
    gives_up: bool,
    /// A renewal's answer is compared with the holder's account: a rule.
    compares: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    store: ModelStore,
    workers: Vec<Worker>,
    /// The acquisitions that were sent: the worker and the grant id.
    sent: BTreeSet<(usize, GrantId)>,
    wishes: u8,
    revoked: bool,
    /// A grant that its worker held, and nobody took away, went all the same.
    robbed: bool,
    strange_released: bool,
    noticed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Worker {
    known: KnownGrants,
    lease: Option<HeldLease>,
    /// A renewal under way: how often the account had moved when it was sent, and the authority's answer.
    renewal: Option<(u64, Option<Holdings>)>,
    /// A list under way: the grants held when it was asked for, and the authority's list.
    listing: Option<(BTreeSet<Grant>, Option<Vec<Token>>)>,
    /// Grants that a list showed and nobody here knows.
    strange: BTreeSet<Token>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Wish(usize),
    /// An acquisition arrives; its answer arrives too, or is lost.
    Acquire(usize, GrantId, bool),
    /// The next step of a lease that is given up.
    GiveUp(usize),
    Lose(usize),
    Check(usize),
    Release(usize),
    Revoke,
    SendRenewal(usize),
    Renew(usize),
    TakeRenewal(usize),
    List(usize),
    TakeList(usize),
    ReleaseStrange(usize, Token),
}

fn now() -> Instant<AuthorityClock> {
    Instant::from_nanos(1)
}

fn resource() -> ResourceName {
    ResourceName::new("r").unwrap()
}

fn session(worker: usize) -> SessionId {
    SessionId::from_bits(worker as u128 + 1)
}

impl Worker {
    fn holds(&self, grant: Grant) -> bool {
        self.token().is_some_and(|token| Grant::from(token) == grant)
    }

    fn token(&self) -> Option<&Token> {
        self.lease.as_ref().filter(|lease| lease.may_write()).and_then(HeldLease::token)
    }

    fn held(&self) -> BTreeSet<Grant> {
        self.token().map(Grant::from).into_iter().collect()
    }
}

impl State {
    fn is_current(&self, token: &Token) -> bool {
        self.store.lease(&resource()).is_some_and(|lease| lease.is_current(token))
    }

    /// Everybody who believes is right, and what stands is believed in.
    fn is_settled(&self) -> bool {
        let right = |worker: &Worker| worker.token().is_none_or(|token| self.is_current(token));
        let lease = self.store.lease(&resource());
        let believed = lease
            .filter(|lease| lease.is_granted())
            .is_none_or(|lease| self.workers.iter().any(|worker| worker.token() == Some(&lease.token())));
        self.workers.iter().all(right) && believed
    }

    fn acquire(&mut self, worker: usize, grant: GrantId, answered: bool) {
        let request =
            Request::Acquire { resource: resource(), grant, session: session(worker), sinks: BTreeSet::new() };
        let answer = self.store.execute(&request, now()).answer;
        let it = &mut self.workers[worker];
        let Some(lease) = it.lease.as_mut().filter(|lease| lease.grant() == grant && answered) else { return };
        if !it.known.is_under_way(grant) {
            return;
        }
        match answer {
            Ok(Reply::Granted(granted)) if *lease.phase() == LeasePhase::Acquiring && granted.token.grant == grant => {
                let epoch = granted.token.epoch;
                lease.handle_granted(granted);
                it.known.settled(grant, None, Some(epoch));
            }
            Ok(Reply::Granted(granted)) => {
                lease.handle_late_grant(granted.token);
                lease.lose(Loss::Ended);
                it.known.settled(grant, None, None);
            }
            // Refused: the wish is over, and the next one has another id.
            _ => {
                lease.lose(Loss::Ended);
                it.known.settled(grant, None, None);
            }
        }
    }

    fn stop(&mut self, worker: usize, stop: impl Fn(&mut HeldLease)) {
        let it = &mut self.workers[worker];
        let held = it.held();
        if let Some(lease) = &mut it.lease {
            stop(lease);
        }
        for grant in held {
            // No longer counted as its own; the release that follows is a request under way.
            it.known.began(grant.id);
            it.known.settled(grant.id, Some(grant.epoch), None);
        }
    }

    fn give_up(&mut self, worker: usize) {
        let it = &mut self.workers[worker];
        let Some(lease) = &mut it.lease else { return };
        if let Some(LeaseStep::Release(token)) = lease.next_steps().first() {
            let _ = self.store.execute(&Request::Release { token: token.clone() }, now());
            lease.handle_given_up();
        }
    }

    fn take_list(&mut self, worker: usize) {
        let Some((asked, Some(listed))) = self.workers[worker].listing.take() else { return };
        let it = &self.workers[worker];
        let ids = listed.iter().map(Grant::from).collect();
        let difference = it.known.compare(&ids, &asked, |grant| it.holds(grant));
        let strange = listed.into_iter().filter(|token| difference.strange.contains(&Grant::from(token)));
        self.workers[worker].strange.extend(strange);
        if !difference.gone.is_empty() {
            self.noticed = true;
            self.stop(worker, |lease| lease.lose(Loss::Revoked));
        }
    }

    fn release_strange(&mut self, worker: usize, token: &Token) {
        let it = &mut self.workers[worker];
        it.strange.remove(token);
        let _ = self.store.execute(&Request::Release { token: token.clone() }, now());
        self.strange_released = true;
    }
}

impl Model for Leases {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut store = ModelStore::new(Contract::KEPT, Ttl::MAX);
        for worker in 0..self.workers {
            let owner = Owner { name: OwnerName::new("w").unwrap(), instance: InstanceId::from_bits(worker as u128) };
            let open = Request::Open {
                id: session(worker),
                owner,
                on_this_host: false,
                ttl: Ttl::DEFAULT,
                asked_at: now(),
                seen: Seen::default(),
            };
            assert!(store.execute(&open, now()).answer.is_ok());
        }
        let worker = Worker {
            known: KnownGrants::default(),
            lease: None,
            renewal: None,
            listing: None,
            strange: BTreeSet::new(),
        };
        vec![State {
            store,
            workers: vec![worker; self.workers],
            sent: BTreeSet::new(),
            wishes: 0,
            revoked: false,
            robbed: false,
            strange_released: false,
            noticed: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (number, worker) in state.workers.iter().enumerate() {
            // A wish that was dropped waits for its answer all the same, to give up what it was granted.
            let idle = worker.lease.as_ref().is_none_or(|lease| {
                !worker.known.is_under_way(lease.grant())
                    && matches!(lease.phase(), LeasePhase::Lost(_) | LeasePhase::Released)
                    && lease.next_steps().is_empty()
            });
            if idle && usize::from(state.wishes) < self.wishes {
                actions.push(Action::Wish(number));
            }
            if let Some(lease) = &worker.lease {
                if matches!(lease.next_steps().first(), Some(LeaseStep::Release(_)))
                    && (self.gives_up || !matches!(lease.phase(), LeasePhase::Lost(_)))
                {
                    actions.push(Action::GiveUp(number));
                }
                if self.loses && lease.may_write() {
                    actions.push(Action::Lose(number));
                }
                if self.checks && lease.may_write() {
                    actions.push(Action::Check(number));
                }
                // Where a revocation is to be noticed, the first worker does not stop by itself.
                if self.releases
                    && (number > 0 || !self.revokes)
                    && (lease.may_write() || *lease.phase() == LeasePhase::Acquiring)
                {
                    actions.push(Action::Release(number));
                }
            }
            match (&worker.renewal, &worker.listing) {
                _ if self.duplicates && number > 0 => {}
                (None, None) => actions.push(Action::SendRenewal(number)),
                (Some((_, None)), _) => actions.push(Action::Renew(number)),
                (Some((_, Some(_))), _) => actions.push(Action::TakeRenewal(number)),
                (_, Some((_, None))) => actions.push(Action::List(number)),
                (_, Some((_, Some(_)))) => actions.push(Action::TakeList(number)),
            }
            actions.extend(worker.strange.iter().map(|token| Action::ReleaseStrange(number, token.clone())));
        }
        // Two duplicates could bring each other's grants back for ever: the model has them for some epochs.
        let epochs = state.store.lease(&resource()).map_or(0, |lease| lease.epoch.get());
        for (worker, grant) in &state.sent {
            if (self.duplicates && *worker == 0 && epochs < EPOCHS_MAX)
                || state.workers[*worker].known.is_under_way(*grant)
            {
                actions.extend([true, false].map(|answered| Action::Acquire(*worker, *grant, answered)));
            }
        }
        if self.revokes && !state.revoked {
            actions.push(Action::Revoke);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Wish(worker) => {
                next.wishes += 1;
                let grant = GrantId::from_bits(u128::from(next.wishes));
                next.workers[worker].lease = Some(HeldLease::new(resource(), grant, BTreeSet::new()));
                next.workers[worker].known.began(grant);
                next.sent.insert((worker, grant));
            }
            Action::Acquire(worker, grant, answered) => next.acquire(worker, grant, answered),
            Action::GiveUp(worker) => next.give_up(worker),
            Action::Lose(worker) => next.stop(worker, |lease| lease.lose(Loss::CheckUnanswered)),
            Action::Check(worker) => {
                let check = Request::Check { token: state.workers[worker].token()?.clone(), session: session(worker) };
                if next.store.execute(&check, now()).answer.is_err() {
                    next.stop(worker, |lease| lease.lose(Loss::CheckRefused));
                }
            }
            Action::Release(worker) => next.stop(worker, HeldLease::release),
            Action::Revoke => {
                let (actor, reason) = (Actor::new("op").unwrap(), Reason::new("").unwrap());
                next.store
                    .execute(&Request::Revoke { resource: resource(), only: None, actor, reason }, now())
                    .answer
                    .ok()?;
                next.revoked = true;
            }
            Action::SendRenewal(worker) => {
                next.workers[worker].renewal = Some((state.workers[worker].known.moves(), None));
            }
            Action::Renew(worker) => {
                // The number of the renewal is not looked at here: what counts is the fingerprint in the answer.
                let standing = state.store.grants(session(worker));
                let holdings = standing.iter().filter_map(|lease| lease.holding()).map(|(_, grant)| grant).collect();
                next.workers[worker].renewal.as_mut()?.1 = Some(holdings);
            }
            Action::TakeRenewal(worker) => {
                let it = &mut next.workers[worker];
                let (sent, holdings) = it.renewal.take()?;
                if self.compares && it.known.differs(holdings?, sent) {
                    it.listing = Some((it.held(), None));
                }
            }
            Action::List(worker) => {
                let listed = state.store.grants(session(worker)).iter().map(|lease| lease.token()).collect();
                next.workers[worker].listing.as_mut()?.1 = Some(listed);
            }
            Action::TakeList(worker) => next.take_list(worker),
            Action::ReleaseStrange(worker, token) => next.release_strange(worker, &token),
        }
        // Only a revocation takes a grant from somebody who believes in it.
        next.robbed |=
            !next.revoked && next.workers.iter().filter_map(Worker::token).any(|token| !next.is_current(token));
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("nobody is robbed of a grant", |_, state: &State| !state.robbed),
            Property::sometimes("somebody holds", |_, state: &State| {
                state.workers.iter().any(|worker| worker.token().is_some())
            }),
        ];
        if self.duplicates {
            properties
                .push(Property::sometimes("a strange grant is released", |_, state: &State| state.strange_released));
        }
        if self.revokes {
            properties.push(Property::sometimes("a revocation is noticed", |_, state: &State| state.noticed));
        }
        properties
    }
}

const PLAIN: Leases = Leases {
    workers: 2,
    wishes: 2,
    duplicates: false,
    loses: false,
    releases: false,
    revokes: false,
    checks: false,
    gives_up: true,
    compares: true,
};

/// From every state, everybody can come to be right about what stands. Otherwise: after which steps not.
fn unsettled(name: &str, model: &Leases) -> Option<Vec<Action>> {
    let explored = explore(model, |_| true, State::is_settled);
    println!(
        "{name}: {} states, {}",
        explored.states,
        if explored.stuck.is_some() { "stuck after" } else { "never stuck" }
    );
    for action in explored.stuck.iter().flatten() {
        println!("  {action:?}");
    }
    explored.stuck
}

#[test]
fn a_grant_lost_alone_on_a_living_session_is_given_up_by_the_loser() {
    let model = Leases { loses: true, wishes: 3, compares: false, ..PLAIN };
    assert!(unsettled("lost alone, not given up", &Leases { gives_up: false, ..model }).is_some());
    assert_eq!(unsettled("lost alone, given up", &model), None);
    holds("lost alone, given up", model, 46_757);
    // The comparison is a second net under the same fall.
    let compared = Leases { gives_up: false, compares: true, ..model };
    assert_eq!(unsettled("lost alone, not given up but compared", &compared), None);
}

#[test]
fn a_late_duplicate_acquire_is_found_and_released() {
    let model = Leases { duplicates: true, releases: true, ..PLAIN };
    assert!(unsettled("late duplicate, not compared", &Leases { compares: false, ..model }).is_some());
    assert_eq!(unsettled("late duplicate, compared", &model), None);
    holds("late duplicate, compared", model, 8_176);
}

#[test]
fn a_revocation_is_noticed_at_the_next_renewal() {
    let model = Leases { revokes: true, ..PLAIN };
    assert!(unsettled("revoked, not compared", &Leases { compares: false, ..model }).is_some());
    assert_eq!(unsettled("revoked, compared", &model), None);
    holds("revoked, compared", model, 5_349);
}

/// A grant is revoked, another worker is granted and gives up, and then the first acquisition arrives once more: the old
/// id stands again, under a new epoch. A fingerprint of ids alone would be what it was, and no renewal would notice.
#[test]
fn a_revocation_that_a_late_duplicate_hides_is_noticed_at_the_next_renewal() {
    let model = Leases { revokes: true, releases: true, duplicates: true, ..PLAIN };
    assert!(
        unsettled("revoked, hidden by a late duplicate, not compared", &Leases { compares: false, ..model }).is_some()
    );
    assert_eq!(unsettled("revoked, hidden by a late duplicate, compared", &model), None);
}
