//! Tokens and receivers, without a clock: a takeover may begin at any time, and every message may arrive at any later
//! time, any number of times. What holds here holds whatever clocks and networks do, short of corruption.
//!
//! A holder that was granted once and announced once writes for ever: nothing that it learns stops it. That is the
//! stopped worker of the story, and only a receiver can stop it.

mod cases;
mod sink;

use super::store::{Contract, Executed, ModelStore};
use sink::{Fencing, Sink};
use stateright::{Model, Property};
use std::collections::BTreeSet;
use tenure_core::decide::{Change, Refusal, Reply, Request, SinkRefusal};
use tenure_core::fence::{Admission, Forgetting, Sealing};
use tenure_core::holder::{HeldLease, LeasePhase, LeaseStep, SealAnswer};
use tenure_core::record::{LeaseRecord, Owner, Phase, Seen};
use tenure_core::{
    Actor, AuthorityClock, Epoch, Generation, GrantId, InstanceId, Instant, Loss, OwnerName, Reason, ResourceName,
    SessionId, SinkId, StoreIdentity, Token, Ttl, Verdict, invariants,
};

/// One configuration.
#[derive(Clone)]
struct Takeover {
    fencing: Fencing,
    sinks: usize,
    grants: usize,
    /// Which sinks a candidate can seal; each candidate is of one of these kinds.
    adapters: Vec<Vec<usize>>,
    /// The candidates are of these kinds in turn, instead of any kind at any time.
    in_turn: bool,
    /// Every step of a holder is a step of its own. Otherwise it describes as soon as it may while no generation can
    /// change, marks with the last seal's answer, and hears of no refused write: the model stays small.
    fine: bool,
    /// A holder may give its lease up.
    releases: bool,
    /// A holder may add the last sink to its lease.
    adds_a_sink: bool,
    /// How often the authority's store may go back to an earlier state of itself, and whether it can tell.
    restores: u8,
    notices: bool,
    /// How often a sink may fail over to a replica that lags.
    failovers: u8,
    /// How often the resource may be retired.
    retires: u8,
    without: Option<Without>,
    properties: Vec<Property<Self>>,
}

/// The rule of the protocol that a configuration leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    /// A takeover is announced once any one sink is sealed.
    SealsAtAllSinks,
    /// A takeover after a clean release is announced without sealing.
    SealsAfterARelease,
    /// A sink that forgets keeps no floor.
    Floor,
    /// A sink forgets a row above the cut.
    CutCheck,
    /// All grants have the same id.
    GrantIds,
    /// A sink's generation does not change when it fails over.
    Generations,
    /// A holder that seals again does not ask the authority first.
    BindBeforeReseal,
    /// A sink keeps the newest enrolment only, and tells nobody.
    Union,
    /// A holder seals a sink that it adds, and enrols it later.
    EnrolBeforeSeal,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    now: Instant<AuthorityClock>,
    store: ModelStore,
    snapshot: Option<Box<ModelStore>>,
    restores: u8,
    retires: u8,
    /// In the order of granting, across all restores.
    grants: Vec<Grant>,
    sinks: Vec<Sink>,
    seals: BTreeSet<SealMessage>,
    forgets: BTreeSet<ForgetMessage>,
    broken: Broken,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Grant {
    lease: HeldLease,
    session: SessionId,
    adapters: Vec<usize>,
    announced: bool,
    /// In which life of the authority's store it was given.
    life: u8,
}

/// A seal that was sent: it may arrive at any time, again and again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct SealMessage {
    grant: usize,
    sink: usize,
    generation: Generation,
    enrolled: BTreeSet<SinkId>,
}

/// A retirement that was sent to a sink.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ForgetMessage {
    sink: usize,
    cut: Epoch,
    granted: usize,
}

/// Which promises were broken on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Broken {
    i1: bool,
    i2: bool,
    i7: bool,
    i9: bool,
    announced_unsealed: bool,
    moved_back: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    /// The former session ends, and a candidate with these adapters is granted the resource.
    Grant(usize),
    /// A holder sends something to the authority or asks a sink, and takes the answer.
    Step(usize, LeaseStep),
    /// A seal arrives at its sink.
    Seal(SealMessage),
    /// A write arrives at a sink.
    Write(usize, usize),
    /// A holder hears that a sink refused its write.
    Hear(usize, usize),
    AnnounceEarly(usize),
    Release(usize),
    AddSink(usize),
    SealAdded(usize),
    Snapshot,
    Restore,
    QuarantinePasses,
    Replicate(usize),
    FailOver(usize),
    Retire,
    Forget(ForgetMessage),
}

fn resource() -> ResourceName {
    ResourceName::new("r").unwrap()
}

fn sink_id(sink: usize) -> SinkId {
    SinkId::new(["a", "b"][sink]).unwrap()
}

fn sink_index(id: &SinkId) -> usize {
    usize::from(id.as_str() == "b")
}

fn operator() -> (Actor, Reason) {
    (Actor::new("op").unwrap(), Reason::new("").unwrap())
}

impl Takeover {
    fn new(fencing: Fencing, sinks: usize, grants: usize) -> Self {
        Self {
            fencing,
            sinks,
            grants,
            adapters: vec![(0..sinks).collect()],
            in_turn: false,
            fine: false,
            releases: false,
            adds_a_sink: false,
            restores: 0,
            notices: false,
            failovers: 0,
            retires: 0,
            without: None,
            properties: Self::promises(),
        }
    }

    fn promises() -> Vec<Property<Self>> {
        vec![
            Property::always("I1 accepted epochs never fall", |_, state: &State| !state.broken.i1),
            Property::always("I2 nothing older after an announcement", |_, state: &State| !state.broken.i2),
            Property::always("I4 one grant may write everywhere", |model: &Self, state: &State| {
                let sinks = state.sinks.iter().map(|sink| (sink.row.clone(), sink.floor, sink.generation(model)));
                model.fencing != Fencing::Sealed
                    || invariants::i4_one_writer_everywhere(
                        tenure_core::fence::Rule::Sealed,
                        &sinks.collect::<Vec<_>>(),
                        &state.grants.iter().filter_map(|grant| grant.lease.token().cloned()).collect::<Vec<_>>(),
                    )
            }),
            Property::always("I7 a store that went back grants nothing", |_, state: &State| !state.broken.i7),
            Property::always("I8 announced grants are unique", |_, state: &State| {
                let announced = state.grants.iter().filter(|grant| grant.announced);
                let tokens = announced.filter_map(|grant| grant.lease.token()).map(|token| (token.epoch, token.grant));
                invariants::i8_announced_grants_are_unique(&tokens.collect::<Vec<_>>())
            }),
            Property::always("I9 forgotten stays closed", |_, state: &State| !state.broken.i9),
            Property::always("announced means sealed", |_, state: &State| !state.broken.announced_unsealed),
            Property::always("leases move one way", |_, state: &State| !state.broken.moved_back),
            Property::sometimes("a takeover is announced", |_, state: &State| {
                state.grants.iter().skip(1).any(|grant| grant.announced)
            }),
            Property::sometimes("a stale write is refused", |model: &Self, state: &State| {
                state.grants.iter().filter(|grant| grant.announced).any(|grant| {
                    let token = grant.lease.token();
                    token.is_some_and(|token| state.sinks.iter().any(|sink| sink.refuses_as_stale(model, token)))
                })
            }),
        ]
    }

    fn also(mut self, name: &'static str, reached: fn(&Self, &State) -> bool) -> Self {
        self.properties.push(Property::sometimes(name, reached));
        self
    }

    fn without(self, rule: Without) -> Self {
        Self { without: Some(rule), ..self }
    }
}

impl State {
    fn lease(&self) -> Option<&LeaseRecord> {
        self.store.lease(&resource())
    }

    fn execute(&mut self, request: &Request) -> Result<Reply, Refusal> {
        let before = self.lease().cloned();
        let Executed { answer, swaps } = self.store.execute(request, self.now);
        let mut last = before;
        for swap in swaps {
            let Change::Lease(after) = swap.change else { continue };
            if let Some(before) = &last {
                self.broken.moved_back |= !invariants::leases_move_one_way(before, &after);
                self.broken.announced_unsealed |= before.phase == Phase::Sealing
                    && after.phase == Phase::Held
                    && !invariants::announced_means_sealed(&after);
            }
            last = Some(after);
        }
        if let Some(LeaseRecord { phase: Phase::Retiring { cut, forgotten }, sinks, .. }) = self.lease() {
            let waiting = sinks.keys().filter(|sink| !forgotten.contains(*sink));
            let granted = self.grants.len();
            let messages: Vec<_> =
                waiting.map(|sink| ForgetMessage { sink: sink_index(sink), cut: *cut, granted }).collect();
            self.forgets.extend(messages);
        }
        answer
    }

    fn token(&self, grant: usize) -> Token {
        self.grants[grant].lease.token().unwrap().clone()
    }

    fn newest_announced(&self) -> Option<usize> {
        self.grants.iter().rposition(|grant| grant.announced)
    }

    fn end_former_session(&mut self) {
        if let Some(id) = self.lease().filter(|lease| lease.is_granted()).map(|lease| lease.session) {
            let (actor, reason) = operator();
            let ended = self.execute(&Request::RevokeSession { id, actor, reason });
            assert_eq!(ended, Ok(Reply::Ended));
        }
    }

    fn grant(&mut self, model: &Takeover, kind: usize) -> bool {
        let number = self.grants.len();
        let session = SessionId::from_bits(number as u128 + 1);
        let grant = GrantId::from_bits(if model.without == Some(Without::GrantIds) { 7 } else { number as u128 + 1 });
        let adapters = model.adapters[kind].clone();
        let ids: BTreeSet<_> = if model.fencing == Fencing::Sealed {
            adapters.iter().map(|sink| sink_id(*sink)).collect()
        } else {
            BTreeSet::new()
        };
        self.end_former_session();
        let owner = Owner { name: OwnerName::new("w").unwrap(), instance: InstanceId::from_bits(number as u128) };
        let opened = self.execute(&Request::Open {
            id: session,
            owner,
            on_this_host: false,
            ttl: Ttl::MIN,
            asked_at: self.now,
            seen: Seen::default(),
        });
        match opened {
            Ok(_) => {}
            // The quarantine that the request has set off is news.
            Err(Refusal::Quarantined { .. }) => return true,
            Err(other) => panic!("{other:?}"),
        }
        let mut lease = HeldLease::new(resource(), grant, ids.clone());
        let asked = self.execute(&Request::Acquire { resource: resource(), grant, session, sinks: ids });
        let Ok(Reply::Granted(granted)) = asked else { return false };
        let announced = granted.announced;
        lease.handle_granted(granted);
        let incarnation = self.store.authority.record.incarnation;
        let gone_back =
            |snapshot: &ModelStore| self.restores > 0 && incarnation <= snapshot.authority.record.incarnation;
        self.broken.i7 |= model.notices && self.snapshot.as_deref().is_some_and(gone_back);
        self.grants.push(Grant { lease, session, adapters, announced, life: self.restores });
        true
    }

    fn step(&mut self, model: &Takeover, holder: usize, step: LeaseStep) {
        let (token, session) = (self.token(holder), self.grants[holder].session);
        let reseals = self.grants[holder].announced;
        let request = match &step {
            LeaseStep::Describe(id) => {
                let sink = &self.sinks[sink_index(id)];
                let (generation, enrolled) = (sink.generation(model), sink.enrolled(model));
                let lease = &mut self.grants[holder].lease;
                lease.handle_described(id, generation, enrolled);
                // Refused by name: it cannot seal what it has no adapter for.
                if lease.without_adapter().is_some() {
                    lease.lose(Loss::SealRefused);
                }
                return;
            }
            LeaseStep::Bind(generations) if reseals && model.without == Some(Without::BindBeforeReseal) => {
                return self.grants[holder].lease.handle_bound(generations);
            }
            LeaseStep::Enrol(sinks) => Request::Enrol { token, sinks: sinks.clone() },
            LeaseStep::Bind(generations) => Request::Bind { token, session, generations: generations.clone() },
            LeaseStep::Mark(generations) => Request::Sealed { token, generations: generations.clone() },
            LeaseStep::Announce => Request::Announce { token, session, excused: BTreeSet::new() },
            LeaseStep::Report(shown) => Request::Refused { token, shown: *shown },
            LeaseStep::Release(token) => Request::Release { token: token.clone() },
            LeaseStep::Acquire { .. } | LeaseStep::Seal { .. } | LeaseStep::Complete(_) => return,
        };
        let answer = self.execute(&request);
        let lease = &mut self.grants[holder].lease;
        match (&step, answer) {
            (LeaseStep::Report(_) | LeaseStep::Release(_), _) => lease.handle_given_up(),
            (_, Err(_)) => lease.lose(Loss::SealRefused),
            (LeaseStep::Enrol(sinks), Ok(_)) => lease.handle_enrolled(sinks),
            (LeaseStep::Bind(generations), Ok(_)) => lease.handle_bound(generations),
            (LeaseStep::Mark(generations), Ok(_)) => lease.handle_marked(generations),
            (_, Ok(_)) => {
                lease.handle_announced();
                self.grants[holder].announced = true;
            }
        }
    }

    fn announce_early(&mut self, model: &Takeover, holder: usize) -> bool {
        let lease = &self.grants[holder].lease;
        let enough = match model.without {
            Some(Without::SealsAtAllSinks) => {
                let registered = |sink: &Sink| sink.row.as_ref().is_some_and(|row| row.grant == lease.grant());
                self.sinks.iter().any(registered)
            }
            _ => holder > 0 && *self.grants[holder - 1].lease.phase() == LeasePhase::Released,
        };
        let excused = self.lease().map(|lease| lease.sinks.keys().cloned().collect()).unwrap_or_default();
        let (token, session) = (self.token(holder), self.grants[holder].session);
        if !enough || self.execute(&Request::Announce { token, session, excused }).is_err() {
            return false;
        }
        self.grants[holder].lease.handle_announced();
        self.grants[holder].announced = true;
        true
    }

    fn deliver_seal(&mut self, model: &Takeover, message: &SealMessage) {
        let token = self.token(message.grant);
        let answer = self.sinks[message.sink].seal(model, &token, &message.generation, &message.enrolled);
        let answer = match answer {
            Sealing::Seal(row) => SealAnswer::Sealed { enrolled: row.enrolled },
            Sealing::WrongGeneration { .. } => SealAnswer::WrongGeneration,
            Sealing::Stale { epoch, grant } => {
                SealAnswer::Refused { shown: SinkRefusal { epoch, grant: Some(grant) }, conflict: false }
            }
            Sealing::Conflict { epoch, grant } => {
                SealAnswer::Refused { shown: SinkRefusal { epoch, grant: Some(grant) }, conflict: true }
            }
            Sealing::BelowFloor { floor } => {
                SealAnswer::Refused { shown: SinkRefusal { epoch: floor, grant: None }, conflict: false }
            }
        };
        let lease = &mut self.grants[message.grant].lease;
        lease.handle_seal(&sink_id(message.sink), &message.generation, answer);
        if lease.without_adapter().is_some() {
            lease.lose(Loss::SealRefused);
        }
    }

    fn write(&mut self, model: &Takeover, grant: usize, sink: usize) -> bool {
        let token = self.token(grant);
        let newest_announced = self.newest_announced();
        let target = &mut self.sinks[sink];
        match target.judge(model, &token) {
            Admission::Refuse(_) => return false,
            Admission::Admit => {}
            Admission::Raise(row) => target.row = Some(row),
        }
        self.broken.i1 |= !invariants::i1_epochs_never_fall(target.last, token.epoch);
        self.broken.i2 |= !invariants::i2_nothing_older_after_announce(grant, newest_announced);
        self.broken.i9 |= !invariants::i9_forgotten_stays_closed(grant, target.forgot);
        target.last = target.last.max(Some(token.epoch));
        true
    }

    fn hear(&mut self, model: &Takeover, grant: usize, sink: usize) {
        let token = self.token(grant);
        let target = &self.sinks[sink];
        let Admission::Refuse(verdict) = target.judge(model, &token) else { return };
        let shown = target.row.as_ref().map(|row| SinkRefusal { epoch: row.epoch, grant: Some(row.grant) });
        let lease = &mut self.grants[grant].lease;
        match (verdict, shown) {
            (Verdict::Unsealed, _) if lease.may_write() => lease.handle_unsealed(&sink_id(sink)),
            (Verdict::Stale { current, .. }, shown) => {
                lease.handle_refused(shown.unwrap_or(SinkRefusal { epoch: current, grant: None }), false);
            }
            (Verdict::Conflict { .. }, Some(shown)) => lease.handle_refused(shown, true),
            _ => {}
        }
    }

    fn seal_added(&mut self, model: &Takeover, holder: usize) {
        let added = model.sinks - 1;
        let token = self.token(holder);
        let generation = self.sinks[added].generation(model);
        let _ = self.sinks[added].seal(model, &token, &generation, &BTreeSet::from([sink_id(added)]));
    }

    fn forget(&mut self, model: &Takeover, message: &ForgetMessage) {
        let ForgetMessage { sink, cut, granted } = *message;
        let request = match self.sinks[sink].forget(model, cut, granted) {
            Forgetting::Forget { .. } => Request::Forgotten { resource: resource(), cut, sink: sink_id(sink) },
            Forgetting::Above { epoch, .. } => Request::ForgetRefused { resource: resource(), cut, row: epoch },
        };
        // A late one is refused by the authority, and nobody minds.
        let _ = self.execute(&request);
    }

    fn restore(&mut self, model: &Takeover) {
        self.restores += 1;
        if let Some(snapshot) = &self.snapshot {
            self.store = (**snapshot).clone();
        }
        if model.notices {
            self.store.observed = StoreIdentity::new(format!("restore {}", self.restores)).unwrap();
        }
    }
}

impl Model for Takeover {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: Instant::from_nanos(1),
            store: ModelStore::new(Contract::KEPT, Ttl::MIN),
            snapshot: None,
            restores: 0,
            retires: 0,
            grants: Vec::new(),
            sinks: vec![Sink::new(); self.sinks],
            seals: BTreeSet::new(),
            forgets: BTreeSet::new(),
            broken: Broken::default(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.grants.len() < self.grants {
            let turn = state.grants.len() % self.adapters.len();
            actions.extend((0..self.adapters.len()).filter(|kind| !self.in_turn || *kind == turn).map(Action::Grant));
        }
        for (number, grant) in state.grants.iter().enumerate() {
            let steps = grant.lease.next_steps().into_iter();
            actions.extend(
                steps.filter(|step| !matches!(step, LeaseStep::Seal { .. })).map(|step| Action::Step(number, step)),
            );
            if grant.announced {
                actions.extend(grant.adapters.iter().map(|sink| Action::Write(number, *sink)));
                if self.fine || self.failovers > 0 {
                    actions.extend(grant.adapters.iter().map(|sink| Action::Hear(number, *sink)));
                }
            } else if matches!(self.without, Some(Without::SealsAtAllSinks | Without::SealsAfterARelease)) {
                actions.push(Action::AnnounceEarly(number));
            }
            if self.releases && grant.lease.may_write() {
                actions.push(Action::Release(number));
            }
            if self.adds_a_sink && grant.lease.may_write() && !grant.adapters.contains(&(self.sinks - 1)) {
                actions.push(Action::AddSink(number));
            }
            if self.without == Some(Without::EnrolBeforeSeal) && grant.adapters.contains(&(self.sinks - 1)) {
                actions.push(Action::SealAdded(number));
            }
        }
        actions.extend(state.seals.iter().cloned().map(Action::Seal));
        actions.extend(state.forgets.iter().cloned().map(Action::Forget));
        if self.restores > 0 {
            if state.snapshot.is_none() {
                actions.push(Action::Snapshot);
            } else if state.restores < self.restores {
                actions.push(Action::Restore);
            }
        }
        if state.store.authority.record.quarantine(state.now).is_some() {
            actions.push(Action::QuarantinePasses);
        }
        if self.failovers > 0 {
            for (number, sink) in state.sinks.iter().enumerate() {
                actions.push(Action::Replicate(number));
                if sink.failovers < self.failovers {
                    actions.push(Action::FailOver(number));
                }
            }
        }
        if state.retires < self.retires && state.lease().is_some() {
            actions.push(Action::Retire);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Grant(kind) => next.grant(self, kind).then_some(())?,
            Action::Step(holder, step) => next.step(self, holder, step),
            Action::Seal(message) => next.deliver_seal(self, &message),
            Action::Write(grant, sink) => next.write(self, grant, sink).then_some(())?,
            Action::Hear(grant, sink) => next.hear(self, grant, sink),
            Action::AnnounceEarly(holder) => next.announce_early(self, holder).then_some(())?,
            Action::Release(holder) => next.grants[holder].lease.release(),
            Action::AddSink(holder) => {
                let added = self.sinks - 1;
                next.grants[holder].lease.enrol(sink_id(added));
                next.grants[holder].adapters.push(added);
            }
            Action::SealAdded(holder) => next.seal_added(self, holder),
            Action::Snapshot => next.snapshot = Some(Box::new(state.store.clone())),
            Action::Restore => next.restore(self),
            Action::QuarantinePasses => next.now = state.store.authority.record.quarantined_until?,
            Action::Replicate(sink) => next.sinks[sink].replicate(),
            Action::FailOver(sink) => next.sinks[sink].fail_over(),
            Action::Retire => {
                next.retires += 1;
                next.end_former_session();
                let (actor, _) = operator();
                next.execute(&Request::Retire { resource: resource(), actor }).ok()?;
            }
            Action::Forget(message) => next.forget(self, &message),
        }
        if !self.fine {
            next.take_quiet_steps(self);
        }
        next.send_seals();
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.properties.clone()
    }
}

impl State {
    fn take_quiet_steps(&mut self, model: &Takeover) {
        for holder in 0..self.grants.len() {
            let is_quiet = |step: &LeaseStep| match step {
                LeaseStep::Describe(_) => model.failovers == 0,
                LeaseStep::Mark(_) => true,
                _ => false,
            };
            while let Some(step) = self.grants[holder].lease.next_steps().into_iter().find(is_quiet) {
                self.step(model, holder, step);
            }
        }
    }

    /// Whatever a holder wants sealed is on its way at once, and stays so.
    fn send_seals(&mut self) {
        for (number, grant) in self.grants.iter().enumerate() {
            for step in grant.lease.next_steps() {
                if let LeaseStep::Seal { sink, generation, enrolled } = step {
                    let sink = sink_index(&sink);
                    self.seals.insert(SealMessage { grant: number, sink, generation, enrolled });
                }
            }
        }
    }
}
