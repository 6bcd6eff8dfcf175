//! What is broken in the authority's stores.

use super::{Mutant, Test};

const GUARD: &str = "crates/tenure-authority/src/store/sqlite/guard.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        id: "S2",
        what: "a session is not ended before its owner is refused",
        file: "crates/tenure-core/src/decide/lease.rs",
        find: "(Refusal::SessionEnded { .. }, Standing::Overdue) =>",
        replace: "(Refusal::SessionEnded { .. }, Standing::Missing) =>",
        tests: &[Test::own(
            "tenure_authority::authority::what_was_refused_is_not_made_by_a_request_that_was_sent_before",
        )],
    },
    Mutant {
        id: "I7",
        what: "another file at the same place is not noticed",
        file: GUARD,
        find: "} else if there.file != file.file",
        replace: "} else if there.file != file.file && there.seen.number == 0",
        tests: &[Test::own(
            "tenure_authority::put_back::a_file_that_was_copied_back_grants_nothing_while_a_lost_holder_may_believe",
        )],
    },
    Mutant {
        id: "I7",
        what: "an older history is not noticed",
        file: GUARD,
        find: "} else if there.seen > file.seen",
        replace: "} else if there.seen > file.seen && there.seen.number == 0",
        tests: &[Test::own(
            "tenure_authority::put_back::a_file_that_was_copied_back_into_its_place_is_noticed_by_its_history",
        )],
    },
    Mutant {
        id: "I7",
        what: "a process goes on with a file that is not there any more",
        file: GUARD,
        find: "|| device_and_inode(&place.path) != Some(self.opened) {",
        replace: "|| device_and_inode(&place.path).is_none() {",
        tests: &[Test::own("tenure_authority::put_back::a_process_whose_file_is_replaced_grants_nothing_more")],
    },
    Mutant {
        id: "I7",
        what: "what former workers have seen is not shown",
        file: "crates/tenure/src/keeper/witness.rs",
        find: "Ok(witness) => witness.map(|witness| witness.seen).unwrap_or_default(),",
        replace: "Ok(_) => Seen::default(),",
        tests: &[Test::own("tenure::witness::a_worker_that_is_started_again_notices_what_the_store_cannot")],
    },
    Mutant {
        id: "C3",
        what: "a clock that went back is believed",
        file: "crates/tenure-authority/src/store/sqlite/time.rs",
        find: "if nanos < highest {",
        replace: "if highest == u64::MAX {",
        tests: &[Test::own("tenure_authority::time::a_clock_that_went_back_grants_nothing_until_it_has_caught_up")],
    },
    Mutant {
        id: "S1",
        what: "a swap goes through although its session has ended",
        file: "crates/tenure-authority/src/store/memory.rs",
        find: "swap.relies_on.is_some_and(|id| !self.is_live(id))",
        replace: "swap.relies_on.is_some_and(|id| !self.sessions.contains_key(&id))",
        tests: &[Test::own("tenure_authority::stores::the_memory_store_keeps_the_contract")],
    },
    Mutant {
        id: "S2",
        what: "after an unknown change, an error of the store counts as its refusal",
        file: "crates/tenure-authority/src/authority.rs",
        find: "if !unknown {",
        replace: "if !unknown || error.is_transient() {",
        tests: &[Test::own("tenure_authority::authority::what_was_unknown_stays_unknown_when_the_store_is_gone")],
    },
    Mutant {
        id: "S3",
        what: "a renewal lasts longer than a ttl from its making",
        file: "crates/tenure-authority/src/store/redis/lua/swap.lua",
        find: "when = text(now + tonumber(ttl)) .. rest",
        replace: "when = text(now + tonumber(ttl) + 1) .. rest",
        tests: &[Test::own("tenure_authority::redis::changes::a_deadline_is_exact")],
    },
    Mutant {
        id: "S4",
        what: "a session that is not remembered counts as ended",
        file: "crates/tenure-authority/src/authority/recall.rs",
        find: "granted.map_or(Some(None), |(lease, _)| self.sessions.get(&lease.session).map(Some))?",
        replace: "granted.and_then(|(lease, _)| self.sessions.get(&lease.session))",
        tests: &[Test::own("tenure_authority::recalling::a_holder_that_is_forgotten_is_not_overtaken")],
    },
    Mutant {
        id: "S4",
        what: "the store's own record may have changed since",
        file: "crates/tenure-authority/src/store/memory.rs",
        find: "authority != self.authority_version ||",
        replace: "authority > self.authority_version ||",
        tests: &[Test::own("tenure_authority::stores::the_memory_store_keeps_the_contract")],
    },
    Mutant {
        id: "S5",
        what: "a receiver takes another grant of the epoch that it has",
        file: "crates/tenure-core/src/fence.rs",
        find: "Order::Conflict => Sealing::Conflict { epoch: row.epoch, grant: row.grant },\n        Order::Same | Order::Newer => {",
        replace: "Order::Conflict | Order::Same | Order::Newer => {",
        tests: &[Test::own("tenure::drills::postgres::a_standby_is_promoted_without_the_last_grant")],
    },
    Mutant {
        id: "C6",
        what: "a server's clock that was set back is believed",
        file: "crates/tenure-authority/src/store/redis/lua/head.lua",
        find: "now = math.max(now, floor)",
        replace: "now = math.max(now, now)",
        tests: &[Test::own("tenure_authority::redis::identity::a_clock_that_was_set_back")],
    },
];
