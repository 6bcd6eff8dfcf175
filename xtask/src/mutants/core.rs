//! What is broken in the protocol itself.

use super::{Mutant, Test};

const FENCE: &str = "crates/tenure-core/src/fence.rs";
const OPERATION: &str = "crates/tenure-core/src/operation.rs";
const LEASES: &str = "crates/tenure-core/src/decide/lease.rs";
const RESTORE: &str = "crates/tenure-core/src/decide/restore.rs";
const SEALED_FILES: &str = "conformance_file::files_pass_the_suite_under_the_sealed_rule";
const SEALED_SQLITE: &str = "conformance_sqlite::sqlite_passes_the_suite_under_the_sealed_rule";
const MEMORY_STORE: &str = "stores::the_memory_store_keeps_the_contract";
const TWO_SINKS: Test =
    Test::own("tenure_core::model::takeover::the_sealed_rule_holds_with_two_sinks_and_three_grants");

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        id: "I1",
        what: "a late seal of an older token is registered",
        file: FENCE,
        find: "Order::Older => Sealing::Stale { epoch: row.epoch, grant: row.grant },",
        replace: "Order::Older => Sealing::Seal(registered(token, generation, row.seal_no + 1, enrolled.clone())),",
        tests: &[TWO_SINKS, Test::clause("tenure_sink::conformance::races::the_newest_stands_last", SEALED_SQLITE)],
    },
    Mutant {
        id: "I2",
        what: "a takeover is announced before its receivers are sealed",
        file: LEASES,
        find: "phase: if sinks.is_empty() { Phase::Held } else { Phase::Sealing },",
        replace: "phase: Phase::Held,",
        tests: &[TWO_SINKS],
    },
    Mutant {
        id: "I3",
        what: "the generation is not looked at",
        file: FENCE,
        find: "(Order::Same, Rule::Sealed | Rule::Held) if row.generation == *generation => Admission::Admit,",
        replace: "(Order::Same, Rule::Sealed | Rule::Held) => Admission::Admit,",
        tests: &[
            Test::own(
                "tenure_core::laws::i3_the_sealed_rule_admits_the_whole_token_in_its_generation_and_nothing_else",
            ),
            Test::clause("tenure_sink::conformance::generations::after_a_reopening_nothing_is_sealed", SEALED_SQLITE),
        ],
    },
    Mutant {
        id: "I4",
        what: "grant ids are not compared",
        file: "crates/tenure-core/src/token.rs",
        find: "core::cmp::Ordering::Equal if self.grant == grant => Order::Same,",
        replace: "core::cmp::Ordering::Equal if self.grant == grant || self.epoch == epoch => Order::Same,",
        tests: &[Test::own("tenure_core::model::takeover::a_restore_that_nobody_notices_is_closed_by_grant_ids")],
    },
    Mutant {
        id: "I5",
        what: "a late renewal opens a lost lease again",
        file: "crates/tenure-core/src/holder/gate.rs",
        find: "(present != LOST).then(|| present.max(deadline.as_nanos()))",
        replace: "Some(present.max(deadline.as_nanos()))",
        tests: &[Test::own("tenure_core::holder::gate::the_deadline_is_half_open_and_latches")],
    },
    Mutant {
        id: "I6",
        what: "a holder counts its deadline from the answer, not from the first sending",
        file: "crates/tenure-core/src/holder/session.rs",
        find: "self.deadline.max(attempt.first_sent.after(self.timing.belief()));",
        replace: "self.deadline.max(now.after(self.timing.belief()));",
        tests: &[Test::own("tenure_core::model::renewal::i6_no_takeover_while_a_holder_believes")],
    },
    Mutant {
        id: "I7",
        what: "another identity of the store is not noticed",
        file: "crates/tenure-core/src/decide/store.rs",
        find: "let why = if view.observed != view.authority.identity {",
        replace: "let why = if view.observed.as_str().is_empty() {",
        tests: &[
            Test::own(
                "tenure_core::model::takeover::i7_a_store_that_notices_its_restore_grants_nothing_in_its_old_life",
            ),
            Test::clause("tenure_authority::conformance::quarantine::another_identity_quarantines", MEMORY_STORE),
            Test::own("tenure_core::model::restore::a_restore_under_another_identity_overtakes_nobody"),
        ],
    },
    Mutant {
        id: "I7",
        what: "an operator's word begins no quarantine",
        file: RESTORE,
        find: "after.quarantined_until = Some(now.after(span.get()));",
        replace: "after.quarantined_until = Some(now).filter(|_| span.get().is_zero());",
        tests: &[Test::own("tenure_core::model::restore::a_restore_that_an_operator_declares_overtakes_nobody")],
    },
    Mutant {
        id: "I8",
        what: "a grant to another worker takes the epoch of the one before",
        file: LEASES,
        find: "let Ok(epoch) = Epoch::above(floor) else { return Decision::refuse(Refusal::EpochsExhausted) };",
        replace: "let Ok(next) = Epoch::above(floor) else { return Decision::refuse(Refusal::EpochsExhausted) };\n    \
                  let epoch = before.filter(|lease| lease.owner != caller.owner).map_or(next, |lease| lease.epoch);",
        tests: &[
            Test::own("tenure_core::model::takeover::two_restores_are_closed_by_grant_ids"),
            Test::clause("tenure_authority::conformance::racing::one_resource_gives_each_epoch_once", MEMORY_STORE),
        ],
    },
    Mutant {
        id: "I9",
        what: "a sink that forgets keeps a floor below the cut",
        file: FENCE,
        find: "floor: floor.map_or(cut, |floor| floor.max(cut)) }",
        replace: "floor: floor.unwrap_or(Epoch::FIRST) }",
        tests: &[
            Test::own("tenure_core::model::takeover::a_forgotten_resource_stays_closed_with_a_floor"),
            Test::clause("tenure_sink::conformance::memory::forgotten_is_closed", SEALED_SQLITE),
        ],
    },
    Mutant {
        id: "I9",
        what: "a late retirement with an old cut lowers the floor",
        file: FENCE,
        find: "floor: floor.map_or(cut, |floor| floor.max(cut)) }",
        replace: "floor: floor.map_or(cut, |floor| floor.min(cut)) }",
        tests: &[Test::clause("tenure_sink::conformance::memory::a_late_cut_lowers_nothing", SEALED_FILES)],
    },
    Mutant {
        id: "I11",
        what: "a sink without a row admits what comes",
        file: FENCE,
        find: "(Rule::Sealed | Rule::Held, _) => Admission::Refuse(Verdict::Unsealed),",
        replace: "(Rule::Sealed | Rule::Held, _) => Admission::Admit,",
        tests: &[
            Test::own("tenure_core::fence::i11_a_sink_without_a_row_accepts_nothing"),
            Test::clause("tenure_sink::conformance::tokens::without_a_row_nothing", SEALED_SQLITE),
        ],
    },
    Mutant {
        id: "H1",
        what: "a grant still stands at its deadline",
        file: "crates/tenure-core/src/fence/held.rs",
        find: "if now.reached(&deadline) => {",
        replace: "if now > deadline => {",
        tests: &[
            Test::own("tenure_core::fence::held::h1_at_the_deadline_itself_the_grant_is_over"),
            Test::own("tenure_core::model::takeover::cases::h1_no_check_passes_once_its_grant_is_over"),
        ],
    },
    Mutant {
        id: "H2",
        what: "the end of a session is not looked at",
        file: "crates/tenure-core/src/fence/held.rs",
        find: "Standing::Ended(why) => Hold::Over { why: Ending::Session(why), at: session.ended_at() },",
        replace: "Standing::Ended(_) => Hold::Until(session.deadline),",
        tests: &[Test::own("tenure_core::model::takeover::cases::h1_no_check_passes_once_its_grant_is_over")],
    },
    Mutant {
        id: "L2",
        what: "a takeover turns what is over into unknown",
        file: OPERATION,
        find: "(Done | Applied | NotApplied | Failed, TakenOver) => self,",
        replace: "(Done | Applied | NotApplied | Failed, TakenOver) => Unknown,",
        tests: &[Test::own("tenure_core::operation::l2_an_attempt_that_is_over_never_changes_its_effect")],
    },
    Mutant {
        id: "L5",
        what: "an intent is done without the mark",
        file: OPERATION,
        find: "(Intent, Marked) => Sent,",
        replace: "(Intent, Marked) => Sent,\n            (Intent, Confirmed) => Done,",
        tests: &[Test::own("tenure_core::operation::l5_nothing_is_done_or_failed_without_the_mark")],
    },
    Mutant {
        id: "L6",
        what: "a refusal makes a failure of what is unknown",
        file: OPERATION,
        find: "(Sent, RefusedWithoutEffect) => Failed,",
        replace: "(Sent | Unknown, RefusedWithoutEffect) => Failed,",
        tests: &[
            Test::own("tenure_core::operation::l6_unknown_is_left_only_by_a_finding"),
            Test::own("tenure_core::operation::a_timeout_is_never_a_failure"),
        ],
    },
    Mutant {
        id: "V1",
        what: "an overdue holder is taken for a valid one by whoever asks",
        file: LEASES,
        find: "            (Standing::Valid, Some(holder)) => Decision::refuse(Refusal::Busy {",
        replace: "            (Standing::Valid | Standing::Overdue, Some(holder)) => Decision::refuse(Refusal::Busy {",
        tests: &[Test::clause(
            "tenure_authority::conformance::protocol::a_takeover_happens_at_the_deadline",
            MEMORY_STORE,
        )],
    },
    Mutant {
        id: "V1",
        what: "a session lives on at its deadline",
        file: "crates/tenure-core/src/record/session.rs",
        find: "SessionState::Live if now.reached(&session.deadline) => Standing::Overdue,",
        replace: "SessionState::Live if now > session.deadline => Standing::Overdue,",
        tests: &[Test::clause(
            "tenure_authority::conformance::protocol::a_takeover_happens_at_the_deadline",
            MEMORY_STORE,
        )],
    },
    Mutant {
        id: "V2",
        what: "a lease that was lost alone is not given up",
        file: "crates/tenure-core/src/holder/lease.rs",
        find: "(LeasePhase::Lost(_), Some(token)) if self.may_stand => match self.to_report {",
        replace: "(LeasePhase::Lost(_), Some(token)) if self.to_report.is_some() => match self.to_report {",
        tests: &[Test::own(
            "tenure_core::model::leases::a_grant_lost_alone_on_a_living_session_is_given_up_by_the_loser",
        )],
    },
    Mutant {
        id: "V3",
        what: "nobody supersedes a candidate that ended while it sealed",
        file: LEASES,
        find: "        Phase::Sealing | Phase::Held => match (view.holder_standing(now), &view.holder) {",
        replace: "        Phase::Sealing => Decision::refuse(not_current(view)),\n        \
                  Phase::Held => match (view.holder_standing(now), &view.holder) {",
        tests: &[
            TWO_SINKS,
            Test::own("tenure::crashes::a_candidate_that_is_killed_at_any_step_is_followed_by_one_that_writes_alone"),
        ],
    },
    Mutant {
        id: "V6",
        what: "a refusal does not raise the epoch",
        file: LEASES,
        find: "let after = LeaseRecord { phase: Phase::Free, epoch: lease.epoch.max(shown.epoch), ..lease.clone() };",
        replace: "let after = LeaseRecord { phase: Phase::Free, ..lease.clone() };",
        tests: &[
            Test::own(
                "tenure_core::decide::grants::a_refusal_by_a_sink_frees_the_grant_and_the_next_epoch_is_above_both",
            ),
            Test::own(
                "tenure_authority::field_reports::report_37_an_epoch_after_a_gap_is_above_everything_that_was_given",
            ),
        ],
    },
    Mutant {
        id: "V6",
        what: "one loss quarantines once for each resource",
        file: "crates/tenure-core/src/decide/store.rs",
        find: "&& !explained(view, now)",
        replace: "&& (!explained(view, now) || view.lease.is_some())",
        tests: &[
            Test::own("tenure_core::decide::restores::what_one_quarantine_stands_for_does_not_quarantine_again"),
            Test::own("tenure_core::model::restore::a_restore_under_another_identity_overtakes_nobody"),
        ],
    },
    Mutant {
        id: "V6",
        what: "what a receiver teaches does not raise the epoch",
        file: RESTORE,
        find: "after.epoch = self.epoch.max(row.epoch);",
        replace: "after.epoch = self.epoch;",
        tests: &[Test::own(
            "tenure_core::model::restore::v6_after_a_restore_the_very_next_one_is_granted_once_receivers_have_taught",
        )],
    },
    Mutant {
        id: "O5",
        what: "what receivers teach takes a grant away from its holder",
        file: RESTORE,
        find: "matches!(view.holder_standing(now), Standing::Valid | Standing::Overdue)",
        replace: "matches!(view.holder_standing(now), Standing::Missing)",
        tests: &[Test::own(
            "tenure_core::decide::restores::a_holder_of_the_present_incarnation_loses_nothing_by_what_is_taught",
        )],
    },
    Mutant {
        id: "O5",
        what: "enrolments are not learnt",
        file: RESTORE,
        find: "after.sinks.entry(sink.clone()).or_default();",
        replace: "let _ = sink;",
        tests: &[
            Test::own(
                "tenure_core::decide::restores::a_store_learns_the_epoch_and_the_enrolment_that_it_has_forgotten",
            ),
            Test::own("tenure_cli::restore::a_restore_that_nobody_noticed_is_declared_and_what_was_lost_is_learnt"),
        ],
    },
    Mutant {
        id: "C1",
        what: "a holder believes for the whole ttl, without the margin",
        file: "crates/tenure-core/src/ttl.rs",
        find: "self.ttl.0.saturating_sub(self.margin)",
        replace: "self.ttl.0",
        tests: &[Test::own(
            "tenure_core::model::renewal::the_margin_covers_a_holders_clock_that_is_slow_by_less_than_it",
        )],
    },
    Mutant {
        id: "C4",
        what: "a reboot ends remote holders at once, while they believe",
        file: "crates/tenure-core/src/record/session.rs",
        find: "SessionState::Live => Self { deadline: now.after(self.ttl.get()), ..self.clone() },",
        replace: "SessionState::Live => self.ended(EndReason::Rebooted, now),",
        tests: &[Test::own("tenure_authority::time::a_reboot_ends_local_sessions_and_gives_remote_ones_one_ttl_more")],
    },
    Mutant {
        id: "I2",
        what: "an older token is admitted after a seal",
        file: FENCE,
        find: "(Order::Older, _) => stale(row.epoch),",
        replace: "(Order::Older, _) => Admission::Admit,",
        tests: &[
            TWO_SINKS,
            Test::own("tenure::sealing::a_takeover_is_sealed_at_every_receiver_before_it_is_announced"),
        ],
    },
    Mutant {
        id: "I12",
        what: "a receiver that was never bound counts as sealed",
        file: "crates/tenure-core/src/decide/lease.rs",
        find: "filter(|(sink, mark)| !mark.sealed && !excused.contains(*sink))",
        replace: "filter(|(sink, mark)| !mark.sealed && mark.bound.is_some() && !excused.contains(*sink))",
        tests: &[Test::own("tenure_core::decide::grants::a_takeover_that_excuses_a_sink_names_it_until_it_is_sealed")],
    },
    Mutant {
        id: "I12",
        what: "a holder takes itself for accepted where it was excused",
        file: "crates/tenure-core/src/holder/lease.rs",
        find: "self.may_write() && self.sinks.get(sink) == Some(&SinkStep::Done)",
        replace: "self.may_write() && self.sinks.contains_key(sink)",
        tests: &[Test::own(
            "tenure_core::holder::lease::a_takeover_is_announced_without_the_sinks_that_are_excused_and_no_other",
        )],
    },
];
