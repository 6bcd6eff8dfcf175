use super::deadline::{Deadline, Since};
use super::holder::Grant;
use super::narrator::Narrator;
use super::process::{Ear, Followed, Origin, Process, ending};
use super::stage::{Marker, Stage};
use super::tree;
use crate::problem::Problem;
use crate::screen::clean;
use regex::Regex;
use serde::Serialize;
use std::collections::VecDeque;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How many of a worker's last lines are kept.
const LINES: usize = 200;
/// How much of a line is kept, in bytes. A longer one counts as several.
const LINE_BYTES: usize = 4 * 1024;

/// One worker: the user's command, with everything that it starts.
#[derive(Debug)]
pub(super) struct Worker {
    process: Process,
    transcript: Transcript,
    stopped: Option<Since>,
}

/// How a part of a worker's life ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The marker was reached, and the worker is stopped.
    Stopped { processes: usize },
    /// It and everything that it had started have ended.
    Itself { success: bool, how: String },
    /// It was ended, since it took too long. The text says what was still there.
    Killed { how: String },
}

impl Ended {
    pub(super) fn how(&self) -> &str {
        match self {
            Self::Stopped { .. } => "stopped",
            Self::Itself { how, .. } | Self::Killed { how } => how,
        }
    }
}

/// What a worker has printed.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Line {
    pub(super) text: String,
    /// Whether it was printed after the worker was woken.
    pub(super) late: bool,
}

impl Worker {
    /// Starts it under the name `A` or `B`, with what it may know of its lease.
    pub(super) fn start(stage: &Stage, name: &'static str, grant: Option<&Grant>) -> Result<Self, Problem> {
        let mut command = Command::new(&stage.plan.command[0]);
        command.args(&stage.plan.command[1..]).env("TENURE_PROBE_WORKER", name);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        stage.environment(&mut command, grant);
        let process = Process::start(&mut command, &stage.trees).map_err(|error| {
            Problem::usage(format_args!("the worker {:?} cannot be started: {error}", stage.plan.command[0]))
        })?;
        stage.guard.watch_root(&process)?;
        Ok(Self { process, transcript: Transcript::new(name, stage), stopped: None })
    }

    /// Follows it to the marker and stops all of it there.
    pub(super) fn run_to_marker(&mut self, stage: &Stage) -> Result<Ended, Problem> {
        let timeout = Deadline::after(stage.plan.timeout);
        let followed = match &stage.plan.marker {
            Marker::Line(regex) => {
                self.transcript.marker = Some(regex.clone());
                self.process.follow(&stage.signals, timeout, &mut self.transcript)?
            }
            Marker::After(span) => {
                match self.process.follow(&stage.signals, timeout.min(Deadline::after(*span)), &mut self.transcript)? {
                    Followed::TimedOut if !timeout.has_passed() => Followed::Caught,
                    other => other,
                }
            }
        };
        if followed != Followed::Caught {
            return Ok(self.over(followed, stage.plan.timeout));
        }
        let members = self.process.stop()?;
        self.stopped = Some(Since::now());
        stage.guard.watch(&members)?;
        // What it had written before it stood still, and not later.
        self.process.drain(&mut self.transcript);
        self.transcript.break_lines();
        if members.is_empty() {
            let rest = self.process.follow(&stage.signals, timeout, &mut self.transcript)?;
            return Ok(self.over(rest, stage.plan.timeout));
        }
        Ok(Ended::Stopped { processes: members.len() })
    }

    /// Why it is not stopped at its marker.
    pub(super) fn missed_marker(&self, ended: &Ended) -> String {
        let sought = self.transcript.marker.is_some();
        let last = self.transcript.lines.iter().rev().find(|line| !line.text.is_empty());
        let last = last.map_or_else(
            || ", and it printed nothing".to_owned(),
            |line| format!("; its last words: {}", clean(&line.text)),
        );
        match ended {
            Ended::Itself { how, .. } if self.stopped.is_some() && !sought => format!(
                "A had ended before it could be stopped at its marker ({how}): leave it something to do between the two"
            ),
            _ => format!("A never reached the marker: {}{last}", ended.how()),
        }
    }

    /// How long it has been stopped.
    pub(super) fn paused(&self) -> Duration {
        self.stopped.map_or(Duration::ZERO, Since::elapsed)
    }

    /// Keeps it stopped for a while.
    pub(super) fn stay(&mut self, stage: &Stage, span: Duration) -> Result<(), Problem> {
        self.process.follow(&stage.signals, Deadline::after(span), &mut self.transcript).map(|_| ())
    }

    /// Lets it go on. What it prints from now on is late.
    pub(super) fn wake(&mut self) {
        self.transcript.late = true;
        self.process.wake();
    }

    /// Follows it, and everything that it has started, to the end.
    pub(super) fn run_to_end(&mut self, stage: &Stage) -> Result<Ended, Problem> {
        let followed =
            self.process.follow(&stage.signals, Deadline::after(stage.plan.timeout), &mut self.transcript)?;
        Ok(self.over(followed, stage.plan.timeout))
    }

    /// Ends it where it is.
    pub(super) fn kill(&mut self) {
        self.process.kill();
        self.process.drain(&mut self.transcript);
        self.transcript.break_lines();
    }

    fn over(&mut self, followed: Followed, timeout: Duration) -> Ended {
        let left = if followed == Followed::Ended { Vec::new() } else { self.process.members() };
        let of_its_own = self.process.status();
        self.kill();
        let after = crate::span::Span(timeout);
        match (left.is_empty(), of_its_own) {
            (true, Some(status)) => Ended::Itself { success: status.success(), how: ending(status) },
            (_, Some(status)) => {
                let names = tree::names(left.iter());
                Ended::Killed { how: format!("{}, but {names} went on and was ended after {after}", ending(status)) }
            }
            (_, None) => Ended::Killed { how: format!("ended by the probe after {after}") },
        }
    }

    /// The line that `--tried` was found in, after it was woken.
    pub(super) fn tried(&self) -> Option<&str> {
        self.transcript.tried_in.as_deref()
    }

    /// The exit status of its first process; `None` while it runs, and after a signal.
    pub(super) fn exit_status(&self) -> Option<i32> {
        self.process.status().and_then(|status| status.code())
    }

    /// What it printed last.
    pub(super) fn lines(&self) -> Vec<Line> {
        self.transcript.lines.iter().cloned().collect()
    }
}

/// Splits what a worker prints into lines, shows them, and looks for the marker.
#[derive(Debug)]
struct Transcript {
    name: &'static str,
    narrator: Narrator,
    lines: VecDeque<Line>,
    begun: [Vec<u8>; 2],
    /// Whether a line was taken without its end, which may come still.
    broken: [bool; 2],
    /// Looked for until it was found once.
    marker: Option<Regex>,
    tried: Option<Regex>,
    tried_in: Option<String>,
    late: bool,
}

impl Transcript {
    fn new(name: &'static str, stage: &Stage) -> Self {
        Self {
            name,
            narrator: stage.narrator.clone(),
            lines: VecDeque::new(),
            begun: [Vec::new(), Vec::new()],
            broken: [false, false],
            marker: None,
            tried: stage.plan.tried.clone(),
            tried_in: None,
            late: false,
        }
    }

    /// Whether the marker is in it.
    fn line(&mut self, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes).trim_end().to_owned();
        self.narrator.echo(self.name, &text);
        if self.late && self.tried_in.is_none() && self.tried.as_ref().is_some_and(|tried| tried.is_match(&text)) {
            self.tried_in = Some(text.clone());
        }
        let marked = self.is_marker(&text);
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(Line { text, late: self.late });
        marked
    }

    fn is_marker(&mut self, text: &str) -> bool {
        self.marker.take_if(|marker| marker.is_match(text)).is_some()
    }

    /// Takes lines that have no end yet as they are.
    fn break_lines(&mut self) {
        for at in 0..self.begun.len() {
            let begun = std::mem::take(&mut self.begun[at]);
            if !begun.is_empty() {
                self.line(&begun);
                self.broken[at] = true;
            }
        }
    }
}

impl Ear for Transcript {
    fn hear(&mut self, origin: Origin, chunk: &[u8]) -> bool {
        let at = usize::from(origin == Origin::Err);
        let mut caught = false;
        let mut begun = std::mem::take(&mut self.begun[at]);
        for piece in chunk.split_inclusive(|&byte| byte == b'\n') {
            if std::mem::take(&mut self.broken[at]) && piece == b"\n" {
                continue;
            }
            begun.extend_from_slice(piece);
            if begun.ends_with(b"\n") || begun.len() >= LINE_BYTES {
                caught |= self.line(&begun);
                begun.clear();
            }
        }
        // A worker may print its marker without ending the line.
        let unfinished = String::from_utf8_lossy(&begun).into_owned();
        caught |= !unfinished.is_empty() && self.is_marker(&unfinished);
        self.begun[at] = begun;
        caught
    }
}

#[cfg(test)]
mod tests;
