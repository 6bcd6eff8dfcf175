//! The schema of the store: which version is there, and how it becomes this program's.

use super::fault::{Fault, fault, grants};
use super::link::{Link, connect, silent};
use super::place::{MAX_TTL, Place};
use super::row::nanos_of;
use crate::StoreError;
use crate::store::home::Home;
use std::time::Duration;
use tenure_core::Ttl;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Transaction};

/// A step from one version of the schema to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The version that it leads to.
    pub number: i32,
    /// What it does.
    pub name: &'static str,
    /// The statements, without those that make the schema itself.
    pub sql: String,
}

/// What a migration did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version before; 0 when there was nothing.
    pub from: i32,
    /// The version now.
    pub to: i32,
}

/// The version that this program knows.
const VERSION: i32 = 1;

/// How long a migration may take: one that goes through a long history takes its time.
const MIGRATE_TIMEOUT: Duration = Duration::from_mins(15);

/// How long a change waits for a lock: far less than the ttl of a usual session.
const LOCK_TIMEOUT: &str = "3s";

/// Settings of a function whose plans must not depend on what the tables held when they were made: every access is by the
/// key, and no plan is made anew for other values.
const PLANNING: &str = "SET plan_cache_mode = 'force_generic_plan' SET enable_seqscan = 'off' SET enable_hashjoin = 'off' \
                        SET enable_mergejoin = 'off' SET enable_bitmapscan = 'off' SET jit = 'off'";

/// The same for functions whose statements name one key each, and join nothing to choose from. Each setting costs the call
/// most of a microsecond.
const PLANNING_ONE: &str = "SET plan_cache_mode = 'force_generic_plan' SET enable_seqscan = 'off' \
                            SET enable_bitmapscan = 'off'";

/// All steps from nothing to the version that this program knows, for a schema of this name: what
/// [`migrate`] runs, for those who want to read it or run it themselves.
#[must_use]
pub fn migrations(schema: &str) -> Vec<Migration> {
    let filled = |text: &str| {
        let text = text.replace("{planning}", PLANNING).replace("{planning_one}", PLANNING_ONE);
        text.replace("{lock_timeout}", LOCK_TIMEOUT).replace("{schema}", schema)
    };
    vec![Migration { number: 1, name: "tables and functions", sql: filled(include_str!("first.sql")) }]
}

/// Brings the store at an address to the version that this program knows. A store that is not there is made when the
/// address says `create=true`.
///
/// # Errors
/// As every use of the store: [`StoreError::Missing`], [`StoreError::Foreign`], [`StoreError::NotWritable`] (it names the
/// right that is missing) and so on; [`StoreError::Schema`] when the store is newer than this program. Nothing was
/// changed then, unless the connection broke or fell silent: migrate again, which does what is left to do.
pub async fn migrate(url: &str) -> Result<Migrated, StoreError> {
    let home = Home::own()?;
    let place = Place::parse(url)?;
    let at_home = home.clone();
    home.run(async move {
        let (mut link, connection) = connect(&place).await?;
        link.attend(&at_home, connection);
        match tokio::time::timeout(MIGRATE_TIMEOUT, migrated(link.client(), &place)).await {
            Ok(migrated) => migrated,
            Err(_) => {
                link.end();
                Err(silent(&place, MIGRATE_TIMEOUT))
            }
        }
    })
    .await?
}

async fn migrated(client: &mut Client, place: &Place) -> Result<Migrated, StoreError> {
    let from = match found(client, place).await? {
        Found::Version(version, _) => version,
        Found::Nothing { .. } if place.create => 0,
        Found::Nothing { .. } => return Err(StoreError::Missing(place.to_string())),
        Found::Other => return Err(StoreError::Foreign(place.to_string())),
    };
    if from > VERSION {
        return Err(newer(from));
    }
    apply(client, place).await?;
    Ok(Migrated { from, to: VERSION })
}

/// Looks at what is there, and makes the store if that was asked for.
pub(super) async fn settle(link: &mut Link, place: &Place) -> Result<(), StoreError> {
    let client = link.client();
    let max_ttl = match found(client, place).await? {
        Found::Version(version, max_ttl) if version == VERSION => max_ttl,
        Found::Version(version, _) if version > VERSION => return Err(newer(version)),
        Found::Version(found, _) => {
            return Err(StoreError::Schema {
                found: found.into(),
                known: VERSION.into(),
                advice: "run `tenure migrate` on this address, with every worker's program updated",
            });
        }
        Found::Other => return Err(StoreError::Foreign(place.to_string())),
        Found::Nothing { .. } if !place.create => return Err(StoreError::Missing(place.to_string())),
        Found::Nothing { .. } => {
            apply(client, place).await?;
            match found(client, place).await? {
                Found::Version(_, max_ttl) => max_ttl,
                Found::Nothing { .. } | Found::Other => return Err(StoreError::Missing(place.to_string())),
            }
        }
    };
    match place.max_ttl {
        Some(asked) if max_ttl.is_some_and(|kept| kept != nanos_of(asked.get())) => {
            let kept = Duration::from_nanos(max_ttl.unwrap_or_default().cast_unsigned());
            Err(place.wrong(format!("the store's max_ttl is {kept:?}, which is fixed: leave max_ttl out")))
        }
        _ => Ok(()),
    }
}

fn newer(version: i32) -> StoreError {
    StoreError::Schema { found: version.into(), known: VERSION.into(), advice: "update this program" }
}

/// What is in the place of the schema.
enum Found {
    /// A store of this version, with its longest ttl.
    Version(i32, Option<i64>),
    /// Nothing, and whether at least the schema is there.
    Nothing { is_made: bool },
    /// Something else.
    Other,
}

/// The tables of a sink (`sink_…`) may stand in the same schema, and are nobody else's.
async fn found(client: &Client, place: &Place) -> Result<Found, StoreError> {
    let failed = |error: tokio_postgres::Error| fault(place, &error).into_error();
    let sql = "SELECT n.oid IS NOT NULL, n.oid IS NOT NULL AND has_schema_privilege(n.oid, 'USAGE'), \
               (SELECT count(*) FROM pg_class c WHERE c.relnamespace = n.oid AND c.relname NOT LIKE 'sink\\_%'), \
               (SELECT count(*) FROM pg_class c WHERE c.relnamespace = n.oid AND c.relname IN ('migration', 'meta')), \
               current_setting('server_encoding'), current_setting('server_version_num')::int \
               FROM (SELECT 1) one LEFT JOIN pg_namespace n ON n.nspname = $1";
    let row = client.query_typed(sql, &[(&place.schema, Type::TEXT)]).await.map_err(failed)?;
    let row = row.first().ok_or_else(|| StoreError::Unavailable("an empty answer".to_owned()))?;
    let (is_made, may_use): (bool, bool) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
    let (tables, ours): (i64, i64) = (row.try_get(2).map_err(failed)?, row.try_get(3).map_err(failed)?);
    let (encoding, version): (&str, i32) = (row.try_get(4).map_err(failed)?, row.try_get(5).map_err(failed)?);
    if encoding != "UTF8" {
        return Err(place.wrong(format!("its encoding is {encoding}: take a database with the encoding UTF8")));
    }
    if version < 130_000 {
        return Err(place.wrong(format!("the server is PostgreSQL {}: take 13 or newer", version / 10_000)));
    }
    if is_made && !may_use {
        let user = place.user();
        return Err(StoreError::NotWritable(format!("{user} may not use {place}; {}", grants(place))));
    }
    match ours {
        2 => {}
        _ if tables == 0 => return Ok(Found::Nothing { is_made }),
        _ => return Ok(Found::Other),
    }
    let sql =
        format!("SELECT (SELECT max(number) FROM {0}.migration), (SELECT max_ttl_ns FROM {0}.meta)", place.schema);
    let rows = match client.query_typed(&sql, &[]).await {
        Ok(rows) => rows,
        // Tables of these names, but others.
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_COLUMN) => return Ok(Found::Other),
        Err(error) => return Err(failed(error)),
    };
    let row = rows.first().ok_or_else(|| StoreError::Unavailable("an empty answer".to_owned()))?;
    let version: Option<i32> = row.try_get(0).map_err(|_| StoreError::Foreign(place.to_string()))?;
    Ok(Found::Version(version.unwrap_or(0), row.try_get(1).map_err(|_| StoreError::Foreign(place.to_string()))?))
}

/// Applies what is missing, in one transaction; others who do the same wait, and then find it done.
async fn apply(client: &mut Client, place: &Place) -> Result<(), StoreError> {
    let failed = |error: tokio_postgres::Error| match fault(place, &error) {
        // Others who made it at the same moment are no trouble, but whoever holds the lock for long is.
        Fault::Held | Fault::Busy => StoreError::Unavailable(format!("another session is making or changing {place}")),
        fault => not_made(place, fault.into_error()),
    };
    let transaction = client.transaction().await.map_err(failed)?;
    let lock = "SELECT set_config('lock_timeout', '10s', true), pg_advisory_xact_lock(1415933554, hashtext($1))";
    transaction.query_typed(lock, &[(&place.schema, Type::TEXT)]).await.map_err(failed)?;
    // Looked at anew, under the lock.
    let version = match found(transaction.client(), place).await? {
        Found::Version(version, _) => version,
        Found::Nothing { is_made } => {
            if !is_made {
                transaction.batch_execute(&format!("CREATE SCHEMA {}", place.schema)).await.map_err(failed)?;
            }
            0
        }
        Found::Other => return Err(StoreError::Foreign(place.to_string())),
    };
    let migrations = migrations(&place.schema);
    for migration in migrations.iter().filter(|migration| migration.number > version) {
        step(&transaction, place, migration).await.map_err(failed)?;
    }
    if version == 0 {
        let max_ttl = place.max_ttl.map_or(MAX_TTL, Ttl::get);
        let sql =
            format!("INSERT INTO {0}.meta VALUES (true, {0}.identity(), 1, NULL, $1, NULL, 1, 0, 0)", place.schema);
        transaction.query_typed(&sql, &[(&nanos_of(max_ttl), Type::INT8)]).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}

async fn step(
    transaction: &Transaction<'_>,
    place: &Place,
    migration: &Migration,
) -> Result<(), tokio_postgres::Error> {
    transaction.batch_execute(&migration.sql).await?;
    let sql = format!("INSERT INTO {}.migration (number, name) VALUES ($1, $2)", place.schema);
    let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
        [(&migration.number, Type::INT4), (&migration.name, Type::TEXT)];
    transaction.query_typed(&sql, &parameters).await?;
    Ok(())
}

/// Making needs other rights than using.
fn not_made(place: &Place, error: StoreError) -> StoreError {
    let StoreError::NotWritable(why) = error else { return error };
    let (schema, user, database) = (&place.schema, place.user(), place.database());
    let why = why.split(';').next().unwrap_or_default();
    StoreError::NotWritable(format!(
        "{why}; GRANT CREATE ON DATABASE {database} TO {user}, or CREATE SCHEMA {schema} AUTHORIZATION {user}, or let the \
         database's owner run `tenure migrate` with create=true, and then {}",
        grants(place)
    ))
}
