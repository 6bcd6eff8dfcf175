//! `tenure run` as it is typed: real commands, real groups, real signals.

mod excuse;
mod field;
mod freeze;
mod hostile;
mod loss;
mod races;
mod signals;
mod silent;
mod status;
mod terminal;

use crate::rig::until;
use crate::site::Said;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A command that runs, whose output is read as it comes.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    heard: String,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (tell, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines, heard: String::new() }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits for a line that begins so, and returns the rest of it.
    #[track_caller]
    pub(crate) fn hear(&mut self, beginning: &str) -> String {
        loop {
            if let Some(rest) = self.next(beginning).strip_prefix(beginning) {
                return rest.trim().to_owned();
            }
        }
    }

    /// Waits for a line with this in it.
    #[track_caller]
    pub(crate) fn see(&mut self, text: &str) {
        while !self.next(text).contains(text) {}
    }

    #[track_caller]
    fn next(&mut self, awaited: &str) -> String {
        let line = self.lines.recv_timeout(Duration::from_secs(60));
        let line = line.unwrap_or_else(|_| {
            // Ended by now, or ended here: what it said aside tells why.
            let _ = self.child.kill();
            let mut aside = String::new();
            let _ = self.child.stderr.take().unwrap().read_to_string(&mut aside);
            panic!("{awaited:?} was not said; it said {:?}, and aside {aside:?}", self.heard)
        });
        self.heard += &line;
        self.heard.push('\n');
        line
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits for its end, and returns all that it said. A run that a signal ended has the status a shell shows.
    pub(crate) fn end(mut self) -> Said {
        use std::os::unix::process::ExitStatusExt;
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let status = self.child.wait().unwrap();
        for line in self.lines.iter() {
            self.heard += &line;
            self.heard.push('\n');
        }
        let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap();
        Said { code, out: std::mem::take(&mut self.heard), err }
    }
}

/// A test that fails leaves no run behind, and a killed run's watchdog ends its command.
impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// For the tests that load the machine, and for those that measure: not at once.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process by the number that a script printed.
pub(crate) fn pid(text: &str) -> Pid {
    Pid::from_raw(text.parse().unwrap()).unwrap()
}

/// One letter, as in ps; `None` when it is gone, or has ended and only waits to be reaped.
pub(crate) fn state(pid: Pid) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
    (!matches!(state, 'Z' | 'X')).then_some(state)
}

/// Stopped; or, as a shell that was stopped while it started a program, waiting for that program, which is stopped.
pub(crate) fn stands_still(pid: Pid) -> bool {
    match state(pid) {
        Some('T') => true,
        // Each start of a program makes a shell wait so for a moment, also when nothing is stopped.
        Some('D') => {
            let children: Vec<_> = children(pid).into_iter().filter(|child| is_alive(*child)).collect();
            !children.is_empty() && children.into_iter().all(stands_still)
        }
        _ => false,
    }
}

pub(crate) fn is_alive(pid: Pid) -> bool {
    state(pid).is_some()
}

/// The last line of standard error, which `--json` makes an object.
#[track_caller]
pub(crate) fn account(said: &Said) -> serde_json::Value {
    let line = said.err.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {said:#?}"))
}

/// The watchdog of a run: its child.
pub(crate) fn watchdog(run: Pid) -> Pid {
    let mut found = None;
    until("the watchdog is there", || {
        found = children(run).into_iter().find(|child| {
            let line = std::fs::read(format!("/proc/{}/cmdline", child.as_raw_pid())).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("run-watchdog")
        });
        found.is_some()
    });
    found.unwrap()
}

pub(crate) fn children(parent: Pid) -> Vec<Pid> {
    let tasks = format!("/proc/{0}/task", parent.as_raw_pid());
    let lists = std::fs::read_dir(Path::new(&tasks)).into_iter().flatten().flatten();
    let lists = lists.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(pid).collect::<Vec<_>>()).collect()
}
