use std::path::Path;

use super::{Need, install, needs, provide};
use crate::call::Call;

fn need(probe: &str) -> Need {
    Need { what: "a thing", why: "this test", probe: Call::new(probe, &[]), debian: &[], by_hand: "get-it now" }
}

#[test]
fn what_is_missing_is_named_with_the_command_that_brings_it() {
    let missing = provide(&[need("true"), need("false")], true, Path::new(".")).unwrap_err();
    assert_eq!(missing.to_string(), "a thing is missing (this test): get-it now");
    assert!(provide(&[need("true")], false, Path::new(".")).is_ok());
}

#[test]
fn packages_are_installed_without_a_question() {
    assert!(install(&[]).is_empty());
    let calls: Vec<String> = install(&["one", "two"]).iter().map(ToString::to_string).collect();
    assert_eq!(
        calls,
        [
            "DEBIAN_FRONTEND=noninteractive apt-get update",
            "DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends one two",
        ]
    );
}

#[test]
fn this_machine_has_what_the_tests_need() {
    assert!(provide(&needs(), false, Path::new(".")).is_ok());
}
