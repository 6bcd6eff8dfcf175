//! The rules of the tree, applied to the tree. What each rule means, and its failing case, stands in `xtask::tidy`.

use xtask::mutants;
use xtask::tidy::{self, File, Finding};
use xtask::workspace::{self, Package};

fn tree() -> Result<(Vec<File>, Vec<Package>), String> {
    let root = workspace::root()?;
    let files = tidy::tree::read(&root).map_err(|error| format!("the tree could not be read: {error}"))?;
    Ok((files, workspace::packages(&root)?))
}

#[track_caller]
fn none(findings: &[Finding]) {
    let shown: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "\n{}\n", shown.join("\n"));
}

#[test]
fn packages_depend_only_on_what_they_may_know() {
    none(&tidy::directions::check(&tree().unwrap().1));
}

#[test]
fn files_are_short() {
    none(&tidy::lengths::check(&tree().unwrap().0, tidy::lengths::RATCHET));
}

#[test]
fn words_have_one_meaning() {
    none(&tidy::words::check(&tree().unwrap().0));
}

#[test]
fn nothing_is_unfinished() {
    none(&tidy::marks::check(&tree().unwrap().0));
}

#[test]
fn no_machine_and_no_registry_is_named() {
    none(&tidy::places::check(&tree().unwrap().0));
}

#[test]
fn nothing_is_called_after_nothing() {
    let (files, packages) = tree().unwrap();
    none(&tidy::names::check(&files, &packages));
}

#[test]
fn every_guarantee_names_a_test_that_exists() {
    let (files, packages) = tree().unwrap();
    none(&tidy::guarantees::check(&files, &packages));
}

/// Broken, and noticed, they are by `cargo xtask break`.
#[test]
fn every_guarantee_can_be_broken() {
    none(&mutants::check(&tree().unwrap().0, &mutants::all()));
}

#[test]
fn the_documents_are_there() {
    none(&tidy::documents::check(&tree().unwrap().0));
}

#[test]
fn manifests_say_what_they_must() {
    let (files, packages) = tree().unwrap();
    none(&tidy::manifests::check(&files, &packages));
}
