//! The chunks of one generation, and their vectors, in a table of its own.

use super::stop::Stop;
use crate::chunk::Chunk;
use crate::index::catalog::fits;
use crate::index::catalog::postgres::{Parameter, Records, counted, signed};
use crate::index::{Entry, Hit, IndexError, Inspection};
use crate::manifest::{Sum, Sums};
use futures_util::TryStreamExt;
use std::collections::HashSet;
use std::pin::pin;
use tokio_postgres::types::Type;

/// The longest vectors for which a row fits into a page, and which an index may have.
const PLAIN_MAX: u32 = 1900;

/// Above how many chunks a generation gets an index of its vectors. To look at 20,000 of 384 numbers takes the server 11 ms, and through
/// an index 4, which takes it 5 s to make (processor time, on the machine on which it was written).
const INDEXED: u64 = 20_000;

/// How many of the nearest an index looks at, at least and at most.
const LOOK_AT: (usize, usize) = (200, 1000);

/// The table of the generation that is here. With its schema: pgvector may be in that of another index, which has tables of
/// the same names.
fn table(records: &Records<'_>, here: i64) -> String {
    format!("{}.vectors_{here}", records.place.schema)
}

/// Makes the table of the generation that is here, empty.
pub(super) async fn create(records: &Records<'_>, here: i64, dimensions: u32) -> Result<(), Stop> {
    drop_all(records, here).await?;
    let table = table(records, here);
    let sql = format!(
        "CREATE TABLE {table} (
             tenant    text   NOT NULL,
             epoch     bigint NOT NULL,
             document  text   NOT NULL,
             number    bigint NOT NULL,
             key       bytea  NOT NULL,
             heading   text   NOT NULL,
             text      text   NOT NULL,
             embedding vector({dimensions}) NOT NULL,
             PRIMARY KEY (document, number)
         )"
    );
    records.client.batch_execute(&sql).await?;
    if dimensions <= PLAIN_MAX {
        // In the row itself: a search reads each of them, and elsewhere each would be a look-up of its own.
        let sql = format!("ALTER TABLE {table} ALTER COLUMN embedding SET STORAGE PLAIN");
        records.client.batch_execute(&sql).await?;
    }
    Ok(())
}

/// Removes the table.
pub(super) async fn drop_all(records: &Records<'_>, here: i64) -> Result<(), Stop> {
    Ok(records.client.batch_execute(&format!("DROP TABLE IF EXISTS {}", table(records, here))).await?)
}

/// Writes what is not there yet, and returns how much that was.
pub(super) async fn write(
    records: &Records<'_>,
    (here, epoch): (i64, u64),
    dimensions: u32,
    entries: &[Entry],
) -> Result<u64, Stop> {
    let place = &records.place.name;
    for Entry { chunk, vector, .. } in entries {
        fits(place, dimensions, vector)?;
        if [&chunk.document, &chunk.heading, &chunk.text].iter().any(|text| text.contains('\0')) {
            let why = format!("{:?} holds a zero byte, which PostgreSQL cannot keep: remove it there", chunk.document);
            return Err(IndexError::Failed { place: place.clone(), doing: "writing into a generation", why }.into());
        }
    }
    let chunks = || entries.iter().map(|entry| &entry.chunk);
    let documents: Vec<&str> = chunks().map(|chunk| &*chunk.document).collect();
    let numbers: Vec<i64> = chunks().map(|chunk| i64::from(chunk.number)).collect();
    let keys: Vec<&[u8]> = entries.iter().map(|entry| &entry.key.0[..]).collect();
    let headings: Vec<&str> = chunks().map(|chunk| &*chunk.heading).collect();
    let texts: Vec<&str> = chunks().map(|chunk| &*chunk.text).collect();
    let vectors: Vec<f32> = entries.iter().flat_map(|entry| entry.vector.iter().copied()).collect();
    let table = table(records, here);
    // All vectors come as one array, of which each row takes its piece.
    let sql = format!(
        "INSERT INTO {table} (tenant, epoch, document, number, key, heading, text, embedding)
         SELECT $1, $2, d, n, k, h, t, ($8::real[])[(o - 1) * {dimensions} + 1 : o * {dimensions}]::vector
         FROM unnest($3::text[], $4::bigint[], $5::bytea[], $6::text[], $7::text[]) WITH ORDINALITY AS u (d, n, k, h, t, o)
         ON CONFLICT (document, number) DO NOTHING"
    );
    let parameters: [Parameter<'_>; 8] = [
        (&records.tenant.as_str(), Type::TEXT),
        (&signed(epoch), Type::INT8),
        (&documents, Type::TEXT_ARRAY),
        (&numbers, Type::INT8_ARRAY),
        (&keys, Type::BYTEA_ARRAY),
        (&headings, Type::TEXT_ARRAY),
        (&texts, Type::TEXT_ARRAY),
        (&vectors, Type::FLOAT4_ARRAY),
    ];
    Ok(records.client.execute_typed(&sql, &parameters).await?)
}

/// Reads them back.
pub(super) async fn inspect(records: &Records<'_>, (here, epoch): (i64, u64)) -> Result<Inspection, Stop> {
    let table = table(records, here);
    let sql = format!("SELECT document, number, key, tenant = $1 AND epoch = $2 FROM {table}");
    let parameters: [Parameter<'_>; 2] = [(&records.tenant.as_str(), Type::TEXT), (&signed(epoch), Type::INT8)];
    let mut rows = pin!(records.client.query_typed_raw(&sql, parameters).await?);
    let (mut sums, mut documents, mut foreign) = (Sums::default(), HashSet::new(), 0);
    while let Some(row) = rows.try_next().await? {
        let (document, number): (&str, i64) = (row.try_get(0)?, row.try_get(1)?);
        let key =
            <[u8; 32]>::try_from(row.try_get::<_, &[u8]>(2)?).map_err(|_| records.place.odd("a key is no digest"))?;
        let number = u32::try_from(number).map_err(|_| records.place.odd("a chunk's number is out of bounds"))?;
        sums.add(&Entry::sum(document, number, &Sum(key)));
        if !documents.contains(document) {
            documents.insert(document.to_owned());
        }
        foreign += u64::from(!row.try_get::<_, bool>(3)?);
    }
    Ok(Inspection { documents: documents.len() as u64, chunks: sums.count(), digest: sums.sum(), foreign })
}

/// Whether the generation is so large that an index helps, and can have one.
pub(super) fn wants_index(chunks: u64, dimensions: u32) -> bool {
    chunks > INDEXED && dimensions <= PLAIN_MAX
}

/// Makes the index of the vectors, unless it is there. Its statement may take this long.
pub(super) async fn make_index(records: &Records<'_>, here: i64, patience: &str) -> Result<(), Stop> {
    let table = table(records, here);
    let sql = format!(
        "SET LOCAL statement_timeout = '{patience}'; SET LOCAL maintenance_work_mem = '256MB';
         CREATE INDEX IF NOT EXISTS near_{here} ON {table} USING hnsw (embedding vector_ip_ops)"
    );
    Ok(records.client.batch_execute(&sql).await?)
}

/// The nearest chunks. Of vectors of the length one, the inner product is the cosine.
pub(super) async fn nearest(records: &Records<'_>, here: i64, vector: &[f32], limit: usize) -> Result<Vec<Hit>, Stop> {
    let table = table(records, here);
    // An index gives no more than it was told to look at.
    let look_at = limit.clamp(LOOK_AT.0, LOOK_AT.1);
    records.client.batch_execute(&format!("SET LOCAL hnsw.ef_search = {look_at}")).await?;
    let sql = format!(
        "SELECT document, number, heading, text, epoch, (-(embedding <#> $1::vector))::real FROM {table}
         ORDER BY embedding <#> $1::vector LIMIT $2"
    );
    let parameters: [Parameter<'_>; 2] = [(&vector, Type::FLOAT4_ARRAY), (&counted(limit), Type::INT8)];
    let read = |row: &tokio_postgres::Row| {
        let number: i64 = row.try_get(1)?;
        let number = u32::try_from(number).map_err(|_| records.place.odd("a chunk's number is out of bounds"))?;
        let chunk = Chunk { document: row.try_get(0)?, number, heading: row.try_get(2)?, text: row.try_get(3)? };
        let epoch: i64 = row.try_get(4)?;
        Ok(Hit { chunk, epoch: u64::try_from(epoch).unwrap_or_default(), score: row.try_get(5)? })
    };
    records.client.query_typed(&sql, &parameters).await?.iter().map(read).collect()
}
