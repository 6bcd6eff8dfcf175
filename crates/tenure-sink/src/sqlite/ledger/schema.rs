//! The ledger's tables, beside the fence's. They have a version of their own: a database without a ledger is not touched,
//! and a program that knows no ledger goes on with the fence.

/// The version of the tables. Raised with each change to them, and [`STEPS`] gets one more.
pub(super) const VERSION: i64 = 1;

/// What brings the tables from one version to the next; the first makes them. A step is never changed after a release.
pub(super) const STEPS: [&str; 1] = ["
CREATE TABLE tenure_ledger (
    only           INTEGER PRIMARY KEY CHECK (only = 1),
    schema_version INTEGER NOT NULL
) STRICT;

INSERT INTO tenure_ledger (only, schema_version) VALUES (1, 0);

CREATE TABLE tenure_ledger_attempt (
    resource    TEXT    NOT NULL,
    operation   TEXT    NOT NULL,
    epoch       INTEGER NOT NULL CHECK (epoch > 0),
    seal_no     INTEGER NOT NULL,
    digest      BLOB    NOT NULL CHECK (length(digest) = 32),
    state       TEXT    NOT NULL,
    outcome     TEXT,
    system      TEXT    NOT NULL,
    owner       TEXT    NOT NULL,
    intended_ms INTEGER NOT NULL,
    changed_ms  INTEGER NOT NULL,
    decided_by  TEXT,
    why         TEXT,
    PRIMARY KEY (resource, operation, epoch)
) STRICT, WITHOUT ROWID;

CREATE INDEX tenure_ledger_open ON tenure_ledger_attempt (resource, operation, epoch)
    WHERE state IN ('intent', 'sent', 'unknown');
"];

pub(super) const IS_THERE: &str = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'tenure_ledger'";

pub(super) const READ_VERSION: &str = "SELECT schema_version FROM tenure_ledger WHERE only = 1";

pub(super) const SET_VERSION: &str = "UPDATE tenure_ledger SET schema_version = ?1";

/// The database's own wall clock, in milliseconds since 1970.
macro_rules! now {
    () => {
        "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
    };
}

macro_rules! select {
    () => {
        concat!(
            "SELECT resource, operation, epoch, seal_no, digest, state, outcome, system, owner, intended_ms, \
             changed_ms, max(",
            now!(),
            " - changed_ms, 0), decided_by, why FROM tenure_ledger_attempt "
        )
    };
}

pub(super) const ENTRIES: &str = "
SELECT epoch, digest, state, outcome FROM tenure_ledger_attempt
WHERE resource = ?1 AND operation = ?2 ORDER BY epoch";

pub(super) const ENTRY: &str = "
SELECT epoch, digest, state, outcome FROM tenure_ledger_attempt
WHERE resource = ?1 AND operation = ?2 AND epoch = ?3";

/// What older epochs of a resource have left open.
pub(super) const LEFT: &str = "
SELECT epoch, digest, state, outcome, operation FROM tenure_ledger_attempt
WHERE resource = ?1 AND epoch < ?2 AND state IN ('intent', 'sent', 'unknown')";

pub(super) const WRITE: &str = concat!(
    "INSERT INTO tenure_ledger_attempt (resource, operation, epoch, seal_no, digest, state, system, owner, \
     intended_ms, changed_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ",
    now!(),
    ", ",
    now!(),
    ")"
);

/// An outcome that is known stays, when the same is said again without one.
pub(super) const CHANGE: &str = concat!(
    "UPDATE tenure_ledger_attempt SET state = ?4, outcome = coalesce(?5, outcome), decided_by = ?6, why = ?7, \
     changed_ms = ",
    now!(),
    " WHERE resource = ?1 AND operation = ?2 AND epoch = ?3"
);

pub(super) const ATTEMPTS: &str = concat!(select!(), "WHERE operation = ?1 ORDER BY resource, operation, epoch");

pub(super) const LIST_UNKNOWN: &str = concat!(
    select!(),
    "WHERE state IN ('intent', 'sent', 'unknown') AND state = 'unknown' AND (resource, operation, epoch) > (?1, ?2, ?3) AND resource <= ?5 \
     ORDER BY resource, operation, epoch LIMIT ?4"
);

pub(super) const LIST_OPEN: &str = concat!(
    select!(),
    "WHERE state IN ('intent', 'sent', 'unknown') AND (resource, operation, epoch) > (?1, ?2, ?3) AND resource <= ?5 \
     ORDER BY resource, operation, epoch LIMIT ?4"
);

pub(super) const LIST_ALL: &str = concat!(
    select!(),
    "WHERE (resource, operation, epoch) > (?1, ?2, ?3) AND resource <= ?5 ORDER BY resource, operation, epoch LIMIT ?4"
);
