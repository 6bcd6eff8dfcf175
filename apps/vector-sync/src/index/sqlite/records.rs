//! The records of the tenants, each in its own file.

use super::files::{Files, fence};
use super::stop::Stop;
use crate::index::catalog::{Built, Catalog, Stood, belongs, digest, outcome, sqlite, version};
use crate::index::{Generation, IndexError, Live, Moved, Round, Switch, Switched, WriteError};
use crate::manifest::{Making, Sum};
use crate::tenant::Tenant;
use async_trait::async_trait;
use rusqlite::Transaction;
use std::sync::Arc;
use tenure::sink::{ApplyError, Lookup, Sink};
use tenure::{OperationId, Token, Verdict};

/// How a move ends that is made in the fence's own step.
enum Unmoved {
    /// Nothing was changed.
    So(Switched),
    Stop(Stop),
}

impl From<Stop> for Unmoved {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

#[async_trait]
impl Catalog for Files {
    fn place(&self) -> &str {
        self.name()
    }

    async fn sink(&self, tenant: &Tenant) -> Result<Arc<dyn Sink>, IndexError> {
        self.make(tenant).await
    }

    async fn tenants(&self) -> Result<Vec<Tenant>, IndexError> {
        self.list().await
    }

    async fn live(&self, tenant: &Tenant) -> Result<Option<Live>, IndexError> {
        let found = self.read(tenant, "reading the alias", |tx| Ok(sqlite::live(tx)?)).await?;
        Ok(found.flatten())
    }

    async fn generations(&self, tenant: &Tenant) -> Result<Vec<Generation>, IndexError> {
        let found = self.read(tenant, "listing the generations", |tx| Ok(sqlite::generations(tx)?)).await?;
        Ok(found.unwrap_or_default())
    }

    async fn switches(&self, tenant: &Tenant) -> Result<Vec<Moved>, IndexError> {
        let found = self.read(tenant, "reading the audit trail", |tx| Ok(sqlite::switches(tx)?)).await?;
        Ok(found.unwrap_or_default())
    }

    async fn rounds(&self, tenant: &Tenant, limit: usize) -> Result<Vec<Round>, IndexError> {
        let found = self.read(tenant, "listing the rounds", move |tx| Ok(sqlite::rounds(tx, limit)?)).await?;
        Ok(found.unwrap_or_default())
    }

    async fn known(&self, tenant: &Tenant, keys: &[Sum]) -> Result<Vec<Option<Vec<f32>>>, IndexError> {
        let (asked, keys) = (keys.len(), keys.to_vec());
        let found = self.read(tenant, "reading kept vectors", move |tx| Ok(sqlite::known(tx, &keys)?)).await?;
        Ok(found.unwrap_or_else(|| vec![None; asked]))
    }

    async fn keep(&self, tenant: &Tenant, epoch: u64, vectors: &[(Sum, Vec<f32>)]) -> Result<(), IndexError> {
        let vectors = vectors.to_vec();
        let kept = self.transact(tenant, "keeping vectors", move |tx| Ok(sqlite::keep(tx, epoch, &vectors)?)).await;
        kept.map_err(|error| Stop::from(error).read(self.name(), "keeping vectors"))
    }

    async fn switch(&self, tenant: &Tenant, token: &Token, switch: &Switch) -> Result<Switched, WriteError> {
        let (by, switch, place) = (token.clone(), switch.clone(), self.name().to_owned());
        belongs(&place, tenant, token)?;
        let digest = digest(&place, &switch)?;
        self.transact(tenant, "moving the alias", move |tx| {
            let effect = |tx: &Transaction<'_>| match sqlite::switch(tx, &by, &switch, &place)? {
                Switched::To(version) => Ok(outcome(version)),
                other => Err(Unmoved::So(other)),
            };
            // Under this operation nothing is recorded when nothing was changed.
            let verdict = match fence().apply(tx, &by, &switch.operation, &digest, effect) {
                Ok(verdict) => verdict,
                Err(ApplyError::Effect(Unmoved::So(switched))) => return Ok(switched),
                Err(ApplyError::Effect(Unmoved::Stop(stop))) => return Err(stop),
                Err(ApplyError::Sink(error)) => return Err(error.into()),
            };
            match verdict {
                Verdict::Replay(replayed) => Ok(Switched::To(version(&place, &replayed.outcome)?)),
                Verdict::Written => Ok(Switched::To(switch.from + 1)),
                refused => Err(WriteError::Refused(refused).into()),
            }
        })
        .await
    }

    async fn switched(
        &self,
        tenant: &Tenant,
        token: &Token,
        operation: &OperationId,
    ) -> Result<Option<u64>, WriteError> {
        let (by, operation, place) = (token.clone(), operation.clone(), self.name().to_owned());
        belongs(&place, tenant, token)?;
        self.transact(tenant, "looking a move up", move |tx| match fence().lookup(tx, &by, &operation)? {
            Ok(Lookup::Found(found)) => Ok(Some(version(&place, &found.outcome)?)),
            Ok(Lookup::Absent) => Ok(None),
            Err(verdict) => Err(WriteError::Refused(verdict).into()),
        })
        .await
    }

    async fn record(&self, tenant: &Tenant, token: &Token, round: &Round) -> Result<(), WriteError> {
        let (round, place) = (round.clone(), self.name().to_owned());
        self.change(tenant, token, "recording a round", move |tx| sqlite::record(tx, &round, &place)).await
    }

    async fn condemn(&self, tenant: &Tenant, token: &Token, keep: usize) -> Result<Vec<u64>, WriteError> {
        let by = token.clone();
        self.change(tenant, token, "condemning generations", move |tx| Ok(sqlite::condemn(tx, &by, keep)?)).await
    }

    async fn begin(&self, tenant: &Tenant, token: &Token, making: &Making) -> Result<Built, WriteError> {
        let (by, making, place) = (token.clone(), making.clone(), self.name().to_owned());
        let begin = move |tx: &Transaction<'_>| sqlite::begin(tx, &by, &making, &place);
        self.change(tenant, token, "beginning a generation", begin).await
    }

    async fn building(&self, tenant: &Tenant, token: &Token) -> Result<Built, WriteError> {
        let (by, place) = (token.clone(), self.name().to_owned());
        self.change(tenant, token, "checking a generation", move |tx| sqlite::building(tx, &by, &place)).await
    }

    async fn written(&self, tenant: &Tenant, token: &Token, more: u64, keys: &[Sum]) -> Result<(), WriteError> {
        let (by, keys, place) = (token.clone(), keys.to_vec(), self.name().to_owned());
        let written = move |tx: &Transaction<'_>| {
            sqlite::building(tx, &by, &place)?;
            Ok(sqlite::written(tx, &by, more, keys.iter())?)
        };
        self.change(tenant, token, "counting chunks", written).await
    }

    async fn count(&self, tenant: &Tenant, token: &Token, chunks: u64) -> Result<(), WriteError> {
        let (by, place) = (token.clone(), self.name().to_owned());
        let count = move |tx: &Transaction<'_>| {
            sqlite::building(tx, &by, &place)?;
            Ok(sqlite::count(tx, &by, chunks)?)
        };
        self.change(tenant, token, "counting chunks", count).await
    }

    async fn stood(&self, tenant: &Tenant) -> Result<Option<Stood>, IndexError> {
        let found = self.read(tenant, "reading the alias", |tx| Ok(sqlite::stood(tx)?)).await?;
        Ok(found.flatten())
    }

    async fn readable(&self, tenant: &Tenant, epoch: u64) -> Result<Option<Built>, IndexError> {
        let found = self.read(tenant, "looking for a generation", move |tx| Ok(sqlite::readable(tx, epoch)?)).await?;
        Ok(found.flatten())
    }

    async fn removable(&self, tenant: &Tenant, token: &Token, epoch: u64) -> Result<Option<Built>, WriteError> {
        self.change(tenant, token, "removing a generation", move |tx| sqlite::removable(tx, epoch)).await
    }

    async fn forget(&self, tenant: &Tenant, token: &Token, epoch: u64) -> Result<(), WriteError> {
        let forget = move |tx: &Transaction<'_>| match sqlite::removable(tx, epoch)? {
            Some(_) => Ok(sqlite::forget(tx, epoch)?),
            None => Ok(()),
        };
        self.change(tenant, token, "removing a generation", forget).await
    }

    async fn mark(&self, tenant: &Tenant) -> Result<Option<String>, IndexError> {
        self.read(tenant, "reading whose these records are", |tx| Ok(sqlite::mark(tx)?)).await
    }
}
