//! The records of one tenant in one SQLite file: each rule about them, once.

use super::{Built, Stood, begun_before, bytes, never_stood, not_begun, numbers, other_manifest, text};
use crate::index::sqlite::Stop;
use crate::index::{Generation, Live, Moved, Round, State, Switch, Switched, Why, WriteError};
use crate::manifest::{Making, Manifest, Sum};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::de::DeserializeOwned;
use tenure::Token;

/// The version of the tables, kept in the file's `user_version`.
pub(in crate::index) const VERSION: i64 = 1;

/// Makes the tables.
pub(in crate::index) const CREATE: &str = "
CREATE TABLE place (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    mark TEXT    NOT NULL
) STRICT;
INSERT INTO place (only, mark) VALUES (1, lower(hex(randomblob(8))));

CREATE TABLE generation (
    epoch    INTEGER PRIMARY KEY CHECK (epoch > 0),
    grant_id TEXT    NOT NULL,
    state    TEXT    NOT NULL CHECK (state IN ('building', 'published', 'condemned')),
    making   TEXT    NOT NULL,
    manifest TEXT,
    chunks   INTEGER NOT NULL,
    begun_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE alias (
    only     INTEGER PRIMARY KEY CHECK (only = 1),
    version  INTEGER NOT NULL CHECK (version > 0),
    epoch    INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    rejected TEXT
) STRICT;

CREATE TABLE moved (
    version    INTEGER PRIMARY KEY CHECK (version > 0),
    from_epoch INTEGER,
    to_epoch   INTEGER NOT NULL,
    by_epoch   INTEGER NOT NULL,
    why        TEXT    NOT NULL CHECK (why IN ('sync', 'rollback')),
    operation  TEXT    NOT NULL UNIQUE,
    at_ms      INTEGER NOT NULL
) STRICT;

CREATE TABLE embedding (
    key    BLOB    NOT NULL UNIQUE CHECK (length(key) = 32),
    used   INTEGER NOT NULL,
    vector BLOB    NOT NULL
) STRICT;

CREATE TABLE round (
    epoch       INTEGER PRIMARY KEY,
    recorded_by INTEGER NOT NULL,
    outcome     TEXT    NOT NULL,
    version     INTEGER,
    note        TEXT    NOT NULL,
    at_ms       INTEGER NOT NULL
) STRICT;
";

/// This moment by the clock of the machine that has the file.
const NOW: &str = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";

/// The version that is live.
pub(in crate::index) fn live(connection: &Connection) -> rusqlite::Result<Option<Live>> {
    let sql = "SELECT a.version, a.epoch, g.manifest, a.since_ms, a.rejected,
                      EXISTS (SELECT 1 FROM round AS r WHERE r.epoch = m.by_epoch)
               FROM alias AS a JOIN generation AS g ON g.epoch = a.epoch JOIN moved AS m ON m.version = a.version";
    let read = |row: &Row<'_>| {
        Ok(Live {
            version: number(row, 0)?,
            epoch: number(row, 1)?,
            manifest: json(row, 2)?,
            since_ms: row.get(3)?,
            rejected: maybe_json(row, 4)?,
            recorded: row.get(5)?,
        })
    };
    connection.prepare_cached(sql)?.query_row([], read).optional()
}

/// What [`built`] reads.
const BUILT: &str = "g.making, g.grant_id, (SELECT mark FROM place), g.epoch";

/// The version that is live, and where it is.
pub(in crate::index) fn stood(connection: &Connection) -> rusqlite::Result<Option<Stood>> {
    let sql = format!("SELECT {BUILT}, a.version FROM alias AS a JOIN generation AS g ON g.epoch = a.epoch");
    let read = |row: &Row<'_>| Ok(Stood { version: number(row, 4)?, epoch: number(row, 3)?, built: built(row)? });
    connection.prepare_cached(&sql)?.query_row([], read).optional()
}

/// A generation, unless it is condemned.
pub(in crate::index) fn readable(connection: &Connection, epoch: u64) -> rusqlite::Result<Option<Built>> {
    let sql = format!("SELECT {BUILT} FROM generation AS g WHERE g.epoch = ?1 AND g.state <> 'condemned'");
    connection.prepare_cached(&sql)?.query_row([signed(epoch)], built).optional()
}

/// What tells these records from all others.
pub(in crate::index) fn mark(connection: &Connection) -> rusqlite::Result<String> {
    connection.query_row("SELECT mark FROM place", [], |row| row.get(0))
}

fn built(row: &Row<'_>) -> rusqlite::Result<Built> {
    Ok(Built { making: json(row, 0)?, grant: row.get(1)?, mark: row.get(2)?, here: row.get(3)? })
}

/// All generations, the oldest first.
pub(in crate::index) fn generations(connection: &Connection) -> rusqlite::Result<Vec<Generation>> {
    let read = |row: &Row<'_>| {
        let state: String = row.get(1)?;
        let state = State::named(&state).ok_or_else(|| odd(1, format!("{state:?} is no state")))?;
        Ok(Generation { epoch: number(row, 0)?, state, chunks: number(row, 2)?, begun_ms: row.get(3)? })
    };
    let mut statement = connection.prepare("SELECT epoch, state, chunks, begun_ms FROM generation ORDER BY epoch")?;
    statement.query_map([], read)?.collect()
}

/// The audit trail, the oldest first.
pub(in crate::index) fn switches(connection: &Connection) -> rusqlite::Result<Vec<Moved>> {
    let read = |row: &Row<'_>| {
        let why: String = row.get(4)?;
        Ok(Moved {
            version: number(row, 0)?,
            from: maybe_number(row, 1)?,
            to: number(row, 2)?,
            by: number(row, 3)?,
            why: Why::named(&why).ok_or_else(|| odd(4, format!("{why:?} is no reason")))?,
            at_ms: row.get(5)?,
        })
    };
    let sql = "SELECT version, from_epoch, to_epoch, by_epoch, why, at_ms FROM moved ORDER BY version";
    connection.prepare(sql)?.query_map([], read)?.collect()
}

/// The rounds, the newest first.
pub(in crate::index) fn rounds(connection: &Connection, limit: usize) -> rusqlite::Result<Vec<Round>> {
    let read = |row: &Row<'_>| {
        Ok(Round {
            epoch: number(row, 0)?,
            recorded_by: number(row, 1)?,
            outcome: row.get(2)?,
            version: maybe_number(row, 3)?,
            note: row.get(4)?,
            at_ms: row.get(5)?,
        })
    };
    let sql = "SELECT epoch, recorded_by, outcome, version, note, at_ms FROM round ORDER BY epoch DESC LIMIT ?1";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    connection.prepare(sql)?.query_map([limit], read)?.collect()
}

/// Begins the generation of the token's epoch, or begins it anew while it is being built.
pub(in crate::index) fn begin(
    connection: &Connection,
    token: &Token,
    making: &Making,
    place: &str,
) -> Result<Built, Stop> {
    let (epoch, grant) = (token.epoch.as_i64(), token.grant.to_string());
    let making = text(place, making)?;
    let find = "SELECT grant_id, state FROM generation WHERE epoch = ?1";
    let found = connection.query_row(find, [epoch], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
    match found.optional()? {
        None => {
            let sql = format!("INSERT INTO generation VALUES (?1, ?2, 'building', ?3, NULL, 0, {NOW})");
            connection.execute(&sql, params![epoch, grant, making])?;
        }
        Some((by, state)) if by == grant && state == State::Building.name() => {
            let sql = "UPDATE generation SET making = ?2, chunks = 0 WHERE epoch = ?1";
            connection.execute(sql, params![epoch, making])?;
        }
        Some((_, state)) => return Err(begun_before(place, token, &state).into()),
    }
    building(connection, token, place)
}

/// The generation that this token is building.
pub(in crate::index) fn building(connection: &Connection, token: &Token, place: &str) -> Result<Built, Stop> {
    let sql =
        format!("SELECT {BUILT} FROM generation AS g WHERE g.epoch = ?1 AND g.grant_id = ?2 AND g.state = 'building'");
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_row(params![token.epoch.as_i64(), token.grant.to_string()], built);
    found.optional()?.ok_or_else(|| not_begun(place, token).into())
}

/// Says how many chunks the generation of an epoch has.
pub(in crate::index) fn count(connection: &Connection, token: &Token, chunks: u64) -> rusqlite::Result<()> {
    let sql = "UPDATE generation SET chunks = ?2 WHERE epoch = ?1";
    connection.prepare_cached(sql)?.execute(params![token.epoch.as_i64(), signed(chunks)])?;
    Ok(())
}

/// Says that more chunks were written into the generation of an epoch, whose vectors have these keys.
pub(in crate::index) fn written<'k>(
    connection: &Connection,
    token: &Token,
    more: u64,
    mut keys: impl Iterator<Item = &'k Sum>,
) -> rusqlite::Result<()> {
    let epoch = token.epoch.as_i64();
    let sql = "UPDATE generation SET chunks = chunks + ?2 WHERE epoch = ?1";
    connection.prepare_cached(sql)?.execute(params![epoch, signed(more)])?;
    let mut mark = connection.prepare_cached("UPDATE embedding SET used = ?1 WHERE key = ?2 AND used < ?1")?;
    keys.try_for_each(|key| mark.execute(params![epoch, key.0]).map(drop))
}

/// The vectors that are kept under these keys.
pub(in crate::index) fn known(connection: &Connection, keys: &[Sum]) -> rusqlite::Result<Vec<Option<Vec<f32>>>> {
    let mut find = connection.prepare_cached("SELECT vector FROM embedding WHERE key = ?1")?;
    let mut read = |key: &Sum| {
        let vector = find.query_row([key.0], |row| {
            numbers(row.get_ref(0)?.as_blob()?).ok_or_else(|| odd(0, "a vector was cut off".to_owned()))
        });
        vector.optional()
    };
    keys.iter().map(&mut read).collect()
}

/// Keeps vectors that are not kept yet.
pub(in crate::index) fn keep(connection: &Connection, epoch: u64, vectors: &[(Sum, Vec<f32>)]) -> rusqlite::Result<()> {
    let sql = "INSERT INTO embedding (key, used, vector) VALUES (?1, ?2, ?3)
               ON CONFLICT (key) DO UPDATE SET used = excluded.used WHERE used < excluded.used";
    let mut keep = connection.prepare_cached(sql)?;
    for (key, vector) in vectors {
        keep.execute(params![key.0, signed(epoch), bytes(vector)])?;
    }
    Ok(())
}

/// Moves the alias, if it may: nothing was changed when the answer is not [`Switched::To`].
pub(in crate::index) fn switch(
    connection: &Connection,
    token: &Token,
    switch: &Switch,
    place: &str,
) -> Result<Switched, Stop> {
    let find = "SELECT a.version, a.epoch, g.making FROM alias AS a JOIN generation AS g ON g.epoch = a.epoch";
    let before = connection.query_row(find, [], |row| Ok((number(row, 0)?, number(row, 1)?, row.get::<_, String>(2)?)));
    let before = before.optional()?;
    let live = before.as_ref().map_or(0, |(version, ..)| *version);
    if live != switch.from {
        return Ok(Switched::NotFrom { live });
    }
    let find = "SELECT manifest FROM generation WHERE epoch = ?1 AND state <> 'condemned'";
    let found = connection.query_row(find, [signed(switch.to)], |row| maybe_json::<Manifest>(row, 0)).optional()?;
    let Some(stands) = found else { return Ok(Switched::Gone) };
    if stands.is_some() && switch.manifest.is_some() && stands != switch.manifest {
        return Err(other_manifest(place, switch.to).into());
    }
    let Some(manifest) = stands.as_ref().or(switch.manifest.as_ref()) else { return Ok(Switched::Gone) };
    let manifest = text(place, manifest)?;
    let publish = "UPDATE generation SET state = 'published', manifest = ?2 WHERE epoch = ?1";
    connection.execute(publish, params![signed(switch.to), manifest])?;
    let (version, from) = (live + 1, before.as_ref().map(|(_, epoch, _)| signed(*epoch)));
    let rejected = before.filter(|_| switch.why == Why::Rollback).map(|(.., making)| making);
    let lead = format!(
        "INSERT INTO alias (only, version, epoch, since_ms, rejected) VALUES (1, ?1, ?2, {NOW}, ?3)
         ON CONFLICT (only) DO UPDATE SET version = excluded.version, epoch = excluded.epoch,
             since_ms = excluded.since_ms, rejected = excluded.rejected"
    );
    connection.execute(&lead, params![signed(version), signed(switch.to), rejected])?;
    let note = "INSERT INTO moved SELECT version, ?1, epoch, ?2, ?3, ?4, since_ms FROM alias";
    let by = token.epoch.as_i64();
    connection.execute(note, params![from, by, switch.why.name(), switch.operation.as_str()])?;
    Ok(Switched::To(version))
}

/// Records how a round ended, unless that is recorded already.
pub(in crate::index) fn record(connection: &Connection, round: &Round, place: &str) -> Result<(), Stop> {
    let version = round.version.map(signed);
    let stands = "SELECT EXISTS (SELECT 1 FROM moved WHERE version = ?1)";
    if let Some(number) = round.version
        && !connection.query_row(stands, [version], |row| row.get::<_, bool>(0))?
    {
        return Err(never_stood(place, number).into());
    }
    let sql = format!("INSERT INTO round VALUES (?1, ?2, ?3, ?4, ?5, {NOW}) ON CONFLICT (epoch) DO NOTHING");
    let (epoch, by) = (signed(round.epoch), signed(round.recorded_by));
    connection.execute(&sql, params![epoch, by, round.outcome, version, round.note])?;
    Ok(())
}

/// Condemns what nobody needs any more, and returns what is condemned.
pub(in crate::index) fn condemn(connection: &Connection, token: &Token, keep: usize) -> rusqlite::Result<Vec<u64>> {
    let keep = i64::try_from(keep).unwrap_or(i64::MAX);
    let sql = "UPDATE generation SET state = 'condemned'
               WHERE epoch < ?1 AND state <> 'condemned' AND epoch NOT IN (SELECT epoch FROM alias)
                 AND epoch NOT IN (
                     SELECT m.to_epoch FROM moved AS m JOIN generation AS g ON g.epoch = m.to_epoch
                     WHERE g.state = 'published' AND m.to_epoch NOT IN (SELECT epoch FROM alias)
                     GROUP BY m.to_epoch ORDER BY max(m.version) DESC LIMIT ?2)";
    connection.execute(sql, params![token.epoch.as_i64(), keep])?;
    // Before the first version nothing is dropped: a round that was lost has paid for what it kept.
    let drop = "DELETE FROM embedding WHERE used < (SELECT min(epoch) FROM generation WHERE state = 'published')";
    connection.execute(drop, [])?;
    let mut statement = connection.prepare("SELECT epoch FROM generation WHERE state = 'condemned' ORDER BY epoch")?;
    statement.query_map([], |row| number(row, 0))?.collect()
}

/// A generation that may be removed; `None` when it is gone already.
pub(in crate::index) fn removable(connection: &Connection, epoch: u64) -> Result<Option<Built>, Stop> {
    let sql = format!("SELECT {BUILT}, g.state FROM generation AS g WHERE g.epoch = ?1");
    let read = |row: &Row<'_>| Ok((built(row)?, row.get::<_, String>(4)?));
    match connection.query_row(&sql, [signed(epoch)], read).optional()? {
        None => Ok(None),
        Some((built, state)) if state == State::Condemned.name() => Ok(Some(built)),
        Some(_) => Err(WriteError::NotCondemned(epoch).into()),
    }
}

/// Forgets a generation.
pub(in crate::index) fn forget(connection: &Connection, epoch: u64) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM generation WHERE epoch = ?1", [signed(epoch)]).map(drop)
}

/// Epochs and versions fit: both count from 1, one at a time.
pub(in crate::index) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(in crate::index) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let found: i64 = row.get(column)?;
    u64::try_from(found).map_err(|_| odd(column, format!("{found} is below zero")))
}

fn maybe_number(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    let found: Option<i64> = row.get(column)?;
    found.map(|_| number(row, column)).transpose()
}

fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    serde_json::from_str(row.get_ref(column)?.as_str()?).map_err(|error| odd(column, error.to_string()))
}

fn maybe_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    let found: Option<String> = row.get(column)?;
    found.map(|_| json(row, column)).transpose()
}

/// What was read cannot have been written by this program.
pub(in crate::index) fn odd(column: usize, what: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, what.into())
}
