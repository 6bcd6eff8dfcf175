//! A store in Redis.

mod ears;
mod fault;
mod link;
mod place;
mod reader;
mod row;
mod script;
mod sentinel;
mod server;
mod settle;
mod time;
mod warnings;
mod writer;

use super::home::Home;
use super::{
    Answer, Capabilities, Durability, HistoryQuery, Import, Listed, Page, Read, RecallOutcome, Recalled, Recorded,
    Scope, Store, StoreError, SwapOutcome, TimeSource, Version, Wake, Wakes,
};
use place::Place;
use server::Server;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure_core::decide::{Keys, Swap};
use tenure_core::record::LeaseRecord;
use tenure_core::{ResourceName, SessionId};
use tokio::sync::Notify;
use writer::Writer;

/// A store in Redis 7 or newer, alone or under Sentinel.
#[derive(Debug)]
pub struct RedisStore {
    home: Home,
    server: Arc<Server>,
    writer: Writer,
    wakes: Wakes,
    /// Whether somebody listens for the changes of others.
    listens: AtomicBool,
    /// Tells the listener of the end.
    stir: Arc<Notify>,
}

/// Takes the address; connects at the first use.
pub(super) fn open(url: &str, home: Home) -> Result<Arc<dyn Store>, StoreError> {
    // The driver takes the process's own; when there is one already, that one stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = Arc::new(Server::new(Place::parse(url)?));
    Ok(Arc::new(RedisStore {
        home,
        writer: Writer::new(Arc::clone(&server)),
        server,
        wakes: Wakes::default(),
        listens: AtomicBool::new(false),
        stir: Arc::new(Notify::new()),
    }))
}

impl RedisStore {
    /// Hands a piece of work over.
    fn run<T, F>(&self, work: impl FnOnce(Arc<Server>) -> F) -> Answer<'_, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let work = work(Arc::clone(&self.server));
        Box::pin(async move { self.home.run(work).await? })
    }
}

impl Store for RedisStore {
    fn read<'a>(&'a self, keys: &'a Keys) -> Answer<'a, Result<Read, StoreError>> {
        let keys = row::keys(keys);
        self.run(|server| async move { reader::read(&server, keys).await })
    }

    fn swap(&self, swap: Swap, expected: Option<Version>) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        Box::pin(self.writer.swap(&self.home, swap, expected))
    }

    fn swap_recalled(&self, recalled: Recalled) -> Option<Answer<'_, Result<RecallOutcome, StoreError>>> {
        Some(Box::pin(self.writer.recalled(&self.home, recalled)))
    }

    fn grants(&self, session: SessionId) -> Answer<'_, Result<Vec<LeaseRecord>, StoreError>> {
        self.run(|server| async move { reader::grants(&server, session).await })
    }

    fn leases(&self, page: Page<ResourceName>) -> Answer<'_, Result<Vec<Listed>, StoreError>> {
        self.run(|server| async move { reader::leases(&server, page).await })
    }

    fn history(&self, query: HistoryQuery) -> Answer<'_, Result<Vec<Recorded>, StoreError>> {
        self.run(|server| async move { reader::history(&server, query).await })
    }

    fn idle_sessions(&self, limit: usize) -> Answer<'_, Result<Vec<SessionId>, StoreError>> {
        self.run(move |server| async move { reader::idle_sessions(&server, limit).await })
    }

    fn import(&self, content: Import) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        self.run(|server| async move { writer::import(server, content).await })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { scope: Scope::Network, durability: Durability::MayLose, clock: TimeSource::Server, wakes: true }
    }

    fn warnings(&self) -> Answer<'_, Result<Vec<String>, StoreError>> {
        self.run(|server| async move {
            let link = server.links.get(&server).await.map_err(|fault| fault.error)?;
            Ok(warnings::warnings(&link, &server.place).await)
        })
    }

    fn watch(&self, resource: &ResourceName) -> Option<Wake> {
        let wake = self.wakes.watch(resource);
        if !self.listens.swap(true, Ordering::AcqRel) {
            let server = Arc::downgrade(&self.server);
            self.home.spawn(ears::listen(server, self.wakes.clone(), Arc::clone(&self.stir)));
        }
        Some(wake)
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        self.stir.notify_one();
    }
}
