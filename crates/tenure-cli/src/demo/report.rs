use super::incident::Incident;
use super::timeline::{Lane, Timeline};
use crate::screen::clean;
use serde::Serialize;
use serde_json::json;
use std::fmt::Write;

/// All incidents of one run.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) takeover: Vec<Incident>,
    pub(super) gap: Vec<Incident>,
    /// The address of the authority that it was played on, unless that was the demo's own.
    pub(super) shared: Option<String>,
    /// Where the documents were.
    pub(super) documents: String,
    /// How a receiver of that kind may lose what it has accepted.
    pub(super) may_lose: Option<&'static str>,
}

/// The result of a run, without the events that led to it.
#[derive(Debug, Serialize)]
pub(super) struct Summary<'a> {
    takeover: Vec<Takeover<'a>>,
    gap: Vec<Gap<'a>>,
}

#[derive(Debug, Serialize)]
struct Takeover<'a> {
    receiver: &'a str,
    late_write: &'a str,
    late_complete: &'a str,
    authority_value: Option<&'a str>,
    receiver_value: &'a str,
}

#[derive(Debug, Serialize)]
struct Gap<'a> {
    receiver: &'a str,
    verdicts: Vec<&'a str>,
}

impl Report {
    /// The object that `--json` prints.
    pub(super) fn summary(&self) -> Summary<'_> {
        let takeover = self.takeover.iter().map(|incident| Takeover {
            receiver: incident.kind.name(),
            late_write: incident.verdict("A_write"),
            late_complete: late_complete(incident),
            authority_value: incident.lease.result.as_deref(),
            receiver_value: &incident.sink.value,
        });
        let gap = self.gap.iter().map(|incident| Gap {
            receiver: incident.kind.name(),
            verdicts: incident.events.iter().map(|(event, _)| incident.verdict(event)).collect(),
        });
        Summary { takeover: takeover.collect(), gap: gap.collect() }
    }

    /// What a person reads.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "Two workers, one document. A acquires it and is stopped (SIGSTOP). B takes over at A's deadline, writes and\n\
             completes. A wakes up, sends the write that it had prepared, and completes. Real processes, real {};\n",
            clean(&self.documents)
        );
        text += &match &self.shared {
            None => "time is a clock in a file that all processes share.\n\n".to_owned(),
            Some(url) => format!("the authority is {}, in real time.\n\n", clean(url)),
        };
        text += &self.takeover_timeline().draw();
        text += "\n  receiver     A's late write   A's late completion   authority says   document holds\n";
        for incident in &self.takeover {
            let mark =
                if incident.lease.result.as_deref() == Some(&incident.sink.value) { "" } else { "   <- overwritten" };
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "  {:<12} {:<16} {:<21} {:<16} {}{mark}",
                incident.kind.name(),
                incident.verdict("A_write"),
                late_complete(incident),
                incident.lease.result.as_deref().unwrap_or("-"),
                incident.sink.value,
            );
        }
        if let Some((by_holder, by_authority)) =
            self.takeover.iter().find_map(|incident| incident.late_complete.clone())
        {
            let _ = writeln!(text, "\n  A's late completion is refused twice.\n  By its own lease:  {by_holder}");
            let _ = writeln!(text, "  By the authority:  {by_authority}");
        }
        text += "\nThe gap: B has taken over, but has not written yet, when A's late write arrives.\n\n";
        text += &self.gap_timeline().draw();
        text += "\n  receiver     A writes   B writes   A writes again\n";
        for incident in &self.gap {
            let verdict = |event| incident.verdict(event);
            let _ = writeln!(
                text,
                "  {:<12} {:<10} {:<10} {}",
                incident.kind.name(),
                verdict("A_write_1"),
                verdict("B_write"),
                verdict("A_write_2")
            );
        }
        if let Some(how) = self.may_lose {
            let _ = writeln!(text, "\n  {} may lose: {how}.", clean(&self.documents));
        }
        text += "\n\
            Proved here:  a receiver that checks the token in the transaction of the write refuses the old worker,\n\
            \x20             and one that is sealed refuses it from the announcement on, even before the new worker writes.\n\
            Not proved:   that old writes are refused once a lease has expired. They are not: without a fence the late\n\
            \x20             write is accepted, and under high-water it is accepted until the new worker's first write.\n";
        text
    }

    /// The column of a timeline: its name, A's deadline, and when A wakes up.
    const fn times(&self) -> [&'static str; 3] {
        if self.shared.is_some() { ["time", "2 s", "then"] } else { ["tick", "10", "11"] }
    }

    /// How every timeline begins.
    fn beginning(&self, incidents: &[Incident]) -> Timeline {
        let [unit, deadline, _] = self.times();
        let first = incidents.first().map_or(1, |incident| incident.base + 1);
        let until = if self.shared.is_some() { "for 2 s" } else { "until tick 10" };
        let mut timeline = Timeline::new(unit, "worker A", "worker B");
        timeline.at("0", Lane::Left, &format!("acquires: epoch {first}, {until}"));
        timeline.then(Lane::Left, "stopped (SIGSTOP)");
        timeline.at(deadline, Lane::Right, &format!("acquires at the deadline: epoch {}", first + 1));
        timeline
    }

    fn takeover_timeline(&self) -> Timeline {
        let mut timeline = self.beginning(&self.takeover);
        timeline.then(Lane::Right, "writes \"new\": written");
        timeline.then(Lane::Right, "completes: accepted, and leaves");
        timeline.at(self.times()[2], Lane::Left, "wakes up (SIGCONT)");
        for incident in &self.takeover {
            let (verdict, kind) = (incident.verdict("A_write"), incident.kind.name());
            timeline.then(Lane::Left, &format!("writes \"old\" to {kind}: {verdict}"));
        }
        timeline.then(Lane::Left, "completes: refused");
        timeline
    }

    fn gap_timeline(&self) -> Timeline {
        let mut timeline = self.beginning(&self.gap);
        timeline.at(self.times()[2], Lane::Left, "wakes up (SIGCONT)");
        for (event, lane, value) in
            [("A_write_1", Lane::Left, "old"), ("B_write", Lane::Right, "new"), ("A_write_2", Lane::Left, "old")]
        {
            for incident in &self.gap {
                let (verdict, kind) = (incident.verdict(event), incident.kind.name());
                timeline.then(lane, &format!("writes \"{value}\" to {kind}: {verdict}"));
            }
        }
        timeline
    }
}

/// A result of texts and lists always has a JSON form.
pub(super) fn one_line(summary: &Summary<'_>) -> String {
    serde_json::to_string(summary).unwrap_or_default()
}

fn late_complete(incident: &Incident) -> &'static str {
    let accepted = incident.events.iter().any(|(event, result)| *event == "A_complete" && *result == json!(true));
    if accepted { "accepted" } else { "refused" }
}
