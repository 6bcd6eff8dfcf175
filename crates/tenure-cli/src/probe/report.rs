use super::round::{Account, Round, Says};
use super::stage::{LeasePlan, Marker, Plan};
use super::verdict::{Evidence, Verdict};
use crate::problem::Problem;
use crate::screen::table::{Column, Table};
use crate::screen::{self, Tint, clean};
use crate::span::Span;
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// How much of a worker's last line a table shows, in characters.
const WORDS_CHARS: usize = 160;

/// What came of all rounds.
#[derive(Debug)]
pub(super) struct Report<'a> {
    plan: &'a Plan,
    pub(super) rounds: Vec<Round>,
}

#[derive(Serialize)]
struct Shown<'a> {
    verdict: Verdict,
    reason: &'a str,
    command: &'a [String],
    pause_on: Option<&'a str>,
    pause_after_ms: Option<u128>,
    lease: Option<Lease<'a>>,
    counts: Counts,
    rounds: &'a [Round],
}

#[derive(Serialize)]
struct Lease<'a> {
    resource: &'a str,
    authority: String,
    ttl_ms: u128,
    sinks: &'a [String],
    ended_by: &'static str,
}

#[derive(Serialize)]
struct Counts {
    pass: usize,
    fail: usize,
    undecided: usize,
}

impl<'a> Report<'a> {
    pub(super) const fn new(plan: &'a Plan, rounds: Vec<Round>) -> Self {
        Self { plan, rounds }
    }

    /// The command as a person typed it, nearly.
    pub(super) fn command(&self) -> String {
        self.plan.command.join(" ")
    }

    /// The worst of all rounds.
    pub(super) fn verdict(&self) -> Verdict {
        self.worst().map_or(Verdict::Undecided, |round| round.judgement.verdict)
    }

    /// The first round with that verdict.
    fn worst(&self) -> Option<&Round> {
        // The last of equal ones, in the order that was turned round.
        self.rounds.iter().rev().max_by_key(|round| round.judgement.verdict)
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.rounds.iter().filter(|round| round.judgement.verdict == verdict).count()
    }

    /// One object, with every step.
    pub(super) fn json(&self) -> Result<String, Problem> {
        let pause = match &self.plan.marker {
            Marker::Line(regex) => (Some(regex.as_str()), None),
            Marker::After(span) => (None, Some(span.as_millis())),
        };
        let lease = self.plan.lease.as_ref().map(|LeasePlan { url, resource, ttl, sinks, expires }| Lease {
            resource,
            authority: tenure::authority::store::shown(url),
            ttl_ms: ttl.as_millis(),
            sinks,
            ended_by: if *expires { "expiry" } else { "revocation" },
        });
        let shown = Shown {
            verdict: self.verdict(),
            reason: self.worst().map_or("", |round| &round.judgement.reason),
            command: &self.plan.command,
            pause_on: pause.0,
            pause_after_ms: pause.1,
            lease,
            counts: Counts {
                pass: self.count(Verdict::Pass),
                fail: self.count(Verdict::Fail),
                undecided: self.count(Verdict::Undecided),
            },
            rounds: &self.rounds,
        };
        serde_json::to_string(&shown).map_err(Problem::failure)
    }

    /// What a person reads: the first of the worst rounds, and how many there were of each.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if let Some(round) = self.worst() {
            text += &tables(round, screen::width());
            text += &conclusion(round);
        }
        if self.rounds.len() > 1 {
            let counts = [Verdict::Pass, Verdict::Fail, Verdict::Undecided]
                .map(|verdict| format!("{} {}", self.count(verdict), verdict.name()));
            // Writing to a String cannot fail.
            let _ = writeln!(text, "\n{} rounds: {}", self.rounds.len(), counts.join(", "));
        }
        text
    }
}

/// The verdict table of one round: what each worker reported, what the receiver held, what the authority says.
pub(super) fn tables(round: &Round, width: usize) -> String {
    let columns = ["worker", "epoch", "stopped", "ended"].map(Column::text);
    let columns: Vec<Column> = columns.into_iter().chain([Column::flexible("last words")]).collect();
    let mut workers = Table::new(width, &columns);
    let alone = round.control.as_ref().map(|control| ("A alone", &control.a));
    let accounts = [Some(("A", &round.a)), round.b.as_ref().map(|b| ("B", b)), alone];
    for (name, account) in accounts.into_iter().flatten() {
        let epoch = account.epoch.map_or_else(|| "-".to_owned(), |epoch| epoch.to_string());
        workers.row(vec![name.to_owned(), epoch, stopped(account), account.ended.clone(), words(account)]);
    }
    let control = round.control.as_ref();
    let readings = [
        ("A is stopped, B not begun", round.values.before_b.as_ref()),
        ("B has ended", round.values.after_b.as_ref()),
        (WOKEN, round.values.after_a.as_ref()),
        ("A alone is stopped", control.and_then(|control| control.paused.as_ref())),
        ("A alone has ended", control.and_then(|control| control.after.as_ref())),
    ];
    let readings: Vec<_> = readings.into_iter().filter_map(|(when, reading)| Some((when, reading?))).collect();
    let mut text = workers.draw();
    if !readings.is_empty() {
        let mut values = Table::new(width, &[Column::text("when"), Column::flexible("the receiver holds")]);
        for (when, reading) in readings {
            let landed = round.judgement.verdict == Verdict::Fail && when == WOKEN;
            values.row(vec![when.to_owned(), format!("{reading}{}", if landed { "   <- overwritten" } else { "" })]);
        }
        text += &format!("\n{}", values.draw());
    }
    let mut notes = String::new();
    // Writing to a String cannot fail.
    if let Some(says) = &round.authority {
        let Says { resource, phase, epoch, owner } = says;
        let _ = writeln!(notes, "The authority: {resource} is {phase}, its newest grant is epoch {epoch} of {owner}.");
    }
    if let Some(lost) = &round.a.lost {
        let _ = writeln!(notes, "A's own lease is lost: {lost}.");
    }
    if !notes.is_empty() {
        text += &format!("\n{notes}");
    }
    text
}

const WOKEN: &str = "A was woken and has ended";

/// The verdict, and what it rests on.
fn conclusion(round: &Round) -> String {
    let judgement = &round.judgement;
    let tint = match judgement.verdict {
        Verdict::Pass => Tint::Good,
        Verdict::Undecided => Tint::Warn,
        Verdict::Fail => Tint::Bad,
    };
    let mut text = format!("\n{}: {}\n", tint.paint(judgement.verdict.name()), judgement.reason);
    for evidence in &judgement.evidence {
        // Writing to a String cannot fail.
        let _ = match evidence {
            Evidence::Refusal { before, after } => {
                writeln!(text, "Evidence: the receiver's refusals went from {before} to {after}.")
            }
            Evidence::Tried { line } => writeln!(text, "Evidence: A printed after it was woken: {}", clean(line)),
            Evidence::Control => writeln!(text, "Evidence: the control run, A alone."),
        };
    }
    text
}

fn stopped(account: &Account) -> String {
    let Some(millis) = account.stopped_ms else { return "-".to_owned() };
    let processes = account.processes.unwrap_or_default();
    let plural = if processes == 1 { "" } else { "es" };
    format!("{}, {processes} process{plural}", Span(Duration::from_millis(millis)))
}

/// What a worker printed last.
fn words(account: &Account) -> String {
    let last = account.lines.iter().rev().find(|line| !line.text.is_empty());
    let Some(line) = last else { return "-".to_owned() };
    let shown: String = line.text.chars().take(WORDS_CHARS).collect();
    format!("{}{}", clean(&shown), if shown.len() < line.text.len() { "…" } else { "" })
}
