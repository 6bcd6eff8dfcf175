use crate::decide::{Granted, SinkRefusal};
use crate::fence::Sealing;
use crate::{Generation, GrantId, Loss, Outcome, ResourceName, SinkId, Token};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// One lease as its holder sees it, from the first request to the end.
///
/// [`next_steps`](Self::next_steps) says what to send; every step may be sent again until its answer was handled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeldLease {
    resource: ResourceName,
    grant: GrantId,
    adapters: BTreeSet<SinkId>,
    phase: LeasePhase,
    token: Option<Token>,
    sinks: BTreeMap<SinkId, SinkStep>,
    unknown_sinks: BTreeSet<SinkId>,
    excusable: BTreeSet<SinkId>,
    to_report: Option<SinkRefusal>,
    may_stand: bool,
}

/// Where a lease stands for its holder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeasePhase {
    /// Asked for.
    Acquiring,
    /// Granted; the sinks are being sealed. Nothing may be written yet.
    Sealing,
    /// Announced: it may write.
    Held,
    /// It finishes what it has begun, and begins nothing new.
    Draining,
    /// The resource is being completed.
    Completing(Outcome),
    /// Given up, and the authority knows.
    Released,
    /// Done.
    Completed,
    /// Lost, for good.
    Lost(Loss),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum SinkStep {
    Describe,
    Bind(Generation),
    Seal(Generation),
    Mark(Generation),
    Done,
}

/// What the driver must do for a lease. Steps that are handed out together may run at the same time, and none waits for
/// another sink; whoever drives it may hold a [`Bind`](Self::Bind) or a [`Mark`](Self::Mark) back for a moment, so that one
/// takes the sinks that come soon along.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseStep {
    /// Ask the authority for the resource.
    Acquire {
        /// What.
        resource: ResourceName,
        /// Under which id; the same at every try.
        grant: GrantId,
        /// The sinks that this holder seals.
        sinks: BTreeSet<SinkId>,
    },
    /// Ask the sink for its generation and its enrolment.
    Describe(SinkId),
    /// Enrol at the authority what a sink knew and it did not.
    Enrol(BTreeSet<SinkId>),
    /// Have the authority confirm the generations.
    Bind(BTreeMap<SinkId, Generation>),
    /// Register the token at the sink, in the confirmed generation, with the whole enrolment.
    Seal {
        /// Where.
        sink: SinkId,
        /// The confirmed generation.
        generation: Generation,
        /// Every sink of the resource.
        enrolled: BTreeSet<SinkId>,
    },
    /// Report the seals to the authority.
    Mark(BTreeMap<SinkId, Generation>),
    /// Have the takeover announced.
    Announce {
        /// The sinks without which it is announced, by the holder's policy; the record and the history name them.
        excused: BTreeSet<SinkId>,
    },
    /// Report a sink's refusal, so that the next epoch is above it.
    Report(SinkRefusal),
    /// Give the grant up.
    Release(Token),
    /// Complete the resource.
    Complete(Outcome),
}

/// What came of a seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SealAnswer {
    /// Registered; this is the sink's whole enrolment.
    Sealed {
        /// The union of all it was ever given.
        enrolled: BTreeSet<SinkId>,
    },
    /// The sink is of another generation now.
    WrongGeneration,
    /// Refused by something newer, or by another grant, or by the floor.
    Refused {
        /// What it showed.
        shown: SinkRefusal,
        /// Whether it is another grant of the same epoch.
        conflict: bool,
    },
}

impl From<Sealing> for SealAnswer {
    fn from(sealing: Sealing) -> Self {
        let refused = |epoch, grant, conflict| Self::Refused { shown: SinkRefusal { epoch, grant }, conflict };
        match sealing {
            Sealing::Seal(row) => Self::Sealed { enrolled: row.enrolled },
            Sealing::WrongGeneration { .. } => Self::WrongGeneration,
            Sealing::Stale { epoch, grant } => refused(epoch, Some(grant), false),
            Sealing::Conflict { epoch, grant } => refused(epoch, Some(grant), true),
            Sealing::BelowFloor { floor } => refused(floor, None, false),
        }
    }
}

impl HeldLease {
    /// A lease to be asked for, under an id that was drawn for it.
    #[must_use]
    pub const fn new(resource: ResourceName, grant: GrantId, adapters: BTreeSet<SinkId>) -> Self {
        Self {
            resource,
            grant,
            adapters,
            phase: LeasePhase::Acquiring,
            token: None,
            sinks: BTreeMap::new(),
            unknown_sinks: BTreeSet::new(),
            excusable: BTreeSet::new(),
            to_report: None,
            may_stand: true,
        }
    }

    /// A lease that is held and announced, taken up again: to seal the sinks that are `unsealed`, to release or to complete.
    #[must_use]
    pub fn held(
        token: Token,
        sinks: &BTreeSet<SinkId>,
        unsealed: &BTreeSet<SinkId>,
        adapters: BTreeSet<SinkId>,
    ) -> Self {
        Self {
            phase: LeasePhase::Held,
            sinks: steps_of(sinks, unsealed),
            token: Some(token.clone()),
            ..Self::new(token.resource, token.grant, adapters)
        }
    }

    /// What to send now; empty while there is nothing to do.
    #[must_use]
    pub fn next_steps(&self) -> Vec<LeaseStep> {
        match (&self.phase, &self.token) {
            (LeasePhase::Acquiring, _) => alloc::vec![LeaseStep::Acquire {
                resource: self.resource.clone(),
                grant: self.grant,
                sinks: self.adapters.clone(),
            }],
            (LeasePhase::Sealing | LeasePhase::Held, Some(_)) => self.sealing_steps(),
            (LeasePhase::Lost(_), Some(token)) if self.may_stand => match self.to_report {
                // A report frees the grant, and the next epoch is above what the sink showed.
                Some(shown) => alloc::vec![LeaseStep::Report(shown)],
                None => alloc::vec![LeaseStep::Release(token.clone())],
            },
            (LeasePhase::Draining, Some(token)) => alloc::vec![LeaseStep::Release(token.clone())],
            (LeasePhase::Completing(outcome), Some(_)) => alloc::vec![LeaseStep::Complete(outcome.clone())],
            _ => Vec::new(),
        }
    }

    fn sealing_steps(&self) -> Vec<LeaseStep> {
        if !self.unknown_sinks.is_empty() {
            return alloc::vec![LeaseStep::Enrol(self.unknown_sinks.clone())];
        }
        let mut steps = Vec::new();
        let (mut to_bind, mut to_mark) = (BTreeMap::new(), BTreeMap::new());
        for (sink, step) in &self.sinks {
            match step {
                SinkStep::Describe => steps.push(LeaseStep::Describe(sink.clone())),
                SinkStep::Bind(generation) => {
                    to_bind.insert(sink.clone(), generation.clone());
                }
                SinkStep::Seal(generation) => steps.push(LeaseStep::Seal {
                    sink: sink.clone(),
                    generation: generation.clone(),
                    enrolled: self.sinks.keys().cloned().collect(),
                }),
                SinkStep::Mark(generation) => {
                    to_mark.insert(sink.clone(), generation.clone());
                }
                SinkStep::Done => {}
            }
        }
        // What is sealed is marked first: an announcement would excuse it for nothing.
        let announces = to_mark.is_empty() && self.phase == LeasePhase::Sealing;
        if !to_bind.is_empty() {
            steps.push(LeaseStep::Bind(to_bind));
        }
        if !to_mark.is_empty() {
            steps.push(LeaseStep::Mark(to_mark));
        }
        let excused = self.unsealed_sinks();
        if announces && excused.is_subset(&self.excusable) {
            steps.push(LeaseStep::Announce { excused });
        }
        steps
    }

    /// From now on the takeover may be announced without these sinks, if they are all that is missing. Until one of them is
    /// sealed, this holder is refused there, and a former one may still be accepted; its sealing goes on.
    pub fn excuse(&mut self, sinks: BTreeSet<SinkId>) {
        self.excusable = sinks;
    }

    /// Whether the takeover may be announced without it, as things stand.
    #[must_use]
    pub fn may_excuse(&self, sink: &SinkId) -> bool {
        self.excusable.contains(sink)
    }

    /// Takes the grant. One with another id than was asked for belongs to an earlier request of this process, which may
    /// be giving it up: it is not taken.
    pub fn handle_granted(&mut self, granted: Granted) {
        if self.phase != LeasePhase::Acquiring || granted.token.grant != self.grant {
            return;
        }
        // A lost answer that comes again may find the takeover announced. The sinks that are marked hold the seals, and nothing
        // is sent to them twice; the others were excused, or are to be sealed anew. Before the announcement all are described:
        // what one of them remembers must be enrolled.
        self.sinks = steps_of(&granted.sinks, if granted.announced { &granted.unsealed } else { &granted.sinks });
        self.phase = if granted.announced { LeasePhase::Held } else { LeasePhase::Sealing };
        self.token = Some(granted.token);
    }

    /// Takes a sink's description.
    pub fn handle_described(&mut self, sink: &SinkId, generation: Generation, enrolled: BTreeSet<SinkId>) {
        if let Some(step @ SinkStep::Describe) = self.sinks.get_mut(sink) {
            *step = SinkStep::Bind(generation);
            self.meet(enrolled);
        }
    }

    /// The sinks are enrolled at the authority. Before the announcement, those that were sealed without knowing of them are
    /// sealed once more: whichever of them is asked after a restore of the authority, it names them all.
    pub fn handle_enrolled(&mut self, enrolled: &BTreeSet<SinkId>) {
        for sink in enrolled {
            if !self.unknown_sinks.remove(sink) {
                continue;
            }
            if self.phase == LeasePhase::Sealing {
                let sealed = |step: &&mut SinkStep| !matches!(step, SinkStep::Describe | SinkStep::Bind(_));
                self.sinks.values_mut().filter(sealed).for_each(|step| *step = SinkStep::Describe);
            }
            self.sinks.insert(sink.clone(), SinkStep::Describe);
        }
    }

    /// The authority has confirmed these generations.
    pub fn handle_bound(&mut self, generations: &BTreeMap<SinkId, Generation>) {
        for (sink, generation) in generations {
            if let Some(step) = self.sinks.get_mut(sink)
                && *step == SinkStep::Bind(generation.clone())
            {
                *step = SinkStep::Seal(generation.clone());
            }
        }
    }

    /// Takes the answer to a seal.
    pub fn handle_seal(&mut self, sink: &SinkId, generation: &Generation, answer: SealAnswer) {
        let Some(step) = self.sinks.get_mut(sink) else { return };
        if *step != SinkStep::Seal(generation.clone()) {
            return;
        }
        match answer {
            SealAnswer::Sealed { enrolled } => {
                *step = SinkStep::Mark(generation.clone());
                self.meet(enrolled);
            }
            SealAnswer::WrongGeneration => *step = SinkStep::Describe,
            SealAnswer::Refused { shown, conflict } => {
                self.to_report = Some(shown);
                self.lose(if conflict { Loss::Conflict } else { Loss::Stale });
            }
        }
    }

    /// The authority has marked these seals.
    pub fn handle_marked(&mut self, generations: &BTreeMap<SinkId, Generation>) {
        for (sink, generation) in generations {
            if let Some(step) = self.sinks.get_mut(sink)
                && *step == SinkStep::Mark(generation.clone())
            {
                *step = SinkStep::Done;
            }
        }
    }

    /// The takeover is announced.
    pub fn handle_announced(&mut self) {
        if self.phase == LeasePhase::Sealing {
            self.phase = LeasePhase::Held;
        }
    }

    /// A sink answered `Unsealed` to a write: no loss. It is described, confirmed and sealed again, which asks the
    /// authority; a refusal there is the loss.
    pub fn handle_unsealed(&mut self, sink: &SinkId) {
        if let Some(step) = self.sinks.get_mut(sink) {
            *step = SinkStep::Describe;
        }
    }

    /// A sink refused a write by something newer.
    pub fn handle_refused(&mut self, shown: SinkRefusal, conflict: bool) {
        self.to_report = Some(shown);
        self.lose(if conflict { Loss::Conflict } else { Loss::Stale });
    }

    /// Adds a sink to a lease that is held; nothing may be written there before its seal.
    pub fn enrol(&mut self, sink: SinkId) {
        self.adapters.insert(sink.clone());
        if self.token.is_some() && !self.sinks.contains_key(&sink) {
            self.unknown_sinks.insert(sink);
        }
    }

    /// Starts to give the lease up.
    pub fn release(&mut self) {
        match self.phase {
            LeasePhase::Sealing | LeasePhase::Held => self.phase = LeasePhase::Draining,
            LeasePhase::Acquiring => self.lose(Loss::Ended),
            _ => {}
        }
    }

    /// Starts to complete the resource.
    pub fn complete(&mut self, outcome: Outcome) {
        if self.phase == LeasePhase::Held {
            self.phase = LeasePhase::Completing(outcome);
        }
    }

    /// The authority has taken the completion.
    pub fn handle_completed(&mut self) {
        if matches!(self.phase, LeasePhase::Completing(_)) {
            self.phase = LeasePhase::Completed;
            self.may_stand = false;
        }
    }

    /// The grant is gone at the authority: a release or a report was taken, or refused as not current.
    pub fn handle_given_up(&mut self) {
        self.may_stand = false;
        if self.phase == LeasePhase::Draining {
            self.phase = LeasePhase::Released;
        }
    }

    /// A grant came for an acquisition that nobody waits for any more: it must be given up.
    pub fn handle_late_grant(&mut self, token: Token) {
        if matches!(self.phase, LeasePhase::Lost(_)) && token.grant == self.grant {
            self.token = Some(token);
            self.may_stand = true;
        }
    }

    /// Loses the lease for good. The first reason stays.
    pub fn lose(&mut self, loss: Loss) {
        match self.phase {
            LeasePhase::Lost(_) | LeasePhase::Released | LeasePhase::Completed => {}
            _ => self.phase = LeasePhase::Lost(loss),
        }
    }

    /// Sinks that this holder has learnt of and cannot seal, by name: the takeover must be refused.
    #[must_use]
    pub fn without_adapter(&self) -> Option<&SinkId> {
        self.unknown_sinks.iter().chain(self.sinks.keys()).find(|sink| !self.adapters.contains(*sink))
    }

    fn meet(&mut self, enrolled: BTreeSet<SinkId>) {
        self.unknown_sinks.extend(enrolled.into_iter().filter(|sink| !self.sinks.contains_key(sink)));
    }

    /// The right to write, once it was granted.
    #[must_use]
    pub const fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// Where it stands.
    #[must_use]
    pub const fn phase(&self) -> &LeasePhase {
        &self.phase
    }

    /// The sinks at which the grant is registered.
    #[must_use]
    pub fn sealed_sinks(&self) -> BTreeSet<SinkId> {
        self.sinks.iter().filter(|(_, step)| **step == SinkStep::Done).map(|(sink, _)| sink.clone()).collect()
    }

    /// The sinks at which it is not, or not for certain: those that the takeover was announced without, and those that are to
    /// be sealed again.
    #[must_use]
    pub fn unsealed_sinks(&self) -> BTreeSet<SinkId> {
        self.sinks.iter().filter(|(_, step)| **step != SinkStep::Done).map(|(sink, _)| sink.clone()).collect()
    }

    /// Whether it may write, where it is sealed.
    #[must_use]
    pub const fn may_write(&self) -> bool {
        matches!(self.phase, LeasePhase::Held)
    }

    /// Whether it may write at this sink, one that is sealed: at one that the takeover was announced without it is refused.
    #[must_use]
    pub fn may_write_to(&self, sink: &SinkId) -> bool {
        self.may_write() && self.sinks.get(sink) == Some(&SinkStep::Done)
    }

    /// The id of the request and of the grant.
    #[must_use]
    pub const fn grant(&self) -> GrantId {
        self.grant
    }
}

fn steps_of(sinks: &BTreeSet<SinkId>, unsealed: &BTreeSet<SinkId>) -> BTreeMap<SinkId, SinkStep> {
    let step = |sink: &SinkId| if unsealed.contains(sink) { SinkStep::Describe } else { SinkStep::Done };
    sinks.iter().map(|sink| (sink.clone(), step(sink))).collect()
}

#[cfg(test)]
mod tests;
