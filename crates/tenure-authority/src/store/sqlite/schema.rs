use rusqlite::Connection;
use tenure_core::record::AuthorityRecord;

/// The version of the tables below.
pub(super) const VERSION: i64 = 1;

/// Stands in the file's header, so that a file of ours is known without opening it: "Tenr".
pub(super) const APPLICATION_ID: i32 = 0x5465_6e72;

const TABLES: &str = include_str!("first.sql");

/// Fills an empty file, within the caller's transaction.
pub(super) fn create(connection: &Connection, authority: &AuthorityRecord, origin: &str) -> rusqlite::Result<()> {
    connection.execute_batch(TABLES)?;
    connection.execute(
        "INSERT INTO meta VALUES (1, ?1, ?2, NULL, ?3, NULL, 1, 0, ?4, 0)",
        (
            authority.identity.as_str(),
            authority.incarnation.cast_signed(),
            super::row::nanos_of(authority.max_ttl.get()),
            origin,
        ),
    )?;
    connection.pragma_update(None, "user_version", VERSION)?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)
}
