//! An index in PostgreSQL, with pgvector: one schema for all tenants, with a table for the vectors of each generation.
//!
//! # What is not guaranteed
//!
//! * **A call that was given up may still run on the server**, at most until the server's own bounds end it. Its transaction stands or
//!   falls as a whole.
//! * A search of more than 20,000 vectors is approximate: it goes through an index that may miss a few of the nearest. Up
//!   there it looks at every vector.
//! * A volume that was put back is the same database as before: call the sink's `reopen` after a restore.

mod database;
mod place;
mod records;
mod stop;
mod vectors;

pub(in crate::index) use database::Database;
pub(in crate::index) use place::Place;
pub(in crate::index) use stop::Stop;

use super::catalog::{Built, Catalog, Stood, fits, no_generation};
use super::{
    Answer, Entry, Generation, Hit, Index, IndexError, Inspection, Live, Moved, Round, Switch, Switched, WriteError,
};
use crate::manifest::{Making, Sum};
use crate::tenant::Tenant;
use async_trait::async_trait;
use std::sync::Arc;
use tenure::sink::Sink;
use tenure::{OperationId, Token};

/// How often a search begins anew because the version that it found was removed meanwhile.
const TRIES: usize = 5;

/// An index in a PostgreSQL database. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PostgresIndex(Database);

impl PostgresIndex {
    /// The index at an address, `postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=vector_sync`. Nobody is asked yet.
    ///
    /// # Errors
    /// [`IndexError::Address`], or what the fence says of it, when it makes no sense.
    pub fn new(url: &str) -> Result<Self, IndexError> {
        Database::new(url, true).map(Self)
    }
}

#[async_trait]
impl Index for PostgresIndex {
    fn place(&self) -> &str {
        Catalog::place(&self.0)
    }

    async fn sink(&self, tenant: &Tenant) -> Result<Arc<dyn Sink>, IndexError> {
        self.0.sink(tenant).await
    }

    async fn tenants(&self) -> Result<Vec<Tenant>, IndexError> {
        self.0.tenants().await
    }

    async fn live(&self, tenant: &Tenant) -> Result<Option<Live>, IndexError> {
        self.0.live(tenant).await
    }

    async fn generations(&self, tenant: &Tenant) -> Result<Vec<Generation>, IndexError> {
        self.0.generations(tenant).await
    }

    async fn switches(&self, tenant: &Tenant) -> Result<Vec<Moved>, IndexError> {
        self.0.switches(tenant).await
    }

    async fn rounds(&self, tenant: &Tenant, limit: usize) -> Result<Vec<Round>, IndexError> {
        self.0.rounds(tenant, limit).await
    }

    async fn begin(&self, tenant: &Tenant, token: &Token, making: &Making) -> Result<(), WriteError> {
        self.0
            .change(tenant, token, "beginning a generation", async |records| {
                let here = records.begin(token, making).await?.here;
                vectors::create(&records, here, making.dimensions).await
            })
            .await
    }

    async fn known(&self, tenant: &Tenant, keys: &[Sum]) -> Result<Vec<Option<Vec<f32>>>, IndexError> {
        self.0.known(tenant, keys).await
    }

    async fn keep(&self, tenant: &Tenant, epoch: u64, vectors: &[(Sum, Vec<f32>)]) -> Result<(), IndexError> {
        self.0.keep(tenant, epoch, vectors).await
    }

    async fn write(&self, tenant: &Tenant, token: &Token, entries: &[Entry]) -> Result<(), WriteError> {
        let keys: Vec<Sum> = entries.iter().map(|entry| entry.key).collect();
        self.0
            .change(tenant, token, "writing into a generation", async |records| {
                let Built { making, here, .. } = records.building(token).await?;
                let new = vectors::write(&records, (here, token.epoch.get()), making.dimensions, entries).await?;
                records.written(token, new, &keys).await
            })
            .await
    }

    async fn inspect(&self, tenant: &Tenant, token: &Token) -> Result<Inspection, WriteError> {
        let read = self.0.change(tenant, token, "reading a generation back", async |records| {
            let Built { making, here, .. } = records.building(token).await?;
            Ok((making, here, vectors::inspect(&records, (here, token.epoch.get())).await?))
        });
        let (making, here, inspection) = read.await?;
        if vectors::wants_index(inspection.chunks, making.dimensions) {
            self.0.make_index(tenant, here).await?;
        }
        Ok(inspection)
    }

    async fn nearest(&self, tenant: &Tenant, epoch: u64, vector: &[f32], limit: usize) -> Result<Vec<Hit>, IndexError> {
        let found = self.0.read(tenant, "searching a generation", async |records| {
            let built = records.readable(epoch).await?.ok_or_else(|| no_generation(self.place(), epoch))?;
            fits(self.place(), built.making.dimensions, vector)?;
            vectors::nearest(&records, built.here, vector, limit).await
        });
        found.await?.ok_or_else(|| no_generation(self.place(), epoch))
    }

    async fn switch(&self, tenant: &Tenant, token: &Token, switch: &Switch) -> Result<Switched, WriteError> {
        self.0.switch(tenant, token, switch).await
    }

    async fn switched(
        &self,
        tenant: &Tenant,
        token: &Token,
        operation: &OperationId,
    ) -> Result<Option<u64>, WriteError> {
        self.0.switched(tenant, token, operation).await
    }

    async fn record(&self, tenant: &Tenant, token: &Token, round: &Round) -> Result<(), WriteError> {
        self.0.record(tenant, token, round).await
    }

    async fn condemn(&self, tenant: &Tenant, token: &Token, keep: usize) -> Result<Vec<u64>, WriteError> {
        self.0.condemn(tenant, token, keep).await
    }

    async fn remove(&self, tenant: &Tenant, token: &Token, epoch: u64) -> Result<(), WriteError> {
        self.0
            .change(tenant, token, "removing a generation", async |records| {
                if let Some(Built { here, .. }) = records.removable(epoch).await? {
                    vectors::drop_all(&records, here).await?;
                    records.forget(epoch).await?;
                }
                Ok(())
            })
            .await
    }

    async fn search(&self, tenant: &Tenant, vector: &[f32], limit: usize) -> Result<Answer, IndexError> {
        let empty = || IndexError::Empty { place: self.place().to_owned(), tenant: tenant.clone() };
        for _ in 0..TRIES {
            let found = self.0.read(tenant, "searching", async |records| {
                let Some(Stood { version, epoch, built }) = records.stood().await? else { return Ok(None) };
                fits(self.place(), built.making.dimensions, vector)?;
                let answer = match vectors::nearest(&records, built.here, vector, limit).await {
                    Ok(hits) => Some(Answer { version, epoch, hits }),
                    // Its table was dropped after this moment's alias was read, and is not part of any moment.
                    Err(stop) if stop.is_missing() => None,
                    Err(stop) => return Err(stop),
                };
                Ok(Some(answer))
            });
            match found.await?.flatten() {
                Some(Some(answer)) => return Ok(answer),
                Some(None) => {}
                None => return Err(empty()),
            }
        }
        let why = format!("{TRIES} times the version that was live was removed before it was searched");
        Err(IndexError::Unreachable { place: self.place().to_owned(), why })
    }
}
