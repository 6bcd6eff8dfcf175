//! What is written for people and for programs.

mod bars;
mod json;
mod lines;

use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;
use vector_sync::tell::Tell;

/// Writes a line on the standard output. A reader that has gone is no error.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Writes a value as one line of JSON.
pub(crate) fn say_json(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(line) => say(&line),
        Err(error) => complain(&format!("this cannot be written as JSON: {error}")),
    }
}

/// Writes what went wrong.
pub(crate) fn complain(what: &str) {
    let _ = writeln!(std::io::stderr().lock(), "vector-sync: {what}");
}

/// Who is told of a round: bars on a terminal, lines elsewhere, JSON on request.
pub(crate) fn teller(json: bool) -> Arc<dyn Tell> {
    if json {
        Arc::new(json::Json)
    } else if std::io::stderr().is_terminal() {
        Arc::new(bars::Bars::default())
    } else {
        Arc::new(lines::Lines::default())
    }
}

/// A span for people: `340 ms`, `12.5 s`, `4 min 10 s`, `3 h 5 min`, `2 d 4 h`.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match seconds {
        0 => format!("{} ms", span.as_millis()),
        1..120 => format!("{:.1} s", span.as_secs_f64()),
        120..3_600 => format!("{minutes} min {} s", seconds % 60),
        3_600..86_400 => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// How far, how fast, how long still.
pub(crate) fn rate(done: u64, total: Option<u64>, spent: Duration) -> String {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let each_second = done as f64 / spent.as_secs_f64().max(0.001);
    let Some(total) = total else { return format!("{done}, {each_second:.0}/s") };
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let left = Duration::try_from_secs_f64(total.saturating_sub(done) as f64 / each_second.max(0.001))
        .unwrap_or(Duration::MAX);
    if done >= total {
        format!("{done}")
    } else {
        format!("{done} of {total}, {each_second:.0}/s, {} left", span(left))
    }
}

/// Columns under each other.
pub(crate) fn table(rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        say(cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}
