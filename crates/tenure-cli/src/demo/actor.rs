use super::DemoError;
use super::ground::Ground;
use super::receiver::Kind;
use rustix::process::{Pid, Signal, WaitOptions};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// One worker process, as the director sees it. Each call is a barrier: it returns when the worker has done its step.
#[derive(Debug)]
pub(super) struct Actor {
    name: &'static str,
    child: Child,
    orders: Option<ChildStdin>,
    answers: Receiver<String>,
}

/// Far beyond any step; a run that hangs ends with a message instead.
const BARRIER: Duration = Duration::from_secs(15);

impl Actor {
    pub(super) fn enter(
        name: &'static str,
        (dir, kind, receiver): (&Path, Kind, &str),
        (ground, resource): (&Ground, &str),
    ) -> Result<Self, DemoError> {
        let failed = |why: String| DemoError::Worker { name: name.to_owned(), why };
        let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
        let mut command = Command::new(program);
        command.args(["demo-worker", "--name", name, "--receiver", kind.name(), "--resource", resource, "--dir"]);
        // Not among its words, which everybody on this machine can read.
        command.env("TENURE_DEMO_SINK", receiver);
        match ground {
            Ground::Own => command.env_remove("TENURE_AUTHORITY"),
            Ground::Shared(shared) => command.env("TENURE_AUTHORITY", &shared.url),
        };
        let mut child = command
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("it could not be started: {error}")))?;
        let orders = child.stdin.take();
        let Some(output) = child.stdout.take() else { return Err(failed("it has no output".into())) };
        let (tell, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        let mut actor = Self { name, child, orders, answers };
        actor.hear()?;
        Ok(actor)
    }

    /// Gives an order and waits until it is carried out.
    pub(super) fn order(&mut self, order: &str) -> Result<Value, DemoError> {
        let sent = self.orders.as_mut().map(|orders| writeln!(orders, "{order}").and_then(|()| orders.flush()));
        match sent {
            Some(Ok(())) => self.hear(),
            _ => Err(self.failed(format!("it took no order ({order})"))),
        }
    }

    fn hear(&mut self) -> Result<Value, DemoError> {
        let line = self.answers.recv_timeout(BARRIER).map_err(|error| match error {
            RecvTimeoutError::Timeout => self.failed(format!("no answer within {BARRIER:?}; the run was ended")),
            RecvTimeoutError::Disconnected => self.failed("it ended before its answer".into()),
        })?;
        let answer: Value = serde_json::from_str(&line).map_err(|error| self.failed(format!("{error}: {line}")))?;
        match answer.get("error").and_then(Value::as_str) {
            Some(error) => Err(self.failed(error.to_owned())),
            None => Ok(answer),
        }
    }

    /// Stops the whole process, and waits until the system says that it has stopped.
    pub(super) fn stop(&self) -> Result<(), DemoError> {
        self.signal(Signal::STOP)?;
        match rustix::process::waitpid(self.pid(), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => Ok(()),
            Ok(_) => Err(self.failed("it ended instead of being stopped".into())),
            Err(error) => Err(self.failed(error.to_string())),
        }
    }

    pub(super) fn wake(&self) -> Result<(), DemoError> {
        self.signal(Signal::CONT)
    }

    /// Lets the worker end by itself.
    pub(super) fn leave(mut self) -> Result<(), DemoError> {
        self.order("leave")?;
        self.orders = None;
        self.child.wait().map(|_| ()).map_err(|error| self.failed(error.to_string()))
    }

    fn signal(&self, signal: Signal) -> Result<(), DemoError> {
        let Some(pid) = self.pid() else { return Err(self.failed("it has no process id".into())) };
        rustix::process::kill_process(pid, signal).map_err(|error| self.failed(error.to_string()))
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    fn failed(&self, why: String) -> DemoError {
        DemoError::Worker { name: self.name.to_owned(), why }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // Only our own child, by its handle; one that has left is not there any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
