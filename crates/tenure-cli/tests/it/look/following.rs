use super::stage::{DAY, Stage};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longer than any machine needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A follower, and its lines as they come.
fn follow(stage: &Stage, args: &[&str]) -> (Child, Receiver<String>) {
    let mut child = stage.command(args).stdout(Stdio::piped()).spawn().unwrap();
    let (send, lines) = channel();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    (child, lines)
}

fn next(lines: &Receiver<String>) -> Value {
    serde_json::from_str(&lines.recv_timeout(PATIENCE).expect("a line comes")).unwrap()
}

fn interrupt(child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

#[test]
fn new_rows_come_as_they_are_written_until_an_interrupt() {
    let stage = Stage::new();
    let alice = stage.worker(1, "alice@web1", DAY);
    let token = alice.acquire("r", &[]);
    let (mut child, lines) = follow(&stage, &["history", "r", "--follow", "--json"]);
    assert_eq!((next(&lines)["event"].clone(), lines.try_recv().is_err()), ("granted".into(), true));
    alice.release(&token);
    assert_eq!(next(&lines)["event"], "released");
    // What is about something else is passed over, also when there is much of it.
    for n in 0..50 {
        alice.acquire(&format!("other/{n}"), &[]);
    }
    let again = stage.worker(2, "bob@web2", DAY).acquire("r", &[]);
    let row = next(&lines);
    assert_eq!((&row["event"], &row["epoch"]), (&"granted".into(), &again.epoch.get().into()));
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(lines.recv_timeout(PATIENCE).is_err(), "and nothing more comes");
}

#[test]
fn a_follower_begins_with_the_newest_rows() {
    let stage = Stage::new();
    let alice = stage.worker(1, "alice@web1", DAY);
    (0..20).for_each(|n| drop(alice.acquire(&format!("r{n}"), &[])));
    for (args, first) in [(&["history", "-f", "--json"][..], 12), (&["history", "-f", "--json", "-n", "3"], 19)] {
        let (mut child, lines) = follow(&stage, args);
        assert_eq!(next(&lines)["number"], first);
        interrupt(&child);
        assert!(child.wait().unwrap().success());
    }
    // For people as well, and from the first row on, when none was there yet.
    let (mut child, lines) = follow(&stage, &["history", "later", "-f"]);
    alice.acquire("later", &[]);
    assert!(lines.recv_timeout(PATIENCE).unwrap().contains("NUMBER"));
    assert!(lines.recv_timeout(PATIENCE).unwrap().contains("granted"));
    interrupt(&child);
    assert!(child.wait().unwrap().success());
}

/// No new row comes any more that could find out.
#[test]
fn a_follower_ends_when_nobody_reads_any_more() {
    let stage = Stage::new();
    stage.worker(1, "alice@web1", DAY);
    let mut child = stage.command(&["history", "--follow", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.contains("opened"), "{line}");
    drop(stdout);
    let status = stage.until(|| child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}
