use super::{Running, account, is_alive, pid, stands_still};
use crate::rig::until;
use crate::site::{Site, hold};
use rustix::process::Signal;
use tenure::authority::BootClock;

/// A 6 TB first backup died because the laptop slept longer than the lease, with nobody else there (restic #4274). Stopping
/// the run is what the sleep of a machine does to it.
#[test]
fn a_command_that_slept_goes_on_when_nobody_took_over() {
    let site = Site::new();
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let text = format!("echo up $$; until [ -e go ]; do sleep 0.02; done; {tenure} check --json; echo end $?");
    let path = site.script("slow.sh", &text);
    let args = ["run", "--json", "--freeze", "--resource", "r", "--ttl", "2s", "--", "sh", &path];
    let mut run = Running::start(site.command(&args));
    let command = pid(&run.hear("up "));
    run.signal(Signal::STOP);
    until("the command stands still", || stands_still(command));
    run.signal(Signal::CONT);
    until("the command goes on", || !stands_still(command));
    std::fs::write(site.path("go"), "").unwrap();
    // Its token is the new one: the one in its environment stays dead.
    let checked: serde_json::Value = serde_json::from_str(&run.hear("")).unwrap();
    assert_eq!(checked["epoch"], 2, "{checked}");
    assert_eq!(run.hear("end "), "0");
    let said = run.end().ended(0).with(&["nobody had taken over r: the command goes on", "under epoch 2"]);
    let account = account(&said);
    assert_eq!((account["outcome"].as_str(), account["tokens"].as_array().unwrap().len()), (Some("exited"), 2));
    assert!(account["frozen_ms"].as_u64().unwrap() > 0, "{account}");
}

/// To stand still is as good as to be gone, and has the same deadline: the authority's own.
#[test]
fn a_command_that_is_to_be_stopped_stands_still_before_the_deadline() {
    let site = Site::new();
    let path = site.script("slow.sh", "echo up $$; while :; do sleep 0.02; done");
    let mut run =
        Running::start(site.command(&["run", "--freeze", "--resource", "r", "--ttl", "2s", "--", "sh", &path]));
    let command = pid(&run.hear("up "));
    run.signal(Signal::STOP);
    until("the command stands still", || stands_still(command));
    let (stood, deadline) = (BootClock.now_nanos(), super::silent::deadline(&site.authority(), "r"));
    assert!(stood < deadline, "{} µs late", (stood - deadline) / 1_000);
}

/// And when somebody did: not one more write. It is not even asked to end, since it would have to run for that.
#[test]
fn a_command_that_slept_is_ended_where_it_stands_when_somebody_took_over() {
    let site = Site::new();
    let path = site.script("slow.sh", "trap 'echo woken > woken' TERM CONT; echo up $$; while :; do sleep 0.02; done");
    let args = ["run", "--json", "--freeze", "--resource", "r", "--ttl", "2s", "--", "sh", &path];
    let mut run = Running::start(site.command(&args));
    let command = pid(&run.hear("up "));
    run.signal(Signal::STOP);
    until("the command stands still", || stands_still(command));
    let worker = site.worker("other");
    let lease = hold(&worker, "r", &[]);
    run.signal(Signal::CONT);
    until("the command is gone", || !is_alive(command));
    let said = run.end().ended(76).with(&["somebody else took over while the command was stopped"]);
    assert_eq!(account(&said)["lost"], "taken-over");
    assert!(!site.path("woken").exists());
    lease.ensure_owned().unwrap();
}

/// The other had it and is done: the resource is free, and the work is stale all the same.
#[test]
fn a_takeover_that_is_over_already_is_a_takeover() {
    let site = Site::new();
    let path = site.script("slow.sh", "echo up $$; while :; do sleep 0.02; done");
    let args = ["run", "--json", "--freeze", "--resource", "r", "--ttl", "2s", "--", "sh", &path];
    let mut run = Running::start(site.command(&args));
    let command = pid(&run.hear("up "));
    run.signal(Signal::STOP);
    until("the command stands still", || stands_still(command));
    hold(&site.worker("other"), "r", &[]).release().unwrap();
    run.signal(Signal::CONT);
    until("the command is gone", || !is_alive(command));
    let said = run.end().ended(76);
    assert_eq!(account(&said)["lost"], "taken-over");
    // What the run acquired in order to find out was released again.
    site.tenure(&["run", "--resource", "r", "--wait", "0s", "--", "true"]).ended(0);
}

/// Somebody who wants the end of a command that stands still gets it.
#[test]
fn a_run_that_is_killed_while_its_command_stands_still_leaves_nothing() {
    let site = Site::new();
    let path = site.script("slow.sh", "echo up $$; while :; do sleep 0.02; done");
    let mut run =
        Running::start(site.command(&["run", "--freeze", "--resource", "r", "--ttl", "2s", "--", "sh", &path]));
    let command = pid(&run.hear("up "));
    run.signal(Signal::STOP);
    until("the command stands still", || stands_still(command));
    run.signal(Signal::KILL);
    until("the command is gone", || !is_alive(command));
    run.end().ended(137);
}
