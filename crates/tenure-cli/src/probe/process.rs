use super::deadline::{Deadline, nap, timespec};
use super::signals::Signals;
use super::tree::{TreeId, Trees};
use crate::problem::Problem;
use crate::run::tree;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus};
use std::time::Duration;

/// How long a wait may last before the clock and the processes are looked at again.
const LOOK: Duration = Duration::from_secs(1);
/// The same once the first process has ended, while others of its tree are still there: nobody tells when they end.
const LOOK_AT_REST: Duration = Duration::from_millis(10);

/// Which of its outputs a process has written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Out,
    Err,
}

/// Takes what a process writes.
pub(super) trait Ear {
    /// Whether what was waited for is in it.
    fn hear(&mut self, origin: Origin, chunk: &[u8]) -> bool;
}

/// How a wait for a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Followed {
    /// It wrote what was waited for.
    Caught,
    /// It and everything that it had started have ended.
    Ended,
    TimedOut,
}

/// A process in a group of its own, with everything that it starts. When it is dropped, all of them are ended.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    root: i32,
    tree: TreeId,
    trees: Trees,
    /// Readable when the first process has ended.
    ends: OwnedFd,
    outputs: Vec<(Origin, File)>,
    input: Option<ChildStdin>,
    status: Option<ExitStatus>,
    /// How often in a row nothing of the tree was there.
    empty: u32,
    whole_tree_ended: bool,
}

impl Process {
    pub(super) fn start(command: &mut Command, trees: &Trees) -> std::io::Result<Self> {
        let mut child = command.process_group(0).spawn()?;
        let root = i32::try_from(child.id()).unwrap_or(i32::MAX);
        let tree = trees.plant(root);
        let mut outputs = Vec::new();
        let out = child.stdout.take().map(|pipe| (Origin::Out, OwnedFd::from(pipe)));
        let err = child.stderr.take().map(|pipe| (Origin::Err, OwnedFd::from(pipe)));
        let prepared = (|| {
            for (origin, pipe) in [out, err].into_iter().flatten() {
                rustix::io::ioctl_fionbio(&pipe, true)?;
                outputs.push((origin, File::from(pipe)));
            }
            let pid = Pid::from_raw(root).ok_or(rustix::io::Errno::SRCH)?;
            rustix::process::pidfd_open(pid, PidfdFlags::empty())
        })();
        let input = child.stdin.take();
        match prepared {
            Ok(ends) => Ok(Self {
                child,
                root,
                tree,
                trees: trees.clone(),
                ends,
                outputs,
                input,
                status: None,
                empty: 0,
                whole_tree_ended: false,
            }),
            Err(error) => {
                trees.kill(tree);
                let _ = child.wait();
                trees.fell(root);
                Err(error.into())
            }
        }
    }

    /// Listens until the ear has caught something, everything has ended, or the deadline has passed.
    ///
    /// # Errors
    /// A signal came to the probe itself, or the system fails.
    pub(super) fn follow(
        &mut self,
        signals: &Signals,
        until: Deadline,
        ear: &mut dyn Ear,
    ) -> Result<Followed, Problem> {
        loop {
            if self.drain(ear) {
                return Ok(Followed::Caught);
            }
            if self.has_ended()? {
                // What was written between the last look at the pipes and the end.
                return Ok(if self.drain(ear) { Followed::Caught } else { Followed::Ended });
            }
            signals.check()?;
            if until.has_passed() {
                return Ok(Followed::TimedOut);
            }
            let look = if self.status.is_some() { LOOK_AT_REST } else { LOOK };
            let mut fds: Vec<PollFd<'_>> =
                self.outputs.iter().map(|(_, pipe)| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)).collect();
            fds.push(PollFd::new(signals, PollFlags::IN));
            if self.status.is_none() {
                fds.push(PollFd::new(&self.ends, PollFlags::IN));
            }
            match poll(&mut fds, Some(&timespec(until.left().min(look)))) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Problem::failure(format_args!("waiting for a process failed: {error}"))),
            }
        }
    }

    /// Takes all that is written and was not read yet.
    pub(super) fn drain(&mut self, ear: &mut dyn Ear) -> bool {
        let mut caught = false;
        let mut chunk = [0; 16 * 1024];
        self.outputs.retain_mut(|(origin, pipe)| {
            loop {
                match pipe.read(&mut chunk) {
                    Ok(0) => return false,
                    Ok(size) => caught |= ear.hear(*origin, &chunk[..size]),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return error.kind() == ErrorKind::WouldBlock,
                }
                // The rest waits: the process is to be stopped at once.
                if caught {
                    return true;
                }
            }
        });
        caught
    }

    fn has_ended(&mut self) -> Result<bool, Problem> {
        if self.status.is_none() {
            let failed = |error| Problem::failure(format_args!("a process cannot be waited for: {error}"));
            let Some(status) = self.child.try_wait().map_err(failed)? else { return Ok(false) };
            self.trees.fell(self.root);
            self.status = Some(status);
        }
        // Twice: an orphan that was just changing its parent is in the second look.
        self.empty = if self.members().is_empty() { self.empty + 1 } else { 0 };
        self.whole_tree_ended = self.empty >= 2;
        Ok(self.whole_tree_ended)
    }

    /// Waits a while for its end, whatever else happens.
    pub(super) fn let_end(&mut self, within: Duration) {
        let deadline = Deadline::after(within);
        while !matches!(self.has_ended(), Ok(true) | Err(_)) && !deadline.has_passed() {
            nap();
        }
    }

    /// Whether all of it was seen to end, or was ended.
    pub(super) const fn is_over(&self) -> bool {
        self.whole_tree_ended
    }

    /// What of it is there now.
    pub(super) fn members(&self) -> Vec<tree::Process> {
        self.trees.members(self.tree)
    }

    /// Stops all of it.
    pub(super) fn stop(&self) -> Result<Vec<tree::Process>, Problem> {
        self.trees.stop(self.tree, self.root)
    }

    /// Lets it go on.
    pub(super) fn wake(&self) {
        self.trees.wake(self.tree);
    }

    /// Ends what is left of it.
    pub(super) fn kill(&mut self) {
        self.trees.kill(self.tree);
        if self.status.is_none() {
            // A process that does not follow even KILL is left to the system, which ends it when it can.
            self.status = self.child.try_wait().ok().flatten();
            self.trees.fell(self.root);
        }
        self.whole_tree_ended = true;
    }

    /// Writes to its input.
    pub(super) fn tell(&self, text: &str) -> std::io::Result<()> {
        self.input.as_ref().map_or(Ok(()), |mut input| input.write_all(text.as_bytes()))
    }

    /// The number of its first process.
    pub(super) const fn root(&self) -> i32 {
        self.root
    }

    /// Tells it that no more input comes.
    pub(super) fn close_input(&mut self) {
        self.input = None;
    }

    /// How the first process ended; `None` while it runs.
    pub(super) const fn status(&self) -> Option<ExitStatus> {
        self.status
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.whole_tree_ended {
            self.kill();
        }
    }
}

/// An exit status for people.
pub(super) fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown".to_owned(),
    }
}
