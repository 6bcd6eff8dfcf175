//! Which processes belong to which worker, and how all of them are stopped, woken and ended: also those that have left
//! their group or whose parent is gone.

use super::deadline::{Deadline, nap};
use crate::problem::Problem;
use rustix::process::{Pid, Signal, WaitOptions};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::time::Duration;

/// How long it may take until every process has followed a signal. One in an uninterruptible wait may take longer.
const BOUND: Duration = Duration::from_secs(5);

/// One process, also after its number was given to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) pid: i32,
    /// When it was started, in ticks since the machine was.
    pub(super) start: u64,
}

/// One process of a worker.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) key: Key,
    pub(super) name: String,
    parent: i32,
    state: char,
}

impl Member {
    /// A process as it stands now; `None` when it is gone.
    pub(super) fn read(pid: i32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in parentheses and may hold any character, also these.
        let (head, rest) = stat.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Self {
            key: Key { pid, start: fields.get(19)?.parse().ok()? },
            name: name.to_owned(),
            parent: fields.get(1)?.parse().ok()?,
            state: fields.first()?.chars().next()?,
        })
    }

    const fn is_gone(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// Whether no thread of it, each of which was told to stop, does anything more.
    fn is_at_rest(&self, is_parent: bool) -> bool {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", self.key.pid)) else { return true };
        threads.flatten().all(|thread| {
            let read = |name| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            match read("stat").rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next()) {
                None | Some('T' | 'Z' | 'X') => true,
                // A parent that has lent its memory to a child (vfork) waits for it in the kernel, and cannot be seen to
                // stop while that child stands still. It stops before it does anything else.
                Some('D') => {
                    let place = read("wchan");
                    place.contains("clone") || place.contains("fork") || (is_parent && matches!(&*place, "" | "0"))
                }
                Some(_) => false,
            }
        })
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.key.pid) {
            // One that has ended in between needs no signal.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
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
        if let Some(member) = Member::read(root) {
            claims.of.insert(member.key, id);
        }
        id
    }

    /// The root was waited for.
    pub(super) fn fell(&self, root: i32) {
        self.0.borrow_mut().roots.remove(&root);
    }

    /// The processes of a tree that are there now, parents first.
    pub(super) fn members(&self, id: TreeId) -> Vec<Member> {
        let mut children: BTreeMap<i32, Vec<Member>> = BTreeMap::new();
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        for member in pids.filter_map(Member::read) {
            children.entry(member.parent).or_default().push(member);
        }
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let mut claims = self.0.borrow_mut();
        let (mut seen, mut members) = (HashMap::new(), Vec::new());
        let mut next = vec![(own, None)];
        while let Some((parent, owner)) = next.pop() {
            for member in children.remove(&parent).unwrap_or_default() {
                if member.is_gone() {
                    if parent == own && !claims.roots.contains(&member.key.pid) {
                        // An orphan that came to us: nobody else takes it away.
                        let _ = rustix::process::waitpid(Pid::from_raw(member.key.pid), WaitOptions::NOHANG);
                    }
                    continue;
                }
                let owner = claims.of.get(&member.key).copied().or(owner).unwrap_or(claims.active);
                seen.insert(member.key, owner);
                next.push((member.key.pid, Some(owner)));
                if owner == id {
                    members.push(member);
                }
            }
        }
        claims.of = seen;
        members
    }

    /// Stops every process of a tree, and returns when the system says of each that it is stopped.
    pub(super) fn stop(&self, id: TreeId, root: i32) -> Result<Vec<Member>, Problem> {
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
            let running: Vec<&Member> =
                members.iter().filter(|member| !member.is_at_rest(is_parent(member.key.pid))).collect();
            members.iter().filter(|member| member.state != 'T').for_each(|member| member.signal(Signal::STOP));
            let stands: Option<Vec<Key>> =
                running.is_empty().then(|| members.iter().map(|member| member.key).collect());
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
        self.members(id).iter().rev().for_each(|member| member.signal(Signal::CONT));
    }

    /// Ends every process of a tree, also of a stopped one.
    pub(super) fn kill(&self, id: TreeId) {
        let deadline = Deadline::after(BOUND);
        while !deadline.has_passed() {
            let members = self.members(id);
            if members.is_empty() {
                break;
            }
            members.iter().for_each(|member| member.signal(Signal::KILL));
            nap();
        }
    }

    fn active(&self, id: TreeId) {
        self.0.borrow_mut().active = id;
    }
}

/// Processes as a sentence names them.
pub(super) fn names<'a>(members: impl Iterator<Item = &'a Member>) -> String {
    let names: Vec<String> = members.map(|member| format!("{} ({})", member.name, member.key.pid)).collect();
    names.join(", ")
}
