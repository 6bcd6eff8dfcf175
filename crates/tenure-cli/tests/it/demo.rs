use crate::site::stderr;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tenure_servers::postgres::psql;
use tenure_servers::{Postgres, Redis, S3};

fn tenure(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenure")).args(args).output().expect("the command can be started")
}

fn published() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/published.json")
}

/// The incident: the panel says "success, by the new worker", and the document holds the old worker's text.
#[test]
fn the_late_write_lands_without_a_fence_and_is_refused_by_both_rules() {
    assert_eq!(shown(&tenure(&["demo", "--json"])), expected());
}

fn shown(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The same rows on every receiver.
fn expected() -> Value {
    let row = |receiver, late_write, holds| {
        json!({
            "receiver": receiver,
            "late_write": late_write,
            "late_complete": "refused",
            "authority_value": "new",
            "receiver_value": holds,
        })
    };
    json!({
        "takeover": [
            row("none", "written", "old"),
            row("high-water", "stale", "new"),
            row("sealed", "stale", "new"),
        ],
        "gap": [
            { "receiver": "high-water", "verdicts": ["written", "written", "stale"] },
            { "receiver": "sealed", "verdicts": ["stale", "written", "stale"] },
        ],
    })
}

#[test]
fn files_show_the_same_rows() {
    assert_eq!(shown(&tenure(&["demo", "--sink", "files", "--json"])), expected());
}

#[test]
fn postgresql_shows_the_same_rows_and_is_left_as_it_was() {
    let url = Postgres::shared().database();
    assert_eq!(shown(&tenure(&["demo", "--sink", &url, "--json"])), expected());
    let schemas =
        psql(&url, "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'demo%' OR nspname = 'tenure'").unwrap();
    assert_eq!(schemas, "0");
}

#[test]
fn redis_shows_the_same_rows_says_that_it_may_lose_them_and_is_left_as_it_was() {
    let redis = Redis::start();
    assert_eq!(shown(&tenure(&["demo", "--sink", &redis.url(), "--json"])), expected());
    assert_eq!(redis.cli(&["dbsize"]), "0");
    let output = tenure(&["demo", "--sink", &redis.url()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("may lose: a failover may lose the newest writes"), "{text}");
}

#[test]
fn a_bucket_shows_the_same_rows_and_is_left_as_it_was() {
    let s3 = S3::shared();
    let url = format!("s3://{}/{}?endpoint={}", s3.bucket(), s3.prefix(), s3.endpoint());
    let demo = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.args(["demo", "--sink", &url]).args(args).envs(s3.credentials()).output().unwrap()
    };
    assert_eq!(shown(&demo(&["--json"])), expected());
    // What a demo leaves behind it says.
    let output = demo(&[]);
    assert!(output.status.success() && !stderr(&output).contains("left behind"), "{}", stderr(&output));
}

#[test]
fn what_is_kept_on_a_server_is_named() {
    let (url, dir) = (Postgres::shared().database(), tempfile::tempdir().unwrap());
    let kept = dir.path().join("kept");
    let output = tenure(&["demo", "--sink", &url, "--keep", kept.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("The documents are demo_"), "{text}");
    let schema = psql(&url, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'demo%takeover_none'").unwrap();
    assert_eq!(psql(&url, &format!("SELECT value FROM {schema}.document")).unwrap(), "old");
}

#[test]
fn a_place_for_the_documents_that_is_none_is_refused_before_anything_runs() {
    let output = tenure(&["demo", "--sink", "postgres"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(stderr(&output).contains("postgres://USER@HOST/DATABASE"), "{}", stderr(&output));
    for secret in ["mongodb://app:hunter2@h", "postgres://app:hunter2@h/d?schema=prod"] {
        let output = tenure(&["demo", "--sink", secret]);
        assert_eq!(output.status.code(), Some(64));
        assert!(!stderr(&output).contains("hunter2"), "{}", stderr(&output));
    }
    let output = tenure(&["demo", "--sink", "redis://127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(69));
    assert!(output.stdout.is_empty());
    assert!(stderr(&output).contains("127.0.0.1:1"), "{}", stderr(&output));
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
