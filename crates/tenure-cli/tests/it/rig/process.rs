//! A process of one's own that does a named job: this test binary once more.

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The variable that tells a child its job, and the one that tells it where.
const JOB: &str = "TENURE_TEST_JOB";
const PLACE: &str = "TENURE_TEST_PLACE";

/// A child; it is killed when this is dropped.
pub(crate) struct Process {
    child: Child,
    stdin: ChildStdin,
    said: Receiver<String>,
}

impl Process {
    /// Starts the test `entry` of this binary in a process of its own, which will find its job.
    pub(crate) fn start(entry: &str, job: &str, place: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([entry, "--exact", "--nocapture", "--test-threads=1"]);
        command.env(JOB, job).env(PLACE, place).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
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

    /// The next thing that it says.
    #[track_caller]
    pub(crate) fn hear(&self) -> String {
        self.said.recv_timeout(super::PATIENCE).expect("the child says something")
    }

    /// Whether it says nothing for so long. It must be alive all the time.
    #[track_caller]
    pub(crate) fn is_silent_for(&self, span: Duration) -> bool {
        match self.said.recv_timeout(span) {
            Ok(_) => false,
            Err(RecvTimeoutError::Timeout) => true,
            Err(RecvTimeoutError::Disconnected) => panic!("the child has ended"),
        }
    }

    /// Tells it to go on.
    pub(crate) fn go(&mut self) {
        self.stdin.write_all(b"go\n").unwrap();
        self.stdin.flush().unwrap();
    }

    /// Stops it; it stands still when this returns.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        let stopped = waitpid(Some(self.pid()), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(stopped.1.stopped(), "{stopped:?}");
    }

    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Waits until it has ended by itself.
    #[track_caller]
    pub(crate) fn finish(mut self) {
        assert!(self.child.wait().unwrap().success());
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        // It may wait for a silent file, and then it ends no earlier than the silence, which may be ours to end.
        let pid = self.pid();
        std::thread::spawn(move || waitpid(Some(pid), WaitOptions::empty()));
    }
}

/// In a child: its job and its place. `None` in the ordinary run of the tests.
pub(crate) fn job() -> Option<(String, PathBuf)> {
    Some((std::env::var(JOB).ok()?, std::env::var_os(PLACE)?.into()))
}

/// In a child: says something.
pub(crate) fn say(what: impl std::fmt::Display) {
    println!("say {what}");
    std::io::stdout().flush().unwrap();
}

/// In a child: waits to be told to go on; false when nobody is there any more.
pub(crate) fn wait_for_go() -> bool {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap() > 0
}
