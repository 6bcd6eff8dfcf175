//! What is broken in the application vector-sync.

use super::{Mutant, Test};

const FILES: &str = "apps/vector-sync/src/index/sqlite/files.rs";
const CATALOG: &str = "apps/vector-sync/src/index/catalog/sqlite.rs";
const ROUND: &str = "apps/vector-sync/src/round.rs";
const LISTING: &str = "apps/vector-sync/src/round/listing.rs";
const TURN: &str = "apps/vector-sync/src/turn.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        id: "A1",
        what: "a token that is refused may write all the same",
        file: FILES,
        find: "            Err(verdict) => Err(refused(verdict)),\n",
        replace: "            Err(_) => work(tx),\n",
        tests: &[Test::clause(
            "vector_sync::conformance::fencing::an_older_token_is_refused_by_each_call",
            "conformance::sqlite::an_older_token_is_refused_by_each_call",
        )],
    },
    Mutant {
        id: "A2",
        what: "a record that is missing stays missing",
        file: "apps/vector-sync/src/round/finish.rs",
        find: "live.filter(|live| !live.recorded)",
        replace: "live.filter(|_| false)",
        tests: &[Test::own("vector_sync::drills::a_builder_killed_at_each_point_leaves_a_whole_version_on_sqlite")],
    },
    Mutant {
        id: "A2",
        what: "vectors that nobody has used yet are dropped",
        file: CATALOG,
        find: "WHERE used < (SELECT min(epoch) FROM generation WHERE state = 'published')",
        replace: "WHERE used NOT IN (SELECT epoch FROM generation WHERE state = 'published')",
        tests: &[Test::clause(
            "vector_sync::conformance::vectors::kept_vectors_are_there_until_nobody_uses_them",
            "conformance::sqlite::kept_vectors_are_there_until_nobody_uses_them",
        )],
    },
    Mutant {
        id: "A3",
        what: "a search reads the newest generation, whatever the alias says",
        file: CATALOG,
        find: "let sql = format!(\"SELECT {BUILT}, a.version FROM alias AS a JOIN generation AS g ON g.epoch = a.epoch\");",
        replace: "let sql = format!(\"SELECT {BUILT}, a.version FROM alias AS a, generation AS g ORDER BY g.epoch DESC LIMIT 1\");",
        tests: &[Test::clause(
            "vector_sync::conformance::reading::a_generation_is_seen_by_nobody_before_its_time",
            "conformance::sqlite::a_generation_is_seen_by_nobody_before_its_time",
        )],
    },
    Mutant {
        id: "A4",
        what: "the alias moves from any version",
        file: CATALOG,
        find: "    if live != switch.from {",
        replace: "    if live < switch.from {",
        tests: &[Test::clause(
            "vector_sync::conformance::switching::of_many_moves_from_one_version_one_is_made",
            "conformance::sqlite::of_many_moves_from_one_version_one_is_made",
        )],
    },
    Mutant {
        id: "A5",
        what: "what was rolled back from is published again by the next round",
        file: ROUND,
        find: "        if live.rejected.as_ref() == Some(making) && !settings.again {",
        replace: "        if live.rejected.as_ref() == Some(making) && settings.keep > 99 {",
        tests: &[Test::own("vector_sync::verbs::a_rollback_is_a_version_of_its_own_and_stays")],
    },
    Mutant {
        id: "A6",
        what: "a remover asks nobody whether a generation is condemned",
        file: CATALOG,
        find: "        Some((built, state)) if state == State::Condemned.name() => Ok(Some(built)),",
        replace: "        Some((built, state)) if !state.is_empty() => Ok(Some(built)),",
        tests: &[Test::clause(
            "vector_sync::conformance::cleaning::a_remover_that_was_stopped_removes_nothing_that_is_read",
            "conformance::sqlite::a_remover_that_was_stopped_removes_nothing_that_is_read",
        )],
    },
    Mutant {
        id: "A7",
        what: "all tenants share a file",
        file: FILES,
        find: "        self.folder.join(format!(\"{tenant}.db\"))",
        replace: "        self.folder.join(format!(\"{:.0}all.db\", tenant.as_str()))",
        tests: &[Test::clause(
            "vector_sync::conformance::apart::another_tenant_waits_for_nobody",
            "conformance::sqlite::another_tenant_waits_for_nobody",
        )],
    },
    Mutant {
        id: "A8",
        what: "documents that cannot be used are left out in silence",
        file: LISTING,
        find: "        if count > 0 {",
        replace: "        if count > 99 {",
        tests: &[Test::own("vector_sync::verbs::what_cannot_be_used_is_named_and_nothing_is_published")],
    },
    Mutant {
        id: "A9",
        what: "a lease lasts only while the store answers",
        file: TURN,
        find: ".ttl(ttl).wait(wait)",
        replace: ".ttl(ttl).progress_within(Duration::from_secs(2)).wait(wait)",
        tests: &[Test::own("vector_sync::faults::a_store_that_is_slower_than_the_lease_does_not_lose_it")],
    },
    Mutant {
        id: "A10",
        what: "a round tells what its documents say",
        file: LISTING,
        find: "            with_text += u64::from(!chunks.is_empty());",
        replace: "            with_text += u64::from(!chunks.is_empty());
            chunks.iter().for_each(|chunk| turn.warn(chunk.text.clone()));",
        tests: &[Test::own("vector_sync::verbs::no_document_is_in_any_output_of_a_round")],
    },
];
