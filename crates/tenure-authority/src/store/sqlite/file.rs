//! Opening the file: what is there, may it be used, did the machine reboot.

use super::guard::Guard;
use super::place::Place;
use super::row::Meta;
use super::time::Time;
use super::{Options, apply, guard, reader, reboot, schema};
use crate::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::Duration;
use tenure_core::record::AuthorityRecord;
use tenure_core::{StoreIdentity, Ttl};

/// What all connections to one open store share.
#[derive(Debug)]
pub(super) struct File {
    pub(super) place: Place,
    pub(super) time: Time,
    pub(super) guard: Guard,
}

impl File {
    /// Whether the store is still on this clock: another process may have opened it after it found another beginning.
    pub(super) fn check_origin(&self, meta: &Meta) -> Result<(), StoreError> {
        if meta.origin == self.time.origin() {
            return Ok(());
        }
        Err(StoreError::Unavailable(format!(
            "{} is now used on another clock ({:?}, here {:?}): let all processes use one clock, and open it again",
            self.place,
            meta.origin,
            self.time.origin()
        )))
    }
}

/// The oldest release without the WAL-reset bug, which corrupts files that several connections write.
const ENGINE_MIN: i32 = 3_051_003;

/// Opens the file for the writer, creates it if that was asked for, and applies the rule for reboots.
pub(super) fn writer(path: &Path, options: &Options) -> Result<(Connection, File), StoreError> {
    if rusqlite::version_number() < ENGINE_MIN {
        return Err(StoreError::Engine(format!("SQLite {} is older than 3.51.3", rusqlite::version())));
    }
    let place = Place::new(path.to_path_buf(), options.busy_timeout);
    look(&place, options.create)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let flags = if options.create { flags | OpenFlags::SQLITE_OPEN_CREATE } else { flags };
    let fault = |error: rusqlite::Error| place.fault(&error);
    let before = guard::device_and_inode(path);
    let mut connection = Connection::open_with_flags(path, flags).map_err(fault)?;
    prepare(&connection, options.busy_timeout).map_err(fault)?;
    if connection.is_readonly("main").map_err(fault)? {
        return Err(StoreError::NotWritable(format!("{place}: this process has no right to write")));
    }
    let time = Time::new(options.clock.clone());
    let guard = Guard::new(&place, before)?;
    settle(&mut connection, &place, options, &time, &guard)?;
    to_wal(&connection, &place)?;
    let file = File { place, time, guard };
    Ok((connection, file))
}

/// Opens the file once more, for reading.
pub(super) fn reader(place: &Place) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&place.path, flags).map_err(|error| place.fault(&error))?;
    prepare(&connection, place.busy_timeout).map_err(|error| place.fault(&error))?;
    Ok(connection)
}

fn prepare(connection: &Connection, busy_timeout: Duration) -> rusqlite::Result<()> {
    connection.busy_timeout(busy_timeout)?;
    connection.set_prepared_statement_cache_capacity(64);
    // The plan of a statement must not depend on the values that are bound: SQLite would parse it anew for each read,
    // which takes five times as long as the reading.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "synchronous", "FULL")
}

/// Looks at the bytes before SQLite does, which would already leave traces beside a file that is not ours.
fn look(place: &Place, create: bool) -> Result<(), StoreError> {
    let mut file = match std::fs::File::open(&place.path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound && create => {
            let folder = place.path.parent().filter(|folder| !folder.as_os_str().is_empty());
            return match folder {
                Some(folder) if !folder.is_dir() => Err(StoreError::NotWritable(format!(
                    "{place}: there is no folder {}, make it first",
                    folder.display()
                ))),
                _ => Ok(()),
            };
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(StoreError::Missing(place.to_string())),
        Err(error) => return Err(StoreError::Unavailable(format!("{place}: {error}"))),
    };
    let mut header = Vec::new();
    match file.by_ref().take(100).read_to_end(&mut header) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::IsADirectory => return Err(StoreError::Foreign(place.to_string())),
        Err(error) => return Err(StoreError::Unavailable(format!("{place}: {error}"))),
    }
    match header.as_slice() {
        [] if create => Ok(()),
        [] => Err(StoreError::Corrupt(format!("{place} is empty"))),
        header if header.starts_with(b"SQLite format 3\0") && header.len() < 100 => {
            Err(StoreError::Corrupt(format!("{place} ends within its header")))
        }
        header if header.starts_with(b"SQLite format 3\0") => {
            let ours = header.get(68..72).is_some_and(|id| id == schema::APPLICATION_ID.to_be_bytes());
            if ours { Ok(()) } else { Err(StoreError::Foreign(place.to_string())) }
        }
        _ => Err(StoreError::Foreign(place.to_string())),
    }
}

/// In one transaction: creates the tables in an empty file, or checks that they are ours and on this clock.
fn settle(
    connection: &mut Connection,
    place: &Place,
    options: &Options,
    time: &Time,
    guard: &Guard,
) -> Result<(), StoreError> {
    let fault = |error: rusqlite::Error| place.fault(&error);
    // For a file that is still empty. A swap changes a few short rows, and each costs a whole page in the log.
    connection.pragma_update(None, "page_size", 2048).map_err(fault)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(fault)?;
    let application: i32 = transaction.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(fault)?;
    let pages: i64 = transaction.pragma_query_value(None, "page_count", |row| row.get(0)).map_err(fault)?;
    match (application, version) {
        (0, 0) if pages <= 1 && options.create => {
            // Readings of the clock must not lie behind from the first moment on.
            time.now()?;
            let identity = StoreIdentity::new(format!("sqlite:{:032x}", crate::random_bits()?))
                .map_err(|error| StoreError::Corrupt(error.to_string()))?;
            let authority = AuthorityRecord::new(identity, options.max_ttl.unwrap_or(Ttl::MAX));
            schema::create(&transaction, &authority, time.origin()).map_err(fault)?;
        }
        (schema::APPLICATION_ID, schema::VERSION) => check(&transaction, place, options, time)?,
        (schema::APPLICATION_ID, found) => {
            let advice = if found > schema::VERSION {
                "update this program, or use the one that made the store; the file was left alone"
            } else {
                "open it with the program that made it, finish its work there, and create a new store"
            };
            return Err(StoreError::Schema { found, known: schema::VERSION, advice });
        }
        _ => return Err(StoreError::Foreign(place.to_string())),
    }
    // Within the transaction: of several processes that notice the same, only the first one has anything to do.
    guard.compare(&transaction, place, time)?;
    transaction.commit().map_err(fault)
}

fn check(transaction: &Transaction<'_>, place: &Place, options: &Options, time: &Time) -> Result<(), StoreError> {
    let fault = |error: rusqlite::Error| place.fault(&error);
    let meta = apply::meta(transaction).map_err(fault)?;
    let stored = meta.authority.max_ttl;
    if let Some(asked) = options.max_ttl.filter(|asked| *asked != stored) {
        return Err(StoreError::Address {
            url: place.to_string(),
            why: format!(
                "its max_ttl is {:?} since its creation, not {:?}: leave max_ttl out, or give that one",
                stored.get(),
                asked.get()
            ),
        });
    }
    let highest = reader::highest(transaction, &meta).map_err(fault)?;
    if meta.origin == time.origin() {
        time.seen(highest);
        time.now()?;
        return Ok(());
    }
    reboot::rebase(transaction, &meta, highest, time.now()?, time.origin()).map_err(fault)
}

/// After the creation, which the ordinary journal makes atomic. The mode is a lasting property of the file.
fn to_wal(connection: &Connection, place: &Place) -> Result<(), StoreError> {
    let step = Duration::from_millis(2);
    let mut left = place.busy_timeout;
    loop {
        let mode = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(StoreError::NotWritable(format!("{place}: its file system allows no WAL, only {mode}")));
            }
            // SQLite does not wait here by itself when another process changes the mode at the same time.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && !left.is_zero() => {
                std::thread::park_timeout(step);
                left = left.saturating_sub(step);
            }
            Err(error) => return Err(place.fault(&error)),
        }
    }
}
