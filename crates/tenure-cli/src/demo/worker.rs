use super::ground::TTL;
use super::receiver::{Kind, Receiver};
use crate::exit::Exit;
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::Duration;
use tenure::authority::{Clock, FileClock};
use tenure::blocking::wait_for;
use tenure::core::decide::Request;
use tenure::{Lease, Outcome, Tenure, Token};

pub(super) const RESOURCE: &str = "document";
pub(super) const AUTHORITY: &str = "authority.db";
pub(super) const CLOCK: &str = "clock";

/// One logical tick of the incident, on the clock that all its processes share.
pub(super) const TICK: Duration = Duration::from_secs(1);
const LEASE_TICKS: u32 = 10;

/// How long a shared authority may take to give the resource to the next one.
const WAIT_MAX: Duration = Duration::from_secs(12);

/// What the demo tells one of its workers.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    name: String,
    #[arg(long)]
    receiver: Kind,
    #[arg(long)]
    resource: String,
    #[arg(long)]
    dir: PathBuf,
    /// The address of the receiver.
    #[arg(long, env = "TENURE_DEMO_SINK", hide_env_values = true)]
    at: String,
    /// Without one, the file in the folder, on the clock in the folder.
    #[arg(long, env = "TENURE_AUTHORITY", hide_env_values = true)]
    authority: Option<String>,
}

impl Args {
    pub(crate) fn run(&self) -> Exit {
        let answer = |value: Value| {
            let mut output = std::io::stdout().lock();
            writeln!(output, "{value}").and_then(|()| output.flush())
        };
        let mut worker = match Worker::start(self) {
            Ok(worker) => worker,
            Err(error) => {
                let _ = answer(json!({ "error": error.to_string() }));
                return Exit::Failure;
            }
        };
        if answer(json!({ "ready": true })).is_err() {
            return Exit::Failure;
        }
        for order in std::io::stdin().lock().lines().map_while(Result::ok) {
            let done = worker.obey(&order).unwrap_or_else(|error| json!({ "error": error.to_string() }));
            if answer(done).is_err() || order == "leave" {
                break;
            }
        }
        Exit::Success
    }
}

struct Worker<'a> {
    args: &'a Args,
    receiver: Receiver,
    tenure: Tenure,
    lease: Option<Lease>,
    /// Kept apart from the lease, as a request that was prepared before the worker was stopped.
    prepared: Option<Prepared>,
}

struct Prepared {
    token: Token,
    session: tenure::core::SessionId,
}

type Error = Box<dyn std::error::Error>;

impl<'a> Worker<'a> {
    fn start(args: &'a Args) -> Result<Self, Error> {
        let builder = Tenure::builder().owner(&args.name);
        let tenure = match &args.authority {
            Some(url) => wait_for(builder.connect(url))?,
            None => {
                let clock = Clock::File(FileClock::open(args.dir.join(CLOCK))?);
                let url = format!("sqlite:{}", args.dir.join(AUTHORITY).display());
                wait_for(builder.clock(clock).connect(&url))?
            }
        };
        let receiver = Receiver::at(&args.at, args.receiver)?;
        Ok(Self { args, receiver, tenure, lease: None, prepared: None })
    }

    fn obey(&mut self, order: &str) -> Result<Value, Error> {
        match order.split_once(' ') {
            None if order == "acquire" => self.acquire(),
            None if order == "leave" => {
                // One that is lost cannot be given up, and need not be.
                if let Some(lease) = self.lease.take() {
                    let _ = wait_for(lease.release());
                }
                Ok(json!({ "left": true }))
            }
            Some(("write", value)) => self.write(value),
            Some(("complete", value)) => self.complete(value),
            _ => Err(format!("{order:?} is no order").into()),
        }
    }

    fn acquire(&mut self) -> Result<Value, Error> {
        // In real time the deadline is waited for here.
        let (ttl, wait) = match self.args.authority {
            Some(_) => (TTL, WAIT_MAX),
            None => (TICK * LEASE_TICKS, Duration::ZERO),
        };
        let mut wish = self.tenure.acquire(self.args.resource.as_str()).ttl(ttl).wait(wait);
        if let Some(sink) = self.receiver.sink()? {
            wish = wish.sink(sink);
        }
        let lease = wait_for(wish.into_future())?;
        let read = wait_for(self.tenure.authority().inspect(&lease.token().resource))?;
        let session = read.view.lease.map(|record| record.session).ok_or("the authority has no such lease")?;
        let epoch = lease.epoch().get();
        self.prepared = Some(Prepared { token: lease.token().clone(), session });
        self.lease = Some(lease);
        Ok(json!({ "epoch": epoch }))
    }

    /// Sends the write that was prepared, without looking at the lease again: what a worker does that was stopped
    /// between its last checkpoint and its write.
    fn write(&self, value: &str) -> Result<Value, Error> {
        let prepared = self.prepared.as_ref().ok_or("nothing was acquired")?;
        Ok(json!({ "verdict": self.receiver.write(&prepared.token, value)? }))
    }

    /// Completes through the lease, and, if the lease knows that it is lost, past it: the authority refuses as well.
    fn complete(&mut self, value: &str) -> Result<Value, Error> {
        let lease = self.lease.take().ok_or("nothing is held")?;
        let Err(by_holder) = wait_for(lease.complete(value)) else { return Ok(json!({ "accepted": true })) };
        let Prepared { token, session } = self.prepared.take().ok_or("nothing was acquired")?;
        let request = Request::Complete { token, session, outcome: Outcome::new(value)? };
        Ok(match wait_for(self.tenure.authority().execute(&request))? {
            Ok(_) => json!({ "accepted": true, "by_holder": by_holder.to_string() }),
            Err(refusal) => json!({
                "accepted": false,
                "by_holder": by_holder.to_string(),
                "by_authority": refusal.to_string(),
            }),
        })
    }
}
