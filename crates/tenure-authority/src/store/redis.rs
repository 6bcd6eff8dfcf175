//! A store in Redis.

mod doubt;
mod ears;
mod fault;
mod link;
mod place;
mod reader;
mod replicas;
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
///
/// # How it works
///
/// * **A step is one Lua script**, and one round trip: whatever it checks and whatever it changes is one moment of the
///   server. The server refuses a script before it begins (full, cannot save, a replica, too few replicas) or runs it to
///   its end: every check comes before the first write. Only a right that is taken away from the user meanwhile breaks a
///   script off in its middle; each new connection asks for all rights first, and that one is given up.
/// * **Changes share scripts.** Those that come while a script is under way are the next one's, up to 256, each judged
///   alone. With `appendfsync always` they share its saving.
/// * **Keys.** All have the hash tag `{NAME}`. `store` is one hash of all records, so that a script reads and writes them in
///   one call each: the store's own fields, `s:SESSION`, `l:RESOURCE`, `f:SESSION` (the fingerprint of what stands on it,
///   apart from the session, so that a renewal is one small record whatever that is), `g:GRANT` (every grant that was ever
///   given). `names` and `held` (`SESSION RESOURCE`) are lists of names in order, `live`, `former` and `ended` of sessions: by
///   a deadline that may have been renewed since, of a former incarnation, by end. `history` is a list. Each list has a mark
///   of an empty name (in `history`: a first row), so that none is ever absent: when one is, the store is damaged; a reading
///   looks at all, a change at those that it touches. Records are JSON behind a few words for the scripts, for people as
///   well: `HGET {tenure}:store l:RESOURCE`. History and grants grow for ever, and a server keeps them in memory: some 300
///   bytes a transition.
/// * **Time** is the server's `TIME`, read in the script. When it was set back by at most a second it stands still, and a
///   session may end earlier by as much; further back is [`StoreError::ClockWentBack`], until it has caught up or the
///   server is started again.
/// * **Waiters** are told over the channel `{NAME}:changes`, which one connection listens to from the first
///   [`watch`](Store::watch) on.
///
/// # Which store it is
///
/// The identity is the server's replication id (`master_replid`), which each script reads; it costs a script four to ten
/// microseconds of the server's time. Whatever may have lost a change gives a server another one, and the authority
/// quarantines for `max_ttl` (ten minutes, unless the store was made with another): so give a store the shortest
/// `max_ttl` that its holders can do with. Seen on Redis 7.0:
///
/// | what happens to the server | its replication id |
/// |---|---|
/// | it is started again, with its files or older ones | another one, and its replicas follow |
/// | it is started again without its files; `FLUSHALL` | another one or the same: the store is gone |
/// | its machine is put back to a snapshot with its memory | the same: **not noticed**; restart the server then |
/// | `REPLICAOF NO ONE`, a failover | another one on whoever is promoted |
/// | it follows another primary | that one's, and another one when it is promoted later |
/// | its first replica comes | another one (later replicas change nothing) |
/// | its last replica is gone for `repl-backlog-ttl` (an hour) | another one; `repl-backlog-ttl 0` avoids it |
///
/// The last two lose nothing and quarantine all the same: nothing else that a script can see tells them from a server
/// that followed another one in between.
///
/// A store that is gone is [`StoreError::Missing`]. **With `create=true` it is made again, and as a new one it knows no
/// former holders and has no quarantine**: it grants at once what they still believe in until their next renewal. A new
/// server and one that lost its files cannot be told apart. So create a store once, leave `create=true` out of the
/// address that workers have, and let the server save.
///
/// # What it does not promise
///
/// * **A failover may lose the last changes**: replication is asynchronous. It is noticed by the identity. With
///   `replicas=N` a change counts as made once `WAIT` says that N replicas have it in memory. One that they do not have
///   in time, or whose answer is lost, is *unknown* and not refused, since it may stand on the primary. From its
///   sending until they have it this store answers no reading, so that nobody resolves the unknown by what a failover
///   would undo. Other processes may read it earlier. Calls of one process wait behind a `WAIT`.
/// * **A former primary that goes on living** (it was stopped, or is cut off with us) takes changes for as long as it
///   is not told. Under Sentinel, a connection in use is checked every second against the newest configuration among
///   the Sentinels that answer (one that was away and answers alone is believed), and one that was quiet is checked
///   before its next use; so such changes last for about two seconds. When no Sentinel answers, the connection stays.
///   What was granted meanwhile is refused by sealed sinks: safety stands there. `min-replicas-to-write 1` with a short
///   `min-replicas-max-lag` makes such a primary stop by itself.
/// * **A crash of the machine** loses what was not saved: only `appendfsync always` saves before it answers. The identity
///   tells of the crash. [`Store::warnings`] names settings that weaken the store.
/// * A server that runs as a node of a cluster is refused: one server holds a store.
/// * **Eviction** of the whole `store` cannot be told from a store that is gone. A server whose `maxmemory-policy` is one of
///   `allkeys-…` is warned of.
///
/// # What an answer means
///
/// A refusal, by an error or before a connection was there, is certain: nothing was changed. A connection that broke, or
/// an answer that took longer than `timeout` (five seconds), leaves a change unknown; it is never sent again.
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
