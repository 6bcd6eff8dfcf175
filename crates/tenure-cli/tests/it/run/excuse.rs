//! Receivers that a command may start without.

use super::{Running, account};
use crate::rig::until;
use crate::site::Site;
use serde_json::json;
use std::net::TcpListener;
use tenure::core::fence::Rule;
use tenure::sink::{FileSink, SqliteSink};

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

/// A folder that was not mounted yet kept the command from starting, although it was excused.
#[test]
fn a_receiver_in_files_that_is_not_there_is_excused_and_sealed_when_it_comes() {
    let site = Site::new();
    let script = site.script("waits.sh", "echo up; until [ -e go ]; do sleep 0.02; done");
    for (number, copy) in ["file:copy-0?id=copy", "sqlite:copy-1?id=copy"].into_iter().enumerate() {
        let resource = format!("r{number}");
        let path = site.path(&format!("copy-{number}"));
        let args = [
            &[
                "run",
                "--resource",
                &resource,
                "--sink",
                MAIN,
                "--sink",
                copy,
                "--excuse",
                "copy",
                "--excuse-after",
                "200ms",
            ],
            &["--", "sh", &script][..],
        ];
        let mut run = Running::start(site.command(&args.concat()));
        run.hear("up");
        assert!(!path.exists(), "nothing is made");
        let shown = || site.tenure(&["show", &resource, "--json"]).ended(0).whole_json()["receivers"][0].clone();
        assert_eq!((&shown()["id"], &shown()["excused"]), (&json!("copy"), &json!(true)));
        match number {
            0 => drop(FileSink::create(&path, "copy".parse().unwrap(), Rule::Sealed).unwrap()),
            _ => drop(SqliteSink::create(&path, "copy".parse().unwrap(), Rule::Sealed).unwrap()),
        }
        until("it is sealed", || shown()["sealed"] == json!(true));
        assert_eq!(shown()["excused"], json!(false));
        std::fs::write(site.path("go"), "").unwrap();
        run.end().ended(0).with(&["going on without the receiver copy", "the receiver copy is sealed now"]);
        std::fs::remove_file(site.path("go")).unwrap();
    }
    // Not excused, it is an error at once, and so is an address that makes no sense.
    let run = ["run", "--resource", "r", "--sink", "file:nowhere?id=copy"];
    site.tenure(&[&run[..], &["--", "true"]].concat()).ended(69).with(&["nowhere is not there"]);
    let run = ["run", "--resource", "r", "--sink", "file:nowhere?id=copy&rul=sealed", "--excuse", "copy"];
    site.tenure(&[&run[..], &["--", "true"]].concat()).ended(64).with(&["has no parameter"]);
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
