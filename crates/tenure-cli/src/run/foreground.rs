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

    /// The command was stopped from the keyboard: the shell gets the terminal, and this process stops as well.
    pub(super) fn stop_with_it(&self) {
        if self.is_given() && tcsetpgrp(rustix::stdio::stdin(), getpgrp()).is_ok() {
            let _ = kill_current_process_group(Signal::TSTP);
        }
    }

    /// This process was woken: in the foreground again, the command is so as well.
    pub(super) fn woken(&mut self) {
        let in_front = tcgetpgrp(rustix::stdio::stdin()).is_ok_and(|group| group == getpgrp());
        if let Some(command) = self.command.filter(|_| in_front) {
            self.give(command);
        }
    }

    /// The command is gone.
    pub(super) fn take_back(&mut self) {
        let held = |command| tcgetpgrp(rustix::stdio::stdin()).is_ok_and(|group| group == command);
        if self.command.take().is_some_and(held) {
            let _ = tcsetpgrp(rustix::stdio::stdin(), getpgrp());
        }
    }
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
