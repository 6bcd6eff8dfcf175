use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;
use tenure::authority::store::{
    Answer, Capabilities, HistoryQuery, Import, Listed, Page, Read, Recorded, SwapOutcome, Version, Wake, Wakes,
};
use tenure::authority::{Store, StoreError};
use tenure::core::decide::{Keys, Swap};
use tenure::core::fence::{Forgetting, Rule, Sealing};
use tenure::core::record::{Event, LeaseRecord};
use tenure::core::{Epoch, Generation, Instant, ResourceName, SessionId, SinkId, Token};
use tenure::sink::{Description, Sink, SinkError};
use tokio::sync::watch;

/// What a worker calls: its store, and the receivers that it seals. One numbering for all of them, so that a test can
/// walk through every point at which a request may be interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Read,
    Swap(Event),
    Grants,
    Describe,
    Seal,
}

/// What becomes of a call that a rule picks.
pub(crate) enum Fault {
    /// It fails, and nothing is done.
    Before,
    /// It is done, and nobody is told: a swap is unknown, anything else fails.
    After,
    /// It fails for good: trying again is of no use.
    Final,
    /// It is held until it is released, and then goes on.
    HangBefore(Gate),
    /// It is done, held until it is released, and then answers.
    HangAfter(Gate),
    /// It is held until it is released, and then fails: done, or not.
    HangThenFail(Gate, bool),
    /// It is never answered; a swap is kept, to be done by [`Faults::land`] when nobody expects it any more.
    Late,
    /// This happens, then it is done.
    First(Box<dyn Fn() + Send>),
    /// It is done, then this happens, then it answers.
    Then(Box<dyn Fn() + Send>),
    /// The thread that called it stands still: once to say so, once more to go on.
    Block(Arc<std::sync::Barrier>),
}

/// A call's side of a [`Hang`].
#[derive(Clone)]
pub(crate) struct Gate {
    arrived: watch::Sender<bool>,
    released: watch::Receiver<bool>,
}

/// The test's side of a call that is held.
pub(crate) struct Hang {
    arrived: watch::Receiver<bool>,
    released: watch::Sender<bool>,
}

impl Hang {
    pub(crate) fn new() -> (Self, Gate) {
        let ((arrive, arrived), (release, released)) = (watch::channel(false), watch::channel(false));
        (Self { arrived, released: release }, Gate { arrived: arrive, released })
    }

    /// Ends when a call has come and is held.
    pub(crate) async fn arrived(&self) {
        self.arrived.clone().wait_for(|arrived| *arrived).await.unwrap();
    }

    pub(crate) fn has_arrived(&self) -> bool {
        *self.arrived.borrow()
    }

    pub(crate) fn release(&self) {
        self.released.send_replace(true);
    }
}

impl Gate {
    async fn hold(&self) {
        self.arrived.send_replace(true);
        let _ = self.released.clone().wait_for(|released| *released).await;
    }
}

struct FaultRule {
    picks: Box<dyn Fn(Call) -> bool + Send>,
    skip: usize,
    times: usize,
    fault: Arc<Mutex<Fault>>,
}

/// A script of faults in front of a store and of receivers.
pub(crate) struct Faults {
    store: Arc<dyn Store>,
    plan: Mutex<Plan>,
    /// When set, nobody is told of anything but by the test.
    by_hand: OnceLock<Wakes>,
    /// What a look at the clock alone answers with is so old.
    late_by: OnceLock<Duration>,
}

#[derive(Default)]
struct Plan {
    calls: Vec<Call>,
    rules: Vec<FaultRule>,
    late: Vec<(Swap, Option<Version>)>,
    /// When set, every call meets a fault by chance.
    chance: Option<XorShift>,
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").finish_non_exhaustive()
    }
}

impl Faults {
    pub(crate) fn new(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { store, plan: Mutex::default(), by_hand: OnceLock::new(), late_by: OnceLock::new() })
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap()
    }

    /// From now on: after `skip` calls that the rule would pick, the next `times` of them meet the fault.
    pub(crate) fn on(&self, picks: impl Fn(Call) -> bool + Send + 'static, skip: usize, times: usize, fault: Fault) {
        let fault = Arc::new(Mutex::new(fault));
        self.plan().rules.push(FaultRule { picks: Box::new(picks), skip, times, fault });
    }

    /// The next call of this kind meets the fault.
    pub(crate) fn next(&self, call: Call, fault: Fault) {
        self.on(move |other| other == call, 0, 1, fault);
    }

    /// The next call of this kind is held before it is done.
    pub(crate) fn hang(&self, call: Call) -> Hang {
        let (hang, gate) = Hang::new();
        self.next(call, Fault::HangBefore(gate));
        hang
    }

    /// No rule is left; what is held stays held.
    pub(crate) fn heal(&self) {
        let mut plan = self.plan();
        plan.rules.clear();
        plan.chance = None;
    }

    /// One call in three meets a fault, by this seed.
    pub(crate) fn by_chance(&self, seed: u64) {
        self.plan().chance = Some(XorShift::new(seed));
    }

    /// From now on only the test tells of changes.
    pub(crate) fn tell_by_hand(&self) -> &Wakes {
        self.by_hand.get_or_init(Wakes::default)
    }

    /// From now on the store's time, asked for by itself, comes so late.
    pub(crate) fn tell_time_late(&self, by: Duration) {
        self.late_by.set(by).unwrap();
    }

    /// Every call so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.plan().calls.clone()
    }

    pub(crate) fn count(&self, call: Call) -> usize {
        self.plan().calls.iter().filter(|other| **other == call).count()
    }

    /// Does what was held back as late. Returns what came of it.
    pub(crate) async fn land(&self) -> Vec<SwapOutcome> {
        let late = std::mem::take(&mut self.plan().late);
        let mut outcomes = Vec::new();
        for (swap, expected) in late {
            outcomes.push(self.store.swap(swap, expected).await.unwrap());
        }
        outcomes
    }

    /// A receiver whose calls are in the same script.
    pub(crate) fn sink(self: &Arc<Self>, sink: impl Sink + 'static) -> Arc<dyn Sink> {
        Arc::new(FaultySink { faults: Arc::clone(self), sink: Box::new(sink) })
    }

    fn begin(&self, call: Call) -> Option<Arc<Mutex<Fault>>> {
        let mut plan = self.plan();
        plan.calls.push(call);
        if let Some(chance) = &mut plan.chance {
            return match chance.below(6) {
                0 => Some(Arc::new(Mutex::new(Fault::Before))),
                1 => Some(Arc::new(Mutex::new(Fault::After))),
                _ => None,
            };
        }
        let at = plan.rules.iter().position(|rule| rule.times > 0 && (rule.picks)(call))?;
        let rule = &mut plan.rules[at];
        if rule.skip > 0 {
            rule.skip -= 1;
            return None;
        }
        rule.times -= 1;
        Some(Arc::clone(&rule.fault))
    }

    /// Runs one call under its fault. `lost` is the answer of a call that was done without anybody being told.
    async fn run<T, E>(
        &self,
        call: Call,
        work: impl Future<Output = Result<T, E>>,
        error: impl Fn(bool) -> E,
        lost: impl FnOnce(T) -> Result<T, E>,
        late: impl FnOnce(),
    ) -> Result<T, E> {
        let Some(fault) = self.begin(call) else { return work.await };
        enum Now {
            Before(bool),
            After,
            Hang(Gate, bool),
            HangThenFail(Gate, bool),
            Late,
            First,
            Then,
            Block(Arc<std::sync::Barrier>),
        }
        let now = match &*fault.lock().unwrap() {
            Fault::Before => Now::Before(true),
            Fault::Final => Now::Before(false),
            Fault::After => Now::After,
            Fault::HangBefore(gate) => Now::Hang(gate.clone(), false),
            Fault::HangAfter(gate) => Now::Hang(gate.clone(), true),
            Fault::HangThenFail(gate, done) => Now::HangThenFail(gate.clone(), *done),
            Fault::Late => Now::Late,
            Fault::First(_) => Now::First,
            Fault::Then(_) => Now::Then,
            Fault::Block(barrier) => Now::Block(Arc::clone(barrier)),
        };
        match now {
            Now::Before(transient) => Err(error(transient)),
            Now::After => work.await.and_then(lost),
            Now::Hang(gate, false) => {
                gate.hold().await;
                work.await
            }
            Now::Hang(gate, true) => {
                let answer = work.await;
                gate.hold().await;
                answer
            }
            Now::HangThenFail(gate, true) => {
                let answer = work.await;
                gate.hold().await;
                answer.and_then(lost)
            }
            Now::HangThenFail(gate, false) => {
                gate.hold().await;
                Err(error(true))
            }
            Now::Late => {
                late();
                std::future::pending().await
            }
            Now::First => {
                if let Fault::First(hook) = &*fault.lock().unwrap() {
                    hook();
                }
                work.await
            }
            Now::Then => {
                let answer = work.await;
                if let Fault::Then(hook) = &*fault.lock().unwrap() {
                    hook();
                }
                answer
            }
            Now::Block(barrier) => {
                barrier.wait();
                barrier.wait();
                work.await
            }
        }
    }
}

fn store_error(transient: bool) -> StoreError {
    if transient { StoreError::Unavailable("a test".into()) } else { StoreError::NotWritable("a test".into()) }
}

impl Store for Faults {
    fn read<'a>(&'a self, keys: &'a Keys) -> Answer<'a, Result<Read, StoreError>> {
        let lost = |_| Err(store_error(true));
        Box::pin(async move {
            let work = async { self.store.read(keys).await };
            let mut read = self.run(Call::Read, work, store_error, lost, || ()).await?;
            if let Some(by) = self.late_by.get().filter(|_| *keys == Keys::default()) {
                read.now = Instant::from_nanos(read.now.as_nanos() - u64::try_from(by.as_nanos()).unwrap());
            }
            Ok(read)
        })
    }

    fn swap(&self, swap: Swap, expected: Option<Version>) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        let (call, late) = (Call::Swap(swap.transition.event), swap.clone());
        let work = async move { self.store.swap(swap, expected).await };
        let lost = |_| Ok(SwapOutcome::Unknown);
        let keep = move || self.plan().late.push((late, expected));
        Box::pin(async move { self.run(call, work, store_error, lost, keep).await })
    }

    fn grants(&self, session: SessionId) -> Answer<'_, Result<Vec<LeaseRecord>, StoreError>> {
        let lost = |_| Err(store_error(true));
        Box::pin(async move {
            let work = async { self.store.grants(session).await };
            self.run(Call::Grants, work, store_error, lost, || ()).await
        })
    }

    fn leases(&self, page: Page<ResourceName>) -> Answer<'_, Result<Vec<Listed>, StoreError>> {
        self.store.leases(page)
    }

    fn history(&self, query: HistoryQuery) -> Answer<'_, Result<Vec<Recorded>, StoreError>> {
        self.store.history(query)
    }

    fn idle_sessions(&self, limit: usize) -> Answer<'_, Result<Vec<SessionId>, StoreError>> {
        self.store.idle_sessions(limit)
    }

    fn import(&self, content: Import) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        self.store.import(content)
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn watch(&self, resource: &ResourceName) -> Option<Wake> {
        match self.by_hand.get() {
            Some(wakes) => Some(wakes.watch(resource)),
            None => self.store.watch(resource),
        }
    }
}

struct FaultySink {
    faults: Arc<Faults>,
    sink: Box<dyn Sink>,
}

impl fmt::Debug for FaultySink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sink.fmt(f)
    }
}

fn sink_error(transient: bool) -> SinkError {
    let place = "a test".to_owned();
    if transient {
        SinkError::Busy { place, waited: Duration::ZERO }
    } else {
        SinkError::Full { place, why: "a test".into() }
    }
}

impl Sink for FaultySink {
    fn id(&self) -> &SinkId {
        self.sink.id()
    }

    fn rule(&self) -> Rule {
        self.sink.rule()
    }

    fn describe<'a>(&'a self, resource: &'a ResourceName) -> tenure::sink::Answer<'a, Result<Description, SinkError>> {
        let lost = |_| Err(sink_error(true));
        Box::pin(
            async move { self.faults.run(Call::Describe, self.sink.describe(resource), sink_error, lost, || ()).await },
        )
    }

    fn seal<'a>(
        &'a self,
        token: &'a Token,
        generation: &'a Generation,
        enrolled: &'a BTreeSet<SinkId>,
    ) -> tenure::sink::Answer<'a, Result<Sealing, SinkError>> {
        let lost = |_| Err(sink_error(true));
        Box::pin(async move {
            let work = async { self.sink.seal(token, generation, enrolled).await };
            self.faults.run(Call::Seal, work, sink_error, lost, || ()).await
        })
    }

    fn forget<'a>(
        &'a self,
        resource: &'a ResourceName,
        cut: Epoch,
    ) -> tenure::sink::Answer<'a, Result<Forgetting, SinkError>> {
        self.sink.forget(resource, cut)
    }

    fn rows<'a>(
        &'a self,
        after: Option<&'a ResourceName>,
        limit: usize,
    ) -> tenure::sink::Answer<'a, Result<tenure::sink::Rows, SinkError>> {
        self.sink.rows(after, limit)
    }

    fn reopen(&self) -> tenure::sink::Answer<'_, Result<Generation, SinkError>> {
        self.sink.reopen()
    }
}

/// Numbers that look random and come again with the same seed.
pub(crate) struct XorShift(u64);

impl XorShift {
    pub(crate) fn new(seed: u64) -> Self {
        // Spread, so that neighbouring seeds begin differently; never zero.
        Self(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) % bound
    }
}
