//! The processes below a process.

use rustix::process::{Pid, Signal, kill_process};

/// A process as the system tells of it.
struct Entry {
    pid: i32,
    state: char,
    parent: i32,
}

/// The children of a process and theirs.
pub(crate) fn below(pid: Pid) -> Vec<Pid> {
    let all: Vec<Entry> = entries();
    let mut found = vec![pid.as_raw_nonzero().get()];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(all.iter().filter(|entry| entry.parent == parent).map(|entry| entry.pid));
        at += 1;
    }
    found[1..].iter().filter_map(|&pid| Pid::from_raw(pid)).collect()
}

/// Whether the process still runs anything: one that is dead and was not waited for does not.
pub(crate) fn lives(pid: Pid) -> bool {
    entry(&pid.as_raw_nonzero().to_string()).is_some_and(|entry| !matches!(entry.state, 'Z' | 'X'))
}

/// Sends a signal; a process that has just ended needs none.
pub(crate) fn signal(pid: Pid, signal: Signal) {
    let _ = kill_process(pid, signal);
}

fn entries() -> Vec<Entry> {
    let Ok(dir) = std::fs::read_dir("/proc") else { return Vec::new() };
    dir.filter_map(|each| entry(each.ok()?.file_name().to_str()?)).collect()
}

fn entry(name: &str) -> Option<Entry> {
    let pid = name.parse().ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{name}/stat")).ok()?;
    // The program's name stands in parentheses and may hold anything.
    let mut rest = stat.rsplit_once(')')?.1.split_whitespace();
    Some(Entry { pid, state: rest.next()?.chars().next()?, parent: rest.next()?.parse().ok()? })
}
