//! The fence's tables. They live beside the caller's own, in the same database.

/// The version of the tables. Raised with each change to them.
pub(super) const VERSION: i64 = 1;

/// Creates what is missing and touches nothing that is there.
pub(super) const CREATE: &str = "
CREATE TABLE IF NOT EXISTS tenure_sink_namespace (
    only           INTEGER PRIMARY KEY CHECK (only = 1),
    schema_version INTEGER NOT NULL,
    rule           TEXT    NOT NULL,
    identity       TEXT    NOT NULL,
    reopen_count   INTEGER NOT NULL,
    floor          INTEGER
) STRICT;

CREATE TABLE IF NOT EXISTS tenure_sink_fence (
    resource   TEXT    PRIMARY KEY,
    epoch      INTEGER NOT NULL CHECK (epoch > 0),
    grant_id   TEXT    NOT NULL,
    generation TEXT    NOT NULL,
    seal_no    INTEGER NOT NULL CHECK (seal_no > 0),
    enrolled   TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS tenure_sink_operation (
    resource  TEXT    NOT NULL,
    operation TEXT    NOT NULL,
    epoch     INTEGER NOT NULL CHECK (epoch > 0),
    seal_no   INTEGER NOT NULL,
    digest    BLOB    NOT NULL CHECK (length(digest) = 32),
    state     TEXT    NOT NULL,
    outcome   TEXT    NOT NULL,
    PRIMARY KEY (resource, operation)
) STRICT, WITHOUT ROWID;
";

/// Gives the database its identity, once.
pub(super) const IDENTIFY: &str = "
INSERT INTO tenure_sink_namespace (only, schema_version, rule, identity, reopen_count, floor)
VALUES (1, ?1, ?2, lower(hex(randomblob(16))), 0, NULL)
ON CONFLICT (only) DO NOTHING";

/// The columns of the namespace's row, in the order in which `rows` reads them.
pub(super) const NAMESPACE: &str =
    "SELECT schema_version, rule, identity, reopen_count, floor FROM tenure_sink_namespace WHERE only = 1";

/// The same, with the fence of one resource beside it. The `+` keeps the planner from looking at the parameter's value, for
/// which it would prepare the statement anew at each use.
pub(super) const STANDING: &str = "
SELECT n.schema_version, n.rule, n.identity, n.reopen_count, n.floor,
       f.epoch, f.grant_id, f.generation, f.seal_no, f.enrolled
FROM tenure_sink_namespace AS n LEFT JOIN tenure_sink_fence AS f ON f.resource = +?1
WHERE n.only = 1";

/// The namespace, with each fence after a name beside it.
pub(super) const LIST: &str = "
SELECT n.schema_version, n.rule, n.identity, n.reopen_count, n.floor,
       f.epoch, f.grant_id, f.generation, f.seal_no, f.enrolled, f.resource
FROM tenure_sink_namespace AS n LEFT JOIN tenure_sink_fence AS f ON f.resource > ?1
WHERE n.only = 1 ORDER BY f.resource LIMIT max(?2, 1)";

pub(super) const PUT: &str = "
INSERT INTO tenure_sink_fence (resource, epoch, grant_id, generation, seal_no, enrolled)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (resource) DO UPDATE SET epoch = excluded.epoch, grant_id = excluded.grant_id,
    generation = excluded.generation, seal_no = excluded.seal_no, enrolled = excluded.enrolled";

/// Takes the write lock, or says why not, without changing a page.
pub(super) const TAKE_WRITE_LOCK: &str = "UPDATE tenure_sink_namespace SET floor = floor WHERE only = 0";

pub(super) const FIND: &str =
    "SELECT epoch, digest, outcome FROM tenure_sink_operation WHERE resource = ?1 AND operation = ?2";

pub(super) const RECORD: &str = "
INSERT INTO tenure_sink_operation (resource, operation, epoch, seal_no, digest, state, outcome)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
