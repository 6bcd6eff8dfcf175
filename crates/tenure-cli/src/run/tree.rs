//! A process and all that come from it, as the system lists them.

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;

/// One process, at the moment of the listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    /// The program's name.
    pub(crate) name: String,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// One letter, as in ps: R and S run, D waits for a device, T is stopped, Z has ended.
    pub(crate) state: char,
    /// Clock ticks since the start of the machine: tells a process from a later one with the same number.
    pub(crate) started: u64,
}

impl Process {
    /// Reads how a process stands; `None` when it is gone.
    pub(crate) fn read(pid: Pid) -> Option<Self> {
        // See proc(5). The name may hold anything, so the fields are counted from its closing bracket.
        let text = fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
        let text = String::from_utf8_lossy(&text);
        let (head, tail) = (text.split_once('(')?.1, text.rsplit_once(')')?.1);
        let name = head.rsplit_once(')')?.0.to_owned();
        let fields: Vec<&str> = tail.split_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<i64>().ok());
        Some(Self {
            pid,
            name,
            state: fields.first()?.chars().next()?,
            parent: i32::try_from(number(1)?).ok()?,
            group: i32::try_from(number(2)?).ok()?,
            session: i32::try_from(number(3)?).ok()?,
            started: u64::try_from(number(19)?).ok()?,
        })
    }

    /// Whether it can do anything still.
    pub(crate) const fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }

    /// Whether it does nothing until it is woken, after it was told to stop. One that waits in the kernel stops before it
    /// does anything else: for a device, or for a program that it has just started and that is stopped itself.
    pub(crate) const fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't' | 'D' | 'Z' | 'X')
    }

    /// Whether the other is this very process, perhaps in another state.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.pid, self.started) == (other.pid, other.started)
    }

    /// Sends a signal to this very process, never to a later one with its number.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Errno> {
        let handle = match pidfd_open(self.pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => return Ok(()),
            handle => handle?,
        };
        // The handle is of whoever has the number now; it is ours if it began when ours did.
        if Self::read(self.pid).is_none_or(|now| now.started != self.started) {
            return Ok(());
        }
        match pidfd_send_signal(&handle, signal) {
            Err(Errno::SRCH) => Ok(()),
            sent => sent,
        }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

/// All processes of the machine, by their numbers.
pub(crate) fn all() -> BTreeMap<i32, Process> {
    let Ok(listing) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let numbers = listing.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let found = numbers.filter_map(|number| Some((number, Process::read(Pid::from_raw(number)?)?)));
    found.collect()
}

/// The living processes that come from `root`, without itself. Where `root` adopts orphans (it is a subreaper), nothing
/// that its children start leaves this set, whatever group or session it goes to.
pub(crate) fn descendants(root: Pid) -> Vec<Process> {
    let all = all();
    let mut within = BTreeSet::from([root.as_raw_pid()]);
    // A parent may have a higher number than its child, so once through is not enough.
    loop {
        let before = within.len();
        within.extend(
            all.values()
                .filter(|process| within.contains(&process.parent))
                .map(|p| p.pid.as_raw_pid())
                .collect::<Vec<_>>(),
        );
        if within.len() == before {
            break;
        }
    }
    within.remove(&root.as_raw_pid());
    all.into_values().filter(|process| within.contains(&process.pid.as_raw_pid()) && process.is_alive()).collect()
}

/// The same from the lists of children that the kernel keeps: a few readings, however many processes the machine has. It
/// may leave one out whose sibling ends at that moment, so it is for whoever looks again. `None` where there are no lists.
pub(crate) fn descendants_in_haste(root: Pid) -> Option<Vec<Process>> {
    let (mut found, mut parents) = (Vec::new(), vec![root]);
    let mut seen = BTreeSet::new();
    while let Some(parent) = parents.pop() {
        // The children of each thread are a list of their own.
        let threads = match fs::read_dir(format!("/proc/{}/task", parent.as_raw_pid())) {
            Ok(threads) => threads,
            // Gone meanwhile; its children are somebody else's now.
            Err(_) if parent != root => continue,
            Err(_) => return None,
        };
        for thread in threads.flatten() {
            match fs::read_to_string(thread.path().join("children")) {
                Ok(list) => {
                    let children = list.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
                    let new: Vec<Pid> = children.filter(|pid| seen.insert(pid.as_raw_pid())).collect();
                    found.extend(new.iter().filter_map(|pid| Process::read(*pid)).filter(Process::is_alive));
                    parents.extend(new);
                }
                Err(_) if parent == root => return None,
                Err(_) => {}
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests;
