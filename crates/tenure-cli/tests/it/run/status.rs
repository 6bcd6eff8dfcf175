use super::{Running, account};
use crate::rig::until;
use crate::site::{Said, Site, hold};
use std::io::Write;
use std::process::Stdio;

/// The exit status is the command's own, so that a run can stand in front of anything.
#[test]
fn the_commands_own_status_comes_through() {
    let site = Site::new();
    for (script, code) in
        [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137)]
    {
        site.tenure(&["run", "--resource", "r", "--", "sh", "-c", script]).ended(code);
    }
    // Each was released at once: the next one did not wait.
    assert_eq!(site.history().iter().filter(|row| row.event.name() == "released").count(), 5);
}

#[test]
fn standard_streams_pass_through_untouched() {
    let site = Site::new();
    let mut command = site.command(&["run", "--resource", "r", "--", "sh", "-c", "cat; echo aside >&2"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let sent = bytes.clone();
    let mut input = child.stdin.take().unwrap();
    let sending = std::thread::spawn(move || input.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    sending.join().unwrap();
    assert!(output.stdout == bytes, "{} bytes came back", output.stdout.len());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "aside\n");
}

#[test]
fn the_command_finds_its_right_in_its_environment() {
    let site = Site::new();
    let said = site.tenure(&["run", "--resource", "tenant:42", "--owner", "nightly", "--", "env"]).ended(0);
    let value = |name: &str| {
        let line = said.out.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.unwrap_or_else(|| panic!("no {name} in {said:#?}")).to_owned()
    };
    assert_eq!((value("TENURE_RESOURCE"), value("TENURE_EPOCH")), ("tenant:42".into(), "1".into()));
    assert!(value("TENURE_TOKEN").starts_with("tenant:42@1:"));
    assert_eq!(value("TENURE_AUTHORITY"), site.authority());
    assert!(value("TENURE_OWNER").starts_with("nightly@"));
}

/// A relative address would lead a command that goes to another folder to another authority, or to none.
#[test]
fn the_authoritys_address_holds_in_another_folder() {
    let site = Site::new();
    let check = format!("cd / && {} check", env!("CARGO_BIN_EXE_tenure"));
    let run = ["run", "--resource", "r", "--authority", "sqlite:authority.db", "--", "sh", "-c", &check];
    site.tenure(&run).ended(0);
}

#[test]
fn a_command_that_is_not_there_or_cannot_be_started_acquires_nothing_or_gives_it_back() {
    let site = Site::new();
    site.tenure(&["run", "--resource", "r", "--", "no-such-command"])
        .ended(127)
        .with(&["no-such-command is not there"]);
    assert_eq!(site.history().len(), 0, "no session was opened");
    std::fs::write(site.path("plain"), "no program").unwrap();
    site.tenure(&["run", "--resource", "r", "--", "./plain"]).ended(126).with(&["cannot be started"]);
    site.tenure(&["run", "--resource", "r", "--wait", "0s", "--", "true"]).ended(0);
}

#[test]
fn a_command_line_that_makes_no_sense_is_64_and_says_what_would() {
    let site = Site::new();
    let refused = |args: &[&str]| site.tenure(&[&["run"], args].concat()).ended(64);
    refused(&["--", "true"]).with(&["--resource"]);
    refused(&["--resource", "r"]).with(&["CMD"]);
    refused(&["--resource", "", "--", "true"]).with(&["the resource name is empty"]);
    refused(&["--resource", "r", "--ttl", "soon", "--", "true"]).with(&["90s"]);
    refused(&["--resource", "r", "--ttl", "1ms", "--", "true"]).with(&["too short"]);
    refused(&["--resource", "r", "--ttl", "10s", "--grace", "5s", "--", "true"])
        .with(&["at most 2.333s", "at least 22s"]);
    refused(&["--resource", "r", "--authority", "nowhere", "--", "true"]).with(&["sqlite:PATH"]);
    refused(&["--resource", "r", "--sink", "ftp:x", "--", "true"]).with(&["file:FOLDER"]);
}

#[test]
fn an_authority_or_a_receiver_that_is_not_there_is_69_and_nothing_is_made() {
    let site = Site::new();
    let gone = format!("sqlite:{}", site.path("gone.db").display());
    site.tenure(&["run", "--resource", "r", "--authority", &gone, "--", "true"]).ended(69).with(&["create=true"]);
    assert!(!site.path("gone.db").exists());
    let sink = format!("file:{}", site.path("no-sink").display());
    site.tenure(&["run", "--resource", "r", "--sink", &sink, "--", "true"]).ended(69).with(&["is not there"]);
}

/// Without an address there is a place for it, so that the first try needs no configuration.
#[test]
fn without_an_address_an_authority_of_ones_own_is_made() {
    let site = Site::new();
    let mut command = site.command(&["run", "--resource", "r", "--", "true"]);
    let output = command.env_remove("TENURE_AUTHORITY").output().unwrap();
    Said::of(output).ended(0);
    assert!(site.path("XDG_STATE_HOME/tenure/authority.db").exists());
}

/// Users ask: who holds it, where, since when, and what may I do. A lock that was 32 days old said none of it.
#[test]
fn held_by_another_says_who_where_since_when_how_long_and_what_next() {
    let site = Site::new();
    let worker = site.worker("other@elsewhere/77");
    let lease = hold(&worker, "r", &[]);
    let said = site.tenure(&["run", "--resource", "r", "--wait", "0s", "--json", "--", "true"]).ended(75);
    let parts =
        ["r is held by other@elsewhere, pid 77 there", "epoch 1", " ago)", "left unless", "tenure takeover r --reason"];
    let said = said.with(&parts);
    let account = account(&said);
    assert_eq!(account["outcome"], "not_acquired");
    assert_eq!(account["exit_code"], 75);
    assert_eq!(account["holder"]["place"], "other@elsewhere");
    assert_eq!((&account["holder"]["pid"], &account["holder"]["epoch"]), (&77.into(), &1.into()));
    assert!(account["holder"]["remaining_ms"].as_u64().unwrap() > 100_000, "{account}");
    assert!(said.out.is_empty(), "standard output is the command's");
    lease.release().unwrap();
}

/// The second of two waits, says for whom, and runs when the first is done.
#[test]
fn whoever_waits_runs_after_the_first_has_released() {
    let site = Site::new();
    let script = "echo up; until [ -e go ]; do sleep 0.05; done";
    let mut first = Running::start(site.command(&["run", "--resource", "r", "--", "sh", "-c", script]));
    first.hear("up");
    let second = Running::start(site.command(&["run", "--resource", "r", "--wait", "20s", "--", "echo", "mine"]));
    until("the second has asked", || site.history().iter().filter(|row| row.event.name() == "opened").count() == 2);
    std::fs::write(site.path("go"), "").unwrap();
    first.end().ended(0);
    let said = second.end().ended(0).with(&["is held by op@", "which runs here"]);
    assert_eq!(said.out, "mine\n");
}

#[test]
fn a_completed_resource_is_not_run_again_and_an_operator_is_named() {
    let site = Site::new();
    let worker = site.worker("other");
    hold(&worker, "r", &[]).complete("version 12").unwrap();
    let said = site.tenure(&["run", "--resource", "r", "--", "true"]).ended(75);
    said.with(&["has completed the resource under epoch 1"]);
}

/// A script gets checkpoints and a receiver from one word in front of it.
#[test]
fn a_script_inside_checks_and_puts_into_a_receiver_that_was_sealed_first() {
    let site = Site::new();
    let sink = site.files("out");
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let script = format!("{tenure} check && echo result | {tenure} put --sink {sink} --op today --name report");
    site.tenure(&["run", "--resource", "r", "--sink", &sink, "--", "sh", "-c", &script]).ended(0);
    assert_eq!(std::fs::read_to_string(site.path("out/report")).unwrap(), "result\n");
    // The next run's epoch is sealed there before it starts, so the first one's token is refused from then on.
    let stale = "printf %s $TENURE_TOKEN > first";
    site.tenure(&["run", "--resource", "r", "--sink", &sink, "--", "sh", "-c", stale]).ended(0);
    let token = std::fs::read_to_string(site.path("first")).unwrap();
    site.tenure(&["run", "--resource", "r", "--sink", &sink, "--", "true"]).ended(0);
    site.fed(&token, b"late", &["put", "--sink", &sink, "--name", "report"]).ended(76).with(&["stale"]);
    assert_eq!(std::fs::read_to_string(site.path("out/report")).unwrap(), "result\n");
}

/// What a command leaves behind would go on writing after the release.
#[test]
fn what_the_command_leaves_behind_is_ended_before_the_release() {
    let site = Site::new();
    let script = "setsid sh -c 'echo > away; exec sleep 600' & sleep 600 & until [ -e away ]; do sleep 0.01; done; echo left $!; exit 4";
    let said = site.tenure(&["run", "--resource", "r", "--json", "--", "sh", "-c", script]).ended(4);
    let said = said.with(&["the command had left s", "it was ended before r was released"]);
    let left = account(&said)["ended"]["left_behind"].as_array().unwrap().len();
    assert_eq!(left, 2);
    let pid = super::pid(said.out.trim().strip_prefix("left ").unwrap());
    assert!(!super::is_alive(pid));
}

/// Also when it does not want to end: whoever comes next, and looks, finds nothing of it.
#[test]
fn nobody_gets_the_resource_while_something_is_left_of_the_command_before() {
    let site = Site::new();
    let script = "sh -c 'trap \"\" TERM; echo $$ > left; while [ -s left ]; do sleep 0.01; done' & until [ -s left ]; do sleep 0.01; done; echo up";
    let mut first =
        Running::start(site.command(&["run", "--resource", "r", "--grace", "2s", "--", "sh", "-c", script]));
    first.hear("up");
    let look = "if kill -0 $(cat left); then echo alive; else echo gone; fi";
    let second = site.tenure(&["run", "--resource", "r", "--wait", "20s", "--", "sh", "-c", look]).ended(0);
    assert_eq!(second.out, "gone\n");
    first.end().ended(0).with(&["was ended before r was released"]);
}
