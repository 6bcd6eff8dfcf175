//! Whose keyboard it is: the command's, while it runs in the foreground of a terminal.

use super::tree;
use nix::sys::signal::{SigSet, Signal as BlockedSignal};
use rustix::process::{Pid, Signal, getpgrp, getpid, kill_current_process_group};
use rustix::termios::{isatty, tcgetpgrp, tcsetpgrp};
use std::collections::BTreeSet;

/// The terminal, if it is this run's to hand on.
#[derive(Debug)]
pub(super) struct Foreground {
    ours: bool,
    command: Option<Pid>,
}

impl Foreground {
    /// The terminal is handed on when this process is in its foreground, and alone there but for those that wait for it:
    /// a pager behind a pipe needs the keyboard itself.
    pub(super) fn find() -> Self {
        let terminal = rustix::stdio::stdin();
        let ours = isatty(terminal) && tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()) && nobody_beside_us();
        if ours {
            // Taking the terminal back from behind would stop this process.
            let mut back = SigSet::empty();
            back.add(BlockedSignal::SIGTTOU);
            let _ = back.thread_block();
        }
        Self { ours, command: None }
    }

    /// Hands the terminal to the command's group.
    pub(super) fn give(&mut self, command: Pid) {
        if self.ours && tcsetpgrp(rustix::stdio::stdin(), command).is_ok() {
            self.command = Some(command);
        }
    }

    /// Whether the command has the terminal.
    pub(super) const fn is_given(&self) -> bool {
        self.command.is_some()
    }

    /// The command was stopped from the keyboard: the shell gets the terminal, and this process stops as well. `false`
    /// when nobody is there who could wake it, and it goes on.
    pub(super) fn stop_with_it(&self) -> bool {
        if is_orphaned() {
            return false;
        }
        if self.is_given() && tcsetpgrp(rustix::stdio::stdin(), getpgrp()).is_ok() {
            let _ = kill_current_process_group(Signal::TSTP);
        }
        true
    }

    /// This process was woken: in the foreground again, the command is so as well.
    pub(super) fn woken(&mut self) {
        if let Some(command) = self.command.filter(|_| in_front() == Some(getpgrp())) {
            self.give(command);
        }
    }

    /// The command stands still, and the keyboard is of no use to it.
    pub(super) fn withdraw(&self) {
        if self.command.is_some_and(|command| in_front().is_some_and(|group| group == command)) {
            let _ = tcsetpgrp(rustix::stdio::stdin(), getpgrp());
        }
    }

    /// The command is gone.
    pub(super) fn take_back(&mut self) {
        self.withdraw();
        self.command = None;
    }
}

fn in_front() -> Option<Pid> {
    tcgetpgrp(rustix::stdio::stdin()).ok()
}

/// Ends this process as the interrupt key would have, had the command not had the terminal: whoever waits for it, and all
/// that is in its group, such as a script with a loop, hears of it too.
pub(super) fn end_by(signal: i32) {
    // The first process of a container is not ended by a signal's default.
    if getpid().as_raw_pid() == 1 {
        return;
    }
    if let Some(signal) = Signal::from_named_raw(signal) {
        let _ = kill_current_process_group(signal);
    }
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

/// Whether nobody outside of this process's group, and in its session, is the parent of one in the group: then the system
/// takes no request to stop from a terminal, since nobody would wake it again.
fn is_orphaned() -> bool {
    let (all, group) = (tree::all(), getpgrp().as_raw_pid());
    let has_keeper = |process: &tree::Process| {
        all.get(&process.parent).is_some_and(|parent| parent.group != group && parent.session == process.session)
    };
    !all.values().any(|process| process.group == group && has_keeper(process))
}

fn nobody_beside_us() -> bool {
    let (all, group) = (tree::all(), getpgrp().as_raw_pid());
    let mut above = BTreeSet::new();
    let mut next = getpid().as_raw_pid();
    while above.insert(next) {
        let Some(process) = all.get(&next) else { break };
        next = process.parent;
    }
    all.values().all(|process| process.group != group || above.contains(&process.pid.as_raw_pid()))
}
