use crate::record::{Holdings, Seen};
use crate::{HolderClock, Instant, Loss, SessionId, Timing};

/// What one unanswered renewal means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// It is tried again until the holder's own deadline.
    #[default]
    Patient,
    /// It is a loss at once: for work that must rather stop too often.
    Strict,
}

/// One session as its owner sees it: when to renew, and until when to believe.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeldSession {
    id: SessionId,
    timing: Timing,
    policy: Policy,
    deadline: Instant<HolderClock>,
    due: Instant<HolderClock>,
    n: u64,
    attempt: Option<Renewal>,
    lost: Option<Loss>,
}

/// The renewal under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Renewal {
    /// Before the *first* sending of this number: a repeat that is granted proves no later life, since the authority
    /// may have granted the first one and moves nothing for a repeat.
    first_sent: Instant<HolderClock>,
    /// When this try counts as unanswered.
    give_up: Instant<HolderClock>,
    in_flight: bool,
}

/// What the driver must do for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionStep {
    /// Send this renewal, and report its answer, or its silence after [`Timing::attempt`].
    Renew {
        /// Which session.
        id: SessionId,
        /// The number of the renewal.
        n: u64,
    },
    /// Do nothing before this instant.
    Wait {
        /// The instant.
        until: Instant<HolderClock>,
    },
    /// Nothing ever again.
    Over(Loss),
}

/// What came of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RenewAnswer {
    /// Granted.
    Granted {
        /// The grants that stand on the session.
        holdings: Holdings,
        /// The newest point of the authority's history.
        seen: Seen,
    },
    /// Refused: the session has ended.
    Refused,
    /// No answer in time, or one that says nothing (a connection failed, a store was busy).
    Unanswered,
}

impl HeldSession {
    /// A session that was opened by a request sent first at `sent`.
    #[must_use]
    pub fn opened(id: SessionId, timing: Timing, policy: Policy, sent: Instant<HolderClock>) -> Self {
        Self {
            id,
            timing,
            policy,
            deadline: sent.after(timing.belief()),
            due: sent.after(timing.renew_every()),
            n: 0,
            attempt: None,
            lost: None,
        }
    }

    /// What to do at `now`. A step is handed out once; until it is answered the next one is to wait.
    pub fn next_step(&mut self, now: Instant<HolderClock>) -> SessionStep {
        if let Some(loss) = self.standing(now).err() {
            return SessionStep::Over(loss);
        }
        match &mut self.attempt {
            Some(attempt) if attempt.in_flight && !now.reached(&attempt.give_up) => {
                SessionStep::Wait { until: attempt.give_up.min(self.deadline) }
            }
            Some(attempt) if attempt.in_flight => {
                self.handle_renewed(self.n, now, RenewAnswer::Unanswered);
                self.next_step(now)
            }
            _ if !now.reached(&self.due) => SessionStep::Wait { until: self.due.min(self.deadline) },
            attempt => {
                let first_sent = attempt.map_or(now, |attempt| attempt.first_sent);
                let give_up = now.after(self.timing.attempt());
                *attempt = Some(Renewal { first_sent, give_up, in_flight: true });
                SessionStep::Renew { id: self.id, n: self.n }
            }
        }
    }

    /// Takes the answer to renewal `n`. One that comes after the loss, or for another number, changes nothing.
    ///
    /// Returns the fingerprint to compare when the renewal was granted.
    pub fn handle_renewed(&mut self, n: u64, now: Instant<HolderClock>, answer: RenewAnswer) -> Option<Holdings> {
        if self.standing(now).is_err() || n != self.n {
            return None;
        }
        let attempt = self.attempt?;
        match answer {
            RenewAnswer::Granted { holdings, .. } => {
                self.deadline = self.deadline.max(attempt.first_sent.after(self.timing.belief()));
                self.due = attempt.first_sent.after(self.timing.renew_every());
                self.n += 1;
                self.attempt = None;
                // Granted so late that it proves nothing: the belief it gives has passed already.
                self.standing(now).is_ok().then_some(holdings)
            }
            RenewAnswer::Refused => {
                self.lose(Loss::RenewalRefused);
                None
            }
            RenewAnswer::Unanswered if self.policy == Policy::Strict => {
                self.lose(Loss::RenewalUnanswered);
                None
            }
            RenewAnswer::Unanswered => {
                // The same number again, at once after a silence, after a pause when the answer came too fast.
                self.attempt = Some(Renewal { in_flight: false, ..attempt });
                self.due = self.due.max(now).max(attempt.give_up.min(now.after(self.timing.attempt() / 2)));
                None
            }
        }
    }

    /// Ends the belief for good. The first reason stays.
    pub fn lose(&mut self, loss: Loss) {
        self.lost.get_or_insert(loss);
        self.attempt = None;
    }

    /// Whether the holder may believe at `now`; a deadline that was reached latches.
    ///
    /// # Errors
    /// The [`Loss`]: the caller stops its work for good.
    pub fn standing(&mut self, now: Instant<HolderClock>) -> Result<(), Loss> {
        if self.lost.is_none() && now.reached(&self.deadline) {
            self.lose(Loss::DeadlinePassed);
        }
        self.lost.map_or(Ok(()), Err)
    }

    /// The session.
    #[must_use]
    pub const fn id(&self) -> SessionId {
        self.id
    }

    /// The holder's own deadline.
    #[must_use]
    pub const fn deadline(&self) -> Instant<HolderClock> {
        self.deadline
    }

    /// What an unanswered renewal means.
    #[must_use]
    pub const fn policy(&self) -> Policy {
        self.policy
    }

    /// The spans.
    #[must_use]
    pub const fn timing(&self) -> Timing {
        self.timing
    }
}

#[cfg(test)]
mod tests;
