//! The tables and functions: which version is there, and how they come to be.

use super::failure::{chained, failed};
use super::link::Link;
use super::place::{Place, bad_schema, is_plain_name};
use crate::SinkError;
use tenure_core::fence::Rule;
use tokio_postgres::types::Type;

/// A step from one version of the sink's tables to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The version that it leads to.
    pub number: i32,
    /// What it does.
    pub name: &'static str,
    /// The statements, without those that make the schema itself.
    pub sql: String,
}

/// The version that this program knows.
pub(super) const VERSION: i32 = 1;

/// Settings of functions that run with each write. Their plans must not depend on what the tables held when they were made:
/// every access is by the key. Under SERIALIZABLE, one that reads a whole table would also fail because of its neighbours.
const PLANNING: &str = "SET search_path = pg_catalog, pg_temp SET plan_cache_mode = 'force_generic_plan' \
                        SET enable_seqscan = 'off' SET enable_bitmapscan = 'off'";

/// What `admit` looks at as well under the rule `held`: what `sink_against` says nothing against. In one statement with the fence,
/// whose lock was taken by the one before.
const HELD: &str = "
        AND EXISTS (SELECT FROM {schema}.held v WHERE v.resource OPERATOR(pg_catalog.=) seen AND v.version OPERATOR(pg_catalog.=) 1
            AND v.epoch OPERATOR(pg_catalog.=) admit.epoch AND v.grant_id OPERATOR(pg_catalog.=) admit.grant_id
            AND v.ending IS NULL AND v.now_ns OPERATOR(pg_catalog.<) v.deadline_ns)";

/// All steps from nothing to the version that this program knows, for a schema of this name: what `create=true` runs, for
/// those who want to read it or run it themselves.
///
/// # Errors
/// [`SinkError::Address`] when the schema's name would need quotes.
pub fn migrations(schema: &str, rule: Rule) -> Result<Vec<Migration>, SinkError> {
    if !is_plain_name(schema) {
        return Err(SinkError::Address { url: schema.to_owned(), why: bad_schema(schema) });
    }
    let held = if rule == Rule::Held { HELD } else { "" };
    let text = include_str!("first.sql").replace("{planning}", PLANNING).replace("{held}", held);
    let sql = text.replace("{schema}", schema).replace("{rule}", rule.name());
    Ok(vec![Migration { number: 1, name: "tables and functions", sql }])
}

/// The whole of it as one script, in one transaction: what `tenure sql postgres` prints.
///
/// # Errors
/// As [`migrations`].
pub fn script(schema: &str, rule: Rule) -> Result<String, SinkError> {
    let mut text = format!("BEGIN;\nCREATE SCHEMA IF NOT EXISTS {schema};\n\n");
    for migration in migrations(schema, rule)? {
        text.push_str(&migration.sql);
        text.push_str(&record(schema, &migration));
        text.push('\n');
    }
    text.push_str("COMMIT;\n");
    Ok(text)
}

fn record(schema: &str, migration: &Migration) -> String {
    let Migration { number, name, .. } = migration;
    format!("INSERT INTO {schema}.sink_migration (number, name) VALUES ({number}, '{name}');\n")
}

/// Looks at what is there, and makes the sink if that was asked for.
pub(super) async fn settle(link: &Link, place: &Place) -> Result<(), SinkError> {
    match found(link, place).await? {
        Found::Sink => Ok(()),
        Found::Nothing if place.create => apply(link, place).await,
        Found::Nothing => Err(SinkError::Missing { place: place.to_string() }),
    }
}

/// What is in the place of the sink.
enum Found {
    /// A sink of this program's version, under the rule that was asked for.
    Sink,
    Nothing,
}

async fn found(link: &Link, place: &Place) -> Result<Found, SinkError> {
    let fail = |error: tokio_postgres::Error| failed(place, "looking at the sink", &error);
    let sql = "SELECT n.oid IS NOT NULL AND has_schema_privilege(n.oid, 'USAGE'), \
               n.oid IS NOT NULL, to_regclass($1 || '.sink_migration') IS NOT NULL, \
               current_setting('server_encoding'), current_setting('server_version_num')::int \
               FROM (SELECT 1) one LEFT JOIN pg_namespace n ON n.nspname = $1";
    let row = link.client.query_typed_one(sql, &[(&place.schema, Type::TEXT)]).await.map_err(fail)?;
    let (may_use, is_made, is_ours): (bool, bool, bool) =
        (row.try_get(0).map_err(fail)?, row.try_get(1).map_err(fail)?, row.try_get(2).map_err(fail)?);
    let (encoding, version): (&str, i32) = (row.try_get(3).map_err(fail)?, row.try_get(4).map_err(fail)?);
    if encoding != "UTF8" {
        return Err(place.wrong(format!("its encoding is {encoding}: take a database with the encoding UTF8")));
    }
    if version < 130_000 {
        return Err(place.wrong(format!("the server is PostgreSQL {}: take 13 or newer", version / 10_000)));
    }
    if is_made && !may_use {
        return Err(SinkError::NotWritable {
            place: place.to_string(),
            why: format!("{} may not use the schema; {}", place.user(), rights(place)),
        });
    }
    if !is_ours {
        return Ok(Found::Nothing);
    }
    let sql = format!("SELECT version, rule FROM {}.describe('')", place.schema);
    let row = link.client.query_typed_one(&sql, &[]).await.map_err(fail)?;
    let version: Option<i32> = row.try_get(0).map_err(fail)?;
    let (version, rule) = (version.unwrap_or_default(), row.try_get::<_, &str>(1).map_err(fail)?);
    if version != VERSION {
        return Err(SinkError::schema(&place.to_string(), version.into(), VERSION.into()));
    }
    SinkError::unless_rule(&place.to_string(), rule, place.rule)?;
    Ok(Found::Sink)
}

/// Makes what is missing, in one transaction; others who do the same wait, and then find it done.
async fn apply(link: &Link, place: &Place) -> Result<(), SinkError> {
    let fail = |error: tokio_postgres::Error| not_made(place, &error);
    let schema = &place.schema;
    let begin = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT set_config('lock_timeout', '10s', true), {}",
        lock(schema)
    );
    let done = async {
        link.client.batch_execute(&begin).await.map_err(fail)?;
        // Looked at anew, under the lock.
        if matches!(found(link, place).await?, Found::Sink) {
            return Ok(());
        }
        let made = "SELECT FROM pg_namespace WHERE nspname = $1";
        if link.client.query_typed(made, &[(schema, Type::TEXT)]).await.map_err(fail)?.is_empty() {
            link.client.batch_execute(&format!("CREATE SCHEMA {schema}")).await.map_err(fail)?;
        }
        for migration in migrations(schema, place.rule)? {
            link.client.batch_execute(&migration.sql).await.map_err(fail)?;
            link.client.batch_execute(&record(schema, &migration)).await.map_err(fail)?;
        }
        Ok(())
    };
    match done.await {
        Ok(()) => link.client.batch_execute("COMMIT").await.map_err(fail),
        Err(error) => {
            // A connection that is gone has rolled back.
            let _ = link.client.batch_execute("ROLLBACK").await;
            Err(error)
        }
    }
}

/// The same turn that an authority's migration takes, which may be made in the same schema at the same moment.
fn lock(schema: &str) -> String {
    format!("pg_advisory_xact_lock(1415933554, hashtext('{schema}'))")
}

/// What to type when a right to use the sink is missing.
pub(super) fn rights(place: &Place) -> String {
    let (schema, user) = (&place.schema, place.user());
    format!("let the sink's owner run: SELECT {schema}.allow('{user}', 'seal'), {schema}.allow('{user}', 'operate')")
}

/// Making needs other rights than using.
fn not_made(place: &Place, error: &tokio_postgres::Error) -> SinkError {
    if error.code() != Some(&tokio_postgres::error::SqlState::INSUFFICIENT_PRIVILEGE) {
        return failed(place, "creating the sink", error);
    }
    let (schema, user, database) = (&place.schema, place.user(), place.database());
    let why = format!(
        "{}; GRANT CREATE ON DATABASE {database} TO {user}, or let the database's owner run what `tenure sql postgres` \
         prints, and then SELECT {schema}.allow('{user}', 'seal')",
        chained(error)
    );
    SinkError::NotWritable { place: place.to_string(), why }
}

#[cfg(test)]
mod tests;
