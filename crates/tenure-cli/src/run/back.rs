//! The way back after a loss: the same resource under a new epoch, if nobody had it in between.

use super::Task;
use std::future::IntoFuture;
use std::time::Duration;
use tenure::authority::{HistoryQuery, Order};
use tenure::blocking::wait_for;
use tenure::core::decide::{Keys, Refusal};
use tenure::core::record::{Event, Transition};
use tenure::{AcquireError, Epoch, Lease};
use tokio_util::sync::CancellationToken;

/// What came of it.
#[derive(Debug)]
pub(super) enum Back {
    /// Held again, and nobody had it in between.
    Same(Lease),
    /// Somebody had it, and perhaps has it still.
    Another(Option<Lease>),
    /// It cannot be had any more.
    Over(String),
}

/// The wish that led to the lost lease.
pub(super) struct Wish {
    task: Task,
    before: Epoch,
}

/// Between two attempts while the authority does not answer.
const AGAIN: Duration = Duration::from_millis(500);

impl Wish {
    pub(super) fn new(task: &Task, lost: &Lease) -> Self {
        Self { task: task.clone(), before: lost.epoch() }
    }

    /// Asks for as long as it takes: the command stands still and costs nothing. `None` when it was cancelled.
    pub(super) fn come_back(&self, cancel: &CancellationToken) -> Option<Back> {
        loop {
            let asked = cancel.run_until_cancelled(self.task.wish_again().into_future());
            let pause = match wait_for(asked)? {
                Ok(lease) if self.nobody_else_before(lease.epoch()) => {
                    return Some(Back::Same(lease));
                }
                Ok(lease) => return Some(Back::Another(Some(lease))),
                // The lost grant itself: its release did not arrive, and it ends by its deadline.
                Err(AcquireError::Refused { refusal: Refusal::Busy { owner, remaining, .. }, .. })
                    if owner.instance == self.task.tenure.owner().instance =>
                {
                    remaining.min(AGAIN)
                }
                Err(AcquireError::Refused { refusal: Refusal::Busy { .. }, .. }) => return Some(Back::Another(None)),
                Err(AcquireError::Refused { refusal: Refusal::Quarantined { remaining }, .. }) => {
                    remaining.min(AGAIN * 4)
                }
                Err(
                    AcquireError::Refused { refusal: Refusal::SessionEnded { .. } | Refusal::OpeningTooOld, .. }
                    | AcquireError::Unanswered { .. }
                    | AcquireError::HeldHere { .. }
                    | AcquireError::LostAtOnce { .. }
                    | AcquireError::Sink { .. },
                ) => AGAIN,
                Err(error) => return Some(Back::Over(error.to_string())),
            };
            super::watchdog::pause(pause);
        }
    }

    /// Whether every grant after the lost one was this process's. An attempt whose answer was lost leaves a grant behind, so
    /// the next epoch alone would not tell. Names do not count here: two hosts may have one.
    fn nobody_else_before(&self, epoch: Epoch) -> bool {
        if self.before.next().is_ok_and(|next| next == epoch) {
            return true;
        }
        let query = HistoryQuery {
            resource: Some(self.task.resource.clone()),
            order: Order::NewestFirst,
            limit: ROWS,
            ..HistoryQuery::default()
        };
        let store = self.task.tenure.authority().store();
        let Ok(rows) = wait_for(store.history(query)) else { return false };
        let grants = || rows.iter().map(|row| &row.transition).filter(|row| row.event == Event::Granted);
        let is_mine = |row: &Transition| {
            let Some(session) = row.session else { return false };
            let keys = Keys { session: Some(session), ..Keys::default() };
            let read = wait_for(store.read(&keys)).ok();
            read.and_then(|read| read.view.caller).is_some_and(|session| session.owner == *self.task.tenure.owner())
        };
        // Without the lost grant in sight, nobody can say.
        grants().any(|row| row.epoch == Some(self.before))
            && grants().filter(|row| row.epoch > Some(self.before)).all(is_mine)
    }
}

/// More than one run's attempts leave behind; an answer beyond it would be none.
const ROWS: usize = 1_000;
