//! A store in etcd.

mod alive;
mod base64;
mod client;
mod document;
mod fault;
mod identity;
mod import;
mod keys;
mod known;
mod lister;
mod message;
mod observed;
mod plan;
mod reader;
mod settings;
mod setup;
mod shared;
mod tls;
mod watcher;
mod writer;

use super::home::Home;
use super::{
    Answer, Capabilities, Durability, HistoryQuery, Import, Listed, Page, Read, Recorded, Scope, Store, StoreError,
    SwapOutcome, TimeSource, Version, Wake,
};
use crate::Clock;
use client::Client;
use observed::Observed;
use settings::Settings;
use shared::Shared;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure_core::decide::{Keys, Swap};
use tenure_core::record::LeaseRecord;
use tenure_core::{ResourceName, SessionId};

/// Takes the address; connects at the first use.
pub(super) fn open(url: &str, clock: Clock, home: Home) -> Result<Arc<dyn Store>, StoreError> {
    let client = Client::new(Settings::of(url)?)?;
    let shared = Arc::new(Shared::new(client, Observed::new(clock)));
    Ok(Arc::new(EtcdStore { shared, home, listens: AtomicBool::new(false) }))
}

/// A store in etcd.
#[derive(Debug)]
struct EtcdStore {
    shared: Arc<Shared>,
    home: Home,
    /// Whether somebody listens for changes.
    listens: AtomicBool,
}

impl EtcdStore {
    /// Hands work over to the runtime of the connections.
    async fn run<T, F>(&self, work: impl FnOnce(Arc<Shared>) -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        self.home.run(work(Arc::clone(&self.shared))).await?
    }
}

impl Store for EtcdStore {
    fn read<'a>(&'a self, keys: &'a Keys) -> Answer<'a, Result<Read, StoreError>> {
        let keys = keys.clone();
        Box::pin(self.run(move |shared| async move { reader::read(&shared, &keys).await }))
    }

    fn swap(&self, swap: Swap, expected: Option<Version>) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let made = self.home.run(async move { writer::swap(&shared, swap, expected).await });
            // When the runtime has ended, nobody can tell what it had sent.
            made.await.unwrap_or(Ok(SwapOutcome::Unknown))
        })
    }

    fn grants(&self, session: SessionId) -> Answer<'_, Result<Vec<LeaseRecord>, StoreError>> {
        Box::pin(self.run(move |shared| async move { lister::grants(&shared, session).await }))
    }

    fn leases(&self, page: Page<ResourceName>) -> Answer<'_, Result<Vec<Listed>, StoreError>> {
        Box::pin(self.run(move |shared| async move { lister::leases(&shared, page).await }))
    }

    fn history(&self, query: HistoryQuery) -> Answer<'_, Result<Vec<Recorded>, StoreError>> {
        Box::pin(self.run(move |shared| async move { lister::history(&shared, query).await }))
    }

    fn idle_sessions(&self, limit: usize) -> Answer<'_, Result<Vec<SessionId>, StoreError>> {
        Box::pin(self.run(move |shared| async move { lister::idle_sessions(&shared, limit).await }))
    }

    fn import(&self, content: Import) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let made = self.home.run(async move { import::import(&shared, &content).await });
            made.await.unwrap_or(Ok(SwapOutcome::Unknown))
        })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            scope: Scope::Network,
            durability: Durability::Durable,
            clock: TimeSource::Observed,
            wakes: true,
        }
    }

    fn watch(&self, resource: &ResourceName) -> Option<Wake> {
        let wake = self.shared.wakes.watch(resource);
        if !self.listens.swap(true, Ordering::AcqRel) {
            // Not the store itself: it ends when nobody has it any more.
            self.home.spawn(watcher::listen(Arc::downgrade(&self.shared)));
        }
        Some(wake)
    }
}
