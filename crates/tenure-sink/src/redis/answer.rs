//! What the verbs answer. Every value that is read back is checked.

use super::fate::{Broken, Fate, Mended, Refused, Trace};
use super::fault;
use crate::{ApplyError, Found, SinkError};
use redis::{RedisResult, Value};
use std::collections::BTreeSet;
use tenure_core::fence::{FenceRow, Forgetting, Rule, Sealing};
use tenure_core::{Digest, Epoch, Generation, Outcome, Replayed, SinkId, Token, Verdict};

/// The version of what stands in Redis: see `lua/head.lua`.
const SCHEMA: i64 = 1;

/// An answer, as the words that it is made of.
pub(super) struct Answer<'p> {
    place: &'p str,
    words: std::vec::IntoIter<Value>,
}

impl<'p> Answer<'p> {
    pub(super) fn of(value: Value, place: &'p str) -> Self {
        let words = match value {
            Value::Array(words) => words,
            word => vec![word],
        };
        Self { place, words: words.into_iter() }
    }

    pub(super) fn wrong(&self, what: impl std::fmt::Display) -> SinkError {
        SinkError::corrupt(self.place, what)
    }

    fn bytes(&mut self) -> Result<Vec<u8>, SinkError> {
        match self.words.next() {
            Some(Value::BulkString(bytes)) => Ok(bytes),
            Some(Value::SimpleString(text)) => Ok(text.into_bytes()),
            other => Err(self.wrong(format_args!("an answer is cut off, or holds no text: {other:?}"))),
        }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.words.as_slice().is_empty()
    }

    pub(super) fn text(&mut self) -> Result<String, SinkError> {
        String::from_utf8(self.bytes()?).map_err(|error| self.wrong(error))
    }

    fn epoch(&mut self) -> Result<Epoch, SinkError> {
        self.text()?.parse().map_err(|error| self.wrong(error))
    }

    /// A floor, as the sink's record writes it.
    pub(super) fn floor(&mut self) -> Result<Option<Epoch>, SinkError> {
        match self.text()?.as_str() {
            "-" => Ok(None),
            text => text.parse().map(Some).map_err(|error| self.wrong(error)),
        }
    }

    /// Text that a caller's script, or anybody, has made: too much of it is cut off.
    fn outcome(&mut self) -> Result<Outcome, SinkError> {
        let text = String::from_utf8_lossy(&self.bytes()?).into_owned();
        Outcome::new(cut(&text)).map_err(|error| self.wrong(error))
    }

    fn broken(&mut self) -> Result<Broken, SinkError> {
        let epoch = self.epoch()?;
        self.bytes()?;
        Ok(Broken { epoch, why: String::from_utf8_lossy(&self.bytes()?).into_owned() })
    }

    fn found(&mut self) -> Result<Found, SinkError> {
        let epoch = self.epoch()?;
        let digits = self.text()?;
        let digest = digest(&digits).ok_or_else(|| self.wrong(format_args!("{digits:?} is no digest")))?;
        Ok(Found { epoch, digest, outcome: self.outcome()? })
    }

    pub(super) fn generation(&mut self) -> Result<Generation, SinkError> {
        generation(&self.text()?).map_err(|error| self.wrong(error))
    }

    /// A fence, as it is kept: epoch, grant, generation, number of the seal, and then the enrolled sinks, a line each.
    pub(super) fn row(&mut self) -> Result<Option<FenceRow>, SinkError> {
        let text = self.text()?;
        if text.is_empty() {
            return Ok(None);
        }
        row(&text).map(Some).ok_or_else(|| self.wrong(format_args!("{text:?} is no fence")))
    }

    /// What every verb may say instead of its own answer.
    fn refused(&mut self, status: &str) -> SinkError {
        let detail = String::from_utf8_lossy(&self.bytes().unwrap_or_default()).into_owned();
        let place = self.place.to_owned();
        match status {
            "missing" => SinkError::Missing { place },
            "foreign" => SinkError::Foreign { place, why: "a key of its name has no record of a sink".into() },
            "schema" => SinkError::schema(self.place, detail.parse().unwrap_or_default(), SCHEMA),
            "rule" => SinkError::Rule { place, found: detail, wanted: "the other one" },
            "replica" => SinkError::Unreachable { place, why: "the server is a replica now".into() },
            "nameless" => self.wrong("the server tells no replication id (INFO replication)"),
            "lost" => self.wrong(format_args!(
                "{detail} is gone: somebody removed it, or the server evicts keys (maxmemory-policy), or it had a time to live"
            )),
            "malformed" => SinkError::Failed { place, doing: "registering", why: format!("{detail:?} is no token") },
            "damaged" => self.wrong(format_args!("{detail:?} cannot have been written by a sink")),
            _ => fault::of_script(&detail, self.place),
        }
    }

    /// The first word, unless it says that there is no answer.
    fn status(&mut self) -> Result<String, SinkError> {
        let status = self.text()?;
        const NONE: [&str; 10] =
            ["unread", "missing", "foreign", "schema", "rule", "replica", "nameless", "lost", "malformed", "damaged"];
        if NONE.contains(&status.as_str()) { Err(self.refused(&status)) } else { Ok(status) }
    }

    /// The same, of a verb that a token was shown to. The inner `Err` is the verdict that refuses the token.
    fn admitted(&mut self, token: &Token) -> Result<Result<String, Verdict>, SinkError> {
        let status = self.status()?;
        Ok(Err(match status.as_str() {
            "stale" => Verdict::Stale { presented: token.epoch, current: self.epoch()? },
            "conflict" => Verdict::Conflict { current: self.epoch()? },
            "unsealed" => Verdict::Unsealed,
            _ => return Ok(Ok(status)),
        }))
    }

    /// The first word must be this.
    pub(super) fn expect(&mut self, word: &str) -> Result<(), SinkError> {
        let status = self.status()?;
        if status == word { Ok(()) } else { Err(self.wrong(format_args!("{status:?} is no answer to this"))) }
    }

    /// The first word.
    pub(super) fn word(&mut self) -> Result<String, SinkError> {
        self.status()
    }
}

/// A write's.
pub(super) fn fate(said: RedisResult<Value>, place: &str, token: &Token) -> Result<Fate, ApplyError<Refused>> {
    // Among the answers to a pipeline, an error may come as a value.
    let value = match said.and_then(Value::extract_error) {
        Ok(value) => value,
        Err(error) => match fault::of_call(&error, place) {
            fault::Fault::Certain(error) => return Err(error.into()),
            fault::Fault::Unknown(why) => return Ok(Fate::Unknown { why }),
        },
    };
    let mut answer = Answer::of(value, place);
    let status = match answer.admitted(token)? {
        Ok(status) => status,
        Err(verdict) => return Ok(Fate::Judged { verdict, said: None }),
    };
    Ok(match status.as_str() {
        "written" => {
            let said = if answer.is_at_end() { None } else { Some(answer.outcome()?) };
            Fate::Judged { verdict: Verdict::Written, said }
        }
        "replay" => {
            let replayed = Replayed { epoch: answer.epoch()?, outcome: answer.outcome()? };
            Fate::Judged { verdict: Verdict::Replay(replayed), said: None }
        }
        "broken" => Fate::Broken(answer.broken()?),
        "failed" => return Err(ApplyError::Effect(Refused(answer.outcome()?.to_string()))),
        other => return Err(answer.wrong(format_args!("{other:?} is no answer to a write")).into()),
    })
}

/// A look-up's.
pub(super) fn trace(said: RedisResult<Value>, place: &str, token: &Token) -> Result<Result<Trace, Verdict>, SinkError> {
    let mut answer = Answer::of(said.map_err(|error| fault::of_call(&error, place).into_error(place))?, place);
    Ok(match answer.admitted(token)? {
        Err(verdict) => Err(verdict),
        Ok(status) => Ok(traced(&status, &mut answer)?),
    })
}

fn traced(status: &str, answer: &mut Answer<'_>) -> Result<Trace, SinkError> {
    Ok(match status {
        "absent" => Trace::Absent,
        "found" => Trace::Found(answer.found()?),
        "broken" => Trace::Broken(answer.broken()?),
        other => return Err(answer.wrong(format_args!("{other:?} is no answer to a look-up"))),
    })
}

/// A mending's.
pub(super) fn mended(
    said: RedisResult<Value>,
    place: &str,
    token: &Token,
) -> Result<Result<Mended, Verdict>, SinkError> {
    let mut answer = Answer::of(said.map_err(|error| fault::of_call(&error, place).into_error(place))?, place);
    Ok(match answer.admitted(token)? {
        Err(verdict) => Err(verdict),
        Ok(status) if status == "mended" => Ok(Mended::Done),
        Ok(status) => Ok(Mended::Was(traced(&status, &mut answer)?)),
    })
}

/// A seal's.
pub(super) fn sealing(mut answer: Answer<'_>) -> Result<Sealing, SinkError> {
    let status = answer.word()?;
    Ok(match status.as_str() {
        "sealed" => match answer.row()? {
            Some(row) => Sealing::Seal(row),
            None => return Err(answer.wrong("a seal without a fence")),
        },
        "generation" => Sealing::WrongGeneration { current: answer.generation()? },
        "older" => Sealing::Stale { epoch: answer.epoch()?, grant: grant(&mut answer)? },
        "other" => Sealing::Conflict { epoch: answer.epoch()?, grant: grant(&mut answer)? },
        "floor" => Sealing::BelowFloor { floor: answer.epoch()? },
        other => return Err(answer.wrong(format_args!("{other:?} is no answer to a seal"))),
    })
}

/// A forgetting's.
pub(super) fn forgetting(mut answer: Answer<'_>) -> Result<Forgetting, SinkError> {
    let status = answer.word()?;
    Ok(match status.as_str() {
        "forgotten" => Forgetting::Forget { floor: answer.epoch()? },
        "above" => Forgetting::Above { epoch: answer.epoch()?, grant: grant(&mut answer)? },
        other => return Err(answer.wrong(format_args!("{other:?} is no answer to a forgetting"))),
    })
}

fn grant(answer: &mut Answer<'_>) -> Result<tenure_core::GrantId, SinkError> {
    answer.text()?.parse().map_err(|error| answer.wrong(error))
}

/// A generation by its kept form, which is the replication id and the number of the reopening.
fn generation(kept: &str) -> Result<Generation, tenure_core::NameError> {
    Generation::new(format!("redis:{kept}"))
}

/// The kept form of a generation; what is none of ours is of no server.
pub(super) fn kept(generation: &Generation) -> &str {
    generation.as_str().strip_prefix("redis:").unwrap_or("none")
}

fn row(text: &str) -> Option<FenceRow> {
    let mut lines = text.split('\n');
    let mut words = lines.next()?.split(' ');
    let mut word = || words.next();
    let row = FenceRow {
        epoch: word()?.parse().ok()?,
        grant: word()?.parse().ok()?,
        generation: generation(word()?).ok()?,
        seal_no: word()?.parse().ok()?,
        enrolled: lines.filter(|line| !line.is_empty()).map(SinkId::new).collect::<Result<BTreeSet<_>, _>>().ok()?,
    };
    words.next().is_none().then_some(row)
}

pub(super) fn hex(digest: &Digest) -> String {
    digest.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest(digits: &str) -> Option<Digest> {
    let mut bytes = [0; 32];
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&digits[at..at + 2], 16).ok()?;
    }
    Some(Digest(bytes))
}

/// At most as much as an outcome may have.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(tenure_core::TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Why a sink is not of the rule that a caller has.
pub(super) fn with_rule(error: SinkError, rule: Rule) -> SinkError {
    match error {
        SinkError::Rule { place, found, .. } => SinkError::Rule { place, found, wanted: rule.name() },
        error => error,
    }
}

#[cfg(test)]
mod tests;
