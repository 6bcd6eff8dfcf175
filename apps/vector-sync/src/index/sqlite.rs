//! An index in SQLite: a folder with one file for each tenant, and everything of the tenant in it.
//!
//! # What is not guaranteed
//!
//! * **A process that is stopped inside its transaction holds its tenant's file.** Others wait for it, a bounded time, and are told
//!   so. Searches, and other tenants, wait for nobody.
//! * **A file that was copied back is the same file as before**: call the sink's `reopen` after a restore.
//! * A search looks at every vector: its time grows with them, 12 ms for 20,000 of 384 numbers.

mod files;
mod records;
mod stop;
mod vec0;
mod vectors;

pub(in crate::index) use files::Files;
pub(in crate::index) use stop::Stop;

use super::catalog::{self, Catalog, fits, no_generation};
use super::{
    Answer, Entry, Generation, Hit, Index, IndexError, Inspection, Live, Moved, Round, Switch, Switched, WriteError,
};
use crate::manifest::{Making, Sum};
use crate::tenant::Tenant;
use async_trait::async_trait;
use std::path::Path;
use std::sync::Arc;
use tenure::sink::Sink;
use tenure::{OperationId, Token};

/// An index in the files of a folder. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SqliteIndex(Files);

impl SqliteIndex {
    /// The index of a folder, which need not be there yet.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self(Files::new(folder))
    }
}

#[async_trait]
impl Index for SqliteIndex {
    fn place(&self) -> &str {
        self.0.place()
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
        let (by, making, place) = (token.clone(), making.clone(), self.place().to_owned());
        self.0
            .change(tenant, token, "beginning a generation", move |tx| {
                catalog::sqlite::begin(tx, &by, &making, &place)?;
                Ok(vectors::create(tx, by.epoch.get(), making.dimensions)?)
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
        let (by, whose, place) = (token.clone(), tenant.clone(), self.place().to_owned());
        let entries = entries.to_vec();
        self.0
            .change(tenant, token, "writing into a generation", move |tx| {
                let built = catalog::sqlite::building(tx, &by, &place)?;
                let new = vectors::write(tx, (&whose, by.epoch.get()), built.making.dimensions, &entries, &place)?;
                Ok(catalog::sqlite::written(tx, &by, new, entries.iter().map(|entry| &entry.key))?)
            })
            .await
    }

    async fn inspect(&self, tenant: &Tenant, token: &Token) -> Result<Inspection, WriteError> {
        let (by, whose, place) = (token.clone(), tenant.clone(), self.place().to_owned());
        self.0
            .change(tenant, token, "reading a generation back", move |tx| {
                let built = catalog::sqlite::building(tx, &by, &place)?;
                Ok(vectors::inspect(tx, (&whose, by.epoch.get()), built.making.dimensions)?)
            })
            .await
    }

    async fn nearest(&self, tenant: &Tenant, epoch: u64, vector: &[f32], limit: usize) -> Result<Vec<Hit>, IndexError> {
        let (vector, place) = (vector.to_vec(), self.place().to_owned());
        let found = self.0.read(tenant, "searching a generation", move |tx| {
            let built = catalog::sqlite::readable(tx, epoch)?.ok_or_else(|| no_generation(&place, epoch))?;
            fits(&place, built.making.dimensions, &vector)?;
            Ok(vectors::nearest(tx, epoch, &vector, limit)?)
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
            .change(tenant, token, "removing a generation", move |tx| {
                if catalog::sqlite::removable(tx, epoch)?.is_some() {
                    vectors::drop_all(tx, epoch)?;
                    catalog::sqlite::forget(tx, epoch)?;
                }
                Ok(())
            })
            .await
    }

    async fn search(&self, tenant: &Tenant, vector: &[f32], limit: usize) -> Result<Answer, IndexError> {
        let (vector, place) = (vector.to_vec(), self.place().to_owned());
        let found = self.0.read(tenant, "searching", move |tx| {
            let Some(stood) = catalog::sqlite::stood(tx)? else { return Ok(None) };
            fits(&place, stood.built.making.dimensions, &vector)?;
            let hits = vectors::nearest(tx, stood.epoch, &vector, limit)?;
            Ok(Some(Answer { version: stood.version, epoch: stood.epoch, hits }))
        });
        let empty = || IndexError::Empty { place: self.place().to_owned(), tenant: tenant.clone() };
        found.await?.flatten().ok_or_else(empty)
    }
}
