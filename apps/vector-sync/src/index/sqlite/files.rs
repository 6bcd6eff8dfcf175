//! The files of an index, one for each tenant, and this process's connections to them.

use super::stop::{Stop, explained};
use crate::index::catalog;
use crate::index::{IndexError, WriteError};
use crate::tenant::Tenant;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tenure::core::fence::Rule;
use tenure::sink::{Sink, SqliteFence, SqliteSink};
use tenure::{Token, Verdict};

/// How long a call waits for another process that writes.
const WAIT: Duration = Duration::from_secs(5);

/// How many connections are kept when nobody calls.
const IDLE_MAX: usize = 4;

/// The memory for pages that a reading connection may take, in KiB: the vectors of some 20,000 chunks.
const READ_CACHE: i64 = 64 * 1024;

/// A search reads all vectors: from larger pages in less time.
const PAGE: i64 = 16 * 1024;

/// A folder with one SQLite file for each tenant. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::index) struct Files(Arc<Folder>);

#[derive(Debug)]
struct Folder {
    folder: PathBuf,
    place: String,
    idle: Mutex<VecDeque<Link>>,
}

/// An open connection.
#[derive(Debug)]
struct Link {
    path: PathBuf,
    /// Which file it is: another one may stand at the path by now.
    file: (u64, u64),
    writes: bool,
    connection: Connection,
}

impl Files {
    pub(in crate::index) fn new(folder: &Path) -> Self {
        super::vec0::register();
        let place = format!("sqlite:{}", folder.display());
        Self(Arc::new(Folder { folder: folder.to_owned(), place, idle: Mutex::default() }))
    }

    /// For people.
    pub(in crate::index) fn name(&self) -> &str {
        &self.0.place
    }

    /// Makes what is missing of a tenant's place.
    pub(in crate::index) async fn make(&self, tenant: &Tenant) -> Result<Arc<dyn Sink>, IndexError> {
        let path = self.0.path(tenant);
        let id = catalog::sink_id(tenant);
        self.run(move |files| {
            let place = path.display().to_string();
            let fail = |error: std::io::Error| IndexError::Failed {
                place: files.place.clone(),
                doing: "making the folder",
                why: format!("{error}; name a folder that this user may make and write"),
            };
            std::fs::create_dir_all(&files.folder).map_err(fail)?;
            let made = || -> Result<SqliteSink, Stop> {
                let connection = Connection::open(&path)?;
                connection.busy_timeout(WAIT)?;
                // Without effect on a file that is there already.
                connection.pragma_update(None, "page_size", PAGE)?;
                let sink = SqliteSink::create(&path, id, Rule::Sealed)?;
                connection.pragma_update(None, "synchronous", "FULL")?;
                let tx = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)?;
                if !is_made(&tx, &place)? {
                    tx.execute_batch(catalog::sqlite::CREATE)?;
                    tx.pragma_update(None, "user_version", catalog::sqlite::VERSION)?;
                    tx.commit()?;
                }
                Ok(sink)
            };
            made().map(|sink| Arc::new(sink) as Arc<dyn Sink>).map_err(|stop| stop.read(&place, "making the index"))
        })
        .await?
    }

    /// All tenants that have a file, in the order of their names. No folder is no tenant.
    pub(in crate::index) async fn list(&self) -> Result<Vec<Tenant>, IndexError> {
        self.run(move |files| {
            let fail = |error: std::io::Error| IndexError::Failed {
                place: files.place.clone(),
                doing: "listing the tenants",
                why: format!("{error}; let this user read the folder"),
            };
            let entries = match std::fs::read_dir(&files.folder) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
                entries => entries.map_err(fail)?,
            };
            let mut tenants = Vec::new();
            for entry in entries {
                let name = entry.map_err(fail)?.file_name();
                // Whatever else lies there is not ours.
                let tenant = name.to_str().and_then(|name| name.strip_suffix(".db")).and_then(|name| name.parse().ok());
                tenants.extend(tenant);
            }
            tenants.sort();
            Ok(tenants)
        })
        .await?
    }

    /// Reads as of one moment; `None` where there is nothing to read yet. Never makes anything.
    pub(in crate::index) async fn read<T: Send + 'static>(
        &self,
        tenant: &Tenant,
        doing: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Stop> + Send + 'static,
    ) -> Result<Option<T>, IndexError> {
        let path = self.0.path(tenant);
        self.run(move |files| {
            let place = path.display().to_string();
            let Some(link) = files.link(&path, false)? else { return Ok(None) };
            let read = || -> Result<Option<T>, Stop> {
                let tx = Transaction::new_unchecked(&link.connection, TransactionBehavior::Deferred)?;
                is_made(&tx, &place)?.then(|| work(&tx)).transpose()
            };
            let done = read().map_err(|stop| stop.read(&place, doing))?;
            files.put_back(link);
            Ok(done)
        })
        .await?
    }

    /// Changes something in one transaction, in which the token is checked first.
    pub(in crate::index) async fn change<T: Send + 'static>(
        &self,
        tenant: &Tenant,
        token: &Token,
        doing: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Stop> + Send + 'static,
    ) -> Result<T, WriteError> {
        catalog::belongs(self.name(), tenant, token)?;
        let token = token.clone();
        let admitted = move |tx: &Transaction<'_>| match fence().admit(tx, &token)? {
            Ok(_admitted) => work(tx),
            Err(verdict) => Err(refused(verdict)),
        };
        self.transact(tenant, doing, admitted).await
    }

    /// Runs a transaction that writes. It is rolled back when the work fails.
    pub(in crate::index) async fn transact<T: Send + 'static>(
        &self,
        tenant: &Tenant,
        doing: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Stop> + Send + 'static,
    ) -> Result<T, WriteError> {
        let path = self.0.path(tenant);
        self.run(move |files| {
            let place = path.display().to_string();
            let Some(link) = files.link(&path, true)? else { return Err(not_there(&place, doing).into()) };
            let write = || -> Result<T, Stop> {
                let tx = Transaction::new_unchecked(&link.connection, TransactionBehavior::Immediate)?;
                if !is_made(&tx, &place)? {
                    return Err(not_there(&place, doing).into());
                }
                let done = work(&tx)?;
                tx.commit().map_err(|error| match error.sqlite_error_code() {
                    Some(ErrorCode::DatabaseBusy | ErrorCode::DiskFull) => Stop::Sqlite(error),
                    // It may be in the log, from which a restart would take it.
                    _ => Stop::Said(WriteError::Unknown(explained(&place, doing, &error).to_string())),
                })?;
                Ok(done)
            };
            let done = write().map_err(|stop| stop.write(&place, doing))?;
            files.put_back(link);
            Ok(done)
        })
        .await?
    }

    /// Runs blocking work to its end, also when the returned future is dropped.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&Folder) -> T + Send + 'static) -> Result<T, IndexError> {
        let files = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || work(&files)).await.map_err(|error| IndexError::Failed {
            place: self.0.place.clone(),
            doing: "a call",
            why: format!("{error}: this is an error of this program"),
        })
    }
}

impl Folder {
    fn path(&self, tenant: &Tenant) -> PathBuf {
        self.folder.join(format!("{tenant}.db"))
    }

    /// A connection to the file that stands at the path now; `None` when there is none.
    fn link(&self, path: &Path, writes: bool) -> Result<Option<Link>, IndexError> {
        let place = path.display().to_string();
        let file = match path.metadata() {
            Ok(metadata) => (metadata.dev(), metadata.ino()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let why = format!("{error}; give this user the right to enter the folder");
                return Err(IndexError::Failed { place, doing: "opening", why });
            }
        };
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|link| link.path != path || link.file == file);
        if let Some(at) = idle.iter().position(|link| link.path == path && link.writes == writes) {
            return Ok(idle.remove(at));
        }
        drop(idle);
        let open = || -> rusqlite::Result<Connection> {
            let mode = if writes { OpenFlags::SQLITE_OPEN_READ_WRITE } else { OpenFlags::SQLITE_OPEN_READ_ONLY };
            let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
            connection.busy_timeout(WAIT)?;
            connection.set_prepared_statement_cache_capacity(32);
            if writes {
                connection.pragma_update(None, "synchronous", "FULL")?;
            } else {
                connection.pragma_update(None, "cache_size", -READ_CACHE)?;
            }
            Ok(connection)
        };
        let connection = open().map_err(|error| explained(&place, "opening", &error))?;
        Ok(Some(Link { path: path.to_owned(), file, writes, connection }))
    }

    fn put_back(&self, link: Link) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push_back(link);
        if idle.len() > IDLE_MAX {
            let oldest = idle.pop_front();
            drop(idle);
            // Closing may write what is in the log into the file.
            drop(oldest);
        }
    }
}

/// The fence of each file.
pub(in crate::index) fn fence() -> SqliteFence {
    SqliteFence::new(Rule::Sealed)
}

fn refused(verdict: Verdict) -> Stop {
    WriteError::Refused(verdict).into()
}

fn not_there(place: &str, doing: &'static str) -> IndexError {
    let why = "there is no index; it is made when a round begins, so begin one".to_owned();
    IndexError::Failed { place: place.to_owned(), doing, why }
}

/// Whether the tables are there, and of this program's version.
fn is_made(connection: &Connection, place: &str) -> Result<bool, Stop> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    match found {
        0 => Ok(false),
        catalog::sqlite::VERSION => Ok(true),
        _ => {
            let known = catalog::sqlite::VERSION;
            let why = format!(
                "its tables have the version {found}, this program knows {known}: use the program that made it, or move the \
                 file away and sync anew"
            );
            Err(IndexError::Failed { place: place.to_owned(), doing: "opening", why }.into())
        }
    }
}
