use super::guard::Guard;
use super::holder::Grant;
use super::narrator::Narrator;
use super::signals::Signals;
use super::tree::Trees;
use regex::Regex;
use std::process::Command;
use std::time::Duration;

/// What is to be proved, and how.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The worker: a program and its arguments, never empty.
    pub(super) command: Vec<String>,
    pub(super) marker: Marker,
    pub(super) read: String,
    pub(super) refusals: Option<String>,
    pub(super) reset: Option<String>,
    pub(super) tried: Option<Regex>,
    pub(super) control: Control,
    /// How long each part of a worker's life, and each command of the user, may take.
    pub(super) timeout: Duration,
    pub(super) lease: Option<LeasePlan>,
}

/// Where worker A is stopped.
#[derive(Clone, Debug)]
pub(super) enum Marker {
    /// At the first line that fits.
    Line(Regex),
    /// At a time after its start.
    After(Duration),
}

/// When worker A is run once more without a B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Control {
    /// Unless the late write landed, or the receiver recorded a refusal.
    Auto,
    /// Never: then --tried or --refusals must give the evidence.
    Never,
}

/// The leases of the workers.
#[derive(Clone, Debug)]
pub(super) struct LeasePlan {
    pub(super) url: String,
    pub(super) resource: String,
    pub(super) ttl: Duration,
    pub(super) sinks: Vec<String>,
    /// Whether A's lease is left to expire; otherwise it is revoked.
    pub(super) expires: bool,
}

/// What a worker is told of its lease.
const LEASE: [&str; 6] =
    ["TENURE_RESOURCE", "TENURE_EPOCH", "TENURE_TOKEN", "TENURE_TOKEN_FILE", "TENURE_AUTHORITY", "TENURE_OWNER"];

/// What every part of a probe works with.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) plan: Plan,
    pub(super) trees: Trees,
    pub(super) guard: Guard,
    pub(super) signals: Signals,
    pub(super) narrator: Narrator,
}

impl Stage {
    /// Gives a command what it may know of the lease, and nothing of a lease that the probe itself runs under.
    pub(super) fn environment(&self, command: &mut Command, grant: Option<&Grant>) {
        for name in LEASE {
            command.env_remove(name);
        }
        if let Some(lease) = &self.plan.lease {
            command.env("TENURE_RESOURCE", &lease.resource).env("TENURE_AUTHORITY", &lease.url);
        }
        if let Some(grant) = grant {
            command.env("TENURE_EPOCH", grant.epoch.to_string());
            command.env("TENURE_TOKEN", &grant.token).env("TENURE_OWNER", &grant.owner);
        }
    }
}
