use super::{Mutant, Test, check};
use crate::tidy::File;

const MUTANT: Mutant = Mutant {
    id: "I1",
    what: "falls",
    file: "crates/one/src/lib.rs",
    find: "a < b",
    replace: "a > b",
    tests: &[Test::own("one::holds")],
};

fn findings(code: &str, mutants: &[Mutant]) -> Vec<String> {
    let document = "| id | what | test |\n|---|---|---|\n| I1 | says | `one::holds` `one::races::holds` |\n";
    let files = [File::new("GUARANTEES.md", document), File::new("crates/one/src/lib.rs", code)];
    check(&files, mutants).iter().map(ToString::to_string).collect()
}

#[test]
fn a_mutant_that_fits_is_no_finding() {
    assert_eq!(findings("if a < b {}", &[MUTANT]), Vec::<String>::new());
    assert_eq!(MUTANT.applied("if a < b {}").as_deref(), Ok("if a > b {}"));
}

#[test]
fn a_guarantee_without_a_mutant_is_a_finding() {
    assert_eq!(findings("", &[]), ["GUARANTEES.md:3: I1 has no mutant in xtask/src/mutants"]);
}

#[test]
fn a_text_that_is_gone_or_stands_twice_is_a_finding() {
    for (code, count) in [("if b > a {}", "0 times"), ("a < b || a < b", "2 times")] {
        let found = findings(code, &[MUTANT]);
        assert!(found.len() == 1 && found[0].contains(count), "{found:?}");
    }
    let found = findings("a < b", &[Mutant { replace: "a < b", ..MUTANT }]);
    assert!(found.len() == 1 && found[0].contains("changes nothing"), "{found:?}");
    let found = findings("a < b", &[Mutant { file: "crates/one/src/gone.rs", ..MUTANT }]);
    assert!(found.len() == 1 && found[0].contains("not there"), "{found:?}");
}

#[test]
fn a_test_that_the_guarantee_does_not_name_is_a_finding() {
    const OTHER: &[Test] = &[Test::own("one::other")];
    let found = findings("a < b", &[Mutant { tests: OTHER, ..MUTANT }]);
    assert!(
        found.len() == 1 && found[0].contains("`one::other`, which GUARANTEES.md does not name for I1"),
        "{found:?}"
    );
    let found = findings("a < b", &[Mutant { tests: &[], ..MUTANT }]);
    assert!(found.len() == 1 && found[0].contains("names no test"), "{found:?}");
    let found = findings("a < b", &[MUTANT, Mutant { id: "I2", ..MUTANT }]);
    assert!(found.len() == 1 && found[0].contains("breaks no guarantee"), "{found:?}");
}
