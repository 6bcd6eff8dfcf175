use super::incident::Incident;
use super::timeline::{Lane, Timeline};
use serde_json::{Value, json};
use std::fmt::Write;

/// All incidents of one run.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) takeover: Vec<Incident>,
    pub(super) gap: Vec<Incident>,
}

impl Report {
    /// The object that `--json` prints.
    pub(super) fn json(&self) -> Value {
        let takeover = self.takeover.iter().map(|incident| {
            json!({
                "receiver": incident.kind.name(),
                "late_write": incident.verdict("A_write"),
                "late_complete": late_complete(incident),
                "authority_value": incident.lease.result,
                "receiver_value": incident.sink.value,
            })
        });
        let gap = self.gap.iter().map(|incident| {
            json!({
                "receiver": incident.kind.name(),
                "verdicts": incident.events.iter().map(|(_, verdict)| verdict).collect::<Vec<_>>(),
            })
        });
        json!({ "takeover": takeover.collect::<Vec<_>>(), "gap": gap.collect::<Vec<_>>() })
    }

    /// What a person reads.
    pub(super) fn text(&self) -> String {
        let mut text = String::from(
            "Two workers, one document. A acquires it and is stopped (SIGSTOP). B takes over at A's deadline, writes and\n\
             completes. A wakes up, sends the write that it had prepared, and completes. Real processes, real SQLite files;\n\
             time is a clock in a file that all processes share.\n\n",
        );
        text += &self.takeover_timeline().draw();
        text += "\n  receiver     A's late write   A's late completion   authority says   document holds\n";
        for incident in &self.takeover {
            let mark = if incident.lease.result.as_deref() == Some(&incident.sink.value) { "" } else { "   <- overwritten" };
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
        if let Some((by_holder, by_authority)) = self.takeover.iter().find_map(|incident| incident.late_complete.clone()) {
            let _ = writeln!(text, "\n  The late completion, to its own process:  {by_holder}");
            let _ = writeln!(text, "  and past it, to the authority:            {by_authority}");
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
        text += "\n\
            Proved here:  a receiver that checks the token in the transaction of the write refuses the old worker,\n\
            \x20             and one that is sealed refuses it from the announcement on, even before the new worker writes.\n\
            Not proved:   that old writes are refused once a lease has expired. They are not: without a fence the late\n\
            \x20             write is accepted, and under high-water it is accepted until the new worker's first write.\n";
        text
    }

    fn takeover_timeline(&self) -> Timeline {
        let mut timeline = Timeline::new("worker A", "worker B");
        timeline.at(0, Lane::Left, "acquires: epoch 1, until tick 10");
        timeline.then(Lane::Left, "stopped (SIGSTOP)");
        timeline.at(10, Lane::Right, "acquires at the deadline: epoch 2");
        timeline.then(Lane::Right, "writes \"new\": written");
        timeline.then(Lane::Right, "completes: accepted, and leaves");
        timeline.at(11, Lane::Left, "wakes up (SIGCONT)");
        for incident in &self.takeover {
            let (verdict, kind) = (incident.verdict("A_write"), incident.kind.name());
            timeline.then(Lane::Left, &format!("writes \"old\" to {kind}: {verdict}"));
        }
        timeline.then(Lane::Left, "completes: refused");
        timeline
    }

    fn gap_timeline(&self) -> Timeline {
        let mut timeline = Timeline::new("worker A", "worker B");
        timeline.at(0, Lane::Left, "acquires: epoch 1, until tick 10");
        timeline.then(Lane::Left, "stopped (SIGSTOP)");
        timeline.at(10, Lane::Right, "acquires at the deadline: epoch 2");
        timeline.at(11, Lane::Left, "wakes up (SIGCONT)");
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

fn late_complete(incident: &Incident) -> &'static str {
    let accepted = incident.events.iter().any(|(event, result)| *event == "A_complete" && *result == json!(true));
    if accepted { "accepted" } else { "refused" }
}
