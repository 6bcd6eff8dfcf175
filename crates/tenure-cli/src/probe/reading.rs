use super::deadline::Deadline;
use super::process::{Ear, Followed, Origin, Process, ending};
use super::stage::Stage;
use crate::problem::Problem;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt;
use std::process::{Command, Stdio};

/// How much of a value is kept to be shown; all of it is compared.
const HEAD_BYTES: usize = 4 * 1024;
/// How much of it a table shows, in characters.
const SHOWN_CHARS: usize = 48;

/// What a command of the user printed about the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum Reading {
    Value(Value),
    Failed(Failure),
}

/// A value, however long: its digest and its beginning.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Value {
    bytes: u64,
    sha256: String,
    /// The beginning; `None` when it is no text.
    text: Option<String>,
}

/// The command failed: what it reads may not be there yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Failure {
    failed: String,
    said: String,
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        (self.bytes, &self.sha256) == (other.bytes, &other.sha256)
    }
}

impl Eq for Value {}

impl Reading {
    /// Runs a command of the user through the shell. One that is not there is an error; one that fails is a reading, since
    /// a target may not be there yet.
    pub(super) fn take(stage: &Stage, flag: &str, line: &str) -> Result<Self, Problem> {
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        stage.environment(&mut command, None);
        let started = Process::start(&mut command, &stage.trees);
        let mut process =
            started.map_err(|error| Problem::failure(format_args!("{flag}: sh cannot be started: {error}")))?;
        stage.guard.watch_root(&process)?;
        let mut ear = Bytes::default();
        match process.follow(&stage.signals, Deadline::after(stage.plan.timeout), &mut ear)? {
            Followed::Ended => {}
            Followed::Caught | Followed::TimedOut => {
                let limit = crate::span::Span(stage.plan.timeout);
                return Err(Problem::failure(format_args!(
                    "{flag}: {line:?} did not end within {limit} and was ended; let it end by itself"
                )));
            }
        }
        let said = String::from_utf8_lossy(&ear.said).trim().to_owned();
        match process.status() {
            Some(status) if status.success() => Ok(Self::Value(ear.value())),
            Some(status) if matches!(status.code(), Some(126 | 127)) => {
                Err(Problem::usage(format_args!("{flag}: {line:?} cannot be run: {said}")))
            }
            Some(status) => Ok(Self::Failed(Failure { failed: ending(status), said })),
            None => Err(Problem::failure(format_args!("{flag}: {line:?} left no exit status"))),
        }
    }

    #[cfg(test)]
    pub(super) fn of(text: &str) -> Self {
        let mut ear = Bytes::default();
        ear.hear(Origin::Out, text.as_bytes());
        Self::Value(ear.value())
    }

    #[cfg(test)]
    pub(super) fn failed(how: &str, said: &str) -> Self {
        Self::Failed(Failure { failed: how.to_owned(), said: said.to_owned() })
    }

    pub(super) const fn is_value(&self) -> bool {
        matches!(self, Self::Value(_))
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => value.fmt(f),
            Self::Failed(Failure { failed, said }) => {
                let last = said.lines().next_back().unwrap_or_default();
                write!(f, "not readable ({failed}){}{}", if last.is_empty() { "" } else { ": " }, last)
            }
        }
    }
}

impl fmt::Display for Value {
    /// A short text as it is; anything else by its beginning, its length and its digest.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = self.sha256.get(..12).unwrap_or(&self.sha256);
        let Some(text) = &self.text else { return write!(f, "{} bytes, sha256 {digest}", self.bytes) };
        let line = text.strip_suffix('\n').unwrap_or(text);
        let shown: String = line.chars().take(SHOWN_CHARS).collect();
        if self.bytes <= HEAD_BYTES as u64 && shown.len() == line.len() {
            return write!(f, "{line:?}");
        }
        write!(f, "{:?}… ({} bytes, sha256 {digest})", shown, self.bytes)
    }
}

/// Keeps the beginning and the digest of what is printed.
#[derive(Default)]
struct Bytes {
    count: u64,
    head: Vec<u8>,
    digest: Sha256,
    said: Vec<u8>,
}

impl Ear for Bytes {
    fn hear(&mut self, origin: Origin, chunk: &[u8]) -> bool {
        let head = match origin {
            Origin::Out => {
                self.count += chunk.len() as u64;
                self.digest.update(chunk);
                &mut self.head
            }
            Origin::Err => &mut self.said,
        };
        let room = HEAD_BYTES.saturating_sub(head.len());
        head.extend_from_slice(&chunk[..chunk.len().min(room)]);
        false
    }
}

impl Bytes {
    fn value(self) -> Value {
        let sha256 = self.digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let whole = self.count == self.head.len() as u64;
        let text = match String::from_utf8(self.head) {
            Ok(text) => Some(text),
            // A character that the cut went through is none of the value's fault.
            Err(error) if !whole && error.utf8_error().error_len().is_none() => {
                let end = error.utf8_error().valid_up_to();
                String::from_utf8(error.into_bytes()[..end].to_vec()).ok()
            }
            Err(_) => None,
        };
        Value { bytes: self.count, sha256, text }
    }
}

#[cfg(test)]
mod tests;
