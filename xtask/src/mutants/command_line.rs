//! What is broken in what the command line promises: in the command itself, and in what it rests on.

use super::{Mutant, Test};

const LEASES: &str = "crates/tenure-core/src/decide/lease.rs";
const RETIRING: &str = "crates/tenure-core/src/decide/retire.rs";
const IMPORT: &str = "crates/tenure-authority/src/store/import.rs";
const WATCHDOG: &str = "crates/tenure-cli/src/run/watchdog.rs";
const VERDICT: &str = "crates/tenure-cli/src/probe/verdict.rs";
const MEMORY_STORE: &str = "stores::the_memory_store_keeps_the_contract";

const STOPPED: Test = Test::own("tenure_cli::run::loss::a_run_that_is_stopped_loses_its_command_in_time");
const IMPORTED: Test =
    Test::clause("tenure_authority::conformance::importing::what_was_exported_is_there_and_nobody_holds", MEMORY_STORE);

// What is late here is late by a few seconds, not for ever: a broken command that nothing ends would outlive its test.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        id: "R1",
        what: "whoever asks gets what somebody else holds",
        file: LEASES,
        find: "            (Standing::Valid, Some(holder)) => Decision::refuse(Refusal::Busy {",
        replace: "            (Standing::Valid, Some(holder)) if lease.phase == Phase::Sealing => \
                  Decision::refuse(Refusal::Busy {",
        tests: &[
            Test::own("tenure_cli::run::races::a_hundred_runs_at_once_never_have_two_commands_alive"),
            Test::own("tenure_cli::run::status::held_by_another_says_who_where_since_when_how_long_and_what_next"),
        ],
    },
    Mutant {
        id: "O1",
        what: "the history of a takeover has no reason",
        file: LEASES,
        find: "                    why: Some(reason.clone()),\n                    ..lease_transition(&freed, Event::Revoked, now)",
        replace: "                    why: Some(reason.clone()).filter(|_| false),\n                    \
                  ..lease_transition(&freed, Event::Revoked, now)",
        tests: &[Test::own(
            "tenure_cli::operate::a_takeover_says_from_whom_it_took_what_and_the_history_keeps_who_did_it_and_why",
        )],
    },
    Mutant {
        id: "O2",
        what: "a takeover from an epoch that is over takes the next one",
        file: LEASES,
        find: "only.is_some_and(|epoch| epoch != lease.epoch)",
        replace: "only.is_some_and(|epoch| epoch > lease.epoch)",
        tests: &[Test::own("tenure_core::decide::operator::a_takeover_from_one_epoch_does_not_hit_the_next_one")],
    },
    Mutant {
        id: "O3",
        what: "a receiver is taken out with a seal from after its forgetting",
        file: RETIRING,
        find: "forgotten.is_some_and(|cut| cut < lease.epoch)",
        replace: "forgotten.is_some_and(|cut| cut > lease.epoch)",
        tests: &[Test::own(
            "tenure_core::decide::operator::a_sink_is_not_taken_out_with_a_seal_from_after_its_forgetting",
        )],
    },
    Mutant {
        id: "O3",
        what: "the history does not say which receiver was taken out",
        file: RETIRING,
        find: "by(actor, &about(sink, why), lease_transition(&after, Event::Unenrolled, now))",
        replace: "by(actor, why, lease_transition(&after, Event::Unenrolled, now))",
        tests: &[Test::own("tenure_cli::operate::a_receiver_is_taken_out_after_it_forgot_or_with_a_word_about_it")],
    },
    Mutant {
        id: "O4",
        what: "an import forgets the receivers",
        file: "crates/tenure-core/src/record/lease.rs",
        find: "sinks: self.sinks.keys().map(|sink| (sink.clone(), SinkMark::default())).collect(),",
        replace: "sinks: BTreeMap::new(),",
        tests: &[IMPORTED, Test::own("tenure_cli::look::moving::what_was_imported_is_exported_again")],
    },
    Mutant {
        id: "O4",
        what: "a record behind its own history is imported",
        file: IMPORT,
        find: "newest.remove(&lease.resource).filter(|(top, _, _)| *top > lease.epoch)",
        replace: "newest.remove(&lease.resource).filter(|_| false)",
        tests: &[
            Test::own("tenure_authority::store::import::a_record_that_lies_behind_the_history_is_refused"),
            Test::own("tenure_cli::look::moving::a_damaged_file_is_refused_with_the_line_and_the_reason"),
        ],
    },
    Mutant {
        id: "O4",
        what: "an imported authority grants while its last holders believe",
        file: IMPORT,
        find: "quarantined_until: self.source.belief.map(|belief| now.after(belief)),",
        replace: "quarantined_until: self.source.belief.map(|_| now),",
        tests: &[IMPORTED],
    },
    Mutant {
        id: "R2",
        what: "a command that does not end when it is asked to is killed late",
        file: WATCHDOG,
        find: "now.saturating_add(grace).min(self.end_at.saturating_add(grace));",
        replace: "now.saturating_add(grace).min(self.end_at.saturating_add(grace)) + 4_000_000_000;",
        tests: &[
            STOPPED,
            Test::own(
                "tenure_cli::run::loss::a_run_that_is_killed_takes_its_command_with_it_and_the_next_one_takes_over",
            ),
            Test::own("tenure_cli::run::silent::the_last_process_is_gone_before_the_deadline_when_packets_are_dropped"),
        ],
    },
    Mutant {
        id: "R2",
        what: "whoever has left the group is killed late",
        file: WATCHDOG,
        find: "let refused = self.family.kill();",
        replace: "self.family.signal_group(Signal::KILL);\n        \
                  let late = self.gone.killed_at.is_some_and(|at| now() > at + 4_000_000_000);\n        \
                  let refused = if late { self.family.kill() } else { Vec::new() };",
        tests: &[STOPPED],
    },
    Mutant {
        id: "R2",
        what: "a command that is to be stopped is stopped late",
        file: WATCHDOG,
        find: "Phase::Running if now >= self.end_at && self.args.freeze => self.freeze(),",
        replace: "Phase::Running if self.args.freeze => {\n                \
                  if now >= self.end_at + 4_000_000_000 {\n                    \
                  self.freeze();\n                }\n            }",
        tests: &[Test::own(
            "tenure_cli::run::freeze::a_command_that_is_to_be_stopped_stands_still_before_the_deadline",
        )],
    },
    Mutant {
        id: "R2",
        what: "the command does not go with its watchdog",
        file: "crates/tenure-cli/src/run/command.rs",
        find: "set_parent_process_death_signal(Some(Signal::KILL))",
        replace: "set_parent_process_death_signal(Some(Signal::KILL).filter(|_| false))",
        tests: &[Test::own("tenure_cli::run::loss::the_run_and_the_watchdog_killed_together_leave_no_command")],
    },
    Mutant {
        id: "R3",
        what: "the resource is released when the command has ended, whatever is left of it",
        file: "crates/tenure-cli/src/run/keep.rs",
        find: "while self.report.gone.is_none() {",
        replace: "while self.report.gone.is_none() && self.report.status.is_none() {",
        tests: &[Test::own(
            "tenure_cli::run::status::nobody_gets_the_resource_while_something_is_left_of_the_command_before",
        )],
    },
    Mutant {
        id: "R4",
        what: "a takeover that is over already is not looked for",
        file: "crates/tenure-cli/src/run/back.rs",
        find: ".all(is_mine)",
        replace: ".all(|row| row.session.is_some() || is_mine(row))",
        tests: &[Test::own("tenure_cli::run::freeze::a_takeover_that_is_over_already_is_a_takeover")],
    },
    Mutant {
        id: "R5",
        what: "a command that a signal ended looks like one that ended by itself",
        file: "crates/tenure-cli/src/run/link.rs",
        find: "Self::Killed(signal) => 128_u8.saturating_add(",
        replace: "Self::Killed(signal) => 0_u8.saturating_add(",
        tests: &[Test::own("tenure_cli::run::status::the_commands_own_status_comes_through")],
    },
    Mutant {
        id: "R5",
        what: "a command that ends well hides that the right was lost",
        file: "crates/tenure-cli/src/run/report.rs",
        find: "(Some(_), _) => Exit::Lost,",
        replace: "(Some(_), Some(status)) => Exit::Command(status.code()),\n            (Some(_), None) => Exit::Lost,",
        tests: &[Test::own("tenure_cli::run::loss::a_takeover_by_an_operator_ends_the_command")],
    },
    Mutant {
        id: "P1",
        what: "a probe passes without evidence",
        file: VERDICT,
        find: "return if evidence.is_empty() {",
        replace: "return if evidence.len() > 9 {",
        tests: &[
            Test::own("tenure_cli::probe::verdict::without_evidence_nothing_is_proved"),
            Test::own("tenure_cli::probe::workers::a_line_before_the_pause_is_no_evidence"),
        ],
    },
    Mutant {
        id: "P1",
        what: "a control run that shows nothing is evidence",
        file: VERDICT,
        find: "match control.speaks_for(&facts.after_a) {",
        replace: "match control.speaks_for(&facts.after_a).or(control.reached.clone()) {",
        tests: &[
            Test::own("tenure_cli::probe::verdict::a_control_run_speaks_only_when_a_late_write_would_be_seen"),
            Test::own("tenure_cli::probe::workers::a_worker_that_gives_up_without_a_try_is_undecided"),
        ],
    },
    Mutant {
        id: "P2",
        what: "what a killed probe has stopped is left for a while",
        file: "crates/tenure-cli/src/probe/guard.rs",
        find: "                found.iter().for_each(|process| send(process, Signal::KILL));\n",
        replace: "                (0..12_000).for_each(|_| nap());\n                \
                  found.iter().for_each(|process| send(process, Signal::KILL));\n",
        tests: &[Test::own("tenure_cli::probe::endings::a_probe_that_is_killed_leaves_nothing_stopped")],
    },
];
