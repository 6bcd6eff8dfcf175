//! A store that goes back in time: a backup is put back, or a replica is promoted that lacks the newest grants.
//!
//! Time passes here, unlike in the model of takeovers: what a quarantine is for are holders who still believe. A worker
//! renews, seals a receiver and writes there; the receivers keep what they have through every restore. Between two requests
//! of anybody the store may become any earlier state of itself, under another identity or under the same.

mod cases;

use super::store::{Contract, ModelStore};
use stateright::{Model, Property};
use std::collections::BTreeSet;
use std::time::Duration;
use tenure_core::decide::{Refusal, Reply, Request, SinkRefusal};
use tenure_core::fence::{Admission, FenceRow, Rule, Sealing, admit, seal};
use tenure_core::record::{AuthorityRecord, Owner, Seen};
use tenure_core::{
    Actor, AuthorityClock, Generation, GrantId, InstanceId, Instant, OwnerName, Reason, ResourceName, SessionId,
    SinkId, StoreIdentity, Token, Ttl, invariants,
};

/// One configuration.
#[derive(Clone)]
struct Restore {
    /// How many grants are given at most, over all lives of the store.
    grants: usize,
    /// How often it may go back.
    restores: u8,
    /// How it is noticed.
    noticed: Noticed,
    /// The candidates that come after the first one know these receivers only.
    later_sinks: Vec<usize>,
    /// An operator lets the store learn from the receivers.
    teaches: bool,
    without: Option<Without>,
    properties: Vec<Property<Self>>,
}

/// What tells that the store went back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noticed {
    /// It has another identity.
    Identity,
    /// An operator says so before anybody asks the store for anything.
    Operator,
    /// What holders have seen, and what receivers show.
    Others,
}

/// The rule that a configuration leaves out, in its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    /// The quarantine ends at once.
    Quarantine,
    /// The incarnation stays as it was: sessions that the backup brought back stand.
    Incarnation,
    /// Epochs are not learnt from what receivers show.
    Epochs,
    /// Enrolments are learnt neither from receivers' rows nor from their answers to a seal.
    Enrolment,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    now: Instant<AuthorityClock>,
    store: ModelStore,
    /// Every state of the store from which a grant was given, and how many grants there were.
    snapshots: Vec<(usize, ModelStore)>,
    restores: u8,
    /// The incarnation of the state to which the store went back.
    old_life: u64,
    /// In the order of granting, over all lives.
    grants: Vec<Grant>,
    sinks: [Option<FenceRow>; 2],
    watched: Watched,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Grant {
    token: Token,
    session: SessionId,
    /// Up to when the holder believes.
    deadline: Instant<AuthorityClock>,
    renewals: u64,
    seen: Seen,
    sinks: BTreeSet<usize>,
    announced: bool,
    lost: bool,
    /// In which life of the store it was given.
    life: u8,
}

/// What happened on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Watched {
    /// A write of an older grant was accepted after an announcement.
    i2: bool,
    /// Something was granted while a holder still believed.
    i6: bool,
    /// A store that is known to have gone back granted in its old life.
    i7: bool,
    conflict: bool,
    taught: bool,
    refused_by_name: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    /// Whoever is not the holder asks for the resource.
    Ask,
    Renew(usize),
    /// Seals everything and announces, or gives up.
    Seal(usize),
    Write(usize, usize),
    /// Becomes the state from before a grant.
    GoBack(usize),
    Teach(usize),
    /// Half a ttl passes.
    Pass,
    /// The quarantine passes.
    PassQuarantine,
}

/// The longest that anybody may be granted; holders believe for as long.
const TTL: Ttl = Ttl::MIN;

fn half() -> Duration {
    TTL.get() / 2
}

fn resource() -> ResourceName {
    ResourceName::new("r").unwrap()
}

fn sink_id(sink: usize) -> SinkId {
    SinkId::new(["a", "b"][sink]).unwrap()
}

fn generation() -> Generation {
    Generation::new("g").unwrap()
}

impl Restore {
    fn new(noticed: Noticed) -> Self {
        Self {
            grants: 3,
            restores: 1,
            noticed,
            later_sinks: vec![0],
            teaches: false,
            without: None,
            properties: vec![
                Property::always("I2 nothing older after an announcement", |_, state: &State| !state.watched.i2),
                Property::always("I4 one grant may write everywhere", |_, state: &State| {
                    let sinks = [(state.sinks[0].clone(), None, generation())];
                    let tokens: Vec<_> = state.grants.iter().map(|grant| grant.token.clone()).collect();
                    invariants::i4_one_writer_everywhere(Rule::Sealed, &sinks, &tokens)
                }),
                Property::always("I6 nobody is overtaken who believes", |model: &Self, state: &State| {
                    model.noticed == Noticed::Others || !state.watched.i6
                }),
                Property::always("I7 a store that went back grants nothing", |_, state: &State| !state.watched.i7),
                Property::always("V6 one loss is one quarantine", |model: &Self, state: &State| {
                    model.noticed == Noticed::Others
                        || state.store.authority.record.incarnation <= 1 + u64::from(state.restores)
                }),
                Property::always("I8 announced grants are unique", |_, state: &State| {
                    let announced = state.grants.iter().filter(|grant| grant.announced);
                    let tokens: Vec<_> = announced.map(|grant| (grant.token.epoch, grant.token.grant)).collect();
                    invariants::i8_announced_grants_are_unique(&tokens)
                }),
                Property::sometimes("a grant is lost", |_, state: &State| {
                    state.restores > 0 && state.grants.iter().any(|grant| grant.announced && state.is_forgotten(grant))
                }),
                Property::sometimes("a grant after the restore writes", |_, state: &State| {
                    state.grants.iter().any(|grant| {
                        grant.life > 0
                            && grant.announced
                            && state.sinks[0].as_ref().is_some_and(|row| row.grant == grant.token.grant)
                    })
                }),
            ],
        }
    }

    fn also(mut self, name: &'static str, reached: fn(&Self, &State) -> bool) -> Self {
        self.properties.push(Property::sometimes(name, reached));
        self
    }

    fn without(self, rule: Without) -> Self {
        Self { without: Some(rule), ..self }
    }

    fn sinks_of(&self, grant: usize) -> BTreeSet<usize> {
        if grant == 0 { BTreeSet::from([0, 1]) } else { self.later_sinks.iter().copied().collect() }
    }
}

impl State {
    fn is_forgotten(&self, grant: &Grant) -> bool {
        self.store.lease(&resource()).is_none_or(|lease| lease.epoch < grant.token.epoch)
    }

    fn believes(&self, grant: &Grant) -> bool {
        !grant.lost && grant.announced && !self.now.reached(&grant.deadline)
    }

    fn execute(&mut self, model: &Restore, request: &Request) -> Result<Reply, Refusal> {
        let before = self.store.authority.record.clone();
        let answer = self.store.execute(request, self.now).answer;
        let record = &mut self.store.authority.record;
        if before.incarnation != record.incarnation {
            match model.without {
                Some(Without::Quarantine) => record.quarantined_until = None,
                Some(Without::Incarnation) => record.incarnation = before.incarnation,
                _ => {}
            }
        }
        answer
    }

    /// A new worker asks, with nothing but the store's own word for what was seen.
    fn ask(&mut self, model: &Restore) -> bool {
        let number = self.grants.len();
        let (session, grant) = (SessionId::from_bits(number as u128 + 1), GrantId::from_bits(number as u128 + 1));
        let owner = Owner { name: OwnerName::new("w").unwrap(), instance: InstanceId::from_bits(number as u128) };
        let opening = Request::Open {
            id: session,
            owner,
            on_this_host: false,
            ttl: TTL,
            asked_at: self.now,
            seen: Seen::default(),
        };
        let snapshot = self.store.clone();
        let seen = match self.execute(model, &opening) {
            Ok(Reply::Opened { seen }) => seen,
            // The quarantine that it may have set off is news.
            _ => return true,
        };
        let sinks = model.sinks_of(number);
        let ids = sinks.iter().map(|sink| sink_id(*sink)).collect();
        let token = match self.execute(model, &Request::Acquire { resource: resource(), grant, session, sinks: ids }) {
            Ok(Reply::Granted(granted)) => granted.token,
            refused => {
                self.watched.refused_by_name |= matches!(refused, Err(Refusal::NoAdapter { .. }));
                let closed = self.execute(model, &Request::Close { id: session });
                assert_eq!(closed, Ok(Reply::Ended));
                self.store.sessions.remove(&session);
                return true;
            }
        };
        self.watched.i6 |= self.grants.iter().any(|other| self.believes(other));
        let is_known = self.restores > 0 && model.noticed != Noticed::Others;
        self.watched.i7 |= is_known && self.store.authority.record.incarnation <= self.old_life;
        self.snapshots.push((number, snapshot));
        self.grants.push(Grant {
            token,
            session,
            deadline: self.now.after(TTL.get()),
            renewals: 0,
            seen,
            sinks,
            announced: false,
            lost: false,
            life: self.restores,
        });
        true
    }

    fn renew(&mut self, model: &Restore, holder: usize) {
        let Grant { session, renewals, seen, .. } = self.grants[holder];
        let answer = self.execute(model, &Request::Renew { id: session, n: renewals, seen });
        let now = self.now;
        let grant = &mut self.grants[holder];
        match answer {
            Ok(Reply::Renewed { seen, .. }) => {
                grant.deadline = now.after(TTL.get());
                grant.seen = grant.seen.max(seen);
                // Twice are enough, and the model stays finite.
                grant.renewals += 1;
            }
            _ => grant.lost = true,
        }
    }

    /// All of a takeover in one step, since no other request is of interest in between.
    fn seal(&mut self, model: &Restore, holder: usize) {
        let Grant { token, session, sinks, .. } = self.grants[holder].clone();
        let generations = |sinks: &BTreeSet<usize>| sinks.iter().map(|sink| (sink_id(*sink), generation())).collect();
        let bind = Request::Bind { token: token.clone(), session, generations: generations(&sinks) };
        if self.execute(model, &bind) != Ok(Reply::Bound) {
            self.grants[holder].lost = true;
            return;
        }
        let mut enrolled: BTreeSet<SinkId> = sinks.iter().map(|sink| sink_id(*sink)).collect();
        for sink in &sinks {
            let row = &mut self.sinks[*sink];
            match seal(row.as_ref(), None, &generation(), &token, &generation(), &enrolled) {
                Sealing::Seal(mut sealed) => {
                    // Nothing here reads the number of a seal.
                    sealed.seal_no = 0;
                    enrolled.extend(sealed.enrolled.iter().cloned());
                    *row = Some(sealed);
                }
                Sealing::Stale { .. } | Sealing::Conflict { .. } => {
                    let Some(there) = row.clone() else { continue };
                    self.watched.conflict |= there.epoch == token.epoch;
                    self.grants[holder].lost = true;
                    let epoch = if model.without == Some(Without::Epochs) { token.epoch } else { there.epoch };
                    let shown = SinkRefusal { epoch, grant: Some(there.grant) };
                    let _ = self.execute(model, &Request::Refused { token, shown });
                    return;
                }
                other => panic!("{other:?}"),
            }
        }
        let unknown: BTreeSet<_> =
            enrolled.iter().filter(|id| !sinks.iter().any(|sink| sink_id(*sink) == **id)).cloned().collect();
        if !unknown.is_empty() && model.without != Some(Without::Enrolment) {
            // It cannot seal them: it enrols what it has learnt, and gives up.
            let _ = self.execute(model, &Request::Enrol { token: token.clone(), sinks: unknown });
            let _ = self.execute(model, &Request::Release { token });
            self.grants[holder].lost = true;
            return;
        }
        let marked = self.execute(model, &Request::Sealed { token: token.clone(), generations: generations(&sinks) });
        let announce = Request::Announce { token, session, excused: BTreeSet::new() };
        if marked == Ok(Reply::Marked) && self.execute(model, &announce) == Ok(Reply::Announced) {
            self.grants[holder].announced = true;
            self.grants[holder].seen = self.store.seen();
        } else {
            self.grants[holder].lost = true;
        }
    }

    fn write(&mut self, holder: usize, sink: usize) {
        let token = &self.grants[holder].token;
        if matches!(admit(Rule::Sealed, self.sinks[sink].as_ref(), None, &generation(), token), Admission::Admit) {
            let newest = self.grants.iter().rposition(|grant| grant.announced);
            self.watched.i2 |= !invariants::i2_nothing_older_after_announce(holder, newest);
        }
    }

    fn go_back(&mut self, model: &Restore, to: usize) {
        self.restores += 1;
        self.store = self.snapshots[to].1.clone();
        self.old_life = self.store.authority.record.incarnation;
        match model.noticed {
            Noticed::Identity => {
                self.store.observed = StoreIdentity::new(format!("restore {}", self.restores)).unwrap();
            }
            Noticed::Operator => {
                let (actor, reason) = (Actor::new("op").unwrap(), Reason::new("").unwrap());
                let _ = self.execute(model, &Request::Restore { longest_ttl: None, actor, reason });
            }
            Noticed::Others => {}
        }
    }

    fn teach(&mut self, model: &Restore, sink: usize) {
        let Some(row) = self.sinks[sink].clone() else { return };
        let epoch = if model.without == Some(Without::Epochs) { tenure_core::Epoch::FIRST } else { row.epoch };
        let sinks = if model.without == Some(Without::Enrolment) { BTreeSet::new() } else { row.enrolled };
        let request =
            Request::Learn { resource: resource(), epoch, grant: row.grant, sinks, actor: Actor::new("op").unwrap() };
        let before = self.store.lease(&resource()).cloned();
        let answer = self.execute(model, &request);
        let after = self.store.lease(&resource());
        self.watched.taught |= answer.is_ok() && before.as_ref() != after;
    }
}

impl Model for Restore {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: Instant::from_nanos(1),
            store: ModelStore::new(Contract { counts_every_row: false, ..Contract::KEPT }, TTL),
            snapshots: Vec::new(),
            restores: 0,
            old_life: 0,
            grants: Vec::new(),
            sinks: [None, None],
            watched: Watched::default(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.grants.len() < self.grants {
            actions.push(Action::Ask);
        }
        for (number, grant) in state.grants.iter().enumerate() {
            // One that obeys and believes renews, and one that was stopped writes all the same.
            if state.believes(grant) && grant.renewals < 2 {
                actions.push(Action::Renew(number));
            }
            if !grant.announced && !grant.lost {
                actions.push(Action::Seal(number));
            }
            if grant.announced {
                actions.extend(grant.sinks.iter().map(|sink| Action::Write(number, *sink)));
            }
        }
        if state.restores < self.restores {
            actions.extend((0..state.snapshots.len()).map(Action::GoBack));
        }
        if self.teaches && state.restores > 0 {
            actions.extend([Action::Teach(0), Action::Teach(1)]);
        }
        actions.push(Action::Pass);
        if quarantined(state).is_some() {
            actions.push(Action::PassQuarantine);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Ask => next.ask(self).then_some(())?,
            Action::Renew(holder) => next.renew(self, holder),
            Action::Seal(holder) => next.seal(self, holder),
            Action::Write(holder, sink) => next.write(holder, sink),
            Action::GoBack(to) => next.go_back(self, to),
            Action::Teach(sink) => next.teach(self, sink),
            Action::Pass => {
                // Only while somebody's belief or a session may end by it: otherwise time is of no interest.
                let ends = |until: &Instant<AuthorityClock>| !state.now.reached(until);
                let matters = state.grants.iter().any(|grant| ends(&grant.deadline))
                    || state.store.sessions.values().any(|session| ends(&session.record.deadline));
                matters.then_some(())?;
                next.now = state.now.after(half());
            }
            Action::PassQuarantine => next.now = quarantined(state)?,
        }
        next.store.renumber(&mut []);
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.properties.clone()
    }
}

fn quarantined(state: &State) -> Option<Instant<AuthorityClock>> {
    let record: &AuthorityRecord = &state.store.authority.record;
    record.quarantined_until.filter(|until| !state.now.reached(until))
}
