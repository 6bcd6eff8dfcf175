//! The workers and files of these tests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tenure_authority::conformance::block_on;
use tenure_authority::store::memory::MemoryStore;
use tenure_authority::store::sqlite::{Options, SqliteStore};
use tenure_authority::{Authority, AuthorityError, Clock, Store, StoreError};
use tenure_core::decide::{Keys, Refusal, Reply, Request};
use tenure_core::record::{Owner, Seen};
use tenure_core::{GrantId, InstanceId, OwnerName, ResourceName, SessionId, Token, Ttl};

pub(crate) const TTL: Duration = Duration::from_secs(10);

/// A clock that stands until it is moved.
#[derive(Clone)]
pub(crate) struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    pub(crate) fn at(span: Duration) -> Self {
        let clock = Self(Arc::default());
        clock.set(span);
        clock
    }

    pub(crate) fn set(&self, span: Duration) {
        self.0.store(span.as_nanos().try_into().expect("within 584 years"), Ordering::Release);
    }

    pub(crate) fn clock(&self) -> Clock {
        Clock::Manual(Arc::clone(&self.0))
    }
}

/// A folder with a place for a store.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) path: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tenure.db");
        Self { folder, path }
    }

    /// The names of all files in the folder.
    pub(crate) fn files(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("the folder");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }
}

/// Opens the store at a path and makes it if need be.
pub(crate) fn sqlite(path: &Path, clock: Clock) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(path, &Options { create: true, ..Options::new(clock) }).expect("a store"))
}

/// Opens what is at the path, with a short wait for other processes.
pub(crate) fn existing(path: &Path, clock: Clock) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, &Options { busy_timeout: Duration::from_millis(50), ..Options::new(clock) })
}

pub(crate) fn memory() -> Arc<dyn Store> {
    let clock = ManualClock::at(Duration::from_secs(1));
    Arc::new(MemoryStore::new(clock.clock(), Ttl::MAX).expect("a store"))
}

pub(crate) fn resource(name: &str) -> ResourceName {
    ResourceName::new(name).expect("a name")
}

pub(crate) fn grant(n: u64) -> GrantId {
    GrantId::from_bits(u128::from(n) << 64 | 0x1234)
}

/// A worker with an open session.
pub(crate) struct Worker {
    pub(crate) authority: Authority,
    pub(crate) session: SessionId,
}

impl Worker {
    pub(crate) fn open(store: Arc<dyn Store>, n: u64, on_this_host: bool) -> Self {
        Self::open_for(TTL, store, n, on_this_host)
    }

    pub(crate) fn open_for(ttl: Duration, store: Arc<dyn Store>, n: u64, on_this_host: bool) -> Self {
        Self::open_on(Authority::new(store), ttl, n, on_this_host)
    }

    /// Another session of the same process.
    pub(crate) fn beside(&self, n: u64) -> Self {
        Self::open_on(self.authority.clone(), TTL, n, false)
    }

    fn open_on(authority: Authority, ttl: Duration, n: u64, on_this_host: bool) -> Self {
        let worker = Self { authority, session: SessionId::from_bits(u128::from(n) + 1) };
        let read = block_on(worker.authority.store().read(&Keys::default())).expect("a read");
        let name = OwnerName::new(format!("worker-{n}")).expect("a name");
        let opening = Request::Open {
            id: worker.session,
            owner: Owner { name, instance: InstanceId::from_bits(u128::from(n) + 1) },
            on_this_host,
            ttl: Ttl::new(ttl).expect("within bounds"),
            asked_at: read.now,
            seen: Seen::default(),
        };
        worker.ask(&opening).expect("an answer").expect("a session");
        worker
    }

    pub(crate) fn ask(&self, request: &Request) -> Result<Result<Reply, Refusal>, AuthorityError> {
        block_on(self.authority.execute(request))
    }

    pub(crate) fn acquiring(&self, name: &str, grant: GrantId) -> Request {
        Request::Acquire { resource: resource(name), grant, session: self.session, sinks: BTreeSet::new() }
    }

    /// Acquires, and tries again as long as others do the same.
    pub(crate) fn acquire(&self, name: &str, grant: GrantId) -> Token {
        loop {
            match self.ask(&self.acquiring(name, grant)) {
                Ok(Ok(Reply::Granted(granted))) => return granted.token,
                Ok(Err(Refusal::Busy { .. })) | Err(AuthorityError::Contended) => std::thread::yield_now(),
                other => unreachable!("{other:?}"),
            }
        }
    }

    pub(crate) fn release(&self, token: &Token) {
        loop {
            match self.ask(&Request::Release { token: token.clone() }) {
                Ok(Ok(Reply::Released)) => return,
                Err(AuthorityError::Contended) => std::thread::yield_now(),
                other => unreachable!("{other:?}"),
            }
        }
    }

    pub(crate) fn renew(&self, n: u64) -> Result<Reply, Refusal> {
        self.ask(&Request::Renew { id: self.session, n, seen: Seen::default() }).expect("an answer")
    }
}

/// Whether this process is a child that the test started, and with what.
pub(crate) fn child_of(test: &str) -> Option<PathBuf> {
    std::env::var_os(format!("TENURE_CHILD_{test}")).map(PathBuf::from)
}

/// This test once more, in a process of its own, with a path to work on.
pub(crate) fn child(module: &str, test: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this test's own program"));
    command.args(arguments(module, test)).env(format!("TENURE_CHILD_{test}"), path);
    command
}

pub(crate) fn arguments(module: &str, test: &str) -> [String; 4] {
    [format!("{module}::{test}"), "--exact".into(), "--nocapture".into(), "--quiet".into()]
}
