//! What was explored, and with which result.

use super::super::explore::explore;
use super::super::{breaks, holds};
use super::{Fencing, State, Takeover, Without};

fn sealed(sinks: usize, grants: usize) -> Takeover {
    Takeover::new(Fencing::Sealed, sinks, grants)
}

/// The last grant has written at every sink.
fn last_grant_wrote_everywhere(model: &Takeover, state: &State) -> bool {
    state.grants.len() == model.grants
        && state.grants.last().is_some_and(|grant| {
            grant.announced
                && grant
                    .lease
                    .token()
                    .is_some_and(|token| state.sinks.iter().all(|sink| sink.last == Some(token.epoch)))
        })
}

/// While `spare` grants are left, somebody can still take over and write everywhere.
fn is_never_stuck(name: &str, model: &Takeover, spare: usize) {
    let explored = explore(
        model,
        |state| state.grants.len() + spare <= model.grants,
        |state| last_grant_wrote_everywhere(model, state),
    );
    println!("{name}: never stuck in {} states", explored.states);
    assert_eq!(explored.stuck, None, "{name}");
}

const I2: &str = "I2 nothing older after an announcement";
const I9: &str = "I9 forgotten stays closed";

#[test]
fn without_a_fence_an_old_write_lands_after_the_takeover() {
    let model = Takeover::new(Fencing::None, 1, 2);
    breaks("no fence", model.clone(), I2);
    breaks("no fence", model, "I1 accepted epochs never fall");
}

#[test]
fn the_high_water_rule_has_the_gap() {
    let model = Takeover { fine: true, ..Takeover::new(Fencing::HighWater, 1, 3) };
    breaks("high water", model.clone(), I2);
    let mut without_i2 = model;
    without_i2.properties.retain(|property| property.name != I2);
    holds("high water, but for I2", without_i2, 99);
}

#[test]
fn the_sealed_rule_holds_with_two_sinks_and_three_grants() {
    let model = Takeover { fine: true, releases: true, ..sealed(2, 3) }
        .also("the last grant writes everywhere", last_grant_wrote_everywhere);
    holds("sealed", model.clone(), 41_318);
    is_never_stuck("sealed", &model, 1);
}

#[test]
fn sealing_any_one_of_two_sinks_is_not_enough() {
    breaks("sealed at any one sink", sealed(2, 2).without(Without::SealsAtAllSinks), I2);
}

#[test]
fn a_clean_release_does_not_replace_the_seal() {
    let model = Takeover { releases: true, ..sealed(1, 2) };
    breaks("no seal after a clean release", model.without(Without::SealsAfterARelease), I2);
}

fn retired(sinks: usize, grants: usize) -> Takeover {
    Takeover { retires: 1, ..sealed(sinks, grants) }
        .also("a forgotten resource is granted and written again", |_, state| {
            state.sinks.iter().all(|sink| sink.forgot > 0 && sink.last > sink.floor && sink.floor.is_some())
        })
}

#[test]
fn a_forgotten_resource_is_open_again_without_a_floor() {
    breaks("forgotten without a floor", retired(1, 2).without(Without::Floor), I9);
}

#[test]
fn a_forgotten_resource_stays_closed_with_a_floor() {
    holds("forgotten with a floor", retired(2, 3), 58_950);
    is_never_stuck("forgotten with a floor", &retired(1, 3), 1);
}

#[test]
fn a_late_forget_with_an_old_cut_may_not_take_a_newer_row() {
    breaks("forget takes rows above the cut", retired(1, 3).without(Without::CutCheck), I2);
}

fn restored(sinks: usize, grants: usize) -> Takeover {
    Takeover { restores: 1, ..sealed(sinks, grants) }.also("a grant after the restore writes everywhere", |_, state| {
        state.grants.last().is_some_and(|grant| {
            let token = grant.lease.token();
            grant.life > 0
                && grant.announced
                && token.is_some_and(|token| state.sinks.iter().all(|sink| sink.last == Some(token.epoch)))
        })
    })
}

#[test]
fn a_restore_breaks_what_has_no_grant_ids() {
    breaks("restore without grant ids", restored(1, 3).without(Without::GrantIds), I2);
}

#[test]
fn a_restore_that_nobody_notices_is_closed_by_grant_ids() {
    holds("unnoticed restore", restored(2, 3), 155_293);
}

#[test]
fn after_a_restore_progress_returns_by_what_the_sinks_show() {
    is_never_stuck("unnoticed restore", &restored(1, 3), 2);
}

#[test]
fn two_restores_are_closed_by_grant_ids() {
    holds("two unnoticed restores", Takeover { restores: 2, ..restored(1, 3) }, 97_355);
}

#[test]
fn i7_a_store_that_notices_its_restore_grants_nothing_in_its_old_life() {
    let model = Takeover { notices: true, ..restored(1, 3) };
    holds("noticed restore", model, 59_625);
}

fn retired_and_restored() -> Takeover {
    Takeover { restores: 1, retires: 1, ..sealed(1, 2) }.also(
        "a sink refuses to forget, and the cut is raised",
        |_, state| {
            let cuts: std::collections::BTreeSet<_> = state.forgets.iter().map(|message| message.cut).collect();
            cuts.len() > 1
        },
    )
}

#[test]
fn a_retirement_after_a_restore_raises_its_cut_above_what_the_sinks_have() {
    holds("retired and restored", retired_and_restored(), 15_538);
}

fn failing_over(sinks: usize, grants: usize) -> Takeover {
    Takeover { failovers: 1, ..sealed(sinks, grants) }.also(
        "a holder seals again after a failover and writes",
        |_, state| {
            state.grants.len() == 1
                && state.grants.iter().any(|grant| grant.announced && grant.lease.may_write())
                && state.sinks.iter().any(|sink| {
                    sink.failovers > 0
                        && sink.last.is_some()
                        && sink.row.as_ref().is_some_and(|row| row.generation.as_str() == "g1")
                })
        },
    )
}

#[test]
fn a_sink_that_fails_over_unnoticed_lets_an_old_holder_in() {
    breaks("failover without generations", failing_over(1, 2).without(Without::Generations), I2);
}

#[test]
fn a_reseal_that_did_not_ask_the_authority_lets_an_old_holder_in() {
    breaks("reseal without bind", failing_over(1, 2).without(Without::BindBeforeReseal), I2);
}

#[test]
fn a_sink_that_fails_over_is_closed_by_its_generation_and_the_bind() {
    holds("failover", failing_over(1, 3), 192_522);
    is_never_stuck("failover", &failing_over(1, 2), 1);
}

/// The first candidate knows both sinks, the later ones know these.
fn forgotten_enrolment(later: &[Vec<usize>]) -> Takeover {
    let adapters = std::iter::once(vec![0, 1]).chain(later.iter().cloned()).collect();
    let mut model = Takeover { adapters, in_turn: true, ..restored(2, 3) };
    if later.iter().all(|adapters| adapters.len() == 1) {
        // Once the first candidate has announced, the later ones are refused by name before they seal anything.
        model.properties.retain(|property| {
            property.name != "a stale write is refused"
                && property.name != "a grant after the restore writes everywhere"
        });
        return model.also("a candidate without an adapter is refused by name", |_, state| {
            state.grants.iter().skip(1).any(|grant| grant.lease.without_adapter().is_some())
        });
    }
    model
}

#[test]
fn an_enrolment_that_a_restore_forgot_leaves_a_sink_open_unless_the_sinks_keep_the_union() {
    let (one, both) = (vec![0], vec![0, 1]);
    breaks("forgotten enrolment", forgotten_enrolment(&[one.clone(), one.clone()]).without(Without::Union), I2);
    holds("enrolment kept at the sinks", forgotten_enrolment(&[one.clone(), one.clone()]), 1_058);
    holds("enrolment kept at the sinks, then taken over", forgotten_enrolment(&[one, both]), 2_259);
}

fn with_an_added_sink(grants: usize) -> Takeover {
    Takeover { adds_a_sink: true, adapters: vec![vec![0]], ..sealed(2, grants) }
        .also("the added sink is written", |_, state| state.sinks[1].last.is_some())
}

#[test]
fn a_new_sink_is_enrolled_before_it_is_sealed() {
    breaks("sealed before enrolled", with_an_added_sink(2).without(Without::EnrolBeforeSeal), I2);
    let model = Takeover { adapters: vec![vec![0], vec![0, 1]], ..with_an_added_sink(3) };
    holds("enrolled before sealed", model, 21_383);
}

/// The last sink may be excused, and is sealed later or never.
fn excusing(grants: usize) -> Takeover {
    Takeover { excuses: true, ..sealed(2, grants) }
        .also("an old holder writes where the new one is excused", |_, state| {
            let excused = state.grants.iter().rposition(|grant| grant.announced && !grant.excused.is_empty());
            let writer = state.sinks[1].last;
            excused.is_some_and(|new| new > 0 && writer.is_some() && state.sinks[0].last > writer)
        })
        .also("an excused sink is sealed after the announcement, and written", |_, state| {
            state.sinks[0].last.is_none()
                && state.grants.last().is_some_and(|grant| {
                    grant.announced
                        && grant.lease.may_write_to(&super::sink_id(1))
                        && grant.lease.token().is_some_and(|token| state.sinks[1].last == Some(token.epoch))
                })
        })
}

#[test]
fn a_sink_that_is_excused_by_name_is_outside_i2_until_it_is_sealed_and_every_other_inside() {
    holds("excused", excusing(3), 148_794);
    is_never_stuck("excused", &excusing(2), 1);
}

#[test]
fn an_excused_sink_that_was_never_bound_is_not_sealed() {
    breaks("excused is taken for sealed", excusing(2).without(Without::SealOfTheExcused), I2);
}

#[test]
fn a_missing_sink_that_nobody_named_is_no_excuse() {
    breaks("announced without any one sink", excusing(2).without(Without::NamesOfTheExcused), I2);
    let named = "only named sinks are excused";
    breaks("announced without any one sink", excusing(2).without(Without::NamesOfTheExcused), named);
}

#[test]
fn a_holder_is_not_accepted_where_it_was_excused() {
    let believes = "a holder believes in a sink only where it was sealed";
    breaks("written where it was excused", excusing(2).without(Without::HolderKnowsWhere), believes);
}

fn held(grants: usize) -> Takeover {
    Takeover { half_ttls: 3, ..Takeover::new(Fencing::Held, 1, grants) }
        .also("a late write is refused before anybody takes over", |model, state| {
            let [only] = &state.grants[..] else { return false };
            let sealed = only.lease.token().filter(|token| {
                only.announced && matches!(state.sinks[0].judge(model, token), tenure_core::fence::Admission::Admit)
            });
            sealed.is_some_and(|token| state.held(model, token).is_err())
        })
        .also("a renewed holder writes past its first deadline", |model, state| {
            let [only] = &state.grants[..] else { return false };
            let first_deadline = super::START.after(super::half_ttl() * 2);
            let may = only.lease.token().is_some_and(|token| state.held(model, token).is_ok());
            only.announced && may && state.now >= first_deadline
        })
}

#[test]
fn h1_no_check_passes_once_its_grant_is_over() {
    holds("held", held(2), 14_768);
    is_never_stuck("held", &held(2), 1);
}

const H1: &str = "H1 no check passes once its grant is over";

#[test]
fn the_sealed_rule_lets_a_late_write_in_before_anybody_takes_over() {
    breaks("held, without the lease", held(2).without(Without::LeaseRow), H1);
}

#[test]
fn a_deadline_that_is_still_valid_at_itself_lets_a_late_write_in() {
    breaks("held, the deadline inclusive", held(2).without(Without::HalfOpen), H1);
}

#[test]
fn a_session_that_was_ended_before_its_deadline_lets_a_late_write_in_unless_it_is_looked_at() {
    breaks("held, without the session's end", held(2).without(Without::SessionState), H1);
}
