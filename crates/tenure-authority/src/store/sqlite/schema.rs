use rusqlite::Connection;
use tenure_core::record::AuthorityRecord;

/// The version of the tables below.
pub(super) const VERSION: i64 = 1;

/// Stands in the file's header, so that a file of ours is known without opening it: "Tenr".
pub(super) const APPLICATION_ID: i32 = 0x5465_6e72;

/// For people as well: `sqlite3 FILE 'SELECT * FROM history'` shows what happened.
///
/// Instants and spans are nanoseconds of the store's clock (`*_ns`), ids are 16 bytes. A `version` only serves swaps.
const TABLES: &str = "
CREATE TABLE meta (
    only                 INTEGER PRIMARY KEY CHECK (only = 1),
    identity             TEXT    NOT NULL,
    incarnation          INTEGER NOT NULL,
    floor                INTEGER,
    max_ttl_ns           INTEGER NOT NULL,
    quarantined_until_ns INTEGER,
    version              INTEGER NOT NULL,
    versions_dropped     INTEGER NOT NULL,  -- no version above it ever stood on a record that is gone
    origin               TEXT    NOT NULL,  -- what names the clock's beginning
    origin_after         INTEGER NOT NULL   -- rows of the history up to it are of another beginning
) STRICT;

CREATE TABLE session (
    id             BLOB    PRIMARY KEY,
    owner_name     TEXT    NOT NULL,
    owner_instance BLOB    NOT NULL,
    on_this_host   INTEGER NOT NULL,
    ttl_ns         INTEGER NOT NULL,
    deadline_ns    INTEGER NOT NULL,
    renew_seq      INTEGER NOT NULL,
    incarnation    INTEGER NOT NULL,
    ended          TEXT,                    -- why; NULL while it is live
    ended_at_ns    INTEGER,
    version        INTEGER NOT NULL,        -- does not cover the holdings
    holdings       BLOB    NOT NULL         -- fingerprint of the grants that stand on it
) STRICT, WITHOUT ROWID;

CREATE TABLE lease (
    resource       TEXT    PRIMARY KEY,
    epoch          INTEGER NOT NULL,
    grant_id       BLOB    NOT NULL,
    session_id     BLOB    NOT NULL,
    owner_name     TEXT    NOT NULL,
    owner_instance BLOB    NOT NULL,
    since_ns       INTEGER NOT NULL,
    phase          TEXT    NOT NULL,
    outcome        TEXT,                    -- when completed
    cut            INTEGER,                 -- when retiring
    forgotten      TEXT,                    -- when retiring: JSON, the sinks that have forgotten
    sinks          TEXT    NOT NULL,        -- JSON
    version        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX lease_by_session ON lease (session_id);

CREATE TABLE history (
    number     INTEGER PRIMARY KEY,
    at_ns      INTEGER NOT NULL,
    wall       TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')),  -- decides nothing
    event      TEXT    NOT NULL,
    resource   TEXT,
    session_id BLOB,
    epoch      INTEGER,
    grant_id   BLOB,
    actor      TEXT,
    why        TEXT
) STRICT;
";

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
