//! Taking over another store's content.

use super::change::Parameters;
use super::fault::{Fault, fault};
use super::link::{Server, connect, silent};
use super::row::{self, Bits, escaped, instant_to, nanos_of, wall_to};
use crate::StoreError;
use crate::store::{Import, Recorded, SwapOutcome};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::record::LeaseRecord;
use tenure_core::{Actor, AuthorityClock, Instant};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Transaction};

/// So many rows go in one statement.
const PIECE: usize = 1_000;

/// How long all of them may take.
const FILL_TIMEOUT: Duration = Duration::from_mins(15);

/// How long the commit may take, with the standbys that it waits for.
const COMMIT_TIMEOUT: Duration = Duration::from_mins(1);

/// Fills an empty store, in one transaction, on a connection of its own.
pub(super) async fn import(server: Arc<Server>, content: Import) -> Result<SwapOutcome, StoreError> {
    // Whether the store may be used at all.
    drop(server.link(super::link::Lane::List).await?);
    let (mut link, connection) = connect(&server.place).await?;
    link.attend(&server.home, connection);
    let imported = imported(&server, link.client(), &content).await;
    if !matches!(imported, Ok(SwapOutcome::Done | SwapOutcome::Changed)) {
        // A statement may be under way that is never answered.
        link.end();
    }
    imported
}

async fn imported(server: &Server, client: &mut Client, content: &Import) -> Result<SwapOutcome, StoreError> {
    let failed = |error: tokio_postgres::Error| fault(&server.place, &error).into_error();
    let filling = async {
        let transaction = client.transaction().await.map_err(failed)?;
        let Some(now) = begun(server, &transaction).await? else { return Ok::<_, StoreError>(None) };
        fill(server, &transaction, content, now).await?;
        Ok(Some(transaction))
    };
    let filled = tokio::time::timeout(FILL_TIMEOUT, filling).await;
    let Some(transaction) = filled.map_err(|_| silent(&server.place, FILL_TIMEOUT))?? else {
        return Ok(SwapOutcome::Changed);
    };
    let why = match tokio::time::timeout(COMMIT_TIMEOUT, transaction.commit()).await {
        Ok(Ok(())) => return Ok(SwapOutcome::Done),
        Ok(Err(error)) => match fault(&server.place, &error) {
            Fault::Lost(why) => why,
            fault => return Err(fault.into_error()),
        },
        Err(_) => silent(&server.place, COMMIT_TIMEOUT).to_string(),
    };
    tracing::warn!(why, "the server did not say whether an import was made");
    Ok(SwapOutcome::Unknown)
}

/// Waits for its turn. `None`: the store has a history.
async fn begun(server: &Server, transaction: &Transaction<'_>) -> Result<Option<Instant<AuthorityClock>>, StoreError> {
    let schema = &server.place.schema;
    let failed = |error: tokio_postgres::Error| fault(&server.place, &error).into_error();
    // In the order in which the changes lock.
    let limit = "SELECT set_config('lock_timeout', '10s', true)".to_owned();
    let itself = format!("SELECT FROM {schema}.meta WHERE single FOR NO KEY UPDATE");
    for sql in [limit, itself, format!("SELECT {schema}.begin_step()")] {
        transaction.query_typed(&sql, &[]).await.map_err(failed)?;
    }
    let seen = server.time.seen();
    let sql = format!(
        "SELECT {schema}.now_ns($1), EXISTS (SELECT FROM {schema}.history), \
         (SELECT m.identity FROM {schema}.meta m) IS NOT DISTINCT FROM {schema}.identity()"
    );
    let rows = transaction.query_typed(&sql, &[(&instant_to(seen), Type::INT8)]).await.map_err(failed)?;
    let row = rows.first().ok_or_else(|| StoreError::Unavailable("an empty answer".to_owned()))?;
    let mut columns = row::Columns::new(row);
    let now = server.time.settle(seen, None, columns.instant()?)?;
    let (has_history, is_itself): (bool, bool) = (columns.next()?, columns.next()?);
    Ok((!has_history && is_itself).then_some(now))
}

async fn fill(
    server: &Server,
    transaction: &Transaction<'_>,
    content: &Import,
    now: Instant<AuthorityClock>,
) -> Result<(), StoreError> {
    let schema = &server.place.schema;
    let failed = |error: tokio_postgres::Error| fault(&server.place, &error).into_error();
    for rows in content.rows().chunks(PIECE) {
        append(transaction, schema, &rows.iter().collect::<Vec<_>>()).await.map_err(failed)?;
    }
    let leases: Vec<_> = content.leases(now).collect();
    for leases in leases.chunks(PIECE) {
        let mut parameters = Parameters::default();
        parameters.leases(&leases.iter().collect::<Vec<&LeaseRecord>>())?;
        let sql = format!(
            "INSERT INTO {schema}.lease (resource, epoch, grant_id, session_id, owner_name, owner_instance, since_ns, \
             phase, outcome, cut, forgotten, sinks, mark_high, mark_low, version) \
             SELECT u.*, m.versions_dropped + 1 \
             FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) u, {schema}.meta m"
        );
        transaction.query_typed(&sql, &parameters.as_given()).await.map_err(failed)?;
    }
    let sql = format!("SELECT {} FROM {schema}.meta m", AUTHORITY);
    let rows = transaction.query_typed(&sql, &[]).await.map_err(failed)?;
    let row = rows.first().ok_or_else(|| StoreError::Corrupt("its record of itself is missing".to_owned()))?;
    let (own, _) = row::Columns::new(row).authority()?;
    let after = content.authority(&own, now);
    let mut parameters = Parameters::default();
    parameters.add(after.incarnation.cast_signed(), Type::INT8);
    parameters.add(after.floor.map(tenure_core::Epoch::as_i64), Type::INT8);
    parameters.add(nanos_of(after.max_ttl.get()), Type::INT8);
    parameters.add(after.quarantined_until.map(instant_to), Type::INT8);
    // The instants of the imported rows are of the former store's clock.
    let sql = format!(
        "UPDATE {schema}.meta SET incarnation = $1, floor = $2, max_ttl_ns = $3, quarantined_until_ns = $4, \
         version = version + 1, origin_after = (SELECT coalesce(max(number), 0) FROM {schema}.history)"
    );
    transaction.query_typed(&sql, &parameters.as_given()).await.map_err(failed)?;
    let number = content.rows().len() as u64 + 1;
    let last = Recorded { number, wall: crate::WallTime::now(), transition: content.transition(now) };
    append(transaction, schema, &[&last]).await.map_err(failed)
}

const AUTHORITY: &str = "m.identity, m.incarnation, m.floor, m.max_ttl_ns, m.quarantined_until_ns, m.version";

async fn append(transaction: &Transaction<'_>, schema: &str, rows: &[&Recorded]) -> Result<(), tokio_postgres::Error> {
    let mut parameters = Parameters::default();
    parameters.each(rows, |row| row.number.cast_signed(), Type::INT8_ARRAY);
    parameters.each(rows, |row| instant_to(row.transition.at), Type::INT8_ARRAY);
    parameters.each(rows, |row| wall_to(row.wall), Type::TIMESTAMPTZ_ARRAY);
    parameters.each(rows, |row| row.transition.event.name(), Type::TEXT_ARRAY);
    parameters.each(rows, |row| row::name(row.transition.resource.as_ref()), Type::TEXT_ARRAY);
    parameters.each(rows, |row| row.transition.session.map(|id| Bits(id.bits())), Type::BYTEA_ARRAY);
    parameters.each(rows, |row| row.transition.epoch.map(tenure_core::Epoch::as_i64), Type::INT8_ARRAY);
    parameters.each(rows, |row| row.transition.grant.map(|id| Bits(id.bits())), Type::BYTEA_ARRAY);
    parameters.each(rows, |row| row.transition.actor.as_ref().map(Actor::as_str), Type::TEXT_ARRAY);
    let why = |row: &&Recorded| row.transition.why.as_ref().map(|why| escaped(why.as_str()).into_owned());
    parameters.each(rows, why, Type::TEXT_ARRAY);
    let sql = format!(
        "INSERT INTO {schema}.history (number, at_ns, wall, event, resource, session_id, epoch, grant_id, actor, why) \
         SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
    );
    transaction.query_typed(&sql, &parameters.as_given()).await?;
    Ok(())
}
