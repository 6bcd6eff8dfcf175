//! An index whose vectors are served by Chroma, and whose records are in a database: the catalog.
//!
//! The server takes part in no transaction. So each generation is a collection of its own, whose name bears the epoch and the
//! grant: what a stale worker still sends lands where nobody reads. What is read is decided in the catalog alone, where the alias
//! moves under the fence.
//!
//! # What is not guaranteed
//!
//! * **A stale worker's request may be carried out**, late, and after the takeover: in its own collection. One that it makes so is found
//!   by the next clean-up.
//! * The server finds the nearest by an index that may miss a few of them.
//! * Whoever can reach the server can change every collection. A collection that somebody else removed is noticed, by an error.
//! * Two copies of one catalog, both in use, take each other's collections for their own.

mod address;
mod server;

use super::catalog::{Built, Catalog, fits, no_generation};
use super::connect::catalog;
use super::{
    Answer, Entry, Generation, Hit, Index, IndexError, Inspection, Live, Moved, Round, Switch, Switched, WriteError,
};
use crate::manifest::{Making, Sum, Sums};
use crate::tenant::Tenant;
use address::Settings;
use async_trait::async_trait;
use server::{PAGE, Server, Trouble};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use tenure::sink::Sink;
use tenure::{OperationId, Token};

/// How often a search begins anew because the version that it found was removed meanwhile.
const TRIES: usize = 5;

/// An index in a Chroma server.
#[derive(Debug)]
pub struct ChromaIndex {
    place: String,
    server: Server,
    catalog: Box<dyn Catalog>,
}

impl ChromaIndex {
    /// The index at an address, `chroma:http://HOST:PORT?catalog=ADDRESS`. Nobody is asked yet.
    ///
    /// # Errors
    /// [`IndexError::Address`] when it makes no sense.
    pub fn new(url: &str) -> Result<Self, IndexError> {
        let settings = Settings::parse(url)?;
        let catalog = catalog(&settings.catalog)?;
        let place = format!("chroma:{} with the catalog {}", settings.server, catalog.place());
        Ok(Self { place, server: Server::new(&settings)?, catalog })
    }

    /// The collections of a tenant that no record knows: somebody made them who had lost the tenant already.
    async fn orphans(&self, tenant: &Tenant, token: &Token) -> Result<BTreeSet<(u64, String)>, WriteError> {
        let Some(mark) = self.catalog.mark(tenant).await? else { return Ok(BTreeSet::new()) };
        let start = start(&mark, tenant);
        let names = self.server.names(&start).await.map_err(|trouble| self.server.unwritten(trouble))?;
        // After the names: what has a collection by then had a record before.
        let recorded = self.catalog.generations(tenant).await?;
        let recorded: HashSet<u64> = recorded.iter().map(|generation| generation.epoch).collect();
        let orphan = |name: String| {
            let epoch: u64 = name.strip_prefix(&start)?.split('.').next()?.parse().ok()?;
            (epoch < token.epoch.get() && !recorded.contains(&epoch)).then_some((epoch, name))
        };
        Ok(names.into_iter().filter_map(orphan).collect())
    }
}

/// How the names of a tenant's collections begin.
fn start(mark: &str, tenant: &Tenant) -> String {
    format!("vs-{mark}.{tenant}.")
}

/// The name of a generation's collection, which no other one ever has.
fn collection(built: &Built, tenant: &Tenant, epoch: u64) -> String {
    let grant = built.grant.get(..8).unwrap_or(&built.grant);
    format!("{}{epoch}.{grant}", start(&built.mark, tenant))
}

#[async_trait]
impl Index for ChromaIndex {
    fn place(&self) -> &str {
        &self.place
    }

    async fn sink(&self, tenant: &Tenant) -> Result<Arc<dyn Sink>, IndexError> {
        self.catalog.sink(tenant).await
    }

    async fn tenants(&self) -> Result<Vec<Tenant>, IndexError> {
        self.catalog.tenants().await
    }

    async fn live(&self, tenant: &Tenant) -> Result<Option<Live>, IndexError> {
        self.catalog.live(tenant).await
    }

    async fn generations(&self, tenant: &Tenant) -> Result<Vec<Generation>, IndexError> {
        self.catalog.generations(tenant).await
    }

    async fn switches(&self, tenant: &Tenant) -> Result<Vec<Moved>, IndexError> {
        self.catalog.switches(tenant).await
    }

    async fn rounds(&self, tenant: &Tenant, limit: usize) -> Result<Vec<Round>, IndexError> {
        self.catalog.rounds(tenant, limit).await
    }

    async fn begin(&self, tenant: &Tenant, token: &Token, making: &Making) -> Result<(), WriteError> {
        // The record comes first: a collection without one is nobody's.
        let built = self.catalog.begin(tenant, token, making).await?;
        let name = collection(&built, tenant, token.epoch.get());
        let made = async {
            // An earlier try may have left something in it.
            self.server.remove(&name).await?;
            self.server.make(&name).await
        };
        made.await.map_err(|trouble| self.server.unwritten(trouble))
    }

    async fn known(&self, tenant: &Tenant, keys: &[Sum]) -> Result<Vec<Option<Vec<f32>>>, IndexError> {
        self.catalog.known(tenant, keys).await
    }

    async fn keep(&self, tenant: &Tenant, epoch: u64, vectors: &[(Sum, Vec<f32>)]) -> Result<(), IndexError> {
        self.catalog.keep(tenant, epoch, vectors).await
    }

    async fn write(&self, tenant: &Tenant, token: &Token, entries: &[Entry]) -> Result<(), WriteError> {
        let (built, epoch) = (self.catalog.building(tenant, token).await?, token.epoch.get());
        for entry in entries {
            fits(&self.place, built.making.dimensions, &entry.vector)?;
        }
        let written = self.server.upsert(&collection(&built, tenant, epoch), (tenant, epoch), entries).await;
        written.map_err(|trouble| self.server.unwritten(trouble))?;
        // Whoever lost the tenant meanwhile has written where nobody reads, and is told so.
        let keys: Vec<Sum> = entries.iter().map(|entry| entry.key).collect();
        self.catalog.written(tenant, token, entries.len() as u64, &keys).await
    }

    async fn inspect(&self, tenant: &Tenant, token: &Token) -> Result<Inspection, WriteError> {
        let (built, epoch) = (self.catalog.building(tenant, token).await?, token.epoch.get());
        let name = collection(&built, tenant, epoch);
        let (mut sums, mut documents, mut foreign) = (Sums::default(), HashSet::new(), 0);
        let mut offset = 0;
        loop {
            let page = self.server.page(&name, offset).await;
            let page = page.map_err(|trouble| WriteError::from(self.server.unread(trouble)))?;
            for record in &page {
                sums.add(&Entry::sum(&record.document, record.number, &record.key));
                foreign += u64::from(record.tenant != tenant.as_str() || record.epoch != epoch);
            }
            offset += page.len();
            let is_last = page.len() < PAGE;
            documents.extend(page.into_iter().map(|record| record.document));
            if is_last {
                break;
            }
        }
        self.catalog.count(tenant, token, sums.count()).await?;
        Ok(Inspection { documents: documents.len() as u64, chunks: sums.count(), digest: sums.sum(), foreign })
    }

    async fn nearest(&self, tenant: &Tenant, epoch: u64, vector: &[f32], limit: usize) -> Result<Vec<Hit>, IndexError> {
        let built = self.catalog.readable(tenant, epoch).await?;
        let built = built.ok_or_else(|| no_generation(&self.place, epoch))?;
        fits(&self.place, built.making.dimensions, vector)?;
        let found = self.server.nearest(&collection(&built, tenant, epoch), vector, limit).await;
        found.map_err(|trouble| self.server.unread(trouble))
    }

    async fn switch(&self, tenant: &Tenant, token: &Token, switch: &Switch) -> Result<Switched, WriteError> {
        self.catalog.switch(tenant, token, switch).await
    }

    async fn switched(
        &self,
        tenant: &Tenant,
        token: &Token,
        operation: &OperationId,
    ) -> Result<Option<u64>, WriteError> {
        self.catalog.switched(tenant, token, operation).await
    }

    async fn record(&self, tenant: &Tenant, token: &Token, round: &Round) -> Result<(), WriteError> {
        self.catalog.record(tenant, token, round).await
    }

    async fn condemn(&self, tenant: &Tenant, token: &Token, keep: usize) -> Result<Vec<u64>, WriteError> {
        let condemned = self.catalog.condemn(tenant, token, keep).await?;
        let orphans = self.orphans(tenant, token).await?;
        let all: BTreeSet<u64> = condemned.into_iter().chain(orphans.into_iter().map(|(epoch, _)| epoch)).collect();
        Ok(all.into_iter().collect())
    }

    async fn remove(&self, tenant: &Tenant, token: &Token, epoch: u64) -> Result<(), WriteError> {
        // A condemned generation stays condemned: this is as good when the remover was stopped in between.
        let names = match self.catalog.removable(tenant, token, epoch).await? {
            Some(built) => vec![collection(&built, tenant, epoch)],
            None => {
                let orphans = self.orphans(tenant, token).await?;
                orphans.into_iter().filter(|(of, _)| *of == epoch).map(|(_, name)| name).collect()
            }
        };
        for name in names {
            self.server.remove(&name).await.map_err(|trouble| self.server.unwritten(trouble))?;
        }
        self.catalog.forget(tenant, token, epoch).await
    }

    async fn search(&self, tenant: &Tenant, vector: &[f32], limit: usize) -> Result<Answer, IndexError> {
        let mut before = None;
        for _ in 0..TRIES {
            let stood = self.catalog.stood(tenant).await?;
            let empty = || IndexError::Empty { place: self.place.clone(), tenant: tenant.clone() };
            let stood = stood.ok_or_else(empty)?;
            fits(&self.place, stood.built.making.dimensions, vector)?;
            let (version, epoch) = (stood.version, stood.epoch);
            match self.server.nearest(&collection(&stood.built, tenant, epoch), vector, limit).await {
                Ok(hits) => return Ok(Answer { version, epoch, hits }),
                // The alias has moved on meanwhile, and the collection was removed; or it is missing for good.
                Err(Trouble::Gone) if before != Some(version) => before = Some(version),
                Err(trouble) => return Err(self.server.unread(trouble)),
            }
        }
        let why = format!("{TRIES} times the version that was live was removed before it was searched");
        Err(IndexError::Unreachable { place: self.place.clone(), why })
    }
}
