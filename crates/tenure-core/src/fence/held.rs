use crate::record::{AuthorityRecord, EndReason, LeaseRecord, Phase, SessionRecord, Standing};
use crate::verdict::{Ending, Over};
use crate::{AuthorityClock, Epoch, GrantId, Instant, Order, OwnerName, Token};

/// What the authority says of a resource, read by a sink in the same database, in the transaction of the effect, after the
/// fence's locks and without locking it: a lock would keep the holder's own renewals waiting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeldRow {
    /// The epoch of the newest grant.
    pub epoch: Epoch,
    /// The newest grant.
    pub grant: GrantId,
    /// Whose it is or was.
    pub owner: OwnerName,
    /// When it was given.
    pub since: Instant<AuthorityClock>,
    /// Whether it stands.
    pub hold: Hold,
}

/// Whether a grant stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hold {
    /// It stands before this instant. At it, it does not.
    Until(Instant<AuthorityClock>),
    /// It is over.
    Over {
        /// Why.
        why: Ending,
        /// Since when, where the authority's record of it says so.
        at: Option<Instant<AuthorityClock>>,
    },
}

impl HeldRow {
    /// What an authority with these records says. Stores say the same in their own words, each in a view.
    #[must_use]
    pub fn of(lease: &LeaseRecord, session: Option<&SessionRecord>, authority: &AuthorityRecord) -> Self {
        let over = |why| Hold::Over { why, at: None };
        let hold = match (&lease.phase, session) {
            (Phase::Free, _) => over(Ending::Free),
            (Phase::Completed { .. }, _) => over(Ending::Completed),
            (Phase::Retiring { .. }, _) => over(Ending::Retiring),
            (Phase::Sealing | Phase::Held, None) => over(Ending::Swept),
            (Phase::Sealing | Phase::Held, Some(session)) => {
                // Without the clock: whether the deadline lies ahead is judged when it is read.
                match SessionRecord::standing(Some(session), authority, Instant::from_nanos(0)) {
                    Standing::Ended(why) => Hold::Over { why: Ending::Session(why), at: session.ended_at() },
                    Standing::Missing => over(Ending::Swept),
                    Standing::Valid | Standing::Overdue => Hold::Until(session.deadline),
                }
            }
        };
        Self { epoch: lease.epoch, grant: lease.grant, owner: lease.owner.name.clone(), since: lease.since, hold }
    }
}

/// Judges whether the grant of a token that [`admit`](super::admit) has admitted stands at the authority.
///
/// `row` is what the authority says of the token's resource, `now` its own clock, read after the fence's locks. So no
/// check that begins at or after the deadline passes; what has passed before may still commit, and the seal of a successor
/// waits for it.
///
/// # Errors
/// [`Over`]: the holder has lost, for good. A grant that is over does not come back.
pub fn still_held(row: Option<&HeldRow>, token: &Token, now: Instant<AuthorityClock>) -> Result<(), Over> {
    let over = |why, at: Option<Instant<AuthorityClock>>| {
        Err(Over {
            presented: token.epoch,
            current: row.map(|row| row.epoch),
            why,
            holder: row.map(|row| row.owner.clone()),
            ago: at.map(|at| now.since(&at)),
        })
    };
    let Some(row) = row else { return over(Ending::Unknown, None) };
    match (token.order(row.epoch, row.grant), row.hold) {
        (Order::Older | Order::Conflict, _) => over(Ending::Superseded, Some(row.since)),
        // It was granted by an authority that has since forgotten it.
        (Order::Newer, _) => over(Ending::Session(EndReason::Restored), None),
        (Order::Same, Hold::Over { why, at }) => over(why, at),
        (Order::Same, Hold::Until(deadline)) if now.reached(&deadline) => {
            over(Ending::Session(EndReason::Expired), Some(deadline))
        }
        (Order::Same, Hold::Until(_)) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
