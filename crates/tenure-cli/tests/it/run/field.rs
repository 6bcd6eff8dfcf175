//! Reports from the field about wrappers like this one, each with its story.

use super::{Running, account};
use crate::rig::until;
use crate::site::Site;
use tenure::authority::BootClock;

/// A scheduler met an error while it acquired its lease, and went on as if it had it (redbeat #208). The body never starts.
#[test]
fn an_authority_that_does_not_answer_starts_nothing() {
    let site = Site::new();
    let holder = rusqlite::Connection::open(site.path("authority.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let args = ["run", "--json", "--resource", "r", "--wait", "1s", "--ttl", "3s", "--", "touch", "started"];
    let said = site.tenure(&args).ended(69);
    assert_eq!(account(&said)["outcome"], "unavailable");
    holder.execute_batch("ROLLBACK").unwrap();
    assert!(!site.path("started").exists());
    // And it left nothing behind that the next one would have to wait for.
    site.tenure(&["run", "--resource", "r", "--wait", "0s", "--", "true"]).ended(0);
}

/// The server accepted the connection and never answered; each renewal waited for ever, and the process was restarted 50
/// times in 2.8 days (kopiur #319). An attempt has a time of its own, and the next one finds the server again.
#[test]
fn a_silence_that_is_shorter_than_the_lease_costs_nothing() {
    let site = Site::new();
    let script = "echo up; until [ -e go ]; do sleep 0.01; done";
    let args = ["run", "--json", "--resource", "r", "--ttl", "6s", "--", "sh", "-c", script];
    let mut run = Running::start(site.command(&args));
    run.hear("up");
    let left = || {
        let listed = site.tenure(&["ls", "--json"]).ended(0).out;
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        listed["resources"][0]["remaining_ms"].as_u64().unwrap_or(0)
    };
    let holder = rusqlite::Connection::open(site.path("authority.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    // The first renewal falls due after 2 s, and is tried again after one more.
    let until_then = BootClock.now_nanos() + 3_500_000_000;
    until("renewals were not answered", || BootClock.now_nanos() > until_then);
    holder.execute_batch("ROLLBACK").unwrap();
    until("a renewal was granted again", || left() > 4_500);
    std::fs::write(site.path("go"), "").unwrap();
    run.end().ended(0);
}

/// A client was paused, its stale lock was removed by hand, the repository was pruned, and the client went on: a broken
/// snapshot (restic #3569). Its late write is refused by the receiver, however it came to be sent.
#[test]
fn a_write_from_before_a_takeover_is_refused_where_it_lands() {
    let site = Site::new();
    let sink = site.files("repository");
    let run = |script: &str| {
        let sealed = ["run", "--resource", "repository", "--sink", &sink, "--wait", "20s", "--"];
        site.tenure(&[&sealed[..], &["sh", "-c", script]].concat()).ended(0)
    };
    let tenure = env!("CARGO_BIN_EXE_tenure");
    // A helper on another machine would go on with this token after the run that started it has lost.
    run(&format!("printf %s \"$TENURE_TOKEN\" >paused; echo pack | {tenure} put --sink {sink} --name pack"));
    run(&format!("echo pruned | {tenure} put --sink {sink} --name pack"));
    let token = std::fs::read_to_string(site.path("paused")).unwrap();
    site.fed(&token, b"late", &["put", "--sink", &sink, "--name", "pack"]).ended(76).with(&["stale"]);
    assert_eq!(std::fs::read_to_string(site.path("repository/pack")).unwrap(), "pruned\n");
}

/// Shutdown hooks ran past the deadline, and two operators worked at once (cilium #42920). A loss has its bound, whatever the
/// command does when it is asked to end.
#[test]
fn a_long_farewell_is_cut_short_at_the_bound() {
    let site = Site::new();
    let script = "trap 'echo farewell; sleep 600' TERM; echo up; while :; do sleep 0.05; done";
    let args = ["run", "--json", "--resource", "r", "--ttl", "3s", "--max-hold", "200ms", "--", "sh", "-c", script];
    let mut run = Running::start(site.command(&args));
    run.hear("farewell");
    let said = run.end().ended(76);
    let ended = &account(&said)["ended"];
    let took = ended["gone_ms"].as_u64().unwrap() - ended["asked_ms"].as_u64().unwrap();
    assert!(took < 2_000, "{ended}");
    site.tenure(&["run", "--resource", "r", "--wait", "0s", "--", "true"]).ended(0);
}
