//! The sixteen scenarios of a lost receipt.

use crate::site::Site;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn published() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/receipts.json")
}

/// The published account of the experiment: state before and after recovery, in all sixteen.
#[test]
fn a_fresh_run_equals_the_published_experiment_and_its_own_form() {
    let site = Site::new();
    let own = site.tenure(&["demo", "receipts", "--json", "--check", published().to_str().unwrap()]).ended(0);
    let own = own.with(&["equal to", "all 16 cases"]);
    std::fs::write(site.path("own.json"), &own.out).unwrap();
    site.tenure(&["demo", "receipts", "--check", "own.json"]).ended(0);
}

/// What the three that break a rule come to, and what a lost answer never comes to.
#[test]
fn the_counterexamples_go_wrong_and_nothing_else_does() {
    let said = Site::new().tenure(&["demo", "receipts"]).ended(0);
    let marked: Vec<_> = said.out.lines().filter(|line| line.contains("<- counterexample")).collect();
    let names: Vec<_> = marked.iter().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, ["naive_lost_ack", "mark_before_send_loses_task", "unsafe_external_retry"]);
    said.with(&["Not proved:", "before_external_effect"]);
}

#[test]
fn a_difference_is_named_by_its_place() {
    let site = Site::new();
    let mut stored: Value = serde_json::from_slice(&std::fs::read(published()).unwrap()).unwrap();
    // The hope that a call to a system without receipts is made once all the same.
    stored["cases"]["after_external_effect"]["after"]["sender_state"] = json!("done");
    std::fs::write(site.path("changed.json"), stored.to_string()).unwrap();
    let said = site.tenure(&["demo", "receipts", "--check", "changed.json"]).ended(1);
    said.with(&["cases.after_external_effect.after.sender_state: stored \"done\", now \"unknown\""]);
    std::fs::write(site.path("nothing.json"), "{}").unwrap();
    site.tenure(&["demo", "receipts", "--check", "nothing.json"]).ended(64).with(&["it has no \"cases\""]);
}

#[test]
fn keep_leaves_the_books() {
    let site = Site::new();
    site.tenure(&["demo", "receipts", "--keep", "kept"]).ended(0).with(&["The databases are in"]);
    let listed = site.tenure(&["unknown", "ls", "--sink", "sqlite:kept/after_external_effect/sender.db", "--json"]);
    let listed = listed.ended(0).whole_json();
    assert_eq!(listed["attempts"][0]["state"], "unknown", "{listed}");
    assert_eq!(listed["attempts"][0]["owner"]["name"], "A");
    site.tenure(&["demo", "receipts", "--keep", "kept"]).ended(64).with(&["is not empty"]);
    site.tenure(&["demo", "--json", "receipts"]).ended(64);
}
