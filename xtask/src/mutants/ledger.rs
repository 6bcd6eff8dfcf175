//! What is broken in the ledger of calls.

use super::{Mutant, Test};

const LEDGER: &str = "crates/tenure-core/src/ledger.rs";
const BOOK: &str = "crates/tenure-sink/src/sqlite/ledger/book.rs";
const SQLITE: &str = "crates/tenure-sink/src/sqlite/ledger.rs";
const POSTGRES: &str = "crates/tenure-sink/src/postgres/ledger.rs";
const POSTGRES_SQL: &str = "crates/tenure-sink/src/postgres/ledger/schema.rs";
const POSTGRES_SUITE: &str = "ledger::postgres::postgres_passes_the_suite_of_ledgers";
const SUITE: &str = "ledger::sqlite_passes_the_suite_of_ledgers";

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        id: "L1",
        what: "what is said of an attempt that is not there is taken",
        file: BOOK,
        find: "let Some(entry) = entry(connection, key)? else { return Ok(Err(Refused::Missing)) };",
        replace: "let Some(entry) = entry(connection, key)? else { return Ok(Ok(Attempt::Done)) };",
        tests: &[Test::clause("tenure_sink::conformance::ledger::calls::l1_an_intent_first", SUITE)],
    },
    Mutant {
        id: "L2",
        what: "an absence counts before anything was sealed",
        file: LEDGER,
        find: "Err(Unheard::TooSoon { attempt: entry.epoch })",
        replace: "next()",
        tests: &[Test::own("tenure_core::model::ledger::cases::l1_to_l6_hold_at_a_system_that_checks_tokens")],
    },
    Mutant {
        id: "L3",
        what: "a new attempt is made beside one that may have taken effect",
        file: LEDGER,
        find: "!entry.state.is_final() && !own_intent(entry)",
        replace: "entry.state == Attempt::Intent && !own_intent(entry)",
        tests: &[Test::own("tenure_core::model::ledger::cases::l1_to_l6_hold_at_a_system_with_keys")],
    },
    Mutant {
        id: "L4",
        what: "an unknown attempt of an older epoch does not keep its operation from running",
        file: LEDGER,
        find: "!entry.state.is_final() && !own_intent(entry)",
        replace: "!entry.state.is_final() && entry.epoch == epoch && !own_intent(entry)",
        tests: &[
            Test::own("tenure_core::ledger::nothing_runs_beside_an_attempt_that_is_not_over"),
            Test::clause("tenure_sink::conformance::ledger::taking_over::an_unknown_attempt_blocks", SUITE),
        ],
    },
    Mutant {
        id: "L5",
        what: "a mark is made where a power failure can take it",
        file: BOOK,
        find: "0 | 1 => Err(SinkError::NotDurable",
        replace: "9 => Err(SinkError::NotDurable",
        tests: &[Test::own("tenure_sink::ledger::sqlite::l5_a_mark_that_a_power_failure_could_take_is_refused")],
    },
    Mutant {
        id: "L5",
        what: "the mark is made without its commit",
        file: SQLITE,
        find: "tx.commit().map_err(|error| super::failure::named_error(&place, super::WAIT, \"committing the mark\", &error))?;",
        replace: "tx.rollback().map_err(|error| super::failure::named_error(&place, super::WAIT, \"committing the mark\", &error))?;",
        tests: &[Test::own("tenure_sink::ledger::crashes::a_worker_killed_anywhere_leaves_a_true_book")],
    },
    Mutant {
        id: "L5",
        what: "two may mark one attempt at once",
        file: POSTGRES_SQL,
        find: "AND epoch = $3 FOR UPDATE\"",
        replace: "AND epoch = $3\"",
        tests: &[Test::clause("tenure_sink::conformance::ledger::calls::l5_one_mark", POSTGRES_SUITE)],
    },
    Mutant {
        id: "L5",
        what: "the mark does not wait for its commit where the session does not",
        file: POSTGRES,
        find: "tx.query_typed(self.0.sql.durable, &[]).await.map_err(fail)?;",
        replace: "tx.query_typed(\"SELECT 1\", &[]).await.map_err(fail)?;",
        tests: &[Test::own(
            "tenure_sink::ledger::postgres::l5_a_mark_waits_for_its_commit_also_where_the_session_does_not",
        )],
    },
    Mutant {
        id: "L6",
        what: "an absence counts under the attempt's own token",
        file: LEDGER,
        find: "Err(Unheard::TooSoon { attempt: entry.epoch })",
        replace: "next()",
        tests: &[
            Test::own("tenure_core::ledger::l6_unknown_is_left_by_a_look_up_after_a_seal_or_by_a_person"),
            Test::clause("tenure_sink::conformance::ledger::taking_over::an_absence_too_soon", SUITE),
        ],
    },
    Mutant {
        id: "V5",
        what: "a fenced sink never says that something is absent for good",
        file: SQLITE,
        find: "Ok(Lookup::Absent) if rule.is_sealed() => Ok(Looked::AbsentForGood),",
        replace: "Ok(Lookup::Absent) if !rule.is_sealed() => Ok(Looked::AbsentForGood),",
        tests: &[Test::own("tenure_sink::ledger::sqlite::v5_a_fenced_sink_is_its_own_probe")],
    },
    Mutant {
        id: "O6",
        what: "a person decides what its holder may still know",
        file: LEDGER,
        find: "Attempt::Intent | Attempt::Sent => Err(Unheard::NotUnknown { state: entry.state }),",
        replace: "Attempt::Intent => Err(Unheard::NotUnknown { state: entry.state }),",
        tests: &[Test::clause("tenure_sink::conformance::ledger::looking::a_person_decides_nothing_else", SUITE)],
    },
    Mutant {
        id: "O6",
        what: "who decided is not written down",
        file: BOOK,
        find: "Said::By(by, why) => (by.as_ref().map(Actor::as_str), Some(why)),",
        replace: "Said::By(by, why) => (by.as_ref().map(Actor::as_str).filter(|_| false), Some(why)),",
        tests: &[
            Test::clause("tenure_sink::conformance::ledger::looking::a_person_is_named", SUITE),
            Test::own("tenure_cli::unknown::resolve_is_final_and_keeps_who_said_it_and_why"),
        ],
    },
];
