//! Tokens and receivers, without a clock: a takeover may begin at any time, and every message may arrive at any later
//! time, any number of times. What holds here holds whatever clocks and networks do, short of corruption.
//!
//! A holder that was granted once and announced once writes for ever: nothing that it learns stops it. That is the
//! stopped worker of the story, and only a receiver can stop it.
//!
//! Under the rule `Held` there is one clock, the authority's, which the receiver reads in its own step: time passes there,
//! and holders renew or do not.

mod cases;
mod sink;
mod steps;

use super::store::{Contract, ModelStore};
use sink::{Fencing, Sink};
use stateright::{Model, Property};
use std::collections::BTreeSet;
use std::time::Duration;
use tenure_core::decide::Request;
use tenure_core::holder::{HeldLease, LeasePhase, LeaseStep};
use tenure_core::{
    Actor, AuthorityClock, Epoch, Generation, Instant, Reason, ResourceName, SessionId, SinkId, Ttl, invariants,
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
    /// A holder's policy may excuse the last sink, and no sink waits for another one. Otherwise it binds and marks all at once,
    /// which is one of the orders that it may keep: the model stays small.
    excuses: bool,
    /// How often the authority's store may go back to an earlier state of itself, and whether it can tell.
    restores: u8,
    notices: bool,
    /// How often a sink may fail over to a replica that lags.
    failovers: u8,
    /// How often the resource may be retired.
    retires: u8,
    /// How often half a ttl may pass. Holders may renew then.
    half_ttls: u32,
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
    /// A takeover whose holder may excuse one sink is announced without any that is missing.
    NamesOfTheExcused,
    /// A sink that was excused, and never bound, counts as sealed from the announcement on.
    SealOfTheExcused,
    /// A holder takes itself for accepted at every sink once the takeover is announced.
    HolderKnowsWhere,
    /// A sink that reads the authority takes the deadline itself for still valid.
    HalfOpen,
    /// It looks at the fence alone.
    LeaseRow,
    /// It looks at the grant and at the deadline, and not at whether the session has ended.
    SessionState,
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
    /// Without which sinks it was announced, until they are sealed.
    excused: BTreeSet<usize>,
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
    /// A grant was announced without a sink that its policy does not name.
    excused_unnamed: bool,
    /// A check has passed although its grant was over.
    h1: bool,
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
    Excuse(usize),
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
    HalfATtlPasses,
    Renew(usize),
    /// The session on which the newest grant stands is ended, and nobody is granted the resource.
    End,
}

const START: Instant<AuthorityClock> = Instant::from_nanos(1);

/// Two of them end exactly at the deadline of a session that was opened or renewed when the first one began.
fn half_ttl() -> Duration {
    Ttl::MIN.get() / 2
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
            excuses: false,
            restores: 0,
            notices: false,
            failovers: 0,
            retires: 0,
            half_ttls: 0,
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
                !model.fencing.is_sealed()
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
            Property::always("only named sinks are excused", |_, state: &State| !state.broken.excused_unnamed),
            Property::always("a holder believes in a sink only where it was sealed", Self::believes_where_sealed),
            Property::always("H1 no check passes once its grant is over", |_, state: &State| !state.broken.h1),
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

    /// What the holder of this lease may do next.
    fn steps(&self, lease: &HeldLease) -> Vec<LeaseStep> {
        let mut steps = lease.next_steps();
        let asks = |step: &LeaseStep| matches!(step, LeaseStep::Describe(_) | LeaseStep::Seal { .. });
        if !self.excuses && steps.iter().any(asks) {
            steps.retain(asks);
        }
        steps
    }

    /// Not where rows are forgotten.
    fn believes_where_sealed(&self, state: &State) -> bool {
        let believes = |grant: &Grant, sink: usize| match self.without {
            Some(Without::HolderKnowsWhere) => grant.lease.may_write(),
            _ => grant.lease.may_write_to(&sink_id(sink)),
        };
        let was_sealed = |grant: &Grant, sink: usize| {
            let epochs = state.sinks[sink].row.as_ref().map(|row| row.epoch).zip(grant.lease.token());
            epochs.is_some_and(|(row, token)| row >= token.epoch)
        };
        self.fencing != Fencing::Sealed
            || self.failovers + self.retires > 0
            || (0..self.sinks).all(|sink| {
                let mut knows = state.grants.iter().filter(|grant| grant.adapters.contains(&sink));
                knows.all(|grant| !believes(grant, sink) || was_sealed(grant, sink))
            })
    }

    fn also(mut self, name: &'static str, reached: fn(&Self, &State) -> bool) -> Self {
        self.properties.push(Property::sometimes(name, reached));
        self
    }

    fn without(self, rule: Without) -> Self {
        Self { without: Some(rule), ..self }
    }
}

impl Model for Takeover {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: START,
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
            let steps = self.steps(&grant.lease).into_iter();
            actions.extend(
                steps.filter(|step| !matches!(step, LeaseStep::Seal { .. })).map(|step| Action::Step(number, step)),
            );
            if grant.announced {
                actions.extend(grant.adapters.iter().map(|sink| Action::Write(number, *sink)));
                if self.fine || self.failovers > 0 {
                    actions.extend(grant.adapters.iter().map(|sink| Action::Hear(number, *sink)));
                }
            } else if let Some(Without::SealsAtAllSinks | Without::SealsAfterARelease | Without::NamesOfTheExcused) =
                self.without
            {
                actions.push(Action::AnnounceEarly(number));
            }
            if self.excuses && *grant.lease.phase() == LeasePhase::Sealing {
                actions.push(Action::Excuse(number));
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
        if state.now < START.after(half_ttl() * self.half_ttls) {
            actions.push(Action::HalfATtlPasses);
        }
        if self.half_ttls > 0 {
            actions.extend((0..state.grants.len()).map(Action::Renew));
            actions.push(Action::End);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Grant(kind) => next.grant(self, kind).then_some(())?,
            Action::Step(holder, step) => next.step(self, holder, &step),
            Action::Seal(message) => next.deliver_seal(self, &message),
            Action::Write(grant, sink) => next.write(self, grant, sink).then_some(())?,
            Action::Hear(grant, sink) => next.hear(self, grant, sink),
            Action::AnnounceEarly(holder) => next.announce_early(self, holder).then_some(())?,
            Action::Excuse(holder) => {
                let last = BTreeSet::from([sink_id(self.sinks - 1)]);
                next.grants[holder].lease.excuse(last);
            }
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
            Action::HalfATtlPasses => next.now = next.now.after(half_ttl()),
            Action::Renew(holder) => next.renew(holder),
            Action::End => next.end_former_session(),
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
