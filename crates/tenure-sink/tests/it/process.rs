//! A process of one's own that does a named job: this test binary once more.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The variable that tells a child its job, and the one that tells it where.
const JOB: &str = "TENURE_SINK_TEST_JOB";
const PLACE: &str = "TENURE_SINK_TEST_PLACE";

/// What a child does not say within this time it never says.
const PATIENCE: Duration = Duration::from_secs(60);

/// A child; it is killed when this is dropped.
pub(crate) struct Process {
    child: Child,
    stdin: ChildStdin,
    said: Receiver<String>,
}

impl Process {
    /// Starts the test `entry` of this binary in a process of its own, which will find its job.
    pub(crate) fn start(entry: &str, job: &str, place: &Path) -> Self {
        Self::start_as(entry, job, place, |command| command)
    }

    pub(crate) fn start_as(
        entry: &str,
        job: &str,
        place: &Path,
        with: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([entry, "--exact", "--nocapture", "--test-threads=1"]);
        command.env(JOB, job).env(PLACE, place).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = with(&mut command).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (say, said) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // The test harness prints lines of its own.
                if let Some((_, line)) = line.split_once("say ")
                    && say.send(line.to_owned()).is_err()
                {
                    return;
                }
            }
        });
        Self { child, stdin, said }
    }

    /// The next thing that it says; `None` when it has ended instead.
    #[track_caller]
    pub(crate) fn hear(&self) -> Option<String> {
        match self.said.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
            Err(error) => panic!("the child said nothing for {PATIENCE:?}: {error}"),
        }
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Tells it to go on.
    pub(crate) fn go(&mut self) {
        self.stdin.write_all(b"go\n").unwrap();
        self.stdin.flush().unwrap();
    }

    pub(crate) fn stop(&self) {
        self.signal(rustix::process::Signal::STOP);
        // The stop has happened when the parent is told of it.
        let options = rustix::process::WaitOptions::UNTRACED;
        let stopped = rustix::process::waitpid(Some(self.pid()), options).unwrap().unwrap();
        assert!(stopped.1.stopped(), "{stopped:?}");
    }

    pub(crate) fn resume(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In a child: its job and its place. `None` in the ordinary run of the tests.
pub(crate) fn job() -> Option<(String, std::path::PathBuf)> {
    Some((std::env::var(JOB).ok()?, std::env::var_os(PLACE)?.into()))
}

/// In a child: says something.
pub(crate) fn say(what: impl std::fmt::Display) {
    println!("say {what}");
    std::io::stdout().flush().unwrap();
}

/// In a child: waits to be told to go on.
pub(crate) fn wait_for_go() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    assert_eq!(line, "go\n", "the parent is gone");
}
