//! What others do to a run: signals at the wrong moment, streams that nobody reads, a watchdog that is stopped.

use super::{Running, account, children, is_alive, pid, stands_still, watchdog};
use crate::rig::until;
use crate::site::{Said, Site, hold};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::Stdio;

/// Writes a line to `beats` every few milliseconds, and says so first.
const BEATS: &str = "echo up $$; while :; do echo beat >>beats; sleep 0.01; done";

fn beats(site: &Site) -> usize {
    std::fs::read_to_string(site.path("beats")).unwrap_or_default().lines().count()
}

fn freezing(site: &Site, script: &str) -> (Running, Pid) {
    let path = site.script("slow.sh", script);
    let args = ["run", "--json", "--freeze", "--resource", "r", "--ttl", "2s", "--", "sh", &path];
    let mut run = Running::start(site.command(&args));
    let command = pid(&run.hear("up "));
    (run, command)
}

/// The run and its watchdog both noticed the deadline, and each freeze was told twice: the second one made the run give up
/// the lease under which the command had just gone on. Many children make a freeze slow, which is when it happened.
#[test]
fn a_command_that_goes_on_has_its_lease() {
    let site = Site::new();
    let many = "for n in 1 2 3 4 5 6 7 8; do (while :; do /bin/true; done) & done\n";
    let (run, command) = freezing(&site, &format!("{many}{BEATS}"));
    for round in 1..=3 {
        run.signal(Signal::STOP);
        until("the command stands still", || stands_still(command));
        run.signal(Signal::CONT);
        let before = beats(&site);
        until("the command goes on", || beats(&site) > before + 5);
        let shown: serde_json::Value = site.tenure(&["show", "r", "--json"]).ended(0).json();
        assert_eq!(shown["state"], "held", "round {round}: {shown}");
    }
    run.signal(Signal::TERM);
    let said = run.end().ended(143);
    assert_eq!(account(&said)["tokens"].as_array().unwrap().len(), 4);
}

/// Whoever wakes a stopped command, or one of its children, does not make it the holder.
#[test]
fn a_frozen_command_that_somebody_wakes_stands_still_again() {
    let site = Site::new();
    let (run, command) = freezing(&site, &format!("(while :; do sleep 0.01; done) &\n{BEATS}"));
    run.signal(Signal::STOP);
    until("the command stands still", || stands_still(command));
    let worker = site.worker("other");
    let lease = hold(&worker, "r", &[]);
    for process in children(command).into_iter().chain([command]) {
        kill_process(process, Signal::CONT).unwrap();
    }
    until("all of it stands still again", || children(command).into_iter().chain([command]).all(stands_still));
    run.signal(Signal::CONT);
    until("the command is gone", || !is_alive(command));
    run.end().ended(76);
    lease.ensure_owned().unwrap();
}

/// Two containers may have one name and one process number. Told by them, the first took the second for itself.
#[test]
fn a_holder_of_the_same_name_is_somebody_else() {
    let site = Site::new();
    let (run, command) = freezing(&site, &format!("echo $TENURE_OWNER >owner; {BEATS}"));
    let owner = std::fs::read_to_string(site.path("owner")).unwrap();
    let owner = owner.trim();
    run.signal(Signal::STOP);
    until("the command stands still", || stands_still(command));
    // Twice, so that the epoch alone does not tell.
    for _ in 0..2 {
        hold(&site.worker(owner), "r", &[]).release().unwrap();
    }
    run.signal(Signal::CONT);
    let said = run.end().ended(76);
    assert_eq!(account(&said)["lost"], "taken-over");
}

/// A tool that limits the processor's share stops and wakes a command all the time. Each stop was told to the run; one that
/// did not read, since it was stopped itself, made the watchdog wait for it beyond the deadline.
#[test]
fn a_watchdog_does_not_wait_for_a_run_that_does_not_read() {
    let site = Site::new();
    let path = site.script("plain.sh", BEATS);
    let mut run = Running::start(site.command(&["run", "--resource", "r", "--ttl", "8s", "--", "sh", &path]));
    let command = pid(&run.hear("up "));
    run.signal(Signal::STOP);
    // Each stop is waited for: several that come at once are told as one, and a few hundred fill the socket.
    for _ in 0..600 {
        if kill_process(command, Signal::TSTP).is_err() {
            break;
        }
        while is_alive(command) && !stands_still(command) {
            std::thread::yield_now();
        }
        let _ = kill_process(command, Signal::CONT);
        while stands_still(command) {
            std::thread::yield_now();
        }
    }
    until("the command is gone", || !is_alive(command));
    run.signal(Signal::CONT);
    run.end().ended(76);
}

/// `> /dev/full`, or a log shipper that has died: what is said is lost, and nothing else.
#[test]
fn a_full_or_closed_standard_error_changes_nothing() {
    let site = Site::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let args = ["run", "--json", "--resource", "r", "--max-hold", "50ms", "--", "sleep", "600"];
    let status = site.command(&args).stderr(Stdio::from(full)).status().unwrap();
    assert_eq!(status.code(), Some(76));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let (busy, waits) = (site.worker("other"), ["run", "--resource", "r", "--wait", "30s", "--", "true"]);
    let lease = hold(&busy, "r", &[]);
    let mut run = site.command(&waits).stderr(Stdio::from(OwnedFd::from(writer))).spawn().unwrap();
    until("the run waits", || site.history().iter().filter(|row| row.event.name() == "opened").count() >= 3);
    lease.release().unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(0));
}

/// Whoever stops the watchdog does not take the right to end away: the run wakes it.
#[test]
fn a_stopped_watchdog_is_woken() {
    let site = Site::new();
    let path = site.script("plain.sh", BEATS);
    let mut run = Running::start(site.command(&["run", "--json", "--resource", "r", "--ttl", "2s", "--", "sh", &path]));
    let command = pid(&run.hear("up "));
    kill_process(watchdog(run.pid()), Signal::STOP).unwrap();
    site.tenure(&["takeover", "r", "--reason", "it hangs"]).ended(0);
    until("the command is gone", || !is_alive(command));
    let said = run.end().ended(76);
    assert_eq!(account(&said)["lost"], "revoked");
}

#[test]
fn the_command_for_a_loss_runs_also_when_the_watchdog_was_killed() {
    let site = Site::new();
    let path = site.script("plain.sh", BEATS);
    let hook = "echo $TENURE_LOSS $TENURE_EPOCH $(nice) >>hook";
    let mut run = Running::start(site.command(&["run", "--resource", "r", "--on-loss", hook, "--", "sh", &path]));
    run.hear("up ");
    kill_process(watchdog(run.pid()), Signal::KILL).unwrap();
    run.end().ended(76);
    // As nice as this test is, and no nicer.
    let nice = String::from_utf8(std::process::Command::new("nice").output().unwrap().stdout).unwrap();
    assert_eq!(std::fs::read_to_string(site.path("hook")).unwrap(), format!("watchdog-gone 1 {nice}"));
}

/// It had the right to the end: neither the words nor the status call that a loss, however late this process hears of it.
#[test]
fn a_command_that_ended_in_time_while_the_run_was_stopped_has_lost_nothing() {
    let site = Site::new();
    let path = site.script("short.sh", "echo up $$; until [ -e go ]; do sleep 0.01; done; exit 3");
    let hook = ["--on-loss", "touch hook"];
    let args = [&["run", "--json", "--resource", "r", "--ttl", "2s"][..], &hook, &["--", "sh", &path]].concat();
    let mut run = Running::start(site.command(&args));
    let command = pid(&run.hear("up "));
    let watchdog = watchdog(run.pid());
    run.signal(Signal::STOP);
    std::fs::write(site.path("go"), "").unwrap();
    until("the command has ended", || !is_alive(command));
    until("the watchdog has ended", || !is_alive(watchdog));
    // Until the lease is over: somebody else can have it.
    site.tenure(&["run", "--resource", "r", "--wait", "20s", "--", "true"]).ended(0);
    run.signal(Signal::CONT);
    let said = run.end().ended(3);
    assert_eq!((&account(&said)["outcome"], site.path("hook").exists()), (&"exited".into(), false));
}

/// The resource of a command that stands still is not held for longer than one that runs.
#[test]
fn max_hold_counts_while_the_command_stands_still() {
    let site = Site::new();
    let path = site.script("plain.sh", BEATS);
    let spans = ["--ttl", "2s", "--max-hold", "6s"];
    let args = [&["run", "--json", "--freeze", "--resource", "r"][..], &spans, &["--", "sh", &path]].concat();
    let mut run = Running::start(site.command(&args));
    let command = pid(&run.hear("up "));
    // Nobody answers: the file is held by another process for as long as this test likes.
    let holder = rusqlite::Connection::open(site.path("authority.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    until("the command stands still", || stands_still(command));
    until("the command is gone", || !is_alive(command));
    holder.execute_batch("ROLLBACK").unwrap();
    let said = run.end().ended(76);
    assert_eq!(account(&said)["lost"], "max-hold");
}

/// The authority hangs when the command is done: whoever has no time is not kept until the lease is over.
#[test]
fn a_release_that_is_not_answered_can_be_interrupted() {
    let site = Site::new();
    let script = "echo up; until [ -e go ]; do sleep 0.01; done";
    let mut run =
        Running::start(site.command(&["run", "--json", "--resource", "r", "--ttl", "1h", "--", "sh", "-c", script]));
    run.hear("up");
    let holder = rusqlite::Connection::open(site.path("authority.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let watchdog = watchdog(run.pid());
    std::fs::write(site.path("go"), "").unwrap();
    until("the watchdog has ended", || !is_alive(watchdog));
    // Again and again: the first one may still come while the command is thought to run.
    until("the run has ended", || {
        let _ = kill_process(run.pid(), Signal::TERM);
        !is_alive(run.pid())
    });
    let said = run.end().with(&["interrupt to leave", "nobody knows whether the authority released r"]);
    // The one that came after all was done ended it at once.
    assert!([0, 143].contains(&said.code), "{said:?}");
    assert_eq!(account(&said)["release"], "unknown");
}

/// The token's file of a run that was killed stays for nobody.
#[test]
fn a_killed_run_leaves_no_token_file() {
    let site = Site::new();
    let (run, command) = freezing(&site, "echo \"$TENURE_TOKEN_FILE\" >file; echo up $$; while :; do sleep 0.01; done");
    let file = std::path::PathBuf::from(std::fs::read_to_string(site.path("file")).unwrap().trim());
    assert!(file.exists());
    run.signal(Signal::KILL);
    until("the command is gone", || !is_alive(command));
    until("the folder is gone", || !file.parent().unwrap().exists());
}

/// What a process had before it became a run is not the command's.
#[test]
fn children_from_before_are_left_alone() {
    let site = Site::new();
    let path = site.script("plain.sh", BEATS);
    let shell = site.command(&[]);
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let line = format!("sleep 600 & echo before $!; exec {tenure} run --resource r -- sh {path}");
    let mut outer = crate::site::undisturbed("sh");
    for (name, value) in shell.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer.args(["-c", &line]).current_dir(site.path(""));
    let mut run = Running::start(outer);
    let before = pid(&run.hear("before "));
    run.hear("up ");
    kill_process(watchdog(run.pid()), Signal::KILL).unwrap();
    until("the run has ended", || !is_alive(run.pid()));
    let spared = is_alive(before);
    kill_process(before, Signal::KILL).unwrap();
    run.end().ended(76);
    assert!(spared);
}

/// Without a shell to run it in, the command for a loss has a status like any that is not there, and nobody waits for it.
#[test]
fn a_command_for_a_loss_that_cannot_be_started_keeps_nobody_waiting() {
    let site = Site::new();
    let args =
        ["run", "--json", "--resource", "r", "--max-hold", "50ms", "--on-loss", "true", "--", "/bin/sleep", "600"];
    let command = site.command(&args);
    // What starts the run itself is found before that.
    let path = command.get_args().nth(1).unwrap().to_owned();
    let mut bare = std::process::Command::new(path);
    bare.args(args)
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("PATH", "/nonexistent");
    let said = Said::of(bare.output().unwrap()).ended(76);
    assert_eq!(account(&said)["on_loss"], 127);
}

/// A log shipper that is stopped with its pipe full: the resource is free at once, and whoever wants the run to end gets it.
#[test]
fn a_run_that_nobody_reads_is_no_holder_and_can_be_ended() {
    let site = Site::new();
    let (reader, mut writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    let args = ["run", "--resource", "r", "--max-hold", "50ms", "--", "sleep", "600"];
    let mut run = site.command(&args).stderr(Stdio::from(OwnedFd::from(writer))).spawn().unwrap();
    site.tenure(&["run", "--resource", "r", "--wait", "20s", "--", "true"]).ended(0);
    // Again and again: the first one may come before it has nothing left to do.
    until("the run has ended", || {
        let _ = kill_process(Pid::from_child(&run), Signal::TERM);
        run.try_wait().unwrap().is_some()
    });
    drop(reader);
}
