use std::sync::atomic::{AtomicU64, Ordering};
use tenure_core::Loss;

/// How many leases were lost, by reason. Failures of the work are not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossCounts(Vec<(Loss, u64)>);

impl LossCounts {
    /// The count of one reason.
    #[must_use]
    pub fn of(&self, loss: Loss) -> u64 {
        self.0.iter().find(|(reason, _)| *reason == loss).map_or(0, |(_, count)| *count)
    }

    /// Every reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (Loss, u64)> + '_ {
        self.0.iter().copied()
    }

    /// How many were lost in all. A lease that its holder gave up itself was not lost.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.iter().filter(|(loss, _)| *loss != Loss::Ended).map(|(_, count)| count).sum()
    }
}

#[derive(Debug, Default)]
pub(crate) struct LossCounters([AtomicU64; Loss::ALL.len() + 1]);

impl LossCounters {
    pub(crate) fn count(&self, loss: Loss) {
        if let Some(counter) = self.0.get(usize::from(loss as u8)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn read(&self) -> LossCounts {
        let count = |loss: Loss| self.0.get(usize::from(loss as u8)).map_or(0, |c| c.load(Ordering::Relaxed));
        LossCounts(Loss::ALL.into_iter().map(|loss| (loss, count(loss))).collect())
    }
}
