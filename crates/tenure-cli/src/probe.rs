//! What happens to a late writer, on the user's own worker and target.

mod deadline;
mod guard;
mod holder;
mod junit;
mod narrator;
mod process;
mod reading;
mod report;
mod round;
mod signals;
mod stage;
mod tree;
mod verdict;
mod worker;

pub(crate) use guard::Args as GuardArgs;
pub(crate) use holder::Args as HolderArgs;

use crate::access::{named_authority, open_shared};
use crate::exit::Exit;
use crate::problem::Problem;
use crate::screen::Out;
use crate::settings::Color;
use crate::span;
use guard::Guard;
use narrator::Narrator;
use regex::Regex;
use report::Report;
use round::Round;
use signals::Signals;
use stage::{Control, LeasePlan, Marker, Plan, Stage};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use tenure::authority::{Clock, store};
use tree::Trees;
use verdict::Verdict;

/// Prove what happens to a late write, on your own worker and target.
///
/// Starts your command as worker A and stops all of it at the marker; ends its lease; starts the same command as worker B
/// under a new one and lets it finish; then wakes A, lets it end, and looks whether the value that B left is still there.
/// Workers tell each other apart by TENURE_PROBE_WORKER, which is A or B; let what they write depend on it.
///
/// PASS (exit status 0): A changed nothing after B, and there is evidence that it tried. FAIL (1): A's late write landed.
/// UNDECIDED (2): nothing is proved, and the reason says what is missing. A worker that knows nothing of Tenure is probed
/// with --no-lease; there, FAIL is the honest answer.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Stop A at the first line of its output that fits this regular expression. Let the worker print it just before it
    /// writes, outside of a transaction.
    #[arg(long, value_name = "REGEX", conflicts_with = "pause_after", help_heading = "The incident")]
    pause_on: Option<Regex>,
    /// Stop A this long after its start. Without either, after 2 seconds.
    #[arg(long, value_name = "SPAN", value_parser = span::parse, help_heading = "The incident")]
    pause_after: Option<Duration>,
    /// How long A may take to the marker, and each worker from there to its end; also each command of yours.
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = span::parse, help_heading = "The incident")]
    timeout: Duration,
    /// A command for the shell that prints what the target holds.
    #[arg(long, value_name = "CMD", help_heading = "The target")]
    read: String,
    /// A command for the shell that brings the target back to its beginning, before each run.
    #[arg(long, value_name = "CMD", help_heading = "The target")]
    reset: Option<String>,
    /// What A prints when it tries to write, or is refused, after it was woken.
    #[arg(long, value_name = "REGEX", help_heading = "Evidence")]
    tried: Option<Regex>,
    /// A command for the shell that prints the receiver's own record of refusals, such as a count. A change
    /// while A went on is a refusal.
    #[arg(long, value_name = "CMD", help_heading = "Evidence")]
    refusals: Option<String>,
    /// When to play a control run, in which A alone is stopped and woken, and does change the value.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Control::Auto, help_heading = "Evidence")]
    control: Control,
    /// The workers know nothing of leases: hold none for them.
    #[arg(long, conflicts_with_all = ["resource", "authority", "sink", "ttl", "wait_ttl"], help_heading = "The lease")]
    no_lease: bool,
    /// The resource to hold for the workers. Without it, a fresh one of the probe's own.
    #[arg(long, value_name = "NAME", help_heading = "The lease")]
    resource: Option<String>,
    /// The authority to ask; without a URL, the one that TENURE_AUTHORITY or ./tenure.toml names. Without the option, a
    /// fresh one that goes with the probe, so that a probe never disturbs an authority that others use.
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", help_heading = "The lease")]
    authority: Option<String>,
    /// A receiver to seal before each worker starts, such as sqlite:FILE or file:FOLDER. May be given more than once.
    #[arg(long, value_name = "URL", help_heading = "The lease")]
    sink: Vec<String>,
    /// How long a lease lasts without a renewal. Without it, 10 seconds.
    #[arg(long, value_name = "SPAN", value_parser = span::parse, help_heading = "The lease")]
    ttl: Option<Duration>,
    /// Let A's lease expire instead of revoking it.
    #[arg(long, help_heading = "The lease")]
    wait_ttl: bool,
    /// Play it this many times. The worst verdict counts.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), help_heading = "The result")]
    repeat: u32,
    /// Print one JSON object with every step instead of tables.
    #[arg(long, help_heading = "The result")]
    json: bool,
    /// Write a JUnit report as well.
    #[arg(long, value_name = "FILE", help_heading = "The result")]
    junit: Option<PathBuf>,
    /// Do not tell on stderr what happens.
    #[arg(long, short, help_heading = "The result")]
    quiet: bool,
    /// When to write in colours.
    #[arg(long, value_name = "WHEN", value_enum, help_heading = "The result")]
    color: Option<Color>,
    /// The worker.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  A shell script and a plain file, as they are:
    tenure probe --no-lease --pause-on ready --read 'cat out.txt' -- sh worker.sh

  A worker that shows its token to a sealed SQLite file; its lease expires:
    tenure probe --sink sqlite:shop.db --wait-ttl --ttl 3s --pause-on ready \\
      --read \"sqlite3 shop.db 'SELECT text FROM document'\" -- python3 worker.py

  In CI, ten times:
    tenure probe --repeat 10 --junit probe.xml --quiet --pause-on ready \\
      --read 'cat out.txt' -- ./job";

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        self.color.unwrap_or_default().apply();
        let own = match (self.no_lease, &self.authority) {
            (false, None) => Some(OwnAuthority::make()?),
            _ => None,
        };
        let plan = self.plan(own.as_ref())?;
        let (trees, signals) = (Trees::new()?, Signals::catch()?);
        let guard = Guard::start(&trees)?;
        let stage = Stage { plan, trees, guard, signals, narrator: Narrator::new(self.quiet) };
        let mut rounds = Vec::new();
        for number in 1..=self.repeat {
            if self.repeat > 1 {
                stage.narrator.tell(&format!("round {number} of {}", self.repeat));
            }
            let round = Round::play(&stage)?;
            stage.narrator.tell(&format!("{}: {}", round.judgement.verdict.name(), round.judgement.reason));
            rounds.push(round);
        }
        let report = Report::new(&stage.plan, rounds);
        if let Some(path) = &self.junit {
            junit::write(&report, path)?;
        }
        let mut out = Out::new();
        if self.json {
            out.line(&report.json()?)?;
        } else {
            out.write(&report.text())?;
        }
        Ok(match report.verdict() {
            Verdict::Pass => Exit::Success,
            Verdict::Undecided => Exit::Undecided,
            Verdict::Fail => Exit::Different,
        })
    }

    fn plan(&self, own: Option<&OwnAuthority>) -> Result<Plan, Problem> {
        let marker = match (&self.pause_on, self.pause_after) {
            (Some(regex), _) => Marker::Line(regex.clone()),
            (None, span) => Marker::After(span.unwrap_or(Duration::from_secs(2))),
        };
        if matches!(marker, Marker::After(span) if span >= self.timeout) {
            return Err(Problem::usage("--pause-after must be shorter than --timeout, or A is never stopped"));
        }
        if self.control == Control::Never && self.tried.is_none() && self.refusals.is_none() {
            return Err(Problem::usage(
                "without a control run, nothing could show that A tried: give --tried or --refusals as well",
            ));
        }
        Ok(Plan {
            command: self.command.clone(),
            marker,
            read: self.read.clone(),
            refusals: self.refusals.clone(),
            reset: self.reset.clone(),
            tried: self.tried.clone(),
            control: self.control,
            timeout: self.timeout,
            lease: self.lease(own)?,
        })
    }

    fn lease(&self, own: Option<&OwnAuthority>) -> Result<Option<LeasePlan>, Problem> {
        let url = match (&self.authority, own) {
            (Some(named), _) => {
                let url = named_authority(named)?;
                open_shared(&url)?;
                store::shared(&url)
            }
            (None, Some(own)) => own.url.clone(),
            (None, None) => return Ok(None),
        };
        if own.is_some() && self.resource.is_some() && !self.sink.is_empty() {
            return Err(Problem::usage(
                "a receiver follows the authority that has sealed it: give --authority as well, or leave --resource out \
                 and let the probe seal a fresh resource",
            ));
        }
        let resource = match &self.resource {
            Some(name) => tenure::ResourceName::new(name)?.to_string(),
            None => format!("probe/{:08x}", tenure::authority::random_bits()? >> 96),
        };
        let ttl = self.ttl.unwrap_or(Duration::from_secs(10));
        Ok(Some(LeasePlan { url, resource, ttl, sinks: self.sink.clone(), expires: self.wait_ttl }))
    }
}

/// An authority that goes with the probe.
struct OwnAuthority {
    url: String,
    /// Removed with all that is in it.
    _folder: TempDir,
}

impl OwnAuthority {
    fn make() -> Result<Self, Problem> {
        let folder = tempfile::Builder::new().prefix("tenure-probe-").tempdir();
        let folder = folder.map_err(|error| Problem::failure(format_args!("no temporary folder: {error}")))?;
        let path = folder.path().join("authority.db");
        let url = format!("sqlite:{}?create=true", tenure::core::address::escaped(&path.to_string_lossy()));
        store::connect(&url, Clock::from_env()?)?;
        Ok(Self { url: store::shared(&url), _folder: folder })
    }
}
