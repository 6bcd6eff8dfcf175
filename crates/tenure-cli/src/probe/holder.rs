//! The process that holds a worker's lease, so that it can be stopped together with the worker, as a machine is.

use super::deadline::Deadline;
use super::process::{Ear, Followed, Origin, Process};
use super::stage::Stage;
use crate::exit::Exit;
use crate::owner::Who;
use crate::problem::Problem;
use crate::span;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;
use tenure::AcquireError;
use tenure::blocking::wait_for;

/// How long the answers of a holder may take beyond what it was told to wait.
const BOUND: Duration = Duration::from_secs(20);

/// How long it may take to give up a lease when a probe breaks off. Unanswered, the lease ends by its deadline.
const LAST_WORD: Duration = Duration::from_secs(2);

/// The holder of one worker's lease; the probe itself starts it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Not among its words, which everybody on this machine can read.
    #[arg(long, env = "TENURE_AUTHORITY", hide_env_values = true)]
    authority: String,
    #[arg(long)]
    owner: String,
    #[arg(long)]
    resource: String,
    #[arg(long, value_parser = span::parse)]
    ttl: Duration,
    #[arg(long, value_parser = span::parse)]
    wait: Duration,
    #[arg(long)]
    sink: Vec<String>,
}

/// What the holder tells the probe, a line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    Held(Grant),
    Failed { exit: u8, message: String },
    Released,
    Lost(String),
}

/// What the worker is told of its lease.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Grant {
    pub(super) epoch: u64,
    pub(super) token: String,
    pub(super) owner: String,
}

impl Args {
    /// Acquires, says so, holds until no more input comes, and gives up what is still held.
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let (who, lease) = match self.acquire() {
            Ok(held) => held,
            Err(problem) => {
                tell(&Told::Failed { exit: problem.exit().code(), message: problem.to_string() });
                return Ok(problem.exit());
            }
        };
        let token = lease.token();
        tell(&Told::Held(Grant { epoch: token.epoch.get(), token: token.to_string(), owner: who.to_string() }));
        // Whether it ends or breaks, the probe does not want the lease any longer.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        tell(&match wait_for(lease.ensure_owned()).map(|_| ()) {
            Err(lost) => Told::Lost(lost.loss.to_string()),
            Ok(()) => match wait_for(lease.release()) {
                Ok(()) => Told::Released,
                Err(error) => Told::Lost(error.to_string()),
            },
        });
        Ok(Exit::Success)
    }

    fn acquire(&self) -> Result<(Who, tenure::Lease), Problem> {
        let who = Who::here(Some(&self.owner)).process();
        let sinks: Vec<_> = self.sink.iter().map(|url| tenure::sink::connect(url)).collect::<Result<_, _>>()?;
        let connecting = tenure::Tenure::builder().owner(who.to_string()).connect(&self.authority);
        let tenure = wait_for(connecting).map_err(Problem::unavailable)?;
        let wish = tenure.acquire(self.resource.as_str()).ttl(self.ttl).wait(self.wait);
        let wish = sinks.into_iter().fold(wish, tenure::Acquire::sink);
        let lease = wait_for(wish.into_future()).map_err(|error| {
            let exit = match &error {
                AcquireError::Refused { .. } | AcquireError::HeldHere { .. } => Exit::NotAcquired,
                AcquireError::Name(_) | AcquireError::Timing(_) => Exit::Usage,
                _ => Exit::Unavailable,
            };
            Problem::new(exit, error)
        })?;
        Ok((who, lease))
    }
}

fn tell(told: &Told) {
    let mut out = std::io::stdout();
    // Without a probe there is nobody to be told.
    let _ = serde_json::to_writer(&out, told).map(|()| out.write_all(b"\n").and_then(|()| out.flush()));
}

/// One holder, as the probe sees it.
#[derive(Debug)]
pub(super) struct Holder {
    process: Process,
    lines: Lines,
    pub(super) grant: Grant,
}

impl Holder {
    /// Starts a holder and waits until it holds. The inner error says why it could not.
    pub(super) fn start(stage: &Stage, owner: &str, wait: Duration) -> Result<Result<Self, Problem>, Problem> {
        let Some(lease) = &stage.plan.lease else {
            return Err(Problem::failure("a probe without a lease has no holder"));
        };
        let failed = |error| Problem::failure(format_args!("the holder of a lease cannot be started: {error}"));
        let mut command = Command::new("/proc/self/exe");
        command.args(["probe-holder", "--owner", owner]).env("TENURE_AUTHORITY", &lease.url);
        command.args(["--resource", &lease.resource, "--ttl", &format!("{}ms", lease.ttl.as_millis())]);
        command.args(["--wait", &format!("{}ms", wait.as_millis())]);
        lease.sinks.iter().for_each(|sink| {
            command.args(["--sink", sink]);
        });
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = Process::start(&mut command, &stage.trees).map_err(failed)?;
        stage.guard.watch_root(&process)?;
        let mut lines = Lines::default();
        process.follow(&stage.signals, Deadline::after(wait + BOUND), &mut lines)?;
        match lines.take() {
            Some(Told::Held(grant)) => Ok(Ok(Self { process, lines, grant })),
            Some(Told::Failed { exit, message }) => Ok(Err(Problem::new(known(exit), message))),
            _ => Err(Problem::failure("the holder of a lease gave no answer")),
        }
    }

    /// Stops it, so that nothing is renewed.
    pub(super) fn stop(&self) -> Result<(), Problem> {
        self.process.stop().map(|_| ())
    }

    pub(super) fn wake(&self) {
        self.process.wake();
    }

    /// Lets it give up the lease and end. Returns what it says of it.
    pub(super) fn finish(mut self, stage: &Stage) -> Result<Given, Problem> {
        self.process.close_input();
        let deadline = Deadline::after(BOUND);
        while self.process.follow(&stage.signals, deadline, &mut self.lines)? == Followed::Caught {}
        match self.lines.take() {
            Some(Told::Released) => Ok(Given { lost: None }),
            Some(Told::Lost(why)) => Ok(Given { lost: Some(why) }),
            _ => Err(Problem::failure("the holder of a lease did not say how it ended")),
        }
    }
}

impl Drop for Holder {
    /// A probe that breaks off gives up what it holds, so that nobody has to wait for the end of a lease.
    fn drop(&mut self) {
        if !self.process.is_over() {
            self.process.wake();
            self.process.close_input();
            self.process.let_end(LAST_WORD);
        }
    }
}

/// What became of a lease, by its holder's own account.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Given {
    /// Why it was lost; `None` when it was held to the end and given up.
    pub(super) lost: Option<String>,
}

const fn known(code: u8) -> Exit {
    match code {
        64 => Exit::Usage,
        69 => Exit::Unavailable,
        75 => Exit::NotAcquired,
        _ => Exit::Failure,
    }
}

/// The holder's answers.
#[derive(Debug, Default)]
struct Lines {
    text: Vec<u8>,
}

impl Ear for Lines {
    fn hear(&mut self, _: Origin, chunk: &[u8]) -> bool {
        self.text.extend_from_slice(chunk);
        chunk.contains(&b'\n')
    }
}

impl Lines {
    fn take(&mut self) -> Option<Told> {
        let told = serde_json::from_slice(&self.text).ok();
        self.text.clear();
        told
    }
}
