//! The records of the tenants, all in one schema.

use super::database::Database;
use super::stop::Stop;
use crate::index::catalog::postgres::Records;
use crate::index::catalog::{Built, Catalog, Stood, belongs, digest, outcome, version};
use crate::index::{Generation, IndexError, Live, Moved, Round, Switch, Switched, WriteError};
use crate::manifest::{Making, Sum};
use crate::tenant::Tenant;
use async_trait::async_trait;
use std::sync::Arc;
use tenure::sink::{ApplyError, Lookup, Sink};
use tenure::{OperationId, Token, Verdict};
use tokio_postgres::Transaction;

/// How a move ends that is made in the fence's own step.
enum Unmoved {
    /// Nothing was changed.
    So(Switched),
    Stop(Stop),
}

#[async_trait]
impl Catalog for Database {
    fn place(&self) -> &str {
        &self.place().name
    }

    async fn sink(&self, tenant: &Tenant) -> Result<Arc<dyn Sink>, IndexError> {
        self.make(tenant).await
    }

    async fn tenants(&self) -> Result<Vec<Tenant>, IndexError> {
        let found = self.look("listing the tenants", async |client| {
            let rows = client.query("SELECT DISTINCT tenant FROM generation ORDER BY tenant", &[]).await?;
            // Whatever else was written there is not ours.
            Ok(rows.iter().filter_map(|row| row.try_get::<_, String>(0).ok()?.parse().ok()).collect())
        });
        Ok(found.await?.unwrap_or_default())
    }

    async fn live(&self, tenant: &Tenant) -> Result<Option<Live>, IndexError> {
        let found = self.read(tenant, "reading the alias", async |records| records.live().await).await?;
        Ok(found.flatten())
    }

    async fn generations(&self, tenant: &Tenant) -> Result<Vec<Generation>, IndexError> {
        let found = self.read(tenant, "listing the generations", async |records| records.generations().await).await?;
        Ok(found.unwrap_or_default())
    }

    async fn switches(&self, tenant: &Tenant) -> Result<Vec<Moved>, IndexError> {
        let found = self.read(tenant, "reading the audit trail", async |records| records.switches().await).await?;
        Ok(found.unwrap_or_default())
    }

    async fn rounds(&self, tenant: &Tenant, limit: usize) -> Result<Vec<Round>, IndexError> {
        let found = self.read(tenant, "listing the rounds", async |records| records.rounds(limit).await).await?;
        Ok(found.unwrap_or_default())
    }

    async fn known(&self, tenant: &Tenant, keys: &[Sum]) -> Result<Vec<Option<Vec<f32>>>, IndexError> {
        let found = self.read(tenant, "reading kept vectors", async |records| records.known(keys).await).await?;
        Ok(found.unwrap_or_else(|| vec![None; keys.len()]))
    }

    async fn keep(&self, tenant: &Tenant, epoch: u64, vectors: &[(Sum, Vec<f32>)]) -> Result<(), IndexError> {
        const DOING: &str = "keeping vectors";
        let kept = self
            .transact(DOING, async |tx: &mut Transaction<'_>| {
                self.records(tx.client(), tenant).keep(epoch, vectors).await
            })
            .await;
        kept.map_err(|error| Stop::from(error).read(self.place(), DOING))
    }

    async fn switch(&self, tenant: &Tenant, token: &Token, switch: &Switch) -> Result<Switched, WriteError> {
        belongs(&self.place().name, tenant, token)?;
        let digest = digest(&self.place().name, switch)?;
        let moved = async |tx: &mut Transaction<'_>| {
            let effect = async |tx: &Transaction<'_>| {
                let records = self.records(tx.client(), tenant);
                match records.switch(token, switch).await.map_err(Unmoved::Stop)? {
                    Switched::To(version) => Ok(outcome(version)),
                    other => Err(Unmoved::So(other)),
                }
            };
            // Under this operation nothing is recorded when nothing was changed.
            let verdict = match self.fence().apply(tx, token, &switch.operation, &digest, effect).await {
                Ok(verdict) => verdict,
                Err(ApplyError::Effect(Unmoved::So(switched))) => return Ok(switched),
                Err(ApplyError::Effect(Unmoved::Stop(stop))) => return Err(stop),
                Err(ApplyError::Sink(error)) => return Err(error.into()),
            };
            match verdict {
                Verdict::Replay(replayed) => Ok(Switched::To(version(&self.place().name, &replayed.outcome)?)),
                Verdict::Written => Ok(Switched::To(switch.from + 1)),
                refused => Err(WriteError::Refused(refused).into()),
            }
        };
        self.transact("moving the alias", moved).await
    }

    async fn switched(
        &self,
        tenant: &Tenant,
        token: &Token,
        operation: &OperationId,
    ) -> Result<Option<u64>, WriteError> {
        belongs(&self.place().name, tenant, token)?;
        let look = async |tx: &mut Transaction<'_>| match self.fence().lookup(tx, token, operation).await? {
            Ok(Lookup::Found(found)) => Ok(Some(version(&self.place().name, &found.outcome)?)),
            Ok(Lookup::Absent) => Ok(None),
            Err(verdict) => Err(WriteError::Refused(verdict).into()),
        };
        self.transact("looking a move up", look).await
    }

    async fn record(&self, tenant: &Tenant, token: &Token, round: &Round) -> Result<(), WriteError> {
        self.change(tenant, token, "recording a round", async |records| records.record(round).await).await
    }

    async fn condemn(&self, tenant: &Tenant, token: &Token, keep: usize) -> Result<Vec<u64>, WriteError> {
        self.change(tenant, token, "condemning generations", async |records| records.condemn(token, keep).await).await
    }

    async fn begin(&self, tenant: &Tenant, token: &Token, making: &Making) -> Result<Built, WriteError> {
        let begin = async |records: Records<'_>| records.begin(token, making).await;
        self.change(tenant, token, "beginning a generation", begin).await
    }

    async fn building(&self, tenant: &Tenant, token: &Token) -> Result<Built, WriteError> {
        self.change(tenant, token, "checking a generation", async |records| records.building(token).await).await
    }

    async fn written(&self, tenant: &Tenant, token: &Token, more: u64, keys: &[Sum]) -> Result<(), WriteError> {
        let written = async |records: Records<'_>| {
            records.building(token).await?;
            records.written(token, more, keys).await
        };
        self.change(tenant, token, "counting chunks", written).await
    }

    async fn count(&self, tenant: &Tenant, token: &Token, chunks: u64) -> Result<(), WriteError> {
        let count = async |records: Records<'_>| {
            records.building(token).await?;
            records.count(token, chunks).await
        };
        self.change(tenant, token, "counting chunks", count).await
    }

    async fn stood(&self, tenant: &Tenant) -> Result<Option<Stood>, IndexError> {
        let found = self.read(tenant, "reading the alias", async |records| records.stood().await).await?;
        Ok(found.flatten())
    }

    async fn readable(&self, tenant: &Tenant, epoch: u64) -> Result<Option<Built>, IndexError> {
        let found = self.read(tenant, "looking for a generation", async |records| records.readable(epoch).await);
        Ok(found.await?.flatten())
    }

    async fn removable(&self, tenant: &Tenant, token: &Token, epoch: u64) -> Result<Option<Built>, WriteError> {
        self.change(tenant, token, "removing a generation", async |records| records.removable(epoch).await).await
    }

    async fn forget(&self, tenant: &Tenant, token: &Token, epoch: u64) -> Result<(), WriteError> {
        let forget = async |records: Records<'_>| match records.removable(epoch).await? {
            Some(_) => records.forget(epoch).await,
            None => Ok(()),
        };
        self.change(tenant, token, "removing a generation", forget).await
    }

    async fn mark(&self, tenant: &Tenant) -> Result<Option<String>, IndexError> {
        self.read(tenant, "reading whose these records are", async |records| records.mark().await).await
    }
}
