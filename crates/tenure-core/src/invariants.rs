//! What must hold, as named predicates. The model, the property tests and `debug_assert`s share them.

use crate::fence::{Admission, FenceRow, Rule, admit};
use crate::record::{LeaseRecord, Phase, SessionRecord, SessionState, SinkMark};
use crate::{Epoch, Generation, GrantId, SinkId, Token};
use alloc::collections::BTreeSet;

/// I1: accepted epochs never fall at a sink.
#[must_use]
pub fn i1_epochs_never_fall(last_accepted: Option<Epoch>, accepted: Epoch) -> bool {
    last_accepted.is_none_or(|last| last <= accepted)
}

/// I2: no write of a grant is accepted at a sink once a later grant was announced that has it registered there: the sinks
/// that it was announced without do not count until they are sealed. Both are places in the order of granting.
#[must_use]
pub fn i2_nothing_older_after_announce(accepted: usize, newest_announced: Option<usize>) -> bool {
    newest_announced.is_none_or(|announced| announced <= accepted)
}

/// I4: at most one grant may write at all sinks at once. Each sink is its row, its floor and its generation.
#[must_use]
pub fn i4_one_writer_everywhere(
    rule: Rule,
    sinks: &[(Option<FenceRow>, Option<Epoch>, Generation)],
    tokens: &[Token],
) -> bool {
    let writes = |token: &&Token| {
        !sinks.is_empty()
            && sinks.iter().all(|(row, floor, generation)| {
                matches!(admit(rule, row.as_ref(), *floor, generation, token), Admission::Admit)
            })
    };
    tokens.iter().filter(writes).collect::<BTreeSet<_>>().len() <= 1
}

/// I8: two announced grants never share epoch and id.
#[must_use]
pub fn i8_announced_grants_are_unique(announced: &[(Epoch, GrantId)]) -> bool {
    announced.iter().collect::<BTreeSet<_>>().len() == announced.len()
}

/// A session ends one way, and its number and deadline never go back.
#[must_use]
pub fn sessions_move_one_way(before: &SessionRecord, after: &SessionRecord) -> bool {
    let ended_stays = matches!(before.state, SessionState::Live) || before.state == after.state;
    ended_stays && before.id == after.id && before.renew_seq <= after.renew_seq && before.deadline <= after.deadline
}

/// A resource's epoch never falls, a new grant raises it, and nothing but an operator leaves `Completed`.
#[must_use]
pub fn leases_move_one_way(before: &LeaseRecord, after: &LeaseRecord) -> bool {
    let epoch_grows = before.epoch <= after.epoch && (before.grant == after.grant || before.epoch < after.epoch);
    let never_back = !(after.is_granted() && before.grant == after.grant && !before.is_granted());
    let completed_stays = match (&before.phase, &after.phase) {
        (Phase::Completed { outcome }, Phase::Completed { outcome: stored }) => outcome == stored,
        (Phase::Completed { .. }, phase) => matches!(phase, Phase::Free | Phase::Retiring { .. }),
        _ => true,
    };
    epoch_grows && never_back && completed_stays
}

/// At the announcement every enrolled sink was sealed, or was named in the request as excused and is recorded so.
#[must_use]
pub fn announced_means_sealed(lease: &LeaseRecord, named: &BTreeSet<SinkId>) -> bool {
    let is_right = |(sink, mark): (&SinkId, &SinkMark)| {
        mark.excused != mark.sealed && (mark.sealed || named.contains(sink)) && (!mark.sealed || mark.bound.is_some())
    };
    lease.phase != Phase::Held || lease.sinks.iter().all(is_right)
}

/// I9: a sink that has forgotten a resource accepts no write of a grant from before the retirement. Both are places in
/// the order of granting: of the accepted write's grant, and of the first grant after the retirement.
#[must_use]
pub const fn i9_forgotten_stays_closed(accepted: usize, granted_when_retired: usize) -> bool {
    accepted >= granted_when_retired
}
