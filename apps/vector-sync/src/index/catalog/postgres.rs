//! The records of all tenants in one schema of a PostgreSQL database: each rule about them, once.
//!
//! Statements are unnamed and name no schema: they find it by the transaction's own `search_path`, behind a pooler too.

use super::{Built, Stood, begun_before, bytes, never_stood, not_begun, numbers, other_manifest, text};
use crate::index::postgres::{Place, Stop};
use crate::index::{Generation, Live, Moved, Round, State, Switch, Switched, Why, WriteError};
use crate::manifest::{Making, Manifest, Sum};
use crate::tenant::Tenant;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use tenure::Token;
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Client, Row};

/// The version of the tables, kept in `index_version`.
pub(in crate::index) const VERSION: i32 = 1;

/// Makes the tables.
pub(in crate::index) const CREATE: &str = "
CREATE TABLE generation (
    id       bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    tenant   text   NOT NULL,
    epoch    bigint NOT NULL CHECK (epoch > 0),
    grant_id text   NOT NULL,
    state    text   NOT NULL CHECK (state IN ('building', 'published', 'condemned')),
    making   text   NOT NULL,
    manifest text,
    chunks   bigint NOT NULL,
    begun_ms bigint NOT NULL,
    PRIMARY KEY (tenant, epoch)
);
CREATE TABLE alias (
    tenant   text   PRIMARY KEY,
    version  bigint NOT NULL CHECK (version > 0),
    epoch    bigint NOT NULL,
    since_ms bigint NOT NULL,
    rejected text
);
CREATE TABLE moved (
    tenant     text   NOT NULL,
    version    bigint NOT NULL CHECK (version > 0),
    from_epoch bigint,
    to_epoch   bigint NOT NULL,
    by_epoch   bigint NOT NULL,
    why        text   NOT NULL CHECK (why IN ('sync', 'rollback')),
    operation  text   NOT NULL,
    at_ms      bigint NOT NULL,
    PRIMARY KEY (tenant, version),
    UNIQUE (tenant, operation)
);
CREATE TABLE embedding (
    tenant text   NOT NULL,
    key    bytea  NOT NULL CHECK (length(key) = 32),
    used   bigint NOT NULL,
    vector bytea  NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE TABLE round (
    tenant      text   NOT NULL,
    epoch       bigint NOT NULL,
    recorded_by bigint NOT NULL,
    outcome     text   NOT NULL,
    version     bigint,
    note        text   NOT NULL,
    at_ms       bigint NOT NULL,
    PRIMARY KEY (tenant, epoch)
);
CREATE TABLE index_version (
    version int  PRIMARY KEY,
    mark    text NOT NULL DEFAULT substr(replace(gen_random_uuid()::text, '-', ''), 1, 16)
);
";

/// This moment by the server's clock.
const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// What [`Records::built`] reads.
const BUILT: &str = "g.making, g.grant_id, (SELECT mark FROM index_version), g.id";

/// What happens to one tenant's records in one transaction.
#[derive(Clone, Copy)]
pub(in crate::index) struct Records<'t> {
    pub(in crate::index) client: &'t Client,
    pub(in crate::index) tenant: &'t Tenant,
    pub(in crate::index) place: &'t Place,
}

/// A parameter with its type.
pub(in crate::index) type Parameter<'p> = (&'p (dyn ToSql + Sync), Type);

impl Records<'_> {
    /// The version that is live.
    pub(in crate::index) async fn live(&self) -> Result<Option<Live>, Stop> {
        let sql = "SELECT a.version, a.epoch, g.manifest, a.since_ms, a.rejected,
                          EXISTS (SELECT FROM round AS r WHERE r.tenant = a.tenant AND r.epoch = m.by_epoch)
                   FROM alias AS a JOIN generation AS g ON g.tenant = a.tenant AND g.epoch = a.epoch
                        JOIN moved AS m ON m.tenant = a.tenant AND m.version = a.version
                   WHERE a.tenant = $1";
        let Some(row) = self.one(sql, &[]).await? else { return Ok(None) };
        Ok(Some(Live {
            version: self.number(&row, 0)?,
            epoch: self.number(&row, 1)?,
            manifest: self.json(&row, 2)?,
            since_ms: row.try_get(3)?,
            rejected: self.maybe_json(&row, 4)?,
            recorded: row.try_get(5)?,
        }))
    }

    /// The version that is live, and where it is.
    pub(in crate::index) async fn stood(&self) -> Result<Option<Stood>, Stop> {
        let sql = format!(
            "SELECT {BUILT}, a.version, a.epoch
             FROM alias AS a JOIN generation AS g ON g.tenant = a.tenant AND g.epoch = a.epoch WHERE a.tenant = $1"
        );
        let Some(row) = self.one(&sql, &[]).await? else { return Ok(None) };
        let (version, epoch) = (self.number(&row, 4)?, self.number(&row, 5)?);
        Ok(Some(Stood { version, epoch, built: self.built(&row)? }))
    }

    /// A generation, unless it is condemned.
    pub(in crate::index) async fn readable(&self, epoch: u64) -> Result<Option<Built>, Stop> {
        let sql = format!(
            "SELECT {BUILT} FROM generation AS g WHERE g.tenant = $1 AND g.epoch = $2 AND g.state <> 'condemned'"
        );
        self.one(&sql, &[(&signed(epoch), Type::INT8)]).await?.map(|row| self.built(&row)).transpose()
    }

    /// What tells these records from all others.
    pub(in crate::index) async fn mark(&self) -> Result<String, Stop> {
        let row = self.client.query_typed_one("SELECT mark FROM index_version", &[]).await?;
        Ok(row.try_get(0)?)
    }

    fn built(&self, row: &Row) -> Result<Built, Stop> {
        let making = self.json(row, 0)?;
        Ok(Built { making, grant: row.try_get(1)?, mark: row.try_get(2)?, here: row.try_get(3)? })
    }

    /// All generations, the oldest first.
    pub(in crate::index) async fn generations(&self) -> Result<Vec<Generation>, Stop> {
        let sql = "SELECT epoch, state, chunks, begun_ms FROM generation WHERE tenant = $1 ORDER BY epoch";
        let read = |row: &Row| {
            let state: String = row.try_get(1)?;
            let state = State::named(&state).ok_or_else(|| self.place.odd(&format!("{state:?} is no state")))?;
            let (epoch, chunks) = (self.number(row, 0)?, self.number(row, 2)?);
            Ok(Generation { epoch, state, chunks, begun_ms: row.try_get(3)? })
        };
        self.all(sql, &[]).await?.iter().map(read).collect()
    }

    /// The audit trail, the oldest first.
    pub(in crate::index) async fn switches(&self) -> Result<Vec<Moved>, Stop> {
        let sql =
            "SELECT version, from_epoch, to_epoch, by_epoch, why, at_ms FROM moved WHERE tenant = $1 ORDER BY version";
        let read = |row: &Row| {
            let why: String = row.try_get(4)?;
            Ok(Moved {
                version: self.number(row, 0)?,
                from: self.maybe_number(row, 1)?,
                to: self.number(row, 2)?,
                by: self.number(row, 3)?,
                why: Why::named(&why).ok_or_else(|| self.place.odd(&format!("{why:?} is no reason")))?,
                at_ms: row.try_get(5)?,
            })
        };
        self.all(sql, &[]).await?.iter().map(read).collect()
    }

    /// The rounds, the newest first.
    pub(in crate::index) async fn rounds(&self, limit: usize) -> Result<Vec<Round>, Stop> {
        let sql = "SELECT epoch, recorded_by, outcome, version, note, at_ms FROM round WHERE tenant = $1
                   ORDER BY epoch DESC LIMIT $2";
        let read = |row: &Row| {
            Ok(Round {
                epoch: self.number(row, 0)?,
                recorded_by: self.number(row, 1)?,
                outcome: row.try_get(2)?,
                version: self.maybe_number(row, 3)?,
                note: row.try_get(4)?,
                at_ms: row.try_get(5)?,
            })
        };
        self.all(sql, &[(&counted(limit), Type::INT8)]).await?.iter().map(read).collect()
    }

    /// Begins the generation of the token's epoch, or begins it anew while it is being built.
    pub(in crate::index) async fn begin(&self, token: &Token, making: &Making) -> Result<Built, Stop> {
        let (epoch, grant, making) = (token.epoch.as_i64(), token.grant.to_string(), text(&self.place.name, making)?);
        let find = "SELECT grant_id, state FROM generation WHERE tenant = $1 AND epoch = $2";
        match self.one(find, &[(&epoch, Type::INT8)]).await? {
            None => {
                let sql = format!(
                    "INSERT INTO generation (tenant, epoch, grant_id, state, making, chunks, begun_ms)
                     VALUES ($1, $2, $3, 'building', $4, 0, {NOW})"
                );
                self.run(&sql, &[(&epoch, Type::INT8), (&grant, Type::TEXT), (&making, Type::TEXT)]).await?;
            }
            Some(row) => {
                let (by, state): (String, String) = (row.try_get(0)?, row.try_get(1)?);
                if by != grant || state != State::Building.name() {
                    return Err(begun_before(&self.place.name, token, &state).into());
                }
                let sql = "UPDATE generation SET making = $3, chunks = 0 WHERE tenant = $1 AND epoch = $2";
                self.run(sql, &[(&epoch, Type::INT8), (&making, Type::TEXT)]).await?;
            }
        }
        self.building(token).await
    }

    /// The generation that this token is building.
    pub(in crate::index) async fn building(&self, token: &Token) -> Result<Built, Stop> {
        let sql = format!(
            "SELECT {BUILT} FROM generation AS g
             WHERE g.tenant = $1 AND g.epoch = $2 AND g.grant_id = $3 AND g.state = 'building'"
        );
        let (epoch, grant) = (token.epoch.as_i64(), token.grant.to_string());
        let row = self.one(&sql, &[(&epoch, Type::INT8), (&grant, Type::TEXT)]).await?;
        self.built(&row.ok_or_else(|| not_begun(&self.place.name, token))?)
    }

    /// Says how many chunks the generation of an epoch has.
    pub(in crate::index) async fn count(&self, token: &Token, chunks: u64) -> Result<(), Stop> {
        let sql = "UPDATE generation SET chunks = $3 WHERE tenant = $1 AND epoch = $2";
        self.run(sql, &[(&token.epoch.as_i64(), Type::INT8), (&signed(chunks), Type::INT8)]).await
    }

    /// Says that more chunks were written into the generation of an epoch, whose vectors have these keys.
    pub(in crate::index) async fn written(&self, token: &Token, more: u64, keys: &[Sum]) -> Result<(), Stop> {
        let epoch = token.epoch.as_i64();
        let sql = "UPDATE generation SET chunks = chunks + $3 WHERE tenant = $1 AND epoch = $2";
        self.run(sql, &[(&epoch, Type::INT8), (&signed(more), Type::INT8)]).await?;
        // In one order, so that two who mark the same rows cannot wait for each other.
        let sql = "UPDATE embedding AS e SET used = $2
                   FROM (SELECT key FROM embedding WHERE tenant = $1 AND key = ANY ($3) AND used < $2
                         ORDER BY key FOR UPDATE) AS k
                   WHERE e.tenant = $1 AND e.key = k.key";
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key.0[..]).collect();
        self.run(sql, &[(&epoch, Type::INT8), (&keys, Type::BYTEA_ARRAY)]).await
    }

    /// The vectors that are kept under these keys.
    pub(in crate::index) async fn known(&self, keys: &[Sum]) -> Result<Vec<Option<Vec<f32>>>, Stop> {
        let asked: Vec<&[u8]> = keys.iter().map(|key| &key.0[..]).collect();
        let sql = "SELECT key, vector FROM embedding WHERE tenant = $1 AND key = ANY ($2)";
        let rows = self.all(sql, &[(&asked, Type::BYTEA_ARRAY)]).await?;
        let mut found: HashMap<&[u8], Vec<f32>> = HashMap::with_capacity(rows.len());
        for row in &rows {
            let vector = numbers(row.try_get(1)?).ok_or_else(|| self.place.odd("a kept vector was cut off"))?;
            found.insert(row.try_get(0)?, vector);
        }
        // The same key may be asked for twice.
        Ok(keys.iter().map(|key| found.get(&key.0[..]).cloned()).collect())
    }

    /// Keeps vectors that are not kept yet.
    pub(in crate::index) async fn keep(&self, epoch: u64, vectors: &[(Sum, Vec<f32>)]) -> Result<(), Stop> {
        let sql = "INSERT INTO embedding (tenant, key, used, vector)
                   SELECT DISTINCT ON (k) $1, k, $2, v FROM unnest($3::bytea[], $4::bytea[]) AS new(k, v) ORDER BY k
                   ON CONFLICT (tenant, key) DO UPDATE SET used = excluded.used WHERE embedding.used < excluded.used";
        let keys: Vec<&[u8]> = vectors.iter().map(|(key, _)| &key.0[..]).collect();
        let vectors: Vec<Vec<u8>> = vectors.iter().map(|(_, vector)| bytes(vector)).collect();
        let parameters: [Parameter<'_>; 3] =
            [(&signed(epoch), Type::INT8), (&keys, Type::BYTEA_ARRAY), (&vectors, Type::BYTEA_ARRAY)];
        self.run(sql, &parameters).await
    }

    /// Moves the alias, if it may: nothing was changed when the answer is not [`Switched::To`].
    pub(in crate::index) async fn switch(&self, token: &Token, switch: &Switch) -> Result<Switched, Stop> {
        let find = "SELECT a.version, a.epoch, g.making
                    FROM alias AS a JOIN generation AS g ON g.tenant = a.tenant AND g.epoch = a.epoch WHERE a.tenant = $1";
        let before = self.one(find, &[]).await?;
        let live = before.as_ref().map_or(Ok(0), |row| self.number(row, 0))?;
        if live != switch.from {
            return Ok(Switched::NotFrom { live });
        }
        let to = signed(switch.to);
        let find = "SELECT manifest FROM generation WHERE tenant = $1 AND epoch = $2 AND state <> 'condemned'";
        let Some(row) = self.one(find, &[(&to, Type::INT8)]).await? else { return Ok(Switched::Gone) };
        let stands: Option<Manifest> = self.maybe_json(&row, 0)?;
        if stands.is_some() && switch.manifest.is_some() && stands != switch.manifest {
            return Err(other_manifest(&self.place.name, switch.to).into());
        }
        let Some(manifest) = stands.as_ref().or(switch.manifest.as_ref()) else { return Ok(Switched::Gone) };
        let manifest = text(&self.place.name, manifest)?;
        let publish = "UPDATE generation SET state = 'published', manifest = $3 WHERE tenant = $1 AND epoch = $2";
        self.run(publish, &[(&to, Type::INT8), (&manifest, Type::TEXT)]).await?;
        let from: Option<i64> = before.as_ref().map(|row| row.try_get(1)).transpose()?;
        let left = before.as_ref().filter(|_| switch.why == Why::Rollback);
        let rejected: Option<String> = left.map(|row| row.try_get(2)).transpose()?;
        let version = live + 1;
        let lead = format!(
            "INSERT INTO alias (tenant, version, epoch, since_ms, rejected) VALUES ($1, $2, $3, {NOW}, $4)
             ON CONFLICT (tenant) DO UPDATE SET version = excluded.version, epoch = excluded.epoch,
                 since_ms = excluded.since_ms, rejected = excluded.rejected"
        );
        let parameters: [Parameter<'_>; 3] =
            [(&signed(version), Type::INT8), (&to, Type::INT8), (&rejected, Type::TEXT)];
        self.run(&lead, &parameters).await?;
        let note = "INSERT INTO moved (tenant, version, from_epoch, to_epoch, by_epoch, why, operation, at_ms)
                    SELECT tenant, version, $2, epoch, $3, $4, $5, since_ms FROM alias WHERE tenant = $1";
        let (by, why, operation) = (token.epoch.as_i64(), switch.why.name(), switch.operation.as_str());
        let parameters: [Parameter<'_>; 4] =
            [(&from, Type::INT8), (&by, Type::INT8), (&why, Type::TEXT), (&operation, Type::TEXT)];
        self.run(note, &parameters).await?;
        Ok(Switched::To(version))
    }

    /// Records how a round ended, unless that is recorded already.
    pub(in crate::index) async fn record(&self, round: &Round) -> Result<(), Stop> {
        let version = round.version.map(signed);
        let stands = "SELECT 1 FROM moved WHERE tenant = $1 AND version = $2";
        if let Some(number) = round.version
            && self.one(stands, &[(&version, Type::INT8)]).await?.is_none()
        {
            return Err(never_stood(&self.place.name, number).into());
        }
        let sql = format!(
            "INSERT INTO round (tenant, epoch, recorded_by, outcome, version, note, at_ms)
             VALUES ($1, $2, $3, $4, $5, $6, {NOW}) ON CONFLICT (tenant, epoch) DO NOTHING"
        );
        let parameters: [Parameter<'_>; 5] = [
            (&signed(round.epoch), Type::INT8),
            (&signed(round.recorded_by), Type::INT8),
            (&round.outcome, Type::TEXT),
            (&version, Type::INT8),
            (&round.note, Type::TEXT),
        ];
        self.run(&sql, &parameters).await
    }

    /// Condemns what nobody needs any more, and returns what is condemned.
    pub(in crate::index) async fn condemn(&self, token: &Token, keep: usize) -> Result<Vec<u64>, Stop> {
        let sql = "UPDATE generation SET state = 'condemned'
                   WHERE tenant = $1 AND epoch < $2 AND state <> 'condemned'
                     AND epoch NOT IN (SELECT epoch FROM alias WHERE tenant = $1)
                     AND epoch NOT IN (
                         SELECT m.to_epoch FROM moved AS m JOIN generation AS g USING (tenant)
                         WHERE m.tenant = $1 AND g.epoch = m.to_epoch AND g.state = 'published'
                           AND m.to_epoch NOT IN (SELECT epoch FROM alias WHERE tenant = $1)
                         GROUP BY m.to_epoch ORDER BY max(m.version) DESC LIMIT $3)";
        self.run(sql, &[(&token.epoch.as_i64(), Type::INT8), (&counted(keep), Type::INT8)]).await?;
        // Before the first version nothing is dropped: a round that was lost has paid for what it kept.
        let drop = "DELETE FROM embedding WHERE tenant = $1
                    AND used < (SELECT min(epoch) FROM generation WHERE tenant = $1 AND state = 'published')";
        self.run(drop, &[]).await?;
        let sql = "SELECT epoch FROM generation WHERE tenant = $1 AND state = 'condemned' ORDER BY epoch";
        self.all(sql, &[]).await?.iter().map(|row| self.number(row, 0)).collect()
    }

    /// A generation that may be removed; `None` when it is gone already.
    pub(in crate::index) async fn removable(&self, epoch: u64) -> Result<Option<Built>, Stop> {
        let sql = format!("SELECT {BUILT}, g.state FROM generation AS g WHERE g.tenant = $1 AND g.epoch = $2");
        let Some(row) = self.one(&sql, &[(&signed(epoch), Type::INT8)]).await? else { return Ok(None) };
        if row.try_get::<_, &str>(4)? != State::Condemned.name() {
            return Err(WriteError::NotCondemned(epoch).into());
        }
        self.built(&row).map(Some)
    }

    /// Forgets a generation.
    pub(in crate::index) async fn forget(&self, epoch: u64) -> Result<(), Stop> {
        self.run("DELETE FROM generation WHERE tenant = $1 AND epoch = $2", &[(&signed(epoch), Type::INT8)]).await
    }

    async fn all(&self, sql: &str, more: &[Parameter<'_>]) -> Result<Vec<Row>, Stop> {
        Ok(self.client.query_typed(sql, &self.parameters(&self.tenant.as_str(), more)).await?)
    }

    async fn one(&self, sql: &str, more: &[Parameter<'_>]) -> Result<Option<Row>, Stop> {
        Ok(self.all(sql, more).await?.into_iter().next())
    }

    async fn run(&self, sql: &str, more: &[Parameter<'_>]) -> Result<(), Stop> {
        self.client.execute_typed(sql, &self.parameters(&self.tenant.as_str(), more)).await?;
        Ok(())
    }

    /// The first one of each statement is the tenant.
    fn parameters<'p>(&self, tenant: &'p &str, more: &[Parameter<'p>]) -> Vec<Parameter<'p>> {
        let first: Parameter<'p> = (tenant, Type::TEXT);
        std::iter::once(first).chain(more.iter().map(|(value, kind)| (*value, kind.clone()))).collect()
    }

    fn number(&self, row: &Row, column: usize) -> Result<u64, Stop> {
        let found: i64 = row.try_get(column)?;
        u64::try_from(found).map_err(|_| self.place.odd(&format!("{found} is below zero")))
    }

    fn maybe_number(&self, row: &Row, column: usize) -> Result<Option<u64>, Stop> {
        let found: Option<i64> = row.try_get(column)?;
        found.map(|_| self.number(row, column)).transpose()
    }

    fn json<T: DeserializeOwned>(&self, row: &Row, column: usize) -> Result<T, Stop> {
        serde_json::from_str(get(row, column)?).map_err(|error| self.place.odd(&error.to_string()))
    }

    fn maybe_json<T: DeserializeOwned>(&self, row: &Row, column: usize) -> Result<Option<T>, Stop> {
        let found: Option<&str> = get(row, column)?;
        found.map(|_| self.json(row, column)).transpose()
    }
}

fn get<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<T, Stop> {
    Ok(row.try_get(column)?)
}

/// Epochs and versions fit: both count from 1, one at a time.
pub(in crate::index) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(in crate::index) fn counted(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
