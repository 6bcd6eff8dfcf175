use super::super::lookout::jittered;
use std::time::Duration;
use tenure_core::{HolderClock, Instant};
use tenure_sink::SinkError;

/// One receiver on its way to be sealed: the try that is under way, or when the next one is due.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Since when it is being asked.
    since: Option<Instant<HolderClock>>,
    /// When it is asked again after a try that failed.
    again: Option<Instant<HolderClock>>,
    /// How many tries have failed since it was last sealed.
    pub(super) failures: u32,
    /// What it said last, if it was no good.
    pub(super) error: Option<SinkError>,
    /// Whether it was of another generation at its seal than at its description, since it was last sealed.
    moved: bool,
}

/// After the first failure; doubled after each further one, and spread by a half to either side.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How long the first answer is waited for; doubled after each failure, so that a receiver that waits for longer than this by
/// itself gets its turn. More than receivers wait unless told otherwise, so that they can say what held them up.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

impl Lane {
    pub(super) fn is_ready(&self, now: Instant<HolderClock>) -> bool {
        self.since.is_none() && self.again.is_none_or(|again| now.reached(&again))
    }

    pub(super) const fn is_busy(&self) -> bool {
        self.since.is_some()
    }

    /// Whether it is being asked for the first time.
    pub(super) const fn is_at_its_first_try(&self) -> bool {
        self.is_busy() && self.failures == 0
    }

    /// When the next try is due, if one has failed.
    pub(super) const fn again(&self) -> Option<Instant<HolderClock>> {
        self.again
    }

    /// From when on it may be excused: at once when a try has failed, otherwise when one has lasted for so long.
    pub(super) fn excusable_from(&self, lasted: Duration) -> Option<Instant<HolderClock>> {
        match self.since {
            _ if self.failures > 0 => Some(Instant::from_nanos(0)),
            Some(since) => Some(since.after(lasted)),
            None => None,
        }
    }

    pub(super) const fn begins(&mut self, now: Instant<HolderClock>) {
        (self.since, self.again) = (Some(now), None);
    }

    /// How long the answer is waited for.
    pub(super) fn patience(&self) -> Duration {
        PATIENCE * 2_u32.pow(self.failures.min(4))
    }

    pub(super) const fn answered(&mut self) {
        self.since = None;
    }

    pub(super) fn sealed(&mut self) {
        *self = Self::default();
    }

    /// It is of another generation than it was. Returns whether it has been so before: one that changes at each look is not
    /// asked without a pause.
    pub(super) const fn moves(&mut self) -> bool {
        std::mem::replace(&mut self.moved, true)
    }

    /// The try was in vain: once more after a pause.
    pub(super) fn failed(&mut self, now: Instant<HolderClock>, error: SinkError) {
        let pause = jittered((FIRST_PAUSE * 2_u32.pow(self.failures.min(8))).min(LONGEST_PAUSE));
        self.failures = self.failures.saturating_add(1);
        (self.since, self.again) = (None, Some(now.after(pause)));
        self.error = Some(error);
    }
}

#[cfg(test)]
mod tests;
