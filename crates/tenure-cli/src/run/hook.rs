//! The command that is run once when the right to write is lost.

use super::link::Status;
use super::watchdog::{now, pause};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// It tells somebody; it does not work. One that hangs must not keep the next run of the same unit from starting.
pub(super) const AT_MOST: Duration = Duration::from_secs(60);

/// Runs it through a shell, with the reason in `TENURE_LOSS`, after the command is gone. Its output goes to standard
/// error: standard output is the command's. `None` when it did not end by itself.
pub(super) fn run(command: &OsStr, why: &str) -> Option<Status> {
    run_with(command, why, [])
}

/// The same with more in its environment; the watchdog has the run's in its own.
pub(super) fn run_with<'a>(
    command: &OsStr,
    why: &str,
    environment: impl IntoIterator<Item = (&'a str, String)>,
) -> Option<Status> {
    let started = start(command, why, environment).and_then(|mut hook| follow(&mut hook));
    // As a shell has it: it could not be started.
    started.unwrap_or(Some(Status::Exited(127)))
}

fn start<'a>(
    command: &OsStr,
    why: &str,
    environment: impl IntoIterator<Item = (&'a str, String)>,
) -> io::Result<Child> {
    let mut hook = Command::new("sh");
    hook.arg("-c").arg(command).envs(environment).env("TENURE_LOSS", why);
    hook.stdin(Stdio::null()).stdout(io::stderr().as_fd().try_clone_to_owned()?).process_group(0).spawn()
}

fn follow(hook: &mut Child) -> io::Result<Option<Status>> {
    let until = now().saturating_add(u64::try_from(AT_MOST.as_nanos()).unwrap_or(u64::MAX));
    while now() < until {
        if let Some(status) = hook.try_wait()? {
            return Ok(Some(status.into()));
        }
        pause(Duration::from_millis(10));
    }
    let _ = kill_process_group(Pid::from_child(hook), Signal::KILL);
    hook.wait()?;
    Ok(None)
}
