//! A store in etcd.
//!
//! It talks with etcd's own JSON gateway (`/v3/kv/txn`, `/v3/watch`, `/v3/lease/…`), which every member serves beside
//! gRPC on the same port since version 3.4. So building this crate needs neither `protoc` nor a stack of gRPC, and any
//! proxy that passes HTTP passes it.
//!
//! # Time
//!
//! No clock is shared, and no absolute deadline is ever compared. **Each process watches**: it takes down when its own
//! clock stood where when it saw a renewal for the first time, and the deadline is that plus the session's ttl. That is
//! never before the holder's own, which counts from before it sent the renewal. It needs nothing of etcd but a
//! linearizable read, so whatever etcd does with its leases, a dead holder ends one ttl after somebody has begun to
//! watch.
//!
//! Somebody who has just been started has watched nothing. For them each opening puts a key `alive/SESSION` on a lease
//! of etcd as long as the ttl, and each renewal keeps that lease alive *before* it is made. (Both at once would save a
//! round trip and not do: when only the renewal comes through, whoever repeats it is told that it is granted, and the
//! record would speak of a lease that nobody has kept alive.) When a record names such a
//! lease and the key is not there in the same read, the session is overdue: a ttl has passed since etcd heard of the
//! holder, and the holder had sent before that. A leader change begins every lease anew, which makes this late and
//! nothing else. A record whose lease could not be kept alive names none. On a clock that a test drives there are no
//! such leases.
//!
//! **Not with every etcd.** Before 3.4.31, and before 3.5.13 in 3.5, a leader whose disk hung for a ttl may have a holder's
//! lease revoked that was kept alive with the next leader (see `revokes.rs`). Each opening asks every member once for its
//! version. If one is older, or unknown because the address does not name it or it does not answer, this opening makes no
//! such leases and looks at none: whoever is new waits for a ttl. `Store::warnings` says so.
//!
//! An ended session is swept one hour after *somebody that still runs* has seen it ended, so a store that is only used
//! by short commands keeps its ended sessions. A quarantine is a span as well: it counts from the first sight, and ends
//! for newcomers with a key on a lease. Nobody keeps that lease alive, so every version ends it in time or late. The wall
//! clock's time of its end stands beside it: a week after it, nothing that is odd is put down to it any more.
//!
//! # Steps
//!
//! * **A read** is one transaction of ranges, never `serializable`. The session that holds a resource is guessed from
//!   the last read; a wrong guess costs another round trip. Reads that come together share one.
//! * **A swap** is one transaction: it compares the record's revision, `live/SESSION` of the relied-on session with the
//!   incarnation, the store's own record, and the *value* of `head`, which holds the length of the history and 128
//!   random bits. So the numbers of the history have no gaps, and what went back in time and came forward another way
//!   is never taken for what was read, even where revisions repeat. Its `else` branch reads the same keys: a swap that
//!   failed because somebody else moved the head is put together again without asking.
//! * **Swaps that wait together** share a transaction, some twenty of them (a server takes 128 steps). Each is judged
//!   alone on what this process knows, and the transaction compares all of that.
//! * **A swap on records from memory** is the same transaction, without a read before it: the authority names the
//!   versions of the changed record and of the store's own record. Its deadline is judged on this process's clock right
//!   before the transaction is sent, and a renewal's new one counts from that reading, which lies after the holder's
//!   request. It may commit later: whoever has ended the session in between has changed what is compared.
//! * **A renewal** changes neither `head` nor any grant, and waits in a queue of its own. It reads the head and the
//!   fingerprint in its own step, so that a grant which is gone shows in the answer.
//! * **An import** is written beside the store, into keys that nobody reads, and one transaction moves the store there.
//!   All of it compares the store's own record, so that what a member held back and sends late is not made.
//! * **"It is full"** is also said of a write that was made and crossed the limit. So what was compared is read once more,
//!   and the outcome is unknown unless all of it still holds.
//!
//! # Which store it is
//!
//! `etcd:CLUSTER`, by the cluster's id. A snapshot that was restored under the same name and addresses has the same id;
//! that its revision went back is noticed by whoever has seen a higher one (see `identity.rs`). A swap that another
//! cluster answers is unknown, and can only have been made where the head was the very same: nothing was forgotten
//! there.
//!
//! # What it does not promise
//!
//! * Several processes serialize at one key, `head`; of two that write at once one goes a second round. Renewals do
//!   not.
//! * The key of a session vanishes too early when an operator revokes its lease, or when a member is replaced by an older
//!   one after the versions were asked for: then a newcomer takes over from a holder that still believes. Sealed receivers refuse that holder, as ever.
//! * A process that notices nothing (it was started after a restore by the same id) grants on, as on any store that was
//!   put back, until a caller or a receiver that has seen more shows it.
//! * etcd keeps every change until it is compacted: run it with `--auto-compaction-retention`.

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
mod revokes;
mod settings;
mod setup;
mod shared;
mod tls;
mod warnings;
mod watcher;
mod writer;

use super::home::Home;
use super::{
    Answer, Capabilities, Durability, HistoryQuery, Import, Listed, Page, Read, RecallOutcome, Recalled, Recorded,
    Scope, Store, StoreError, SwapOutcome, TimeSource, Version, Wake,
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
use tenure_core::{AuthorityClock, Instant, ResourceName, SessionId};

/// Takes the address; connects at the first use.
pub(super) fn open(url: &str, clock: Clock, home: Home) -> Result<Arc<dyn Store>, StoreError> {
    let client = Client::new(Settings::of(url)?)?;
    let shared = Arc::new(Shared::new(client, Observed::new(clock)));
    Ok(Arc::new(EtcdStore { shared, home, listens: AtomicBool::new(false) }))
}

/// One opening of a store.
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

    fn warnings(&self) -> Answer<'_, Result<Vec<String>, StoreError>> {
        Box::pin(self.run(move |shared| async move { warnings::warnings(&shared).await }))
    }

    fn swap_recalled(&self, recalled: Recalled) -> Option<Answer<'_, Result<RecallOutcome, StoreError>>> {
        let shared = Arc::clone(&self.shared);
        Some(Box::pin(async move {
            let made = self.home.run(async move { writer::swap_recalled(&shared, recalled).await });
            made.await.unwrap_or(Ok(RecallOutcome::Unknown))
        }))
    }

    fn now(&self) -> Option<Instant<AuthorityClock>> {
        // Where it went back the swap says so.
        self.shared.observed.now().ok()
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
