//! The chunks of one generation, and their vectors.
//!
//! The vectors have a table of their own, because a search looks at each of them and at few of the texts. It reads them in the order
//! in which they lie, and multiplies here: for 20,000 vectors of 384 numbers that takes 8 ms, where a virtual table for vectors takes
//! 12, and a function for SQLite 19 (processor time, on the machine on which it was written).

use super::stop::Stop;
use crate::chunk::Chunk;
use crate::index::catalog::sqlite::{number, odd, signed};
use crate::index::catalog::{bytes, fits};
use crate::index::nearest::{Best, product};
use crate::index::{Entry, Hit, Inspection};
use crate::manifest::{Sum, Sums};
use crate::tenant::Tenant;
use rusqlite::{Connection, params};

/// Makes the tables, empty.
pub(super) fn create(connection: &Connection, epoch: u64) -> rusqlite::Result<()> {
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
         CREATE TABLE vector_{epoch} (id INTEGER PRIMARY KEY, vector BLOB NOT NULL) STRICT;"
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
    let mut best = Best::new(limit);
    let mut all = connection.prepare_cached(&format!("SELECT id, vector FROM vector_{epoch}"))?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let kept = row.get_ref(1)?.as_blob()?;
        if kept.len() != vector.len() * 4 {
            return Err(odd(1, format!("a vector of generation {epoch} has another length than the others")));
        }
        best.see(product(kept, vector), row.get(0)?);
    }
    let sql = format!("SELECT document, number, heading, text, epoch FROM chunk_{epoch} WHERE id = ?1");
    let mut chunk = connection.prepare_cached(&sql)?;
    let read = |(score, id)| {
        chunk.query_row([id], |row| {
            let chunk = Chunk { document: row.get(0)?, number: row.get(1)?, heading: row.get(2)?, text: row.get(3)? };
            Ok(Hit { chunk, epoch: number(row, 4)?, score })
        })
    };
    best.found().into_iter().map(read).collect()
}
