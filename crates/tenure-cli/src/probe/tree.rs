//! Which processes belong to which worker, and how all of them are stopped, woken and ended: also those that have left
//! their group or whose parent is gone.

use super::deadline::{Deadline, nap};
use crate::problem::Problem;
use crate::run::tree::{Process, all};
use rustix::process::{Pid, Signal, WaitOptions};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::time::Duration;

/// How long it may take until every process has followed a signal. One in an uninterruptible wait may take longer.
const BOUND: Duration = Duration::from_secs(5);

/// One process, also after its number was given to another one.
pub(super) type Key = (i32, u64);

pub(super) fn key(process: &Process) -> Key {
    (process.pid.as_raw_pid(), process.started)
}

/// Whether no thread of a process, each of which was told to stop, does anything more.
fn is_at_rest(process: &Process, is_parent: bool) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", process.pid.as_raw_pid())) else { return true };
    threads.flatten().all(|thread| {
        let read = |name| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        match read("stat").rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next()) {
            None | Some('T' | 'Z' | 'X') => true,
            // A parent that has lent its memory to a child (vfork) waits for it in the kernel, and cannot be seen to stop
            // while that child stands still. It stops before it does anything else.
            Some('D') => {
                let place = read("wchan");
                place.contains("clone") || place.contains("fork") || (is_parent && matches!(&*place, "" | "0"))
            }
            Some(_) => false,
        }
    })
}

/// Sends a signal. One that has ended in between needs none, and one that takes none is noticed by its staying.
pub(super) fn send(process: &Process, signal: Signal) {
    let _ = process.signal(signal);
}

/// All that the probe has started. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub(super) struct Trees(Rc<RefCell<Claims>>);

/// The number of one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreeId(usize);

#[derive(Debug)]
struct Claims {
    of: HashMap<Key, TreeId>,
    /// Our own children, which are waited for by their handles.
    roots: BTreeSet<i32>,
    /// Whose an orphan is that nobody has seen before: only one tree runs at a time.
    active: TreeId,
    trees: usize,
}

impl Trees {
    /// Makes this process the one to which orphans of its descendants come, so that none gets out of sight.
    pub(super) fn new() -> Result<Self, Problem> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|error| Problem::failure(format_args!("this system does not let orphans be followed: {error}")))?;
        let claims = Claims { of: HashMap::new(), roots: BTreeSet::new(), active: TreeId(0), trees: 0 };
        Ok(Self(Rc::new(RefCell::new(claims))))
    }

    /// A tree with this root, which is our child.
    pub(super) fn plant(&self, root: i32) -> TreeId {
        let mut claims = self.0.borrow_mut();
        claims.trees += 1;
        let id = TreeId(claims.trees);
        claims.roots.insert(root);
        claims.active = id;
        if let Some(process) = Pid::from_raw(root).and_then(Process::read) {
            claims.of.insert(key(&process), id);
        }
        id
    }

    /// The root was waited for.
    pub(super) fn fell(&self, root: i32) {
        self.0.borrow_mut().roots.remove(&root);
    }

    /// The processes of a tree that are there now, parents first.
    pub(super) fn members(&self, id: TreeId) -> Vec<Process> {
        let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
        for process in all().into_values() {
            children.entry(process.parent).or_default().push(process);
        }
        let own = rustix::process::getpid().as_raw_pid();
        let mut claims = self.0.borrow_mut();
        let (mut seen, mut members) = (HashMap::new(), Vec::new());
        let mut next = vec![(own, None)];
        while let Some((parent, owner)) = next.pop() {
            for process in children.remove(&parent).unwrap_or_default() {
                let (key, pid) = (key(&process), process.pid.as_raw_pid());
                if !process.is_alive() {
                    if parent == own && !claims.roots.contains(&pid) {
                        // An orphan that came to us: nobody else takes it away.
                        let _ = rustix::process::waitpid(Some(process.pid), WaitOptions::NOHANG);
                    }
                    continue;
                }
                let owner = claims.of.get(&key).copied().or(owner).unwrap_or(claims.active);
                seen.insert(key, owner);
                next.push((pid, Some(owner)));
                if owner == id {
                    members.push(process);
                }
            }
        }
        claims.of = seen;
        members
    }

    /// Stops every process of a tree, and returns when the system says of each that it is stopped.
    pub(super) fn stop(&self, id: TreeId, root: i32) -> Result<Vec<Process>, Problem> {
        if let Some(group) = Pid::from_raw(root) {
            // The group at once, since each instant counts; a root that has ended may have left the others behind.
            let _ = rustix::process::kill_process_group(group, Signal::STOP);
        }
        self.active(id);
        let deadline = Deadline::after(BOUND);
        let mut before = None;
        loop {
            let members = self.members(id);
            let is_parent = |pid: i32| members.iter().any(|child| child.parent == pid);
            let running: Vec<&Process> =
                members.iter().filter(|member| !is_at_rest(member, is_parent(member.pid.as_raw_pid()))).collect();
            members.iter().filter(|member| !member.is_stopped()).for_each(|member| send(member, Signal::STOP));
            let stands: Option<Vec<Key>> = running.is_empty().then(|| members.iter().map(key).collect());
            // Twice the same: a process that was just being made is in the second look.
            if stands.is_some() && stands == before {
                return Ok(members);
            }
            if deadline.has_passed() {
                let names = names(running.into_iter());
                return Err(Problem::failure(format_args!("{names} did not stop within {} s", BOUND.as_secs())));
            }
            before = stands;
            nap();
        }
    }

    /// Lets a stopped tree go on, children first: a parent must not find them stopped.
    pub(super) fn wake(&self, id: TreeId) {
        self.active(id);
        self.members(id).iter().rev().for_each(|member| send(member, Signal::CONT));
    }

    /// Ends every process of a tree, also of a stopped one.
    pub(super) fn kill(&self, id: TreeId) {
        self.active(id);
        let deadline = Deadline::after(BOUND);
        let mut empty = 0;
        // Twice: an orphan that was just changing its parent is in the second look.
        while empty < 2 && !deadline.has_passed() {
            let members = self.members(id);
            members.iter().for_each(|member| send(member, Signal::KILL));
            empty = if members.is_empty() { empty + 1 } else { 0 };
            if empty < 2 {
                nap();
            }
        }
    }

    fn active(&self, id: TreeId) {
        self.0.borrow_mut().active = id;
    }
}

/// Processes as a sentence names them.
pub(super) fn names<'a>(members: impl Iterator<Item = &'a Process>) -> String {
    let names: Vec<String> = members.map(|member| format!("{} ({})", member.name, member.pid.as_raw_pid())).collect();
    names.join(", ")
}
