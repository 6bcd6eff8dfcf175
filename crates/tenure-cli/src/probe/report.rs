use super::reading::Reading;
use super::round::{Account, Round};
use super::stage::{LeasePlan, Marker, Plan};
use super::verdict::{Evidence, Verdict};
use crate::problem::Problem;
use crate::span::Span;
use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use std::fmt::{Display, Write};
use std::time::Duration;

/// How much of a worker's last line a table shows, in characters.
const WORDS_CHARS: usize = 60;

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
    authority: &'a str,
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
            authority: url,
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
            text += &tables(round);
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
pub(super) fn tables(round: &Round) -> String {
    let mut workers = table(["worker", "epoch", "stopped", "ended", "last words"]);
    let alone = round.control.as_ref().map(|control| ("A alone", &control.a));
    let accounts = [Some(("A", &round.a)), round.b.as_ref().map(|b| ("B", b)), alone];
    for (name, account) in accounts.into_iter().flatten() {
        workers.add_row([
            name.to_owned(),
            or_dash(account.epoch),
            stopped(account),
            account.ended.clone(),
            words(account),
        ]);
    }
    let mut values = table(["when", "the receiver holds"]);
    let control = round.control.as_ref();
    let readings = [
        ("A is stopped, B not begun", round.values.before_b.as_ref()),
        ("B has ended", round.values.after_b.as_ref()),
        ("A was woken and has ended", round.values.after_a.as_ref()),
        ("A alone is stopped", control.and_then(|control| control.paused.as_ref())),
        ("A alone has ended", control.and_then(|control| control.after.as_ref())),
    ];
    for (when, reading) in readings.into_iter().filter_map(|(when, reading)| Some((when, reading?))) {
        values.add_row([when.to_owned(), marked(round, when, reading)]);
    }
    let mut text = format!("{}\n", lines(&workers));
    if values.row_count() > 0 {
        text += &format!("{}\n", lines(&values));
    }
    if let Some(says) = &round.authority {
        let _ = writeln!(
            text,
            "  The authority: {} is {}, its newest grant is epoch {} of {}.",
            says.resource, says.phase, says.epoch, says.owner
        );
    }
    if let Some(lost) = &round.a.lost {
        let _ = writeln!(text, "  A's lease: {lost}.");
    }
    text
}

/// The verdict, and what it rests on.
fn conclusion(round: &Round) -> String {
    let judgement = &round.judgement;
    let color = match judgement.verdict {
        Verdict::Pass => AnsiColor::Green,
        Verdict::Undecided => AnsiColor::Yellow,
        Verdict::Fail => AnsiColor::Red,
    };
    let style = Style::new().bold().fg_color(Some(color.into()));
    let mut text = format!("\n{style}{}{style:#}: {}\n", judgement.verdict.name(), judgement.reason);
    for evidence in &judgement.evidence {
        let _ = match evidence {
            Evidence::Refusal { before, after } => {
                writeln!(text, "  Evidence: the receiver's refusals went from {before} to {after}")
            }
            Evidence::Tried { line } => writeln!(text, "  Evidence: A printed after it was woken: {line}"),
            Evidence::Control => writeln!(text, "  Evidence: the control run"),
        };
    }
    text
}

fn marked(round: &Round, when: &str, reading: &Reading) -> String {
    let landed = round.judgement.verdict == Verdict::Fail && when == "A was woken and has ended";
    format!("{reading}{}", if landed { "   <- overwritten" } else { "" })
}

fn stopped(account: &Account) -> String {
    let Some(millis) = account.stopped_ms else { return "-".to_owned() };
    let processes = account.processes.unwrap_or_default();
    let plural = if processes == 1 { "" } else { "es" };
    format!("{}, {processes} process{plural}", Span(Duration::from_millis(millis)))
}

fn words(account: &Account) -> String {
    let last = account.lines.iter().rev().find(|line| !line.text.is_empty());
    let Some(line) = last else { return "-".to_owned() };
    let shown: String = line.text.chars().filter(|c| !c.is_control()).take(WORDS_CHARS).collect();
    if shown.len() < line.text.len() { format!("{shown}…") } else { shown }
}

fn or_dash(value: Option<impl Display>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_header(header);
    let width = terminal_size::terminal_size().map_or(120, |(width, _)| width.0);
    table.set_width(width.saturating_sub(1));
    table
}

/// Without spaces at the ends of lines.
fn lines(table: &Table) -> String {
    table.lines().map(|line| format!(" {}\n", line.trim_end())).collect()
}
