//! What was explored, and with which result.

use super::super::explore::explore;
use super::super::{breaks, holds};
use super::{Calls, State, System, Without};
use tenure_core::operation::Attempt;

pub(super) const L1: &str = "L1 every effect has an intent with its digest";
pub(super) const L2: &str = "L2 failed and not applied are final";
pub(super) const L3: &str = "L3 done means exactly one effect";
pub(super) const L4: &str = "L4 an operation is effective once";
pub(super) const L5: &str = "L5 the mark comes before the first byte";
pub(super) const L6: &str = "L6 unknown is left by a look-up after a seal, or by a person";

fn calls(system: System, grants: usize) -> Calls {
    Calls::new(system, grants)
}

/// Under every order of steps: a worker that crashes, is overtaken, times out or wakes up late; a request that is late,
/// doubled or lost.
#[test]
fn l1_to_l6_hold_at_a_system_that_checks_tokens() {
    let model = calls(System::Fenced, 3)
        .also("a look-up finds it", |_, state| state.is(Attempt::Applied))
        .also("a request is refused because it is late", |_, state| state.seen.refused_late)
        .also("a call has failed", |_, state| state.is(Attempt::Failed));
    holds("calls to a fenced system", model, 113_858);
}

#[test]
fn l1_to_l6_hold_at_a_system_with_keys() {
    let model = calls(System::Keyed, 3)
        .also("a look-up finds it", |_, state| state.is(Attempt::Applied))
        .also("a request is applied after the takeover", |_, state| state.seen.applied_late);
    holds("calls to a system with keys", model, 12_509);
}

#[test]
fn l1_to_l6_hold_at_a_plain_system() {
    let model = calls(System::Plain, 3)
        .also("a person finds it", |_, state| state.is(Attempt::Applied))
        .also("a request is applied after the takeover", |_, state| state.seen.applied_late);
    holds("calls to a plain system", model, 8_167);
}

/// From every state with a worker to spare, all attempts can come to their end, without a person.
#[test]
fn v5_an_unknown_at_a_system_that_checks_tokens_is_settled_within_one_takeover() {
    let model = calls(System::Fenced, 2);
    let spare = |state: &State| state.workers.len() < model.grants;
    let explored = explore(&model, spare, State::is_settled);
    println!("settled within one takeover: {} states", explored.states);
    assert_eq!(explored.stuck, None);
}

fn breaks_without(rule: Without, system: System, property: &'static str) {
    breaks(&format!("{system:?} without {rule:?}"), calls(system, 2).without(rule), property);
}

#[test]
fn a_call_that_nobody_wrote_down_has_an_effect_without_an_intent() {
    breaks_without(Without::Intent, System::Plain, L1);
}

/// The worker sends, and dies before its mark: the next one finds a mere intent, and takes it for not applied.
#[test]
fn a_mark_after_the_first_byte_makes_an_effect_of_what_was_not_applied() {
    breaks_without(Without::MarkBeforeSend, System::Plain, L5);
    breaks_without(Without::MarkBeforeSend, System::Plain, L2);
}

/// The look-up finds nothing, and then the old worker's request arrives and is accepted.
#[test]
fn an_absence_before_the_seal_proves_nothing() {
    breaks_without(Without::SealOutside, System::Fenced, L6);
    breaks_without(Without::SealOutside, System::Fenced, L2);
}

#[test]
fn a_timeout_that_is_taken_for_a_failure_has_an_effect_all_the_same() {
    for system in [System::Fenced, System::Keyed, System::Plain] {
        breaks_without(Without::TimeoutIsUnknown, system, L2);
    }
    breaks_without(Without::TimeoutIsUnknown, System::Plain, L4);
}

#[test]
fn an_absence_at_a_system_that_checks_no_token_proves_nothing() {
    breaks_without(Without::OpenAbsence, System::Keyed, L6);
    breaks_without(Without::OpenAbsence, System::Keyed, L2);
}

/// The worker gives up waiting, asks, is told "no such thing", and the network delivers its request after that.
#[test]
fn an_absence_under_the_attempts_own_token_proves_nothing() {
    breaks_without(Without::NextToken, System::Fenced, L2);
}

#[test]
fn a_second_attempt_beside_an_unknown_one_charges_twice() {
    breaks_without(Without::Settled, System::Plain, L4);
}

#[test]
fn a_worker_that_sends_again_by_itself_charges_twice() {
    breaks_without(Without::NeverByItself, System::Plain, L4);
}

/// Also the stopped worker counts: it has made its mark, and sends when it wakes up.
#[test]
fn a_person_who_guesses_is_wrong_when_the_request_arrives() {
    breaks_without(Without::PersonKnows, System::Keyed, L2);
    breaks_without(Without::PersonKnows, System::Plain, L4);
}
