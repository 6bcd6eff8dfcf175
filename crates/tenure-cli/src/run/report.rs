//! What a run says of itself: sentences on standard error, and with `--json` one line at its end.

use super::link::{Gone, Status};
use super::plan::Plan;
use crate::exit::Exit;
use crate::holder::Holder;
use crate::screen;
use crate::span::millis;
use serde_json::{Value, json};
use std::time::Duration;
use tenure::{Epoch, ResourceName, Token};

/// The account of one run.
#[derive(Debug)]
pub(super) struct Report {
    resource: ResourceName,
    owner: String,
    plan: Plan,
    /// The tokens that were held, oldest first; more than one when the command was frozen and came back.
    pub(super) tokens: Vec<Token>,
    pub(super) pid: Option<i32>,
    pub(super) status: Option<Status>,
    /// The receivers without which the command was started.
    pub(super) excused: Vec<String>,
    /// Why the right to write was lost.
    pub(super) lost: Option<String>,
    /// Until when the command might run at most, in nanoseconds of CLOCK_BOOTTIME.
    pub(super) end_at: u64,
    pub(super) acquired_at: u64,
    pub(super) gone: Option<Gone>,
    /// How long the command stood still.
    pub(super) frozen: Duration,
    pub(super) hook: Option<Option<Status>>,
    pub(super) release: Release,
    /// Whose newer grant was found after a loss, and under which epoch.
    pub(super) successor: Option<(String, Epoch)>,
    /// The signal by which a key of the terminal ended the command, when the command had the terminal.
    pub(super) interrupted: Option<i32>,
}

/// What became of the grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    /// It was given up, and the authority knows.
    Released,
    /// It was lost: there is nothing to give up.
    Lost,
    /// The authority did not say; it is free when the ttl has passed.
    Unknown,
}

impl Report {
    pub(super) fn new(resource: ResourceName, owner: String, plan: Plan, token: Token, end_at: u64, now: u64) -> Self {
        Self {
            resource,
            owner,
            plan,
            tokens: vec![token],
            pid: None,
            status: None,
            excused: Vec::new(),
            lost: None,
            end_at,
            acquired_at: now,
            gone: None,
            frozen: Duration::ZERO,
            hook: None,
            release: Release::Unknown,
            successor: None,
            interrupted: None,
        }
    }

    /// The exit status: the command's own, unless the right to write was lost while it ran.
    pub(super) fn exit(&self) -> Exit {
        match (&self.lost, self.status) {
            (Some(_), _) => Exit::Lost,
            (None, Some(status)) => Exit::Command(status.code()),
            (None, None) => Exit::Failure,
        }
    }

    /// How long before the authority's deadline the last process was gone, and `None` when that deadline came first. The
    /// deadline is counted from before the newest granted renewal was sent, so the authority's own is never earlier.
    fn gone_before_deadline(&self) -> Option<Duration> {
        let left = u64::try_from(self.plan.holder_margin().as_nanos()).unwrap_or(u64::MAX);
        let deadline = self.end_at.saturating_add(left);
        deadline.checked_sub(self.gone.as_ref()?.at).map(Duration::from_nanos)
    }

    pub(super) fn json(&self) -> Value {
        let outcome = match (&self.lost, self.status) {
            (Some(_), _) => "lost",
            (None, Some(Status::Exited(_))) => "exited",
            (None, Some(Status::Killed(_))) => "killed",
            (None, None) => "failed",
        };
        let since = |at: Option<u64>| at.map(|at| Duration::from_nanos(at.saturating_sub(self.acquired_at)));
        let in_ms = |at: Option<u64>| since(at).map(millis);
        let gone = self.gone.as_ref();
        json!({
            "resource": self.resource.as_str(),
            "owner": self.owner,
            "outcome": outcome,
            "exit_code": self.exit().code(),
            "epoch": self.tokens.last().map(|token| token.epoch.get()),
            "tokens": self.tokens.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "command": {
                "pid": self.pid,
                "code": match self.status { Some(Status::Exited(code)) => Some(code), _ => None },
                "signal": match self.status { Some(Status::Killed(signal)) => Some(signal), _ => None },
            },
            "excused": self.excused,
            "lost": self.lost,
            "held_ms": in_ms(gone.map(|gone| gone.at)),
            "frozen_ms": millis(self.frozen),
            "ended": {
                "asked_ms": in_ms(gone.and_then(|gone| gone.asked_at)),
                "killed_ms": in_ms(gone.and_then(|gone| gone.killed_at)),
                "gone_ms": in_ms(gone.map(|gone| gone.at)),
                "before_deadline_us": self.gone_before_deadline().map(|left| u64::try_from(left.as_micros()).unwrap_or(u64::MAX)),
                "left_behind": gone.map(|gone| gone.left_behind.clone()).unwrap_or_default(),
            },
            "successor": self.successor.as_ref().map(|(owner, epoch)| json!({ "owner": owner, "epoch": epoch.get() })),
            "on_loss": self.hook.map(|hook| hook.map(Status::code)),
            "release": match self.release {
                Release::Released => "released",
                Release::Lost => "lost",
                Release::Unknown => "unknown",
            },
        })
    }

    /// What a person has to know at the end; nothing when all went as asked.
    pub(super) fn say(&self) {
        let resource = &self.resource;
        if let Some(lost) = &self.lost {
            let epoch = self.tokens.last().map_or(0, |token| token.epoch.get());
            let successor = self
                .successor
                .as_ref()
                .map(|(owner, epoch)| format!(". {owner} has had it since, under epoch {epoch}"));
            say(&format!(
                "the right to write {resource} (epoch {epoch}) was lost: {}; the command was ended{}",
                reason(lost),
                successor.unwrap_or_default()
            ));
        }
        for left in self.gone.iter().flat_map(|gone| &gone.left_behind) {
            say(&format!("the command had left {left} behind; it was ended before {resource} was released"));
        }
        if self.release == Release::Unknown {
            say(&format!(
                "nobody knows whether the authority released {resource}; it is free {:?} after the last renewal at the latest",
                self.plan.ttl.get()
            ));
        }
        match self.hook {
            Some(Some(Status::Exited(0))) | None => {}
            Some(Some(status)) => say(&format!("the command for a loss ended with status {}", status.code())),
            Some(None) => say(&format!("the command for a loss took over {:?} and was ended", super::hook::AT_MOST)),
        }
    }
}

/// The account of a run that never started its command.
pub(super) fn not_started(resource: &ResourceName, exit: Exit, why: &str, holder: Option<&Holder>) -> Value {
    let outcome = match exit {
        Exit::NotAcquired => "not_acquired",
        Exit::Unavailable => "unavailable",
        Exit::Usage => "usage",
        Exit::Command(_) => "interrupted",
        _ => "failed",
    };
    json!({
        "resource": resource.as_str(),
        "outcome": outcome,
        "exit_code": exit.code(),
        "holder": holder.map(Holder::json),
        "message": why,
    })
}

/// On standard error, whose reader may be gone: that changes nothing for the run.
pub(super) fn say(text: &str) {
    screen::say("run", text);
}

/// The reason of a loss in words; the names are those of the library and a few of the run's own.
fn reason(name: &str) -> String {
    let known = tenure::Loss::ALL.into_iter().find(|loss| loss.name() == name);
    match name {
        super::watchdog::RUN_GONE => "the run was killed".to_owned(),
        super::keep::MAX_HOLD => "it was held for as long as --max-hold allows".to_owned(),
        super::keep::TAKEN_OVER => "somebody else took over while the command was stopped".to_owned(),
        super::keep::NOT_REGAINED => "it could not be had again while the command was stopped".to_owned(),
        super::keep::INTERRUPTED => "it was interrupted while the command was stopped".to_owned(),
        super::keep::WATCHDOG_GONE => "the watchdog was killed".to_owned(),
        other => known.map_or_else(|| other.to_owned(), |loss| loss.to_string()),
    }
}
