use super::{Work, steps};
use crate::workspace::Package;

fn package(name: &str, is_library: bool, features: &[&str]) -> Package {
    let features = features.iter().map(|&feature| feature.to_owned()).collect();
    Package { name: name.to_owned(), is_library, features, ..Package::default() }
}

#[test]
fn every_feature_of_every_library_is_compiled_alone() {
    let packages = [package("one", true, &["a", "b"]), package("tool", false, &["c"]), package("two", true, &[])];
    let steps = steps(&packages);
    let features = steps.iter().find(|step| step.name == "features").unwrap();
    let Work::Calls(calls) = &features.work else { panic!("the step makes calls") };
    let shown: Vec<String> = calls.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "cargo clippy --package one --no-default-features -- -D warnings",
            "cargo clippy --package one --no-default-features --features a -- -D warnings",
            "cargo clippy --package one --no-default-features --features b -- -D warnings",
            "cargo clippy --package two --no-default-features -- -D warnings",
        ]
    );
}

#[test]
fn names_are_unique_so_that_only_picks_one() {
    let mut names: Vec<&str> = steps(&[]).iter().map(|step| step.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

/// `.ci/run` installs a version by itself; two versions would be two sets of rules.
#[test]
fn ci_installs_the_version_of_cargo_deny_that_is_named_here() {
    let script = include_str!("../../../.ci/run");
    assert!(script.contains(&format!("cargo_deny_version={}\n", super::CARGO_DENY)));
}
