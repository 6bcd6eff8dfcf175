//! The rigs themselves: silence is silence, and has an end.

use crate::rig::dropped::Dropped;
use crate::rig::held::{self, Held};
use crate::rig::process::{Process, job, say, wait_for_go};
use crate::rig::{FileRig, Rig, until};
use std::path::Path;
use std::time::Duration;
use tenure::blocking;

/// Longer than any answer on a machine that has something to do, and short for a test.
const LONG: Duration = Duration::from_millis(1500);

const WRITE: &str = "write";
const CYCLE: &str = "cycle";

/// In a child: does its job. False in the ordinary run of the tests.
fn is_child() -> bool {
    let Some((job, path)) = job() else { return false };
    if !held::work(&job, &path) {
        match job.as_str() {
            WRITE => write(&path),
            CYCLE => cycle(&path),
            job => panic!("{job}"),
        }
    }
    true
}

/// Writes one row each time it is told to, and says when it is durable.
fn write(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(3600)).unwrap();
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    connection.pragma_update(None, "synchronous", "FULL").unwrap();
    connection.execute_batch("CREATE TABLE IF NOT EXISTS note (text TEXT)").unwrap();
    say("open");
    while wait_for_go() {
        match connection.execute("INSERT INTO note VALUES ('x')", ()) {
            Ok(_) => say("written"),
            Err(error) => say(error),
        }
    }
}

fn answers_then_is_silent_then_answers(entry: &str, rig: &mut dyn FileRig) {
    let mut writer = Process::start(entry, WRITE, &rig.path());
    assert_eq!(writer.hear(), "open");
    for _ in 0..2 {
        writer.go();
        assert_eq!(writer.hear(), "written");
        rig.silence();
        writer.go();
        assert!(writer.is_silent_for(LONG), "an answer although nothing can come through");
        rig.mend();
        assert_eq!(writer.hear(), "written");
    }
}

#[test]
fn nobody_writes_beside_a_stopped_writer() {
    if is_child() {
        return;
    }
    answers_then_is_silent_then_answers("silence::nobody_writes_beside_a_stopped_writer", &mut Held::start());
}

#[test]
fn nobody_writes_while_packets_are_dropped() {
    const ENTRY: &str = "silence::nobody_writes_while_packets_are_dropped";
    if is_child() {
        return;
    }
    answers_then_is_silent_then_answers(ENTRY, &mut Dropped::start());
}

/// Also with a writer in the middle of it, and also when the test fails.
#[test]
fn nothing_of_the_network_stays_behind() {
    const ENTRY: &str = "silence::nothing_of_the_network_stays_behind";
    if is_child() {
        return;
    }
    let (give, take) = std::sync::mpsc::channel();
    let failing = std::thread::spawn(move || {
        let mut rig = Dropped::start();
        let traces = rig.traces();
        assert_eq!(traces().len(), 6, "{:?}", traces());
        let mut writer = Process::start(ENTRY, WRITE, &rig.path());
        assert_eq!(writer.hear(), "open");
        rig.silence();
        writer.go();
        assert!(writer.is_silent_for(LONG));
        give.send((traces, writer)).unwrap();
        panic!("a test that fails");
    });
    let (traces, writer) = take.recv().unwrap();
    failing.join().unwrap_err();
    assert_eq!(traces(), [""; 0]);
    let said = writer.hear();
    assert_ne!(said, "written");
}

/// Takes and gives back one resource so often.
fn cycle(url: &Path) {
    let tenure = blocking::connect(url.to_str().unwrap()).unwrap();
    for _ in 0..TIMES {
        let lease = tenure.acquire(tenure.wish("r")).unwrap();
        say(lease.token().epoch);
        lease.release().unwrap();
    }
}

const TIMES: u64 = 20;

/// The authority's file works there as it does on a disk: also its shared memory, for processes of one host.
#[test]
fn two_processes_share_an_authority_across_the_cable() {
    const ENTRY: &str = "silence::two_processes_share_an_authority_across_the_cable";
    if is_child() {
        return;
    }
    let rig = Dropped::start();
    let both = [(); 2].map(|()| Process::start(ENTRY, CYCLE, Path::new(&rig.authority_url())));
    let mut epochs: Vec<u64> =
        both.iter().flat_map(|one| (0..TIMES).map(|_| one.hear().parse().unwrap()).collect::<Vec<_>>()).collect();
    both.into_iter().for_each(Process::finish);
    epochs.sort_unstable();
    assert_eq!(epochs, (1..=2 * TIMES).collect::<Vec<_>>(), "each epoch once");
    let check = rusqlite::Connection::open(rig.path()).unwrap();
    let answer: String = check.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(answer, "ok");
    drop(check);
    let traces = rig.traces();
    drop(rig);
    until("nothing stays behind", || traces().is_empty());
}
