//! A receiver: one fence row, judged by the functions of this crate.

use super::{Takeover, Without};
use std::collections::BTreeSet;
use tenure_core::fence::{Admission, FenceRow, Forgetting, Rule, Sealing, admit, forget, seal};
use tenure_core::{Epoch, Generation, SinkId, Token, Verdict};

/// What a receiver does with a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fencing {
    /// Applies it.
    None,
    HighWater,
    Sealed,
    /// Reads the authority's records in the same step.
    Held,
}

impl Fencing {
    pub(crate) const fn is_sealed(self) -> bool {
        matches!(self, Self::Sealed | Self::Held)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sink {
    pub(crate) row: Option<FenceRow>,
    pub(crate) floor: Option<Epoch>,
    /// How often it has failed over.
    pub(crate) failovers: u8,
    /// What the replica has: it lags behind at will.
    replica: (Option<FenceRow>, Option<Epoch>),
    /// Watches: the epoch of the newest accepted write, and how many grants there were when the resource was retired
    /// that this sink has forgotten.
    pub(crate) last: Option<Epoch>,
    pub(crate) forgot: usize,
}

impl Sink {
    pub(crate) const fn new() -> Self {
        Self { row: None, floor: None, failovers: 0, replica: (None, None), last: None, forgot: 0 }
    }

    pub(crate) fn generation(&self, model: &Takeover) -> Generation {
        let number = if model.without == Some(Without::Generations) { 0 } else { self.failovers };
        Generation::new(format!("g{number}")).unwrap()
    }

    /// The sinks that it was told of for the resource.
    pub(crate) fn enrolled(&self, model: &Takeover) -> BTreeSet<SinkId> {
        match &self.row {
            Some(row) if model.without != Some(Without::Union) => row.enrolled.clone(),
            _ => BTreeSet::new(),
        }
    }

    pub(crate) fn judge(&self, model: &Takeover, token: &Token) -> Admission {
        let rule = match model.fencing {
            Fencing::None => return Admission::Admit,
            Fencing::HighWater => Rule::HighWater,
            Fencing::Sealed => Rule::Sealed,
            Fencing::Held => Rule::Held,
        };
        admit(rule, self.row.as_ref(), self.floor, &self.generation(model), token)
    }

    pub(crate) fn refuses_as_stale(&self, model: &Takeover, token: &Token) -> bool {
        matches!(self.judge(model, token), Admission::Refuse(Verdict::Stale { .. }))
    }

    pub(crate) fn seal(
        &mut self,
        model: &Takeover,
        token: &Token,
        bound: &Generation,
        enrolled: &BTreeSet<SinkId>,
    ) -> Sealing {
        let mut answer = seal(self.row.as_ref(), self.floor, &self.generation(model), token, bound, enrolled);
        if let Sealing::Seal(row) = &mut answer {
            if model.without == Some(Without::Union) {
                row.enrolled.clone_from(enrolled);
            }
            // Nothing here reads the number of a seal, and a repeated seal must not make a new state.
            row.seal_no = 0;
            self.row = Some(row.clone());
        }
        answer
    }

    pub(crate) fn forget(&mut self, model: &Takeover, cut: Epoch, granted: usize) -> Forgetting {
        let answer = match forget(self.row.as_ref(), self.floor, cut) {
            Forgetting::Above { .. } if model.without == Some(Without::CutCheck) => {
                Forgetting::Forget { floor: self.floor.map_or(cut, |floor| floor.max(cut)) }
            }
            answer => answer,
        };
        if let Forgetting::Forget { floor } = answer {
            self.row = None;
            self.forgot = self.forgot.max(granted);
            if model.without != Some(Without::Floor) {
                self.floor = Some(floor);
            }
        }
        answer
    }

    pub(crate) fn replicate(&mut self) {
        self.replica = (self.row.clone(), self.floor);
    }

    /// The replica takes over, with what it has.
    pub(crate) fn fail_over(&mut self) {
        (self.row, self.floor) = self.replica.clone();
        self.failovers += 1;
    }
}
