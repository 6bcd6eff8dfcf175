use super::{Outcome, entry, judge, place, table};
use crate::mutants::binaries::Ended;
use crate::mutants::{Mutant, Test};
use std::path::Path;

const OWN: Test = Test::own("one_crate::module::holds");
const CLAUSE: Test = Test::clause("one_crate::conformance::races::holds", "suite::passes");

fn judged(test: &Test, ended: Ended) -> Outcome {
    judge(test, ended, Path::new("/nowhere/at/all"))
}

#[test]
fn only_a_failure_of_the_test_itself_is_noticed() {
    assert_eq!(judged(&OWN, Ended::Passed), Outcome::Missed);
    assert_eq!(judged(&OWN, Ended::Hung), Outcome::Hung);
    assert_eq!(judged(&OWN, Ended::Failed("anything".to_owned())), Outcome::Noticed);
}

#[test]
fn a_clause_must_be_seen_in_the_failure_of_its_suite() {
    let said = |what: &str| Ended::Failed(what.to_owned());
    assert_eq!(judged(&CLAUSE, said("12: one_crate::conformance::races::holds\n")), Outcome::Noticed);
    assert_eq!(judged(&CLAUSE, said("12: one_crate::conformance::tokens::holds\n")), Outcome::Elsewhere);
}

#[test]
fn what_is_run_and_printed() {
    assert_eq!((entry(&OWN), entry(&CLAUSE)), ("module::holds", "suite::passes"));
    assert_eq!((OWN.package().as_str(), CLAUSE.package().as_str()), ("one-crate", "one-crate"));
    let mutant = Mutant { id: "I1", what: "falls", file: "a.rs", find: "a", replace: "b", tests: &[OWN] };
    let rows = [(&mutant, &OWN, Outcome::Broken("does not compile:\nerror".to_owned()), 7)];
    let line = "| I1 | falls | `one_crate::module::holds` | does not compile: | 7 |\n";
    assert!(table(&rows).ends_with(line), "{}", table(&rows));
}

#[test]
fn the_table_is_in_the_order_of_the_document() {
    let ids = ["I1", "I2", "I11", "L1", "V6", "C1"];
    assert!(ids.map(place).is_sorted(), "{:?}", ids.map(place));
}
