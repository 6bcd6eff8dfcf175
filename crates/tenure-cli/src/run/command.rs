//! The last step before the command: the process that becomes it.

use super::report::say;
use super::watchdog::now;
use crate::exit::Exit;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What the watchdog starts.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The watchdog.
    #[arg(long)]
    parent: i32,
    /// Until when the command may run, in nanoseconds of CLOCK_BOOTTIME.
    #[arg(long)]
    end_at: u64,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl Args {
    pub(crate) fn run(&self) -> Exit {
        let Some((program, args)) = self.command.split_first() else { return Exit::Usage };
        // When the watchdog itself is killed, nobody would end the command in time.
        if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
            say(&format!("the command cannot be tied to its watchdog: {error}"));
            return Exit::Failure;
        }
        // It may have been killed before that.
        if getppid().is_none_or(|parent| parent.as_raw_pid() != self.parent) {
            return Exit::Failure;
        }
        if now() >= self.end_at {
            return Exit::Lost;
        }
        let error = Command::new(program).args(args).exec();
        say(&format!("{} cannot be started: {error}", program.display()));
        cannot_start(error.kind())
    }
}

/// As shells have it: 127 for a command that is not there, 126 for one that cannot be started.
pub(super) fn cannot_start(kind: ErrorKind) -> Exit {
    Exit::Command(if kind == ErrorKind::NotFound { 127 } else { 126 })
}
