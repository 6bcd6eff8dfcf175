use crate::site::stderr;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn tenure(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenure")).args(args).output().expect("the command can be started")
}

fn published() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/published.json")
}

/// The incident: the panel says "success, by the new worker", and the document holds the old worker's text.
#[test]
fn the_late_write_lands_without_a_fence_and_is_refused_by_both_rules() {
    let output = tenure(&["demo", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = |receiver, late_write, holds| {
        json!({
            "receiver": receiver,
            "late_write": late_write,
            "late_complete": "refused",
            "authority_value": "new",
            "receiver_value": holds,
        })
    };
    let expected = json!({
        "takeover": [
            row("none", "written", "old"),
            row("high-water", "stale", "new"),
            row("sealed", "stale", "new"),
        ],
        "gap": [
            { "receiver": "high-water", "verdicts": ["written", "written", "stale"] },
            { "receiver": "sealed", "verdicts": ["stale", "written", "stale"] },
        ],
    });
    assert_eq!(shown, expected);
}

#[test]
fn a_fresh_run_equals_the_published_experiment_and_its_own_form() {
    let output = tenure(&["demo", "--check", published().to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("own.json");
    std::fs::write(&own, tenure(&["demo", "--json"]).stdout).unwrap();
    let output = tenure(&["demo", "--check", own.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_stored_result_that_differs_is_named_by_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let changed = dir.path().join("changed.json");
    let text = std::fs::read_to_string(published()).unwrap();
    // The hope that a late write is refused without a fence.
    let mut stored: Value = serde_json::from_str(&text).unwrap();
    stored["scenarios"]["unfenced"]["events"][4][1] = json!("stale");
    std::fs::write(&changed, stored.to_string()).unwrap();
    let output = tenure(&["demo", "--check", changed.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("unfenced.events[4][1]: stored \"stale\", now \"written\""),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_file_without_a_result_costs_no_run_and_says_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nothing.json");
    std::fs::write(&path, "{}").unwrap();
    let output = tenure(&["demo", "--check", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(64));
    assert!(output.stdout.is_empty());
    assert!(stderr(&output).contains("neither \"takeover\" nor \"scenarios\""), "{}", stderr(&output));
}

#[test]
fn keep_leaves_real_rows_and_never_overwrites() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    let output = tenure(&["demo", "--keep", kept.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let receiver = rusqlite::Connection::open(kept.join("takeover-none/receiver.db")).unwrap();
    let value: String = receiver.query_row("SELECT value FROM document", [], |row| row.get(0)).unwrap();
    assert_eq!(value, "old");
    let again = tenure(&["demo", "--keep", kept.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(64));
    assert!(stderr(&again).contains("is not empty"), "{}", stderr(&again));
}

#[test]
fn help_and_completion_are_there() {
    for args in [&["--help"][..], &["demo", "--help"], &["completion", "bash"], &["--version"]] {
        let output = tenure(args);
        assert!(output.status.success() && !output.stdout.is_empty(), "{args:?}");
    }
    assert_eq!(tenure(&["no-such-verb"]).status.code(), Some(64));
}
