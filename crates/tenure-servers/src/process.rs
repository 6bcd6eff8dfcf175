//! One program that runs: a server, or a tool that asks one.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::installed::Account;
use crate::keeper::keeper;
use crate::patience::{PATIENCE, within};
use crate::tree;

/// How a server is started, each time anew.
#[derive(Debug)]
pub(crate) struct Recipe {
    /// The program.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) args: Vec<OsString>,
    /// Where it runs, and where its log is.
    pub(crate) dir: PathBuf,
    /// Who it runs as, when not as we do.
    pub(crate) account: Option<Account>,
}

/// A server's process. It is ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    recipe: Recipe,
    running: Mutex<Option<Child>>,
}

impl Process {
    /// One that does not run yet.
    pub(crate) fn new(recipe: Recipe) -> Self {
        Self { recipe, running: Mutex::new(None) }
    }

    /// Starts it. `ready` is asked again and again, with its process id. The error is the end of its log: it ended, or
    /// `ready` gave nothing in time.
    pub(crate) fn start<T>(recipe: Recipe, ready: impl FnMut(i32) -> Option<T>) -> Result<Self, String> {
        let process = Self::new(recipe);
        process.launch([]);
        process.wait(ready)?;
        Ok(process)
    }

    /// Starts it again as it was, after it was stopped or killed; kills it first when it still runs.
    pub(crate) fn restart<T>(&self, ready: impl FnMut(i32) -> Option<T>) {
        self.launch([]);
        self.wait(ready).unwrap_or_else(|log| panic!("{} did not start again:\n{log}", self.name()));
    }

    /// Starts it, with these arguments beside its own, and waits for nothing. It is killed first when it still runs.
    pub(crate) fn launch(&self, more: impl IntoIterator<Item = OsString>) {
        self.kill();
        let Recipe { program, args, dir, account } = &self.recipe;
        let log = File::options().create(true).append(true).open(self.log_path()).expect("the folder can be written");
        let mut command = keeper().command(program);
        command.args(args).args(more).current_dir(dir);
        command.stderr(log.try_clone().expect("a file can be opened")).stdout(log);
        // etcd asks for this on a machine that its makers do not test.
        if std::env::consts::ARCH == "aarch64" {
            command.env("ETCD_UNSUPPORTED_ARCH", "arm64");
        }
        run_as(&mut command, *account);
        *self.running() = Some(command.spawn().unwrap_or_else(|error| panic!("`sh` did not start: {error}")));
    }

    /// Waits until `ready` gives something. The error is the end of its log.
    pub(crate) fn wait<T>(&self, mut ready: impl FnMut(i32) -> Option<T>) -> Result<(), String> {
        let answers = within(PATIENCE, || match self.pid() {
            Some(pid) if self.runs() => ready(pid.as_raw_nonzero().get()).map(|_| true),
            _ => Some(false),
        });
        // The answer may have come from a stranger on the same port.
        if answers == Some(true) && self.runs() { Ok(()) } else { Err(self.log()) }
    }

    /// Its process id while it runs.
    pub(crate) fn pid(&self) -> Option<Pid> {
        self.running().as_ref().map(pid_of)
    }

    /// Whether it is there, stopped by a signal or not. One that ended by itself is noticed here.
    pub(crate) fn runs(&self) -> bool {
        let mut running = self.running();
        let Some(child) = running.as_mut() else { return false };
        if matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        keeper().gone(child.id());
        *running = None;
        false
    }

    /// Asks it to end and waits; `false` when it did not end in time.
    pub(crate) fn end(&self, how: Signal, patience: Duration) -> bool {
        self.resume();
        if let Some(pid) = self.pid() {
            tree::signal(pid, how);
        }
        within(patience, || (!self.runs()).then_some(())).is_some()
    }

    /// Asks it to end, waits, and panics when it does not.
    pub(crate) fn stop(&self, how: Signal) {
        if !self.end(how, PATIENCE) {
            let log = self.log();
            self.kill();
            panic!("{} did not stop:\n{log}", self.name());
        }
    }

    /// SIGKILL for it and everything below it. When this returns, none of them runs.
    pub(crate) fn kill(&self) {
        let Some(mut child) = self.running().take() else { return };
        let pid = pid_of(&child);
        // One that is stopped starts no further child.
        tree::signal(pid, Signal::STOP);
        let below = tree::below(pid);
        for pid in below.iter().copied().chain([pid]) {
            tree::signal(pid, Signal::KILL);
        }
        let _ = child.wait();
        keeper().gone(child.id());
        within(PATIENCE, || (!below.iter().any(|&pid| tree::lives(pid))).then_some(()));
    }

    /// SIGSTOP for it and everything below it.
    pub(crate) fn pause(&self) {
        let Some(pid) = self.pid() else { return };
        tree::signal(pid, Signal::STOP);
        // A child that was just being made shows in the second look.
        for _ in 0..2 {
            for pid in tree::below(pid) {
                tree::signal(pid, Signal::STOP);
            }
        }
    }

    /// SIGCONT for it and everything below it.
    pub(crate) fn resume(&self) {
        let Some(pid) = self.pid() else { return };
        for pid in tree::below(pid).into_iter().chain([pid]) {
            tree::signal(pid, Signal::CONT);
        }
    }

    /// The end of what it said.
    pub(crate) fn log(&self) -> String {
        let log = std::fs::read(self.log_path()).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(4000)..]).into_owned()
    }

    fn log_path(&self) -> PathBuf {
        self.recipe.dir.join("log")
    }

    fn name(&self) -> std::borrow::Cow<'_, str> {
        self.recipe.program.file_name().unwrap_or_default().to_string_lossy()
    }

    fn running(&self) -> MutexGuard<'_, Option<Child>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a tool said.
#[derive(Debug)]
pub(crate) struct Answer {
    status: Option<ExitStatus>,
    out: String,
    err: String,
}

impl Answer {
    /// What it said when it succeeded; what it complained about when it did not.
    pub(crate) fn result(self) -> Result<String, String> {
        match self.status {
            Some(status) if status.success() => Ok(self.out.trim_end().to_owned()),
            Some(_) => Err(format!("{}{}", self.err, self.out)),
            None => Err(format!("no answer in time\n{}{}", self.err, self.out)),
        }
    }
}

/// A tool, to be given arguments and to [`ask`].
pub(crate) fn tool(program: &Path, account: Option<Account>) -> Command {
    let mut command = keeper().command(program);
    command.current_dir(keeper().root());
    run_as(&mut command, account);
    command
}

/// Runs a tool to its end, or kills it when that takes too long.
pub(crate) fn ask(mut command: Command, patience: Duration) -> Answer {
    let (mut out, mut err) = (tempfile::tempfile().expect("a file"), tempfile::tempfile().expect("a file"));
    command.stdout(out.try_clone().expect("a file")).stderr(err.try_clone().expect("a file"));
    let mut child = command.spawn().unwrap_or_else(|error| panic!("`sh` did not start: {error}"));
    let status = within(patience, || child.try_wait().ok().flatten());
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    keeper().gone(child.id());
    Answer { status, out: text(&mut out), err: text(&mut err) }
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn run_as(command: &mut Command, account: Option<Account>) {
    if let Some(account) = account {
        command.uid(account.uid).gid(account.gid);
    }
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_child(child)
}
