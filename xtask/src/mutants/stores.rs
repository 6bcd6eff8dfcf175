//! What is broken in the authority's stores.

use super::{Mutant, Test};

const GUARD: &str = "crates/tenure-authority/src/store/sqlite/guard.rs";

pub(super) const MUTANTS: &[Mutant] = &[
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
];
