//! One process of a scenario: how the director sees it, and where it begins.

use super::receiver::{self, Kind};
use super::{FAULT, sender};
use crate::demo::DemoError;
use crate::exit::Exit;
use clap::ValueEnum;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Where a process ends itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Point {
    /// The sender: its intent is in a transaction that is not committed.
    BeforeIntent,
    AfterIntent,
    /// It has marked the call, and not one byte has left.
    AfterClaim,
    /// The connection broke off without an answer.
    NoAnswer,
    /// It has read the answer, and written nothing down.
    BeforeAck,
    AfterAck,
    /// The receiver: its effect is in a transaction that is not committed.
    BeforeCommit,
    /// It has committed, and said nothing.
    AfterCommit,
    /// It has said so.
    AfterResponse,
}

/// How a sender goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum How {
    /// By the rules.
    Careful,
    /// Against them: what nobody knows it takes for not done.
    Blind,
    /// Against them: it writes down that the work is done before it begins.
    DoneFirst,
    /// By the rules, and it waits after its mark until it is told to go on.
    Waits,
}

#[derive(Clone, Copy)]
pub(super) enum Role<'a> {
    Receiver(Kind),
    /// The receiver's address comes last.
    Sender(Kind, How, &'a str),
    /// One request under another's token: address, token, text.
    Courier(&'a str, &'a str, &'a str),
}

/// What the demo tells one of its processes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    role: Part,
    #[arg(long, global = true)]
    name: Option<String>,
    #[arg(long, global = true)]
    dir: Option<PathBuf>,
    #[arg(long, global = true)]
    end_at: Option<Point>,
}

#[derive(Debug, clap::Subcommand)]
enum Part {
    Receiver { kind: Kind },
    Sender { kind: Kind, how: How, address: String },
    Courier { address: String, token: String, text: String },
}

/// What a process knows of itself.
pub(super) struct Own {
    pub(super) name: String,
    pub(super) dir: PathBuf,
    end_at: Option<Point>,
}

impl Own {
    /// Ends this process, as it stands, when it has come to its point: nothing is closed, rolled back or said.
    pub(super) fn reach(&self, point: Point) {
        if self.end_at == Some(point) {
            std::process::exit(FAULT);
        }
    }

    /// Says something to the director.
    pub(super) fn say(&self, what: &str, value: impl std::fmt::Display) {
        let mut output = std::io::stdout().lock();
        // A director that is gone needs no answer.
        let _ =
            writeln!(output, "{}", json!({ "what": what, "value": value.to_string() })).and_then(|()| output.flush());
    }
}

impl Args {
    pub(crate) fn run(&self) -> Exit {
        let own = Own {
            name: self.name.clone().unwrap_or_default(),
            dir: self.dir.clone().unwrap_or_default(),
            end_at: self.end_at,
        };
        let done = match &self.role {
            Part::Receiver { kind } => receiver::serve(&own, *kind),
            Part::Sender { kind, how, address } => sender::run(&own, *kind, *how, address),
            Part::Courier { address, token, text } => sender::courier(&own, address, token, text),
        };
        match done {
            Ok(()) => Exit::Success,
            Err(error) => {
                own.say("error", error);
                Exit::Failure
            }
        }
    }
}

/// A process, as the director sees it. It is killed when this is dropped.
pub(super) struct Player {
    name: &'static str,
    child: Child,
    orders: Option<ChildStdin>,
    answers: Receiver<String>,
}

/// Far beyond any step; a run that hangs ends with a message instead.
const BARRIER: Duration = Duration::from_secs(15);

impl Player {
    pub(super) fn enter(
        dir: &Path,
        name: &'static str,
        role: Role<'_>,
        end_at: Option<Point>,
    ) -> Result<Self, DemoError> {
        let failed = |why: String| DemoError::Worker { name: name.to_owned(), why };
        let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
        let mut command = Command::new(program);
        command.arg("demo-receipts");
        let word = |of: Option<clap::builder::PossibleValue>| of.map(|of| of.get_name().to_owned()).unwrap_or_default();
        match role {
            Role::Receiver(kind) => command.args(["receiver", &word(kind.to_possible_value())]),
            Role::Sender(kind, how, address) => {
                command.args(["sender", &word(kind.to_possible_value()), &word(how.to_possible_value()), address])
            }
            Role::Courier(address, token, text) => command.args(["courier", address, token, text]),
        };
        command.args(["--name", name, "--dir"]).arg(dir);
        if let Some(point) = end_at {
            command.args(["--end-at", &word(point.to_possible_value())]);
        }
        command.env_remove("TENURE_AUTHORITY").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(format!("it could not be started: {error}")))?;
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
        Ok(Self { name, child, orders, answers })
    }

    /// Waits until it says this, and returns what it says of it. What it says before is passed over.
    pub(super) fn hears(&mut self, what: &str) -> Result<String, DemoError> {
        loop {
            let line = self.answers.recv_timeout(BARRIER).map_err(|error| match error {
                RecvTimeoutError::Timeout => self.failed(format!("it did not say {what:?} within {BARRIER:?}")),
                RecvTimeoutError::Disconnected => self.failed(format!("it ended before it said {what:?}")),
            })?;
            let said: Value = serde_json::from_str(&line).map_err(|error| self.failed(format!("{error}: {line}")))?;
            let value = said["value"].as_str().unwrap_or_default().to_owned();
            match said["what"].as_str() {
                Some(said) if said == what => return Ok(value),
                Some("error") => return Err(self.failed(value)),
                _ => {}
            }
        }
    }

    /// Tells it to go on.
    pub(super) fn go(&mut self) -> Result<(), DemoError> {
        self.order("go")
    }

    pub(super) fn order(&mut self, order: &str) -> Result<(), DemoError> {
        let sent = self.orders.as_mut().map(|orders| writeln!(orders, "{order}").and_then(|()| orders.flush()));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(self.failed(format!("it took no order ({order})"))),
        }
    }

    /// Waits for its end: at its point, or well.
    pub(super) fn ends(mut self, at_its_point: bool) -> Result<(), DemoError> {
        self.orders = None;
        // Its output ends with it.
        let mut errors = String::new();
        loop {
            match self.answers.recv_timeout(BARRIER) {
                Ok(line) if line.contains("\"error\"") => errors = line,
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => return Err(self.failed(format!("it did not end within {BARRIER:?}"))),
            }
        }
        let status = self.child.wait().map_err(|error| self.failed(error.to_string()))?;
        match (status.code(), at_its_point) {
            (Some(FAULT), true) | (Some(0), false) => Ok(()),
            _ => Err(self.failed(format!("it ended with {status} {errors}"))),
        }
    }

    fn failed(&self, why: String) -> DemoError {
        DemoError::Worker { name: self.name.to_owned(), why }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        // Only our own child, by its handle; one that has ended is not there any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
