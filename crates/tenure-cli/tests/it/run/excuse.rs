//! Receivers that a command may start without.

use super::account;
use crate::site::Site;
use serde_json::json;
use std::net::TcpListener;

/// The address of a server that is down.
fn down() -> String {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    format!("postgres://127.0.0.1:{port}/copy?id=copy")
}

const MAIN: &str = "file:main?id=main&create=true";

#[test]
fn a_command_starts_without_a_receiver_that_is_excused_and_every_verb_says_so() {
    let site = Site::new();
    let script = format!(
        "set -e; for verb in 'show r' ls 'sinks r ls' history; do {0} $verb; done; {0} show r --json >shown.json",
        env!("CARGO_BIN_EXE_tenure")
    );
    let (down, sh) = (down(), ["--json", "--", "sh", "-c", &script]);
    let run =
        ["run", "--resource", "r", "--sink", MAIN, "--sink", &down, "--excuse", "copy", "--excuse-after", "300ms"];
    let said = site.tenure(&[&run[..], &sh[..]].concat()).ended(0).with(&[
        "its receiver copy could not be sealed",
        "going on without the receiver copy, as --excuse allows",
        "Announced without copy, by the holder's policy",
        "1/2, 1 excused",
        "without copy",
        "the receiver copy was never sealed by this run",
    ]);
    assert_eq!(account(&said)["excused"], json!(["copy"]));
    assert!(said.out.lines().any(|line| line.starts_with("copy") && line.contains("excused")), "{}", said.out);
    let shown = std::fs::read_to_string(site.path("shown.json")).unwrap();
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let receivers: Vec<_> =
        shown["receivers"].as_array().unwrap().iter().map(|of| (&of["id"], &of["sealed"], &of["excused"])).collect();
    let (yes, no) = (json!(true), json!(false));
    assert_eq!(receivers, [(&json!("copy"), &no, &yes), (&json!("main"), &yes, &no)]);
    // The excuse was the grant's, which is given up; that it was never sealed stays in the history.
    site.tenure(&["history", "r"]).ended(0).with(&["never sealed: copy"]);
    let after = site.tenure(&["show", "r", "--json"]).ended(0).whole_json();
    assert_eq!(after["receivers"][0]["excused"], no);
}

#[test]
fn without_an_excuse_a_receiver_that_is_down_is_named_and_nothing_is_started() {
    let site = Site::new();
    let down = down();
    let run = ["run", "--resource", "r", "--sink", MAIN, "--sink", &down, "--wait", "2s", "--", "touch", "started"];
    site.tenure(&run).ended(69).with(&["its receiver copy could not be sealed", "waiting for it for up to 2.0 s"]);
    assert!(!site.path("started").exists());
    let history = site.history();
    assert!(history.iter().all(|row| row.event.name() != "announced"));
    let released = history.iter().rfind(|row| row.resource.is_some()).unwrap();
    assert_eq!(released.event.name(), "released", "the grant is given back");
}

#[test]
fn an_excuse_that_names_nobody_or_never_comes_is_64() {
    let site = Site::new();
    let refused = |args: &[&str]| {
        let run = ["run", "--resource", "r", "--sink", MAIN];
        site.tenure(&[&run, args, &["--", "true"]].concat()).ended(64)
    };
    refused(&["--excuse", "copy"]).with(&["no --sink has this name or address; there is main"]);
    refused(&["--excuse", "main", "--excuse-after", "30s"]).with(&["never comes within --wait 30.0 s"]);
    refused(&["--excuse-after", "3s"]).with(&["--excuse <NAME>"]);
    assert_eq!(site.history().len(), 0, "no session was opened");
}
