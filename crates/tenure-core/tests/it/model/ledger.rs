//! Calls to the outside world: crashes at any step, lost answers, takeovers, requests that arrive late or twice, and what
//! the ledger says of all that.
//!
//! One operation, tried by one worker after the other, each under its own epoch. The ledger and a system that checks
//! tokens are sinks of their own, each with a fence; sealing them takes two steps, in any order. A worker that has begun
//! goes on for ever: nothing that it learns stops it. A system with keys applies an operation once, whoever sends it; a
//! plain one applies whatever arrives.

mod cases;
mod steps;

use stateright::{Model, Property};
use tenure_core::fence::FenceRow;
use tenure_core::ledger::{Entry, Looked};
use tenure_core::operation::Attempt;
use tenure_core::{Epoch, Generation, GrantId, ResourceName, Token};

/// One configuration.
#[derive(Clone)]
struct Calls {
    system: System,
    /// How many workers there are, one after the other.
    grants: usize,
    without: Option<Without>,
    properties: Vec<Property<Self>>,
}

/// What stands at the other end of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum System {
    /// It checks the token in the transaction of the effect, and can be asked under one.
    Fenced,
    /// It keeps the operation's id as a key, applies it once, and can be asked. It checks no token.
    Keyed,
    /// It applies what arrives, and cannot be asked.
    Plain,
}

/// The rule that a configuration leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    /// A worker calls without writing anything down.
    Intent,
    /// The mark is made after the first byte has left.
    MarkBeforeSend,
    /// A takeover is over when the ledger alone is sealed.
    SealOutside,
    /// A timeout is written down as a failure.
    TimeoutIsUnknown,
    /// An absence counts also where nothing checks a token.
    OpenAbsence,
    /// An absence counts also under the attempt's own token.
    NextToken,
    /// A new attempt is made beside one that is not over.
    Settled,
    /// A worker sends again what was not answered.
    NeverByItself,
    /// A person decides without knowing that the request is gone.
    PersonKnows,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// The fence of the ledger's own sink.
    book: Option<FenceRow>,
    /// The fence of the outside system, if it has one.
    outside: Option<FenceRow>,
    entries: Vec<Entry>,
    /// In the order of their epochs.
    workers: Vec<Worker>,
    /// By whose request each effect came about.
    effects: Vec<usize>,
    broken: Broken,
    seen: Seen,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Worker {
    alive: bool,
    sealed_book: bool,
    sealed_outside: bool,
    step: Step,
    request: Request,
    /// What the system has answered; whether it has applied it.
    answer: Option<bool>,
    /// What it saw of the attempt of this number, and has not written down yet.
    looked: Option<(usize, Looked)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Begun,
    Intended,
    Marked,
    /// It has sent before its mark.
    Unmarked,
    Sent,
    /// It has given up waiting for the answer.
    TimedOut,
    Over,
}

/// A request, on its way. There is no bound on how long that takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Request {
    NotSent,
    UnderWay,
    /// It may arrive once more where the other end can take that.
    Arrived,
    /// It never arrives.
    Gone,
}

/// Which promises were broken on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Broken {
    l1: bool,
    l5: bool,
    l6: bool,
}

/// What has happened at least once, so that nothing of it is vacuous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Seen {
    refused_late: bool,
    applied_late: bool,
    ran_again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Grant,
    SealBook(usize),
    SealOutside(usize),
    /// Settles what older epochs have left, and writes the intent down unless something speaks against it.
    Intend(usize),
    Mark(usize),
    Send(usize),
    Arrive(usize),
    GoesMissing(usize),
    Answer(usize),
    TimeOut(usize),
    Crash(usize),
    /// Asks the system about the attempt that is unknown.
    Look(usize),
    /// Writes down what it saw.
    Record(usize),
    /// A person says that it was applied, or that it was not.
    Person(usize, bool),
}

fn generation() -> Generation {
    Generation::new("g").unwrap()
}

fn epoch(worker: usize) -> Epoch {
    Epoch::new(worker as u64 + 1).unwrap()
}

fn token(worker: usize) -> Token {
    let grant = GrantId::from_bits(worker as u128 + 1);
    Token { resource: ResourceName::new("r").unwrap(), epoch: epoch(worker), grant }
}

/// The worker whose attempt an entry is.
fn worker_of(entry: &Entry) -> usize {
    usize::try_from(entry.epoch.get()).unwrap() - 1
}

impl Calls {
    fn new(system: System, grants: usize) -> Self {
        Self { system, grants, without: None, properties: Self::promises() }
    }

    fn without(self, rule: Without) -> Self {
        Self { without: Some(rule), ..self }
    }

    fn also(mut self, name: &'static str, reached: fn(&Self, &State) -> bool) -> Self {
        self.properties.push(Property::sometimes(name, reached));
        self
    }

    fn promises() -> Vec<Property<Self>> {
        vec![
            Property::always(cases::L1, |_, state: &State| !state.broken.l1),
            Property::always(cases::L2, |_, state: &State| {
                let mut none = state.those(&[Attempt::Failed, Attempt::NotApplied]);
                none.all(|worker| !state.effects.contains(&worker))
            }),
            Property::always(cases::L3, |_, state: &State| {
                state.those(&[Attempt::Done, Attempt::Applied]).all(|worker| state.effects == [worker])
            }),
            Property::always(cases::L4, |_, state: &State| state.effects.len() <= 1),
            Property::always(cases::L5, |_, state: &State| !state.broken.l5),
            Property::always(cases::L6, |_, state: &State| !state.broken.l6),
            Property::sometimes("a call is done", |_, state: &State| state.is(Attempt::Done)),
            Property::sometimes("a call is unknown", |_, state: &State| state.is(Attempt::Unknown)),
            Property::sometimes("a person says that it was not applied", |_, state: &State| {
                state.is(Attempt::NotApplied)
            }),
            Property::sometimes("a call runs again", |_, state: &State| state.seen.ran_again),
        ]
    }
}

impl State {
    fn is(&self, what: Attempt) -> bool {
        self.entries.iter().any(|entry| entry.state == what)
    }

    /// Whose attempts stand like this.
    fn those(&self, states: &'static [Attempt]) -> impl Iterator<Item = usize> {
        self.entries.iter().filter(|entry| states.contains(&entry.state)).map(worker_of)
    }

    /// Whether every attempt is over.
    fn is_settled(&self) -> bool {
        self.entries.iter().all(|entry| entry.state.is_final())
    }

    fn is_announced(&self, model: &Calls, worker: usize) -> bool {
        let worker = &self.workers[worker];
        let needs_outside = model.system == System::Fenced && model.without != Some(Without::SealOutside);
        worker.sealed_book && (worker.sealed_outside || !needs_outside)
    }
}

impl Model for Calls {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            book: None,
            outside: None,
            entries: Vec::new(),
            workers: Vec::new(),
            effects: Vec::new(),
            broken: Broken::default(),
            seen: Seen::default(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.workers.len() < self.grants {
            actions.push(Action::Grant);
        }
        for worker in 0..state.workers.len() {
            actions.extend([
                Action::SealBook(worker),
                Action::SealOutside(worker),
                Action::Intend(worker),
                Action::Mark(worker),
                Action::Send(worker),
                Action::Arrive(worker),
                Action::GoesMissing(worker),
                Action::Answer(worker),
                Action::TimeOut(worker),
                Action::Crash(worker),
                Action::Look(worker),
                Action::Record(worker),
            ]);
        }
        for entry in 0..state.entries.len() {
            actions.extend([Action::Person(entry, true), Action::Person(entry, false)]);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        next.take(self, action)?;
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.properties.clone()
    }
}
