//! A worker in a process of its own, which does what it is told and can be killed.

use super::worker::{Former, Written, offer};
use super::{PATIENCE, Worker};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tenure::authority::conformance::faults::{FaultStore, Point, When};
use tenure::authority::{Clock, store};
use tenure::blocking::wait_for;
use tenure::{Tenure, Token};

/// The variables that tell a child what it is: the job, the authority and the receiver.
const JOB: &str = "TENURE_DRILL_JOB";
const AUTHORITY: &str = "TENURE_DRILL_AUTHORITY";
const RECEIVER: &str = "TENURE_DRILL_RECEIVER";

/// What it does.
#[derive(Clone, Copy)]
pub(super) enum Job {
    /// carol takes the resource and says its token; then she answers what she is asked.
    Hold,
    /// alice asks for the resource, and nothing that she writes in the store is answered before she is told so.
    Ask,
}

/// The worker, as it is seen from here. It is killed when this is dropped.
pub(super) struct Elsewhere {
    name: &'static str,
    child: Child,
    orders: ChildStdin,
    said: Receiver<String>,
    refused: usize,
}

impl Elsewhere {
    /// Starts it. `test` is the drill, which begins with [`is_told`].
    pub(super) fn start(test: &str, job: Job, url: &str, receiver: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
        let (job, name) = match job {
            Job::Hold => ("hold", "carol"),
            Job::Ask => ("ask", "alice"),
        };
        command.env(JOB, job).env(AUTHORITY, url).env(RECEIVER, receiver);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (orders, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (say, said) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // The test harness prints lines of its own, and does not end them.
                if let Some((_, line)) = line.split_once("say ")
                    && say.send(line.to_owned()).is_err()
                {
                    return;
                }
            }
        });
        Self { name, child, orders, said, refused: 0 }
    }

    /// The next thing that it says.
    pub(super) fn hear(&self) -> String {
        self.said.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{} says nothing: {error}", self.name))
    }

    pub(super) fn order(&mut self, what: &str) {
        writeln!(self.orders, "{what}").unwrap();
        self.orders.flush().unwrap();
    }

    pub(super) fn asked(&mut self, what: &str) -> String {
        self.order(what);
        self.hear()
    }

    /// SIGKILL; it is gone when this returns.
    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Former for Elsewhere {
    fn name(&self) -> &'static str {
        self.name
    }

    fn stopped(&mut self) -> Option<String> {
        Some(self.asked("lost")).filter(|why| why != "believes")
    }

    fn writes(&mut self) -> bool {
        let accepted = self.asked("write") == Written::Accepted.to_string();
        self.refused += usize::from(!accepted);
        accepted
    }

    fn refused(&self) -> usize {
        self.refused
    }
}

/// A worker whose process is gone, and its token, which somebody may still have.
pub(super) struct Gone {
    pub(super) name: &'static str,
    pub(super) why: &'static str,
    pub(super) token: Token,
    pub(super) receiver: PathBuf,
    pub(super) refused: usize,
}

impl Former for Gone {
    fn name(&self) -> &'static str {
        self.name
    }

    fn stopped(&mut self) -> Option<String> {
        Some(self.why.to_owned())
    }

    fn writes(&mut self) -> bool {
        let accepted = matches!(offer(&self.receiver, self.name, &self.token), Written::Accepted);
        self.refused += usize::from(!accepted);
        accepted
    }

    fn refused(&self) -> usize {
        self.refused
    }
}

/// In a child: does its job, and tells that this is one. False in the ordinary run.
pub(super) fn is_told() -> bool {
    let Ok(job) = std::env::var(JOB) else { return false };
    let (url, receiver) = (std::env::var(AUTHORITY).unwrap(), PathBuf::from(std::env::var_os(RECEIVER).unwrap()));
    if job == "ask" {
        ask(&url, &receiver)
    } else {
        hold(&url, &receiver)
    }
    true
}

fn hold(url: &str, receiver: &Path) {
    let mut worker = Worker::connect("carol", url, receiver);
    worker.take(PATIENCE, |_| ()).unwrap();
    say(worker.token());
    while let Some(order) = next_order() {
        match order.as_str() {
            "write" => say(worker.write()),
            "check" => say(worker.checks()),
            "lost" => say(worker.lost().map_or_else(|| "believes".to_owned(), |lost| lost.loss.to_string())),
            other => panic!("what is {other}?"),
        }
    }
}

fn ask(url: &str, receiver: &Path) {
    let faults = Arc::new(FaultStore::new(store::connect(url, Clock::from_env().unwrap()).unwrap()));
    let mut hang = faults.hang_next(Point::Swap, When::After);
    let over = Arc::clone(&faults);
    let tenure = wait_for(Tenure::builder().owner("alice").over(over)).unwrap();
    let mut worker = Worker::over("alice", tenure, receiver);
    std::thread::spawn(move || {
        worker.take(Duration::ZERO, |_| ()).unwrap();
        say("granted");
        worker.write();
        say("wrote");
    });
    loop {
        wait_for(hang.reached());
        say("written");
        if next_order().is_none() {
            return;
        }
        let next = faults.hang_next(Point::Swap, When::After);
        hang.release();
        hang = next;
    }
}

fn say(what: impl std::fmt::Display) {
    println!("say {what}");
    std::io::stdout().flush().unwrap();
}

/// `None`: nobody is there any more.
fn next_order() -> Option<String> {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line).unwrap();
    (read > 0).then(|| line.trim_end().to_owned())
}
