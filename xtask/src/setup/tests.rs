use std::path::Path;

use super::{DOCUMENTS, MODEL, Need, install, needs, provide};
use crate::call::Call;

fn need(probe: &str) -> Need {
    Need {
        what: "a thing",
        why: "this test",
        probe: Call::new(probe, &[]),
        debian: &[],
        fetch: None,
        by_hand: "get-it now",
    }
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
    for need in needs() {
        assert!(need.probe.succeeds(Path::new(".")), "{} is missing: {}", need.what, need.by_hand);
    }
}

#[test]
fn what_debian_does_not_have_is_fetched_without_rights() {
    let dir = std::env::temp_dir();
    let place = dir.join(format!("tenure-fetched-{}", std::process::id()));
    let path = place.to_str().expect("text");
    let thing =
        Need { probe: Call::new("test", &["-e", path]), fetch: Some(Call::new("touch", &[path])), ..need("unused") };
    assert!(provide(std::slice::from_ref(&thing), false, &dir).is_ok());
    std::fs::remove_file(&place).expect("it was fetched");
    let in_vain = Need { fetch: Some(Call::new("false", &[])), ..thing };
    assert!(provide(&[in_vain], false, &dir).is_err());
}

#[test]
fn what_the_tests_get_is_what_the_program_gets() {
    let known = include_str!("../../../apps/vector-sync/src/embed/files.rs");
    for part in MODEL.into_iter().chain(DOCUMENTS) {
        assert!(known.contains(&format!("{part:?}")), "{part} is another one there");
    }
}
