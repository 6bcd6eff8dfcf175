//! What is broken in the authority's stores.

use super::{Mutant, Test};

pub(super) const MUTANTS: &[Mutant] = &[Mutant {
    id: "C3",
    what: "a clock that went back is believed",
    file: "crates/tenure-authority/src/store/sqlite/time.rs",
    find: "if nanos < highest {",
    replace: "if highest == u64::MAX {",
    tests: &[Test::own("tenure_authority::time::a_clock_that_went_back_grants_nothing_until_it_has_caught_up")],
}];
