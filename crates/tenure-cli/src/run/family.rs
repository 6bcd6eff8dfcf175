//! The command and all that comes from it, as its watchdog signals it: the group in one step, then whoever left it.

use super::tree::{Process, descendants, descendants_in_haste};
use super::watchdog::pause;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Family {
    /// Who adopts the orphans: this process.
    own: Pid,
    command: Pid,
    /// The command's number names its group for as long as the command is not reaped, and not a moment longer.
    group: bool,
    /// Who was asked to end.
    asked: Vec<Process>,
}

/// How often a process is looked at until it has stopped.
const LOOKS_AT_A_STOP: usize = 200;

impl Family {
    pub(super) const fn new(own: Pid, command: Pid) -> Self {
        Self { own, command, group: true, asked: Vec::new() }
    }

    pub(super) const fn command(&self) -> Pid {
        self.command
    }

    /// The command was reaped: its number may soon be another's.
    pub(super) const fn reaped(&mut self) {
        self.group = false;
    }

    /// Who is there still.
    pub(super) fn members(&self) -> Vec<Process> {
        descendants(self.own)
    }

    pub(super) fn signal_group(&self, signal: Signal) {
        if self.group {
            let _ = kill_process_group(self.command, signal);
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        self.signal_group(signal);
        let group = self.group.then(|| self.command.as_raw_pid());
        for process in descendants(self.own).iter().filter(|process| Some(process.group) != group) {
            let _ = process.signal(signal);
        }
    }

    /// Asks those to end who were not asked yet, each once; somebody new may come up meanwhile.
    pub(super) fn ask(&mut self) {
        for process in descendants(self.own) {
            if !self.asked.iter().any(|asked| asked.is_same(&process)) {
                let _ = process.signal(Signal::TERM);
                // A stopped process acts on it only when it goes on.
                let _ = process.signal(Signal::CONT);
                self.asked.push(process);
            }
        }
    }

    /// Stops every one of them, and returns when they stand still; names those whom the system does not let it stop.
    pub(super) fn stop(&self) -> Vec<String> {
        self.signal_group(Signal::STOP);
        let mut refused = Vec::new();
        for _ in 0..LOOKS_AT_A_STOP {
            let awake: Vec<_> = descendants(self.own).into_iter().filter(|process| !process.is_stopped()).collect();
            refused.clear();
            for process in &awake {
                if process.signal(Signal::STOP) == Err(Errno::PERM) {
                    refused.push(process.to_string());
                }
            }
            if awake.len() == refused.len() {
                break;
            }
            pause(Duration::from_millis(1));
        }
        refused
    }

    /// Whether none has been woken by somebody else.
    pub(super) fn stands_still(&self) -> bool {
        descendants_in_haste(self.own).unwrap_or_else(|| descendants(self.own)).iter().all(Process::is_stopped)
    }

    /// Kills them, and returns whom the system does not let it kill. Whoever was started meanwhile needs another call.
    pub(super) fn kill(&self) -> Vec<String> {
        // The group first: that is one step, however many processes the machine has to list.
        self.signal_group(Signal::KILL);
        // Then whoever left it: all of them stopped before any is killed, so that few get to start another one meanwhile.
        let others = descendants_in_haste(self.own).filter(|others| !others.is_empty());
        let others = others.unwrap_or_else(|| descendants(self.own));
        for process in &others {
            let _ = process.signal(Signal::STOP);
        }
        let refused = others.iter().filter(|process| process.signal(Signal::KILL) == Err(Errno::PERM));
        refused.map(Process::to_string).collect()
    }
}
