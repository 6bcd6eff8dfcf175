use super::stage::{DAY, Stage};
use crate::rig::until;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longer than any machine needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process that does not outlive its test.
struct Follower(Child);

impl Follower {
    fn start(stage: &Stage, args: &[&str]) -> Self {
        Self(stage.command(args).stdout(Stdio::piped()).spawn().unwrap())
    }

    fn interrupt(&mut self) -> ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.0.wait().unwrap()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // It has ended already, unless the test has failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A follower, and its lines as they come.
fn follow(stage: &Stage, args: &[&str]) -> (Follower, Receiver<String>) {
    let mut follower = Follower::start(stage, args);
    let (send, lines) = channel();
    let stdout = BufReader::new(follower.0.stdout.take().unwrap());
    std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    (follower, lines)
}

fn next(lines: &Receiver<String>) -> Value {
    serde_json::from_str(&lines.recv_timeout(PATIENCE).expect("a line comes")).unwrap()
}

#[test]
fn new_rows_come_as_they_are_written_until_an_interrupt() {
    let stage = Stage::new();
    let alice = stage.worker(1, "alice@web1", DAY);
    let token = alice.acquire("r", &[]);
    let (mut follower, lines) = follow(&stage, &["history", "r", "--follow", "--json"]);
    assert_eq!((next(&lines)["event"].clone(), lines.try_recv().is_err()), ("granted".into(), true));
    alice.release(&token);
    assert_eq!(next(&lines)["event"], "released");
    // One step after the other, and none is left out.
    for n in 10..15 {
        let token = stage.worker(n, "carol@web3", DAY).acquire("r", &[]);
        assert_eq!(next(&lines)["event"], "granted");
        stage.revoke("r", "the next one");
        assert_eq!((next(&lines)["epoch"].clone(), lines.try_recv().is_err()), (token.epoch.get().into(), true));
    }
    // What is about something else is passed over, also when there is much of it.
    for n in 0..50 {
        alice.acquire(&format!("other/{n}"), &[]);
    }
    let again = stage.worker(2, "bob@web2", DAY).acquire("r", &[]);
    let row = next(&lines);
    assert_eq!((&row["event"], &row["epoch"]), (&"granted".into(), &again.epoch.get().into()));
    assert_eq!(follower.interrupt().code(), Some(0));
    assert!(lines.recv_timeout(PATIENCE).is_err(), "and nothing more comes");
}

#[test]
fn a_follower_begins_with_the_newest_rows() {
    let stage = Stage::new();
    let alice = stage.worker(1, "alice@web1", DAY);
    (0..20).for_each(|n| drop(alice.acquire(&format!("r{n}"), &[])));
    for (args, first) in [(&["history", "-f", "--json"][..], 12), (&["history", "-f", "--json", "-n", "3"], 19)] {
        let (mut follower, lines) = follow(&stage, args);
        assert_eq!(next(&lines)["number"], first);
        assert!(follower.interrupt().success());
    }
    // For people as well, and from the first row on, when none was there yet.
    let (mut follower, lines) = follow(&stage, &["history", "later", "-f"]);
    alice.acquire("later", &[]);
    assert!(lines.recv_timeout(PATIENCE).unwrap().contains("NUMBER"));
    assert!(lines.recv_timeout(PATIENCE).unwrap().contains("granted"));
    assert!(follower.interrupt().success());
}

/// No new row comes any more that could find out.
#[test]
fn a_follower_ends_when_nobody_reads_any_more() {
    let stage = Stage::new();
    stage.worker(1, "alice@web1", DAY);
    let mut follower = Follower::start(&stage, &["history", "--follow", "--json"]);
    let mut stdout = BufReader::new(follower.0.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.contains("opened"), "{line}");
    drop(stdout);
    let mut status = None;
    until("it has ended", || {
        status = follower.0.try_wait().unwrap();
        status.is_some()
    });
    let status = status.unwrap();
    assert_eq!(status.code(), Some(0));
}
