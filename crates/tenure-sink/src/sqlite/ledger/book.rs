//! Reading and writing the ledger's rows. Every value that is read back is checked.

use super::schema;
use crate::SinkError;
use crate::ledger::{AttemptKey, AttemptRecord, Intent, Refused, Which};
use crate::sqlite::failure::{place_of, sink_error};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, params};
use tenure_core::ledger::{Entry, Voice, hear};
use tenure_core::operation::{Attempt, Happening};
use tenure_core::{Actor, Digest, Epoch, OperationId, Outcome, OwnerName, Reason, ResourceName, SinkId, Token};

/// What is written beside a change: by whom, if that was a person, and why.
pub(super) enum Said {
    Nothing,
    By(Option<Actor>, String),
}

impl Said {
    pub(super) fn taken_over(by: Epoch) -> Self {
        Self::By(None, format!("taken over by epoch {by}"))
    }
}

/// Creates what is missing, and brings what is there up to this version, step by step.
pub(super) fn install(connection: &Connection) -> Result<(), SinkError> {
    let fail = |error| sink_error(connection, "installing the ledger", error);
    let found = match is_there(connection)? {
        true => stored_version(connection)?,
        false => 0,
    };
    if !(0..=schema::VERSION).contains(&found) {
        return Err(SinkError::schema(&place_of(connection), found, schema::VERSION));
    }
    let done = usize::try_from(found).unwrap_or_default();
    for step in schema::STEPS.iter().skip(done) {
        connection.execute_batch(step).map_err(fail)?;
    }
    if found < schema::VERSION {
        connection.execute(schema::SET_VERSION, [schema::VERSION]).map_err(fail)?;
    }
    Ok(())
}

/// Refuses a database without a ledger, or with one of another version.
pub(super) fn version(connection: &Connection) -> Result<(), SinkError> {
    match stored_version(connection) {
        Ok(schema::VERSION) => Ok(()),
        Ok(found) => Err(SinkError::schema(&place_of(connection), found, schema::VERSION)),
        Err(_) if !is_there(connection)? => Err(SinkError::NoLedger { place: place_of(connection) }),
        Err(error) => Err(error),
    }
}

fn is_there(connection: &Connection) -> Result<bool, SinkError> {
    let tables: i64 = connection
        .query_row(schema::IS_THERE, [], |row| row.get(0))
        .map_err(|error| sink_error(connection, "looking for the ledger", error))?;
    Ok(tables > 0)
}

fn stored_version(connection: &Connection) -> Result<i64, SinkError> {
    let fail = |error| sink_error(connection, "reading the ledger", error);
    let mut statement = connection.prepare_cached(schema::READ_VERSION).map_err(fail)?;
    statement.query_row([], |row| row.get(0)).map_err(fail)
}

/// Refuses a connection whose commits a power failure may take back.
pub(super) fn durable(connection: &Connection) -> Result<(), SinkError> {
    let fail = |error| sink_error(connection, "asking how durable a commit is", error);
    // 2 is FULL, 3 is EXTRA.
    match connection.query_row("PRAGMA synchronous", [], |row| row.get::<_, i64>(0)).map_err(fail)? {
        0 | 1 => Err(SinkError::NotDurable { place: place_of(connection) }),
        _ => Ok(()),
    }
}

pub(super) fn entries(
    connection: &Connection,
    resource: &ResourceName,
    operation: &OperationId,
) -> Result<Vec<Entry>, SinkError> {
    let fail = |error| sink_error(connection, "reading the ledger", error);
    let mut statement = connection.prepare_cached(schema::ENTRIES).map_err(fail)?;
    let mut rows = statement.query([resource.as_str(), operation.as_str()]).map_err(fail)?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next().map_err(fail)? {
        entries.push(Read { row, connection }.entry([0, 1, 2, 3])?);
    }
    Ok(entries)
}

pub(super) fn entry(connection: &Connection, key: &AttemptKey) -> Result<Option<Entry>, SinkError> {
    let fail = |error| sink_error(connection, "reading the ledger", error);
    let mut statement = connection.prepare_cached(schema::ENTRY).map_err(fail)?;
    let values = params![key.resource.as_str(), key.operation.as_str(), key.epoch.as_i64()];
    let mut rows = statement.query(values).map_err(fail)?;
    match rows.next().map_err(fail)? {
        Some(row) => Read { row, connection }.entry([0, 1, 2, 3]).map(Some),
        None => Ok(None),
    }
}

/// What older epochs of the token's resource have left open.
pub(super) fn left(connection: &Connection, token: &Token) -> Result<Vec<(OperationId, Entry)>, SinkError> {
    let fail = |error| sink_error(connection, "reading the ledger", error);
    let mut statement = connection.prepare_cached(schema::LEFT).map_err(fail)?;
    let mut rows = statement.query(params![token.resource.as_str(), token.epoch.as_i64()]).map_err(fail)?;
    let mut left = Vec::new();
    while let Some(row) = rows.next().map_err(fail)? {
        let read = Read { row, connection };
        let operation = OperationId::new(read.text(4)?).map_err(|error| read.wrong(error))?;
        left.push((operation, read.entry([0, 1, 2, 3])?));
    }
    Ok(left)
}

pub(super) fn write(connection: &Connection, token: &Token, seal_no: u64, intent: &Intent) -> Result<(), SinkError> {
    let fail = |error| sink_error(connection, "writing an intent down", error);
    let seal_no = i64::try_from(seal_no).map_err(|error| SinkError::corrupt(&place_of(connection), error))?;
    let mut statement = connection.prepare_cached(schema::WRITE).map_err(fail)?;
    statement
        .execute(params![
            token.resource.as_str(),
            intent.operation.as_str(),
            token.epoch.as_i64(),
            seal_no,
            intent.digest.0,
            Attempt::Intent.name(),
            intent.system.as_str(),
            intent.owner.as_str(),
        ])
        .map_err(fail)?;
    Ok(())
}

pub(super) fn change(
    connection: &Connection,
    key: &AttemptKey,
    state: Attempt,
    outcome: Option<&Outcome>,
    said: &Said,
) -> Result<(), SinkError> {
    let fail = |error| sink_error(connection, "changing the ledger", error);
    let (by, why) = match said {
        Said::Nothing => (None, None),
        Said::By(by, why) => (by.as_ref().map(Actor::as_str), Some(why)),
    };
    let mut statement = connection.prepare_cached(schema::CHANGE).map_err(fail)?;
    statement
        .execute(params![
            key.resource.as_str(),
            key.operation.as_str(),
            key.epoch.as_i64(),
            state.name(),
            outcome.map(Outcome::as_str),
            by,
            why,
        ])
        .map_err(fail)?;
    Ok(())
}

/// Somebody speaks of an attempt. What is no news leaves the row as it is, with who said it first.
pub(super) fn speak(
    connection: &Connection,
    key: &AttemptKey,
    voice: Voice,
    news: Happening,
    outcome: Option<&Outcome>,
    said: &Said,
) -> Result<Result<Attempt, Refused>, SinkError> {
    let Some(entry) = entry(connection, key)? else { return Ok(Err(Refused::Missing)) };
    let next = match hear(&entry, voice, news) {
        Ok(next) => next,
        Err(unheard) => return Ok(Err(Refused::Unheard(unheard))),
    };
    if next != entry.state {
        change(connection, key, next, outcome, said)?;
    }
    Ok(Ok(next))
}

pub(super) fn attempts(connection: &Connection, operation: &OperationId) -> Result<Vec<AttemptRecord>, SinkError> {
    let fail = |error| sink_error(connection, "reading the ledger", error);
    let mut statement = connection.prepare_cached(schema::ATTEMPTS).map_err(fail)?;
    let mut rows = statement.query([operation.as_str()]).map_err(fail)?;
    let mut attempts = Vec::new();
    while let Some(row) = rows.next().map_err(fail)? {
        attempts.push(Read { row, connection }.attempt()?);
    }
    Ok(attempts)
}

pub(super) fn list(
    connection: &Connection,
    which: Which,
    resource: Option<&ResourceName>,
    after: Option<&AttemptKey>,
    limit: usize,
) -> Result<Vec<AttemptRecord>, SinkError> {
    let fail = |error| sink_error(connection, "listing the ledger", error);
    let sql = match which {
        Which::Unknown => schema::LIST_UNKNOWN,
        Which::Open => schema::LIST_OPEN,
        Which::All => schema::LIST_ALL,
    };
    // No operation has an empty name, so this is before the first one of the resource, or of the first resource.
    let from = resource.map_or("", ResourceName::as_str);
    let (from, operation, epoch) =
        after.map_or((from, "", 0), |key| (key.resource.as_str(), key.operation.as_str(), key.epoch.as_i64()));
    // Every blob comes after every text.
    let until = resource.map_or(ValueRef::Blob(&[]), |resource| ValueRef::from(resource.as_str()));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql).map_err(fail)?;
    let values = params![from, operation, epoch, limit, ToSqlOutput::Borrowed(until)];
    let mut rows = statement.query(values).map_err(fail)?;
    let mut attempts = Vec::new();
    while let Some(row) = rows.next().map_err(fail)? {
        attempts.push(Read { row, connection }.attempt()?);
    }
    Ok(attempts)
}

/// One row, with the connection that explains what is wrong with it.
struct Read<'a> {
    row: &'a Row<'a>,
    connection: &'a Connection,
}

impl Read<'_> {
    fn wrong(&self, what: impl std::fmt::Display) -> SinkError {
        SinkError::corrupt(&place_of(self.connection), what)
    }

    fn text(&self, at: usize) -> Result<&str, SinkError> {
        self.row.get_ref(at).map_err(|error| self.wrong(error))?.as_str().map_err(|error| self.wrong(error))
    }

    fn maybe<T>(
        &self,
        at: usize,
        make: impl FnOnce(&str) -> Result<T, tenure_core::NameError>,
    ) -> Result<Option<T>, SinkError> {
        let text = self.row.get_ref(at).map_err(|error| self.wrong(error))?;
        let text = text.as_str_or_null().map_err(|error| self.wrong(error))?;
        text.map(make).transpose().map_err(|error| self.wrong(error))
    }

    fn number(&self, at: usize) -> Result<u64, SinkError> {
        let number: i64 = self.row.get(at).map_err(|error| self.wrong(error))?;
        u64::try_from(number).map_err(|error| self.wrong(error))
    }

    fn epoch(&self, at: usize) -> Result<Epoch, SinkError> {
        let number: i64 = self.row.get(at).map_err(|error| self.wrong(error))?;
        Epoch::try_from(number).map_err(|error| self.wrong(error))
    }

    fn digest(&self, at: usize) -> Result<Digest, SinkError> {
        self.row.get::<_, [u8; 32]>(at).map(Digest).map_err(|error| self.wrong(error))
    }

    fn state(&self, at: usize) -> Result<Attempt, SinkError> {
        let name = self.text(at)?;
        let state = Attempt::ALL.into_iter().find(|state| state.name() == name);
        state.ok_or_else(|| self.wrong(format_args!("{name:?} is no state of an attempt")))
    }

    fn entry(&self, [epoch, digest, state, outcome]: [usize; 4]) -> Result<Entry, SinkError> {
        Ok(Entry {
            epoch: self.epoch(epoch)?,
            digest: self.digest(digest)?,
            state: self.state(state)?,
            outcome: self.maybe(outcome, |text| Outcome::new(text))?,
        })
    }

    fn attempt(&self) -> Result<AttemptRecord, SinkError> {
        let wrong = |error| self.wrong(error);
        let entry = self.entry([2, 4, 5, 6])?;
        Ok(AttemptRecord {
            key: AttemptKey {
                resource: ResourceName::new(self.text(0)?).map_err(wrong)?,
                operation: OperationId::new(self.text(1)?).map_err(wrong)?,
                epoch: entry.epoch,
            },
            seal_no: self.number(3)?,
            digest: entry.digest,
            state: entry.state,
            outcome: entry.outcome,
            system: SinkId::new(self.text(7)?).map_err(wrong)?,
            owner: OwnerName::new(self.text(8)?).map_err(wrong)?,
            intended_ms: self.number(9)?,
            changed_ms: self.number(10)?,
            age_ms: self.number(11)?,
            decided_by: self.maybe(12, |text| Actor::new(text))?,
            why: self.maybe(13, |text| Reason::new(text))?,
        })
    }
}
