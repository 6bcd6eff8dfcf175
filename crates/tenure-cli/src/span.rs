//! Spans of time as people write and read them.

use std::fmt;
use std::time::Duration;

/// Reads `250ms`, `90s`, `5m`, `1h30m`, `2d`; a bare number is seconds.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("{text:?} is no span of time: write a number and a unit, such as 250ms, 90s, 5m, 1h30m or 2d");
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map(Duration::from_secs).map_err(|_| wrong());
    }
    let (mut rest, mut millis) = (text, 0_u64);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let each: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(wrong()),
        };
        let part = number.parse::<u64>().ok().and_then(|number| number.checked_mul(each)).ok_or_else(wrong)?;
        millis = millis.checked_add(part).ok_or_else(wrong)?;
        rest = tail;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(Duration::from_millis(millis)) }
}

/// A span for people: `340 ms`, `12.5 s`, `87 s`, `4 min 10 s`, `3 h 5 min`, `2 d 4 h`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span(pub(crate) Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
        let text = match seconds {
            0 => format!("{} ms", self.0.as_millis()),
            1..60 => format!("{:.1} s", self.0.as_secs_f64()),
            60..120 => format!("{seconds} s"),
            120..3_600 => format!("{minutes} min {} s", seconds % 60),
            3_600..86_400 => format!("{hours} h {minutes} min"),
            _ => format!("{days} d {hours} h"),
        };
        f.pad(&text)
    }
}

/// A span for programs, in whole milliseconds.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
