//! What is broken in the receivers.

use super::{Mutant, Test};

const SQLITE_FENCE: &str = "crates/tenure-sink/src/sqlite/fence.rs";
const POSTGRES_SQL: &str = "crates/tenure-sink/src/postgres/first.sql";
const FILE_TURN: &str = "crates/tenure-sink/src/file/turn.rs";
const SEALED_FILES: &str = "conformance_file::files_pass_the_suite_under_the_sealed_rule";
const SEALED_SQLITE: &str = "conformance_sqlite::sqlite_passes_the_suite_under_the_sealed_rule";

const POSTGRES_FENCE: &str = "crates/tenure-sink/src/postgres/first.sql";
const HELD_SQLITE: &str = "conformance_sqlite::sqlite_passes_the_suite_under_the_held_rule";
const HELD_POSTGRES: &str = "postgres::conformance::postgres_passes_the_suite_under_the_held_rule";

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        id: "H1",
        what: "the authority in the SQLite file is not read",
        file: SQLITE_FENCE,
        find: "if self.rule == Rule::Held\n",
        replace: "if self.rule == Rule::HighWater\n",
        tests: &[
            Test::clause("tenure_sink::conformance::held::at_the_deadline_it_is_over", HELD_SQLITE),
            Test::own("tenure_sink::held::h1_the_deadline_is_half_open_to_the_last_millisecond"),
        ],
    },
    Mutant {
        id: "H1",
        what: "the deadline in the PostgreSQL schema is not looked at",
        file: POSTGRES_FENCE,
        find: "(h.now_ns < h.deadline_ns) IS NOT TRUE",
        replace: "(h.now_ns < h.deadline_ns) IS NULL",
        tests: &[
            Test::clause("tenure_sink::conformance::held::at_the_deadline_it_is_over", HELD_POSTGRES),
            Test::own(
                "tenure_sink::postgres::held::h1_a_check_that_waits_for_the_fence_reads_the_authority_afterwards",
            ),
        ],
    },
    Mutant {
        id: "H2",
        what: "a fence in PostgreSQL does not look at how the grant ended",
        file: POSTGRES_FENCE,
        find: "ELSIF h.ending IS NOT NULL THEN",
        replace: "ELSIF h.ending = 'expired' THEN",
        tests: &[Test::clause("tenure_sink::conformance::held::a_grant_that_is_over", HELD_POSTGRES)],
    },
    Mutant {
        id: "H3",
        what: "a check locks the sessions that it reads",
        file: POSTGRES_FENCE,
        find: "    SELECT v.version, v.epoch,",
        replace: "    PERFORM FROM {schema}.session FOR SHARE;\n    SELECT v.version, v.epoch,",
        tests: &[
            Test::own("tenure_sink::postgres::held::a_check_locks_nothing_of_the_authority"),
            Test::own(
                "tenure::held::postgres::h3_a_transaction_that_outlasts_the_ttl_does_not_hold_up_its_holders_renewals",
            ),
        ],
    },
    Mutant {
        id: "I1",
        what: "a guard writes its column by a cast, which may be the column's owner's",
        file: POSTGRES_SQL,
        find: "CASE WHEN %3$s.%2$I IS NOT NULL THEN format(''%%s'', %3$s.%2$I) END",
        replace: "%3$s.%2$I::text",
        tests: &[Test::own("tenure_sink::postgres::rights::no_code_of_a_table_s_owner_runs_as_the_sink_s")],
    },
    Mutant {
        id: "I2",
        what: "what a seal has answered waits for the disk no more than its session does",
        file: POSTGRES_SQL,
        find: "set_config('synchronous_commit', 'on', true)",
        replace: "set_config('synchronous_commit', 'off', true)",
        tests: &[Test::own(
            "tenure_sink::postgres::generations::what_was_answered_outlives_a_crash_also_where_commits_do_not_wait",
        )],
    },
    Mutant {
        id: "I3",
        what: "a copy of the database is taken for the database",
        file: POSTGRES_SQL,
        find: "FROM '([0-9]+)/[0-9]+$')",
        replace: "FROM 'nothing')",
        tests: &[Test::own(
            "tenure_sink::postgres::generations::a_copy_that_took_the_database_s_place_admits_nothing_until_it_is_sealed",
        )],
    },
    Mutant {
        id: "L4",
        what: "a script in Redis may go to another database",
        file: "crates/tenure-sink/src/redis/lua/head.lua",
        find: "if upper == 'SELECT' or upper == 'SWAPDB' then",
        replace: "if upper == 'SWAPDB' then",
        tests: &[Test::own("tenure_sink::redis::scripts::a_script_does_not_go_to_another_database")],
    },
    Mutant {
        id: "I10",
        what: "a deferred transaction checks its token without the write lock",
        file: SQLITE_FENCE,
        find: "!= TransactionState::Write",
        replace: "== TransactionState::Write",
        tests: &[Test::own(
            "tenure_sink::sqlite_transaction::i10_a_deferred_transaction_holds_off_the_seal_from_its_check_on",
        )],
    },
    Mutant {
        id: "L1",
        what: "an effect that failed stands without its record",
        file: "crates/tenure-sink/src/sqlite/savepoint.rs",
        find: "self.run(\"ROLLBACK TO tenure_apply\").is_ok()",
        replace: "self.run(\"SELECT 1 WHERE 0\").is_ok()",
        tests: &[Test::clause("tenure_sink::conformance::operations::a_failed_effect_leaves_nothing", SEALED_SQLITE)],
    },
    Mutant {
        id: "L3",
        what: "an operation that is done is done again",
        file: FILE_TURN,
        find: "&& let Some(found) = Effect::find(folder, &self.records, &operation.id)?",
        replace: "&& let Some(found) = Effect::find(folder, &self.records, &operation.id)?.filter(|_| false)",
        tests: &[
            Test::clause("tenure_sink::conformance::operations::a_replay_is_not_applied_again", SEALED_FILES),
            Test::own(
                "tenure_sink::processes::a_writer_killed_anywhere_in_a_write_leaves_whole_content_and_one_effect",
            ),
        ],
    },
    Mutant {
        id: "L4",
        what: "records of earlier epochs are not found",
        file: "crates/tenure-sink/src/sqlite/schema.rs",
        find: "FROM tenure_sink_operation WHERE resource = ?1 AND operation = ?2\"",
        replace: "FROM tenure_sink_operation WHERE resource = ?1 AND operation = ?2 \
                  AND epoch = (SELECT max(epoch) FROM tenure_sink_operation WHERE resource = ?1)\"",
        tests: &[Test::clause("tenure_sink::conformance::operations::once_across_epochs", SEALED_SQLITE)],
    },
    Mutant {
        id: "L4",
        what: "two writers are in a turn of the same resource at once",
        file: FILE_TURN,
        find: "Hold::wait(folder, &records.guard(), Mode::Alone, &mut left)?;",
        replace: "Hold::wait(folder, &records.guard(), Mode::Shared, &mut left)?;",
        tests: &[Test::clause("tenure_sink::conformance::races::one_effect_in_a_race", SEALED_FILES)],
    },
    Mutant {
        id: "I2",
        what: "a seal does not wait for a write that is under way",
        file: FILE_TURN,
        find: "Hold::wait(folder, &records.guard(), Mode::Alone, &mut left)?;",
        replace: "Hold::wait(folder, &records.guard(), Mode::Shared, &mut left)?;",
        tests: &[Test::own("tenure_sink::processes::i2_two_processes_race_a_seal_at_files")],
    },
    Mutant {
        id: "V4",
        what: "a seal that gives up does not name the cause",
        file: "crates/tenure-sink/src/sqlite/failure.rs",
        find: "Some(by) => SinkError::HeldBy { place, waited, by },",
        replace: "Some(by) => SinkError::Failed { place, doing, why: format!(\"{by}, {why} after {waited:?}\") },",
        tests: &[Test::own(
            "tenure_sink::processes::v4_a_stopped_writer_holds_off_a_seal_at_sqlite_within_the_bound_and_says_so",
        )],
    },
    Mutant {
        id: "V4",
        what: "a seal waits longer than its bound",
        file: FILE_TURN,
        find: "let mut left = place.wait;",
        replace: "let mut left = place.wait * 10;",
        tests: &[Test::own(
            "tenure_sink::processes::v4_a_stopped_writer_holds_off_a_seal_at_files_within_the_bound_and_says_so",
        )],
    },
    Mutant {
        id: "V4",
        what: "a seal gives its place up after each second",
        file: POSTGRES_SQL,
        find: "ELSE remains - patience END;",
        replace: "ELSE patience END;",
        tests: &[Test::own("tenure_sink::postgres::waiting::long_transactions_that_overlap_do_not_hold_a_seal_off")],
    },
    Mutant {
        id: "I10",
        what: "a reopening does not wait for what was checked before",
        file: POSTGRES_SQL,
        find: "LOCK TABLE {schema}.sink_fence IN ACCESS EXCLUSIVE MODE;",
        replace: "",
        tests: &[Test::own(
            "tenure_sink::postgres::isolation::a_reopening_waits_for_what_was_checked_before_and_a_check_for_the_reopening",
        )],
    },
    Mutant {
        id: "I2",
        what: "a transaction's snapshot is believed without the lock on the row",
        file: POSTGRES_SQL,
        find: "OPERATOR(pg_catalog.=) 'read committedoff'",
        replace: "IS NOT NULL",
        tests: &[
            Test::own("tenure_sink::postgres::isolation::a_snapshot_from_before_the_seal_admits_nothing"),
            Test::own("tenure_sink::postgres::isolation::a_check_that_waits_for_a_seal_finds_it"),
        ],
    },
    Mutant {
        id: "I3",
        what: "a check takes the short way on another server",
        file: POSTGRES_SQL,
        find: "            AND f.started OPERATOR(pg_catalog.=) pg_catalog.pg_postmaster_start_time()\n",
        replace: "",
        tests: &[Test::own("tenure_sink::postgres::generations::a_promoted_standby_admits_nothing_until_it_is_sealed")],
    },
    Mutant {
        id: "I3",
        what: "a check takes the short way in a copy of the table",
        file: POSTGRES_SQL,
        find: "            AND f.file OPERATOR(pg_catalog.=) pg_catalog.pg_relation_filepath('{schema}.sink_fence'::pg_catalog.regclass){held};",
        replace: "            {held};",
        tests: &[
            Test::own("tenure_sink::postgres::generations::a_dump_that_was_put_back_admits_nothing_until_it_is_sealed"),
            Test::own(
                "tenure_sink::postgres::generations::a_copy_that_took_the_database_s_place_admits_nothing_until_it_is_sealed",
            ),
        ],
    },
    Mutant {
        id: "H1",
        what: "the short way of a check does not look at the deadline",
        file: "crates/tenure-sink/src/postgres/schema.rs",
        find: "AND v.ending IS NULL AND v.now_ns OPERATOR(pg_catalog.<) v.deadline_ns)",
        replace: "AND v.ending IS NULL)",
        tests: &[Test::clause("tenure_sink::conformance::held::at_the_deadline_it_is_over", HELD_POSTGRES)],
    },
    Mutant {
        id: "I9",
        what: "a forgetting with a snapshot misses the fence that was made since",
        file: POSTGRES_SQL,
        find: "PERFORM {schema}.sink_expect_read_committed('forget');",
        replace: "",
        tests: &[Test::own(
            "tenure_sink::postgres::isolation::a_first_seal_is_missed_by_no_forgetting_and_no_reopening",
        )],
    },
    Mutant {
        id: "I3",
        what: "a sink in Redis that is made again is of the generation of the lost one",
        file: "crates/tenure-sink/src/redis/lua/create.lua",
        find: "now[1] .. string.format('%06d', now[2])",
        replace: "'0'",
        tests: &[Test::own("tenure_sink::redis::losses::a_sink_that_is_made_again_is_of_another_generation")],
    },
    Mutant {
        id: "V5",
        what: "a look-up finds nothing",
        file: SQLITE_FENCE,
        find: "?.map_or(Lookup::Absent, Lookup::Found)))",
        replace: "?.map_or(Lookup::Absent, |_| Lookup::Absent)))",
        tests: &[Test::clause("tenure_sink::conformance::operations::lookup_finds_the_effect", SEALED_SQLITE)],
    },
];
