//! The process that ends the workers if the probe itself is killed: a worker that is left stopped would hold for ever
//! what it holds.

use super::deadline::nap;
use super::process::Process;
use super::tree::{Key, Trees, key, send};
use crate::exit::Exit;
use crate::problem::Problem;
use crate::run::tree::{self, all};
use rustix::process::{Pid, Signal};
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

/// Ends what it was told of when no more input comes; the probe itself starts it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let told = std::io::read_to_string(std::io::stdin()).map_err(Problem::failure)?;
        let mut doomed: BTreeSet<Key> = told
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(pid, started)| Some((pid.parse().ok()?, started.parse().ok()?)))
            .collect();
        // Stopped first: whoever is killed while it starts another process leaves an orphan that nobody knows.
        let mut before = Vec::new();
        loop {
            let found = with_descendants(&mut doomed);
            found.iter().filter(|process| !process.is_stopped()).for_each(|process| send(process, Signal::STOP));
            let keys: Vec<Key> = found.iter().map(key).collect();
            if keys == before {
                found.iter().for_each(|process| send(process, Signal::KILL));
                return Ok(Exit::Success);
            }
            before = keys;
            nap();
        }
    }
}

/// Those of these processes that are alive, with whatever comes from them.
fn with_descendants(doomed: &mut BTreeSet<Key>) -> Vec<tree::Process> {
    let alive: BTreeMap<i32, tree::Process> = all().into_iter().filter(|(_, process)| process.is_alive()).collect();
    loop {
        let before = doomed.len();
        let of_doomed =
            |process: &&tree::Process| alive.get(&process.parent).is_some_and(|parent| doomed.contains(&key(parent)));
        let children: Vec<Key> = alive.values().filter(of_doomed).map(key).collect();
        doomed.extend(children);
        if doomed.len() == before {
            return alive.into_values().filter(|process| doomed.contains(&key(process))).collect();
        }
    }
}

/// The guard, as the probe sees it.
#[derive(Debug)]
pub(super) struct Guard(Process);

impl Guard {
    pub(super) fn start(trees: &Trees) -> Result<Self, Problem> {
        let failed = |error| Problem::failure(format_args!("the guard of the workers cannot be started: {error}"));
        let mut command = Command::new("/proc/self/exe");
        command.arg("probe-guard").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self(Process::start(&mut command, trees).map_err(failed)?))
    }

    /// From now on these do not outlive the probe.
    ///
    /// # Errors
    /// The guard is gone.
    pub(super) fn watch(&self, processes: &[tree::Process]) -> Result<(), Problem> {
        let lines: String = processes.iter().map(key).map(|(pid, started)| format!("{pid} {started}\n")).collect();
        let gone = |error| Problem::failure(format_args!("the guard of the workers is gone: {error}"));
        self.0.tell(&lines).map_err(gone)
    }

    /// The same for one that was just started.
    pub(super) fn watch_root(&self, process: &Process) -> Result<(), Problem> {
        let root = Pid::from_raw(process.root()).and_then(tree::Process::read);
        self.watch(root.as_slice())
    }
}
