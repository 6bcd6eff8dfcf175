//! A store in one SQLite file.

mod apply;
mod blocker;
mod file;
mod guard;
mod import;
mod lister;
mod place;
mod reader;
mod reboot;
mod row;
mod schema;
mod time;
mod writer;

use super::{
    Answer, Capabilities, Durability, HistoryQuery, Import, Listed, Page, Read, Recorded, Scope, Store, StoreError,
    SwapOutcome, TimeSource, Version,
};
use crate::Clock;
use file::File;
use lister::Lister;
use reader::Readers;
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::decide::{Keys, Swap};
use tenure_core::record::LeaseRecord;
use tenure_core::{ResourceName, SessionId, Ttl};
use writer::Writer;

/// A store in one SQLite file, on a local disk; several processes of one machine may share it.
///
/// # How it works
///
/// * **Swaps** wait in one queue. Whoever finds nobody writing puts all that wait into one `IMMEDIATE` transaction and
///   answers them after its commit (WAL, `synchronous=FULL`); when somebody is writing, a thread of the store does so
///   next. So **one commit may run on a caller's thread**, and that thread waits for the disk: a tenth of a millisecond
///   on a good one, as long as a bad one takes. At most one thread of a runtime waits so at any time, and never for
///   another process: that the store's own thread does. It saves the one caller of an idle store half of the time.
/// * **Short reads** ([`Store::read`]) run on the caller's thread, for some ten microseconds: one statement, on a
///   connection that no writer holds up. Listings run on a thread for them.
/// * **Time** is the given clock. When its [`origin`](Clock::origin) is another one than the file's, the machine was
///   rebooted: sessions of holders on this host end at once, remote ones get one more ttl.
///
/// # A file that was put back
///
/// Beside the file stands its witness, `FILE-witness`, with the same rights: which file it is, the newest point of its
/// history, and the longest ttl of a session. At each opening both are compared. A file that is another one, has an older
/// history, or has one without a witness, was copied, moved alone or put back. It then gets a new identity and grants
/// nothing for as long as a holder of what is lost may still believe: the longest ttl that the witness tells (two minutes at
/// least), or `max_ttl`
/// without one. A process that has the file open meanwhile is told so ([`StoreError::Unavailable`]) before it grants
/// anything, and has to open it again.
///
/// | what is done | what the next opening does |
/// |---|---|
/// | moved within a disk, together with its companions (`mv jobs.db* elsewhere/`) | goes on |
/// | `VACUUM` | goes on |
/// | copied, restored from a backup, or moved to another disk, with or without its witness | quarantines |
/// | moved without its witness | quarantines |
/// | `sqlite3 FILE '.backup COPY'`, `VACUUM INTO` | goes on; the copy quarantines when it is opened as a store |
/// | `sqlite3 FILE '.restore COPY'` | quarantines |
/// | removed and made anew | quarantines, unless the witness was removed as well |
/// | `tenure export`, `import` | as they say: an import quarantines for as long as the exported holders may believe |
///
/// # What it does not promise
///
/// * A process that is stopped *within* a commit holds the file: others get [`StoreError::Unavailable`] until it goes on
///   or is killed.
/// * Several processes on one file do not share it fairly; one server process is the intended shape for much traffic.
/// * Never on a network file system: neither its locks nor this machine's clock reach the others.
/// * What goes back together with its witness, as with a snapshot of the whole disk, is noticed only by callers who have
///   seen a later history. So is a file that was copied back within a second after its newest grant.
/// * A file that is overwritten *in place* while processes have it open is damaged: stop them first, or rename it into its
///   place.
#[derive(Debug)]
pub struct SqliteStore {
    lister: Lister,
    readers: Arc<Readers>,
    // Last: the connection that is closed last tidies the WAL away, and only this one has the right to write.
    writer: Writer,
}

/// How a file is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether a file that is not there is made. Otherwise it is an error, so that a wrong path is noticed.
    pub create: bool,
    /// The longest ttl of a session. `None`: as it was fixed when the store was made, [`Ttl::MAX`] for a new one.
    pub max_ttl: Option<Ttl>,
    /// The store's time.
    pub clock: Clock,
    /// How long another process may hold the file before it counts as unavailable.
    pub busy_timeout: Duration,
}

impl Options {
    /// The usual ones: nothing is created, and another process may hold the file for five seconds.
    #[must_use]
    pub const fn new(clock: Clock) -> Self {
        Self { create: false, max_ttl: None, clock, busy_timeout: Duration::from_secs(5) }
    }
}

impl SqliteStore {
    /// Opens the file. It may wait for other processes for `busy_timeout`, on the caller's thread.
    ///
    /// # Errors
    /// * [`StoreError::Missing`]: there is no file, and none was made.
    /// * [`StoreError::Foreign`]: it is something else; it was not touched.
    /// * [`StoreError::Corrupt`], [`StoreError::Schema`], [`StoreError::NotWritable`], [`StoreError::Unavailable`],
    ///   [`StoreError::ClockWentBack`]: as they say.
    /// * [`StoreError::Address`]: `max_ttl` is not the file's.
    /// * [`StoreError::Engine`]: this program was built with an SQLite that may corrupt files.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self, StoreError> {
        let (connection, file) = file::writer(path.as_ref(), options)?;
        Self::over(connection, file)
    }

    fn over(connection: Connection, file: File) -> Result<Self, StoreError> {
        let file = Arc::new(file);
        let readers = Arc::new(Readers::new(Arc::clone(&file)));
        let lister = Lister::start(Arc::clone(&readers))?;
        Ok(Self { lister, readers, writer: Writer::start(connection, file)? })
    }

    /// How many transactions were committed since the store was opened; many swaps share one.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }
}

impl Store for SqliteStore {
    fn read<'a>(&'a self, keys: &'a Keys) -> Answer<'a, Result<Read, StoreError>> {
        Box::pin(async move {
            // The rare look-up of a grant may take long, and must not keep swaps waiting.
            let idle = if keys.grant.is_none() { self.writer.idle() } else { None };
            self.readers.read(keys, idle.as_deref())
        })
    }

    fn swap(&self, swap: Swap, expected: Option<Version>) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        Box::pin(self.writer.swap(swap, expected))
    }

    fn grants(&self, session: SessionId) -> Answer<'_, Result<Vec<LeaseRecord>, StoreError>> {
        Box::pin(self.lister.list(move |readers| reader::grants(readers, session)))
    }

    fn leases(&self, page: Page<ResourceName>) -> Answer<'_, Result<Vec<Listed>, StoreError>> {
        Box::pin(self.lister.list(move |readers| reader::leases(readers, &page)))
    }

    fn history(&self, query: HistoryQuery) -> Answer<'_, Result<Vec<Recorded>, StoreError>> {
        Box::pin(self.lister.list(move |readers| reader::history(readers, &query)))
    }

    fn idle_sessions(&self, limit: usize) -> Answer<'_, Result<Vec<SessionId>, StoreError>> {
        Box::pin(self.lister.list(move |readers| reader::idle_sessions(readers, limit)))
    }

    fn import(&self, content: Import) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        // On the listings' thread: it may take long, and swaps have to wait for it anyway.
        let write = self.writer.import(content);
        Box::pin(self.lister.list(move |_| write()))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            scope: Scope::Host,
            durability: Durability::Durable,
            clock: TimeSource::Host,
            // Other processes of this machine do not tell.
            wakes: false,
        }
    }
}

#[cfg(test)]
mod tests;
