use super::{Process, descendants, descendants_in_haste};
use rustix::process::{Pid, Signal, getpid};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};

#[test]
fn this_process_is_read_as_it_is() {
    let own = Process::read(getpid()).unwrap();
    assert_eq!(Some(own.parent), rustix::process::getppid().map(Pid::as_raw_pid));
    assert_eq!(own.group, rustix::process::getpgrp().as_raw_pid());
    assert!(own.is_alive() && !own.is_stopped());
    assert_eq!(Process::read(Pid::from_raw(i32::MAX).unwrap()), None);
}

/// A program may carry any name, also one that looks like the fields behind it.
#[test]
fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
    let dir = tempfile::tempdir().unwrap();
    let odd = dir.path().join("a) Z 1 (b");
    std::fs::copy("/bin/sleep", &odd).unwrap();
    let mut child = Command::new(&odd).arg("30").spawn().unwrap();
    let pid = Pid::from_child(&child);
    // Until the program is loaded, the name is this test's.
    let read = loop {
        match Process::read(pid) {
            Some(process) if process.name.starts_with("a)") => break process,
            found => assert!(found.is_some()),
        }
    };
    assert_eq!((read.name.as_str(), read.parent), ("a) Z 1 (b", getpid().as_raw_pid()));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn grandchildren_in_other_sessions_are_found_and_signalled() {
    let script = "setsid sleep 60 & sleep 60 & echo up; wait";
    let mut child = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut word = [0; 3];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut word).unwrap();
    let shell = Pid::from_child(&child);
    let sleeping = |processes: Vec<Process>| processes.iter().filter(|process| process.name == "sleep").count();
    while sleeping(descendants(shell)) < 2 {}
    let pids =
        |processes: Vec<Process>| processes.iter().map(|process| process.pid.as_raw_pid()).collect::<BTreeSet<_>>();
    if let Some(in_haste) = descendants_in_haste(shell) {
        assert_eq!(pids(in_haste), pids(descendants(shell)));
    }
    for process in descendants(shell) {
        process.signal(Signal::KILL).unwrap();
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(descendants(shell), vec![]);
}
