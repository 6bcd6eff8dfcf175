//! What was explored, and with which result.

use super::super::explore::explore;
use super::super::{breaks, holds};
use super::{Noticed, Restore, State, Without, quarantined};

const BOTH: [usize; 2] = [0, 1];

fn quarantine_ended(_: &Restore, state: &State) -> bool {
    state.store.authority.record.quarantined_until.is_some() && quarantined(state).is_none()
}

fn granted_twice(_: &Restore, state: &State) -> bool {
    state
        .grants
        .iter()
        .enumerate()
        .any(|(at, grant)| state.grants[..at].iter().any(|other| other.token.epoch == grant.token.epoch))
}

fn noticed(noticed: Noticed) -> Restore {
    Restore { later_sinks: BOTH.to_vec(), ..Restore::new(noticed) }
        .also("the quarantine ends", quarantine_ended)
        .also("the lost grant is granted again under the same epoch", granted_twice)
        .also("a sealed receiver shows the conflict", |_, state| state.watched.conflict)
}

/// A grant of the present life of the store has sealed every receiver and is announced.
fn goes_on(state: &State) -> bool {
    let newest = state.grants.last().filter(|grant| grant.announced && grant.life == state.restores);
    newest.is_some_and(|grant| {
        state.sinks.iter().all(|row| row.as_ref().is_some_and(|row| row.grant == grant.token.grant))
    })
}

/// After a restore, while `spare` grants are left, somebody can be granted the resource and announce it; if not, how it
/// came to that.
fn stuck(name: &str, model: &Restore, spare: usize) -> bool {
    let explored = explore(model, |state| state.restores > 0 && state.grants.len() + spare <= model.grants, goes_on);
    println!("{name}: {} states", explored.states);
    for action in explored.stuck.iter().flatten() {
        println!("  {action:?}");
    }
    explored.stuck.is_some()
}

#[test]
fn a_restore_under_another_identity_overtakes_nobody() {
    holds("another identity", noticed(Noticed::Identity), 28_015);
}

#[test]
fn a_restore_that_an_operator_declares_overtakes_nobody() {
    holds("declared", noticed(Noticed::Operator), 33_003);
}

/// Whoever has lost its grant without a word of the store may still believe, for one renewal at most; the receivers hold.
#[test]
fn a_restore_that_only_others_notice_is_closed_at_the_receivers() {
    holds("noticed by others", noticed(Noticed::Others), 27_452);
}

#[test]
fn two_restores_overtake_nobody() {
    let model = Restore { restores: 2, grants: 2, ..Restore::new(Noticed::Identity) };
    holds("two restores", Restore { later_sinks: BOTH.to_vec(), ..model }, 5_303);
}

#[test]
fn without_a_quarantine_a_holder_is_overtaken_that_the_store_forgot() {
    for how in [Noticed::Identity, Noticed::Operator] {
        breaks("no quarantine", noticed(how).without(Without::Quarantine), "I6 nobody is overtaken who believes");
    }
}

#[test]
fn without_another_incarnation_the_old_life_goes_on() {
    let model = noticed(Noticed::Operator).without(Without::Incarnation);
    breaks("the same incarnation", model, "I7 a store that went back grants nothing");
}

fn taught() -> Restore {
    Restore { teaches: true, ..noticed(Noticed::Operator) }.also("something is learnt", |_, state| state.watched.taught)
}

#[test]
fn what_is_learnt_from_receivers_breaks_nothing() {
    let mut model = taught();
    // Without a second grant of the same epoch there is no conflict; both are still possible, since nobody has to teach.
    model.grants = 2;
    holds("taught", model, 5_565);
}

#[test]
fn v6_after_a_restore_the_next_one_but_one_is_granted_by_what_receivers_refuse() {
    for how in [Noticed::Identity, Noticed::Operator, Noticed::Others] {
        assert!(!stuck("learnt at a refusal", &noticed(how), 2), "{how:?}");
    }
}

#[test]
fn v6_after_a_restore_the_very_next_one_is_granted_once_receivers_have_taught() {
    assert!(!stuck("learnt before", &Restore { grants: 2, ..taught() }, 1));
    assert!(stuck("nothing is taught", &Restore { grants: 2, ..noticed(Noticed::Operator) }, 1));
    assert!(stuck("epochs are not learnt", &taught().without(Without::Epochs), 1));
}

/// The lost holder had two receivers, and the next candidate knows one of them.
#[test]
fn an_enrolment_that_the_store_forgot_comes_back_from_the_receivers() {
    let forgotten = |teaches| {
        let mut model = Restore { teaches, grants: 3, ..Restore::new(Noticed::Identity) }
            .also("the next one is refused by name", |_, state| state.watched.refused_by_name);
        model.properties.retain(|property| property.name != "a grant after the restore writes");
        model
    };
    breaks("not learnt", forgotten(false).without(Without::Enrolment), "I2 nothing older after an announcement");
    holds("learnt at the seal", forgotten(false), 3_389);
    holds("learnt at the seal or before", forgotten(true), 3_959);
}
