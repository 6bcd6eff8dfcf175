//! Reading, each time in one statement or transaction, so that everything is of one moment.

use super::file::File;
use super::row::{
    self, AUTHORITY_WIDTH, LEASE_WIDTH, Meta, SESSION_WIDTH, SessionRow, authority_columns, lease_columns,
    session_columns,
};
use super::{apply, file};
use crate::StoreError;
use crate::store::{HistoryQuery, Listed, Order, Page, Read, Recorded, Versions};
use rusqlite::{Connection, Result};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use tenure_core::decide::{Keys, View};
use tenure_core::record::{LeaseRecord, Seen};
use tenure_core::{AuthorityClock, Instant, ResourceName, SessionId};

/// Everything that a request needs, in one statement. A look-up of a grant (`?3`) goes through the history from its
/// newest row; it is rare, and what a sink shows is seldom old.
const READ: &str = concat!(
    "SELECT ",
    authority_columns!(),
    ", ",
    session_columns!("c"),
    ", ",
    lease_columns!(),
    ", ",
    session_columns!("h"),
    ", (SELECT max(number) FROM history), (SELECT at_ns FROM history ORDER BY number DESC LIMIT 1), \
     CASE WHEN ?3 IS NULL THEN 1 ELSE \
     (SELECT 1 FROM history WHERE grant_id = ?3 ORDER BY number DESC LIMIT 1) IS NOT NULL END \
     FROM meta m LEFT JOIN session c ON c.id = ?1 LEFT JOIN lease l ON l.resource = ?2 \
     LEFT JOIN session h ON h.id = l.session_id"
);

/// Read-only connections, each used by one thread at a time; as many as there are processors, since a reading waits for
/// nothing else. A thread that finds all of them in use waits for one, for some ten microseconds.
#[derive(Debug)]
pub(super) struct Readers {
    file: Arc<File>,
    connections: Vec<Mutex<Option<Connection>>>,
    next: AtomicUsize,
}

impl Readers {
    pub(super) fn new(file: Arc<File>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let connections = (0..processors.min(8)).map(|_| Mutex::new(None)).collect();
        Self { file, connections, next: AtomicUsize::new(0) }
    }

    /// Runs a reading on the caller's thread.
    pub(super) fn with<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> std::result::Result<T, StoreError> {
        let mut slot = self.slot()?;
        // Taken out, so that one on which something failed, or whose reading panicked, is not used again.
        let connection = match slot.take() {
            Some(connection) => connection,
            None => file::reader(&self.file.place)?,
        };
        let found = read(&connection).map_err(|error| self.file.place.fault(&error))?;
        *slot = Some(connection);
        Ok(found)
    }

    /// A connection that is free, the one that was opened first if possible: its cache is warm.
    fn slot(&self) -> std::result::Result<MutexGuard<'_, Option<Connection>>, StoreError> {
        for connection in &self.connections {
            match connection.try_lock() {
                Ok(slot) => return Ok(slot),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.connections.len().max(1);
        let gone = || StoreError::Unavailable("the store has no connection for reading".to_owned());
        Ok(self.connections.get(turn).ok_or_else(gone)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads what a request needs, on the given connection or on one for reading.
    pub(super) fn read(&self, keys: &Keys, connection: Option<&Connection>) -> std::result::Result<Read, StoreError> {
        // Before the reading, or a change that is made in between would look like a step back.
        let known = self.file.guard.known();
        let found = match connection {
            Some(connection) => found(connection, keys).map_err(|error| self.file.place.fault(&error))?,
            None => self.with(|connection| found(connection, keys))?,
        };
        self.file.check_origin(&found.meta)?;
        let history = Seen { incarnation: found.meta.authority.incarnation, number: found.history };
        self.file.guard.not_before(history, known, &self.file.place)?;
        self.file.time.seen(found.newest_at);
        // After the records.
        let now = self.file.time.now()?;
        Ok(found.into_read(now))
    }
}

struct Found {
    meta: Meta,
    caller: Option<SessionRow>,
    lease: Option<(LeaseRecord, crate::store::Version)>,
    holder: Option<SessionRow>,
    history: u64,
    newest_at: Option<Instant<AuthorityClock>>,
    grant_known: bool,
}

fn found(connection: &Connection, keys: &Keys) -> Result<Found> {
    const CALLER: usize = AUTHORITY_WIDTH;
    const LEASE: usize = CALLER + SESSION_WIDTH;
    const HOLDER: usize = LEASE + LEASE_WIDTH;
    const HISTORY: usize = HOLDER + SESSION_WIDTH;
    let keys = (
        keys.session.map(|id| id.bits().to_be_bytes()),
        keys.resource.as_ref().map(ResourceName::as_str),
        keys.grant.map(|id| id.bits().to_be_bytes()),
    );
    connection.prepare_cached(READ)?.query_row(keys, |found| {
        let meta = row::authority(found, 0)?;
        let history = found.get::<_, Option<i64>>(HISTORY)?.unwrap_or(0).cast_unsigned();
        let newest_at = found.get::<_, Option<i64>>(HISTORY + 1)?.map(row::instant_from);
        Ok(Found {
            caller: row::session(found, CALLER)?,
            lease: row::lease(found, LEASE)?,
            holder: row::session(found, HOLDER)?,
            history,
            newest_at: newest_at.filter(|_| history > meta.origin_after),
            grant_known: found.get(HISTORY + 2)?,
            meta,
        })
    })
}

impl Found {
    fn into_read(self, now: Instant<AuthorityClock>) -> Read {
        let versions = Versions {
            authority: Some(self.meta.version),
            caller: self.caller.as_ref().map(|row| row.version),
            lease: self.lease.as_ref().map(|(_, version)| *version),
            holder: self.holder.as_ref().map(|row| row.version),
        };
        let view = View {
            observed: self.meta.authority.identity.clone(),
            authority: self.meta.authority,
            history: self.history,
            holdings: self.caller.as_ref().map(|row| row.holdings).unwrap_or_default(),
            caller: self.caller.map(|row| row.session),
            lease: self.lease.map(|(lease, _)| lease),
            holder: self.holder.map(|row| row.session),
            grant_known: self.grant_known,
        };
        Read { view, versions, now }
    }
}

pub(super) fn grants(readers: &Readers, id: SessionId) -> std::result::Result<Vec<LeaseRecord>, StoreError> {
    readers.with(|connection| apply::grants(connection, id))
}

pub(super) fn leases(readers: &Readers, page: &Page<ResourceName>) -> std::result::Result<Vec<Listed>, StoreError> {
    let sql = concat!(
        "SELECT ",
        lease_columns!(),
        ", ",
        session_columns!("h"),
        " FROM lease l LEFT JOIN session h ON h.id = l.session_id WHERE l.resource > ?1 ORDER BY l.resource LIMIT ?2"
    );
    let rows = readers.with(|connection| {
        // No name is empty, so this is before the first one.
        let after = page.after.as_ref().map_or("", ResourceName::as_str);
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map((after, limit(page.limit)), |found| {
            Ok((row::lease(found, 0)?, row::session(found, LEASE_WIDTH)?))
        })?;
        rows.collect::<Result<Vec<_>>>()
    })?;
    let now = readers.file.time.now()?;
    let listed = |(lease, holder): (Option<(LeaseRecord, _)>, Option<SessionRow>)| {
        lease.map(|(lease, _)| Listed { lease, holder: holder.map(|row| row.session), now })
    };
    Ok(rows.into_iter().filter_map(listed).collect())
}

/// Rows of one resource are found by going through the history: an index over it would cost each swap.
pub(super) fn history(readers: &Readers, query: &HistoryQuery) -> std::result::Result<Vec<Recorded>, StoreError> {
    let (sql, none) = match query.order {
        Order::OldestFirst => (row::history!("number > ?1", "number"), 0),
        Order::NewestFirst => (row::history!("number < ?1", "number DESC"), i64::MAX),
    };
    readers.with(|connection| {
        let after = query.after.map_or(none, |after| i64::try_from(after).unwrap_or(i64::MAX));
        let resource = query.resource.as_ref().map(ResourceName::as_str);
        let mut statement = connection.prepare_cached(sql)?;
        statement.query_map((after, resource, limit(query.limit)), row::recorded)?.collect()
    })
}

pub(super) fn idle_sessions(readers: &Readers, most: usize) -> std::result::Result<Vec<SessionId>, StoreError> {
    let now = row::instant_to(readers.file.time.now()?);
    // First those that nobody has ended yet, then those that ended longest ago: a bounded sweep always gets on.
    let sql = "SELECT id FROM session \
               WHERE ended IS NOT NULL OR deadline_ns <= ?1 OR incarnation <> (SELECT incarnation FROM meta) \
               ORDER BY ended IS NOT NULL, coalesce(ended_at_ns, deadline_ns), id LIMIT ?2";
    readers.with(|connection| {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map((now, limit(most)), |found| found.get(0).map(u128::from_be_bytes))?;
        rows.map(|id| id.map(SessionId::from_bits)).collect()
    })
}

fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

/// The highest reading of the clock that the file bears witness to, of the present beginning.
pub(super) fn highest(connection: &Connection, meta: &Meta) -> Result<Option<Instant<AuthorityClock>>> {
    let newest = "SELECT max(at_ns) FROM (SELECT at_ns FROM history WHERE number > ?1 ORDER BY number DESC LIMIT 1)";
    let newest: Option<i64> = connection.query_row(newest, [meta.origin_after.cast_signed()], |found| found.get(0))?;
    // A renewal leaves no row in the history, but its deadline tells when it was.
    let renewed = "SELECT max(deadline_ns - ttl_ns) FROM session WHERE ended IS NULL";
    let renewed: Option<i64> = connection.query_row(renewed, (), |found| found.get(0))?;
    Ok(newest.max(renewed).map(row::instant_from))
}
