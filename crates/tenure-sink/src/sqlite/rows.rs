//! Reading and writing the fence's rows. Every value that is read back is checked.

use super::failure::{place_of, sink_error};
use super::schema;
use crate::{Found, Rows, SinkError};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::BTreeSet;
use tenure_core::fence::{FenceRow, Rule};
use tenure_core::operation::Attempt;
use tenure_core::{Digest, Epoch, Generation, GrantId, OperationId, Outcome, ResourceName, SinkId};

/// What the sink knows of itself.
pub(super) struct Namespace {
    pub(super) generation: Generation,
    pub(super) floor: Option<Epoch>,
}

/// All that a judgement needs, read by one statement.
pub(super) struct Standing {
    pub(super) namespace: Namespace,
    pub(super) row: Option<FenceRow>,
}

/// Reads the namespace, and checks its version and its rule.
pub(super) fn namespace(connection: &Connection, rule: Rule) -> Result<Namespace, SinkError> {
    let fail = |error| sink_error(connection, "reading the fence", error);
    let mut statement = connection.prepare_cached(schema::NAMESPACE).map_err(fail)?;
    let mut rows = statement.query([]).map_err(fail)?;
    match rows.next().map_err(fail)? {
        Some(row) => Read { row, connection }.namespace(rule),
        None => Err(SinkError::NotInstalled { place: place_of(connection) }),
    }
}

/// Reads the namespace and the fence of a resource, and checks them.
pub(super) fn standing(connection: &Connection, rule: Rule, resource: &ResourceName) -> Result<Standing, SinkError> {
    let fail = |error| sink_error(connection, "reading the fence", error);
    let mut statement = connection.prepare_cached(schema::STANDING).map_err(fail)?;
    let mut rows = statement.query([resource.as_str()]).map_err(fail)?;
    let Some(row) = rows.next().map_err(fail)? else {
        return Err(SinkError::NotInstalled { place: place_of(connection) });
    };
    let read = Read { row, connection };
    Ok(Standing { namespace: read.namespace(rule)?, row: read.fence()? })
}

/// Reads a piece of all fences, in the order of their resources' names, in one statement.
pub(super) fn list(
    connection: &Connection,
    rule: Rule,
    after: Option<&ResourceName>,
    limit: usize,
) -> Result<Rows, SinkError> {
    let fail = |error| sink_error(connection, "listing the fences", error);
    let mut statement = connection.prepare_cached(schema::LIST).map_err(fail)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    // No name is empty, so this is before the first one.
    let mut found = statement.query(params![after.map_or("", ResourceName::as_str), limit]).map_err(fail)?;
    let (mut floor, mut rows) = (None, None::<Vec<_>>);
    while let Some(row) = found.next().map_err(fail)? {
        let read = Read { row, connection };
        floor = read.namespace(rule)?.floor;
        let rows = rows.get_or_insert_with(Vec::new);
        if let Some(fence) = read.fence()? {
            rows.push((ResourceName::new(read.text(10)?).map_err(|error| read.wrong(error))?, fence));
        }
    }
    // The namespace's row comes also without a fence beside it.
    let mut rows = rows.ok_or_else(|| SinkError::NotInstalled { place: place_of(connection) })?;
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(Rows { rows, floor })
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

    fn number(&self, at: usize) -> Result<i64, SinkError> {
        self.row.get(at).map_err(|error| self.wrong(error))
    }

    fn text(&self, at: usize) -> Result<&str, SinkError> {
        self.row.get_ref(at).map_err(|error| self.wrong(error))?.as_str().map_err(|error| self.wrong(error))
    }

    fn epoch(&self, at: usize) -> Result<Option<Epoch>, SinkError> {
        let number: Option<i64> = self.row.get(at).map_err(|error| self.wrong(error))?;
        number.map(Epoch::try_from).transpose().map_err(|error| self.wrong(error))
    }

    fn namespace(&self, rule: Rule) -> Result<Namespace, SinkError> {
        let version = self.number(0)?;
        if version != schema::VERSION {
            return Err(SinkError::schema(&place_of(self.connection), version, schema::VERSION));
        }
        let found = self.text(1)?;
        if found != rule.name() {
            SinkError::unless_rule(&place_of(self.connection), found, rule)?;
        }
        let generation = format!("{}:{}", self.text(2)?, self.number(3)?);
        Ok(Namespace {
            generation: Generation::new(generation).map_err(|error| self.wrong(error))?,
            floor: self.epoch(4)?,
        })
    }

    fn fence(&self) -> Result<Option<FenceRow>, SinkError> {
        let Some(epoch) = self.epoch(5)? else { return Ok(None) };
        Ok(Some(FenceRow {
            epoch,
            grant: self.text(6)?.parse::<GrantId>().map_err(|error| self.wrong(error))?,
            generation: Generation::new(self.text(7)?).map_err(|error| self.wrong(error))?,
            seal_no: u64::try_from(self.number(8)?).map_err(|error| self.wrong(error))?,
            enrolled: self.enrolled(9)?,
        }))
    }

    fn enrolled(&self, at: usize) -> Result<BTreeSet<SinkId>, SinkError> {
        let names: Vec<String> = serde_json::from_str(self.text(at)?).map_err(|error| self.wrong(error))?;
        names.into_iter().map(SinkId::new).collect::<Result<_, _>>().map_err(|error| self.wrong(error))
    }
}

/// Registers a row.
pub(super) fn put(connection: &Connection, resource: &ResourceName, row: &FenceRow) -> Result<(), SinkError> {
    let wrong = |error: &dyn std::fmt::Display| SinkError::corrupt(&place_of(connection), error);
    let enrolled: Vec<&str> = row.enrolled.iter().map(SinkId::as_str).collect();
    let enrolled = serde_json::to_string(&enrolled).map_err(|error| wrong(&error))?;
    let seal_no = i64::try_from(row.seal_no).map_err(|error| wrong(&error))?;
    let fail = |error| sink_error(connection, "registering the token", error);
    let mut statement = connection.prepare_cached(schema::PUT).map_err(fail)?;
    let (epoch, grant) = (row.epoch.as_i64(), row.grant.to_string());
    statement
        .execute(params![resource.as_str(), epoch, grant, row.generation.as_str(), seal_no, enrolled])
        .map_err(fail)?;
    Ok(())
}

/// Raises the floor and drops the row. Records of operations stay: an operation is effective once, also after the
/// resource was created again.
pub(super) fn forget(connection: &Connection, resource: &ResourceName, floor: Epoch) -> Result<(), SinkError> {
    let fail = |error| sink_error(connection, "forgetting a resource", error);
    connection.execute("UPDATE tenure_sink_namespace SET floor = ?1", [floor.as_i64()]).map_err(fail)?;
    connection.execute("DELETE FROM tenure_sink_fence WHERE resource = ?1", [resource.as_str()]).map_err(fail)?;
    Ok(())
}

/// Starts a new generation.
pub(super) fn reopen(connection: &Connection) -> Result<(), SinkError> {
    let raise = "UPDATE tenure_sink_namespace SET reopen_count = reopen_count + 1";
    connection.execute(raise, []).map_err(|error| sink_error(connection, "reopening", error))?;
    Ok(())
}

/// Finds the effect of an operation.
pub(super) fn find(
    connection: &Connection,
    resource: &ResourceName,
    operation: &OperationId,
) -> Result<Option<Found>, SinkError> {
    let fail = |error| sink_error(connection, "looking an operation up", error);
    let wrong = |error: &dyn std::fmt::Display| SinkError::corrupt(&place_of(connection), error);
    let mut statement = connection.prepare_cached(schema::FIND).map_err(fail)?;
    let found = statement
        .query_row([resource.as_str(), operation.as_str()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, [u8; 32]>(1)?, row.get::<_, String>(2)?))
        })
        .optional()
        .map_err(fail)?;
    let Some((epoch, digest, outcome)) = found else { return Ok(None) };
    Ok(Some(Found {
        epoch: Epoch::try_from(epoch).map_err(|error| wrong(&error))?,
        digest: Digest(digest),
        outcome: Outcome::new(outcome).map_err(|error| wrong(&error))?,
    }))
}

/// Records an effect that stands with this transaction.
pub(super) fn record(
    connection: &Connection,
    resource: &ResourceName,
    operation: &OperationId,
    seal_no: u64,
    found: &Found,
) -> Result<(), SinkError> {
    let fail = |error| sink_error(connection, "recording an operation", error);
    let seal_no = i64::try_from(seal_no).map_err(|error| SinkError::corrupt(&place_of(connection), error))?;
    let mut statement = connection.prepare_cached(schema::RECORD).map_err(fail)?;
    statement
        .execute(params![
            resource.as_str(),
            operation.as_str(),
            found.epoch.as_i64(),
            seal_no,
            found.digest.0,
            Attempt::Done.name(),
            found.outcome.as_str()
        ])
        .map_err(fail)?;
    Ok(())
}
