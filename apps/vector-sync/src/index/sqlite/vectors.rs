//! The chunks of one generation, and their vectors.
//!
//! The vectors lie in a virtual table of sqlite-vec, which looks at each of them in a search: 12 ms for 20,000 vectors of 384 numbers
//! (processor time, on the machine on which it was written).

use super::stop::Stop;
use crate::chunk::Chunk;
use crate::index::catalog::sqlite::{number, signed};
use crate::index::catalog::{bytes, fits};
use crate::index::{Entry, Hit, Inspection};
use crate::manifest::{Sum, Sums};
use crate::tenant::Tenant;
use rusqlite::{Connection, params};

/// As many as one question of sqlite-vec can have for an answer.
const LIMIT: usize = 4096;

/// Makes the tables, empty.
pub(super) fn create(connection: &Connection, epoch: u64, dimensions: u32) -> rusqlite::Result<()> {
    drop_all(connection, epoch)?;
    connection.execute_batch(&format!(
        "CREATE TABLE chunk_{epoch} (
             id       INTEGER PRIMARY KEY,
             tenant   TEXT    NOT NULL,
             epoch    INTEGER NOT NULL,
             document TEXT    NOT NULL,
             number   INTEGER NOT NULL,
             key      BLOB    NOT NULL,
             heading  TEXT    NOT NULL,
             text     TEXT    NOT NULL,
             UNIQUE (document, number)
         ) STRICT;
         CREATE VIRTUAL TABLE vector_{epoch} USING vec0 (
             id     INTEGER PRIMARY KEY,
             vector FLOAT[{dimensions}] DISTANCE_METRIC=cosine
         );"
    ))
}

/// Removes the tables.
pub(super) fn drop_all(connection: &Connection, epoch: u64) -> rusqlite::Result<()> {
    connection.execute_batch(&format!("DROP TABLE IF EXISTS chunk_{epoch}; DROP TABLE IF EXISTS vector_{epoch};"))
}

/// Writes what is not there yet, and returns how much that was.
pub(super) fn write(
    connection: &Connection,
    (tenant, epoch): (&Tenant, u64),
    dimensions: u32,
    entries: &[Entry],
    place: &str,
) -> Result<u64, Stop> {
    let chunk = format!(
        "INSERT INTO chunk_{epoch} (tenant, epoch, document, number, key, heading, text)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (document, number) DO NOTHING"
    );
    let mut chunk = connection.prepare_cached(&chunk)?;
    let mut vector = connection.prepare_cached(&format!("INSERT INTO vector_{epoch} (id, vector) VALUES (?1, ?2)"))?;
    let mut new = 0;
    for entry in entries {
        fits(place, dimensions, &entry.vector)?;
        let Chunk { document, number, heading, text } = &entry.chunk;
        let row = params![tenant.as_str(), signed(epoch), document, number, entry.key.0, heading, text];
        if chunk.execute(row)? == 1 {
            vector.execute(params![connection.last_insert_rowid(), bytes(&entry.vector)])?;
            new += 1;
        }
    }
    Ok(new)
}

/// Reads them back. A chunk without its whole vector is none.
pub(super) fn inspect(
    connection: &Connection,
    (tenant, epoch): (&Tenant, u64),
    dimensions: u32,
) -> rusqlite::Result<Inspection> {
    let whole = i64::from(dimensions) * 4;
    let sql = format!(
        "SELECT c.document, c.number, c.key, c.tenant = ?1 AND c.epoch = ?2
         FROM chunk_{epoch} AS c JOIN vector_{epoch} AS v ON v.id = c.id WHERE length(v.vector) = ?3"
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query(params![tenant.as_str(), signed(epoch), whole])?;
    let (mut sums, mut foreign) = (Sums::default(), 0);
    while let Some(row) = rows.next()? {
        let key = Sum(row.get(2)?);
        sums.add(&Entry::sum(row.get_ref(0)?.as_str()?, row.get(1)?, &key));
        foreign += u64::from(!row.get::<_, bool>(3)?);
    }
    let documents = format!("SELECT count(DISTINCT document) FROM chunk_{epoch}");
    let documents = connection.query_row(&documents, [], |row| number(row, 0))?;
    Ok(Inspection { documents, chunks: sums.count(), digest: sums.sum(), foreign })
}

/// The nearest chunks.
pub(super) fn nearest(connection: &Connection, epoch: u64, vector: &[f32], limit: usize) -> rusqlite::Result<Vec<Hit>> {
    let sql = format!(
        "SELECT c.document, c.number, c.heading, c.text, c.epoch, v.distance
         FROM (SELECT id, distance FROM vector_{epoch} WHERE vector MATCH ?1 AND k = ?2) AS v
         JOIN chunk_{epoch} AS c ON c.id = v.id ORDER BY v.distance, c.id"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let limit = i64::try_from(limit.min(LIMIT)).unwrap_or(0);
    let rows = statement.query_map(params![bytes(vector), limit], |row| {
        let chunk = Chunk { document: row.get(0)?, number: row.get(1)?, heading: row.get(2)?, text: row.get(3)? };
        Ok(Hit { chunk, epoch: number(row, 4)?, score: 1.0 - row.get::<_, f32>(5)? })
    })?;
    rows.collect()
}
