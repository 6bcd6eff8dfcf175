//! What people and programs see: one way to write each thing, for all verbs.

pub(crate) mod bar;
pub(crate) mod event;
pub(crate) mod json;
pub(crate) mod name;
pub(crate) mod progress;
pub(crate) mod state;
pub(crate) mod table;
pub(crate) mod when;

use crate::problem::Problem;
use anstyle::{AnsiColor, Style};
use std::fmt::Write as _;
use std::io::{ErrorKind, IsTerminal, Write};

/// How wide a text may be, in columns: the terminal's width, or else what `COLUMNS` says, or 100.
pub(crate) fn width() -> usize {
    let terminal = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    let said = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|width| *width > 0);
    terminal.filter(|width| *width > 0).or_else(said).unwrap_or(100)
}

/// What a text means to whoever reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tint {
    /// The thing itself.
    Strong,
    /// Beside the point.
    Faint,
    /// As it should be.
    Good,
    /// To be looked at.
    Warn,
    /// Taken away, refused, or over.
    Bad,
}

impl Tint {
    const ALL: [Self; 5] = [Self::Strong, Self::Faint, Self::Good, Self::Warn, Self::Bad];

    const fn style(self) -> Style {
        match self {
            Self::Strong => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Warn => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
        }
    }

    /// The text in this tint. [`Out`] takes the colours out again where they are not wanted.
    pub(crate) fn paint(self, text: impl std::fmt::Display) -> String {
        let style = self.style();
        format!("{style}{text}{style:#}")
    }
}

/// A text from a record without what would move a terminal's cursor, ring its bell or turn its writing around.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => cleaned.push_str("\\n"),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' => {
                // Writing to a String cannot fail.
                let _ = write!(cleaned, "{}", c.escape_unicode());
            }
            c if c.is_control() => cleaned.extend(c.escape_default()),
            c => cleaned.push(c),
        }
    }
    cleaned
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Tells a person something on the standard error, in the name of a verb. Where nobody reads it, it is lost.
pub(crate) fn say(verb: &str, text: impl std::fmt::Display) {
    let lines: Vec<_> = text.to_string().lines().map(clean).collect();
    let _ = writeln!(std::io::stderr(), "tenure {verb}: {}", lines.join("\n"));
}

/// Writes one JSON value on a line of its own to the standard error: the account of a verb whose standard output is its
/// command's. Where nobody reads it, it is lost.
pub(crate) fn account(value: &serde_json::Value) {
    let _ = writeln!(std::io::stderr(), "{value}");
}

/// The standard output. When nobody reads it any more, writing goes on without effect, and [`Out::is_closed`] says so.
pub(crate) struct Out {
    stream: anstream::AutoStream<std::io::Stdout>,
    closed: bool,
}

impl Out {
    /// It takes the colours out where they are not wanted.
    pub(crate) fn new() -> Self {
        Self { stream: anstream::AutoStream::auto(std::io::stdout()), closed: false }
    }

    /// Writes a text as it is.
    ///
    /// # Errors
    /// [`Problem`] when it cannot be written, except that nobody reads any more.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), Problem> {
        if self.closed {
            return Ok(());
        }
        match self.stream.write_all(text.as_bytes()).and_then(|()| self.stream.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            Err(error) => Err(Problem::failure(format_args!("the output cannot be written: {error}"))),
        }
    }

    /// Writes a text and ends the line.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Problem> {
        self.write(&format!("{text}\n"))
    }

    /// Writes one JSON value on a line of its own.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(crate) fn json(&mut self, value: &serde_json::Value) -> Result<(), Problem> {
        self.line(&value.to_string())
    }

    /// Whether nobody reads any more: what is still to be written may be left out.
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }
}

/// Whether a person watches the standard error: progress is shown only there.
pub(crate) fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}

#[cfg(test)]
mod tests;
