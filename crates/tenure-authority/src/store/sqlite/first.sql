-- Tables of a store, first version.
--
-- For people as well: sqlite3 FILE 'SELECT * FROM history' shows what happened. Instants and spans are nanoseconds of the
-- store's clock (*_ns), ids are 16 bytes. A version only serves swaps.

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

-- For receivers in this file, under the rule `held`: whether the newest grant of a resource stands. They know nothing else of
-- these tables; version says what the columns mean. A grant stands while ending is NULL and the clock is before deadline_ns.
-- Readings of a clock of another origin cannot be compared.
CREATE VIEW tenure_held (version, resource, epoch, grant_id, owner, since_ns, deadline_ns, ending, ended_ns, origin) AS
SELECT 1, l.resource, l.epoch, lower(hex(l.grant_id)), l.owner_name, l.since_ns, s.deadline_ns,
    CASE
        WHEN l.phase NOT IN ('sealing', 'held') THEN l.phase
        WHEN s.id IS NULL THEN 'swept'
        WHEN s.ended IS NOT NULL THEN s.ended
        WHEN s.incarnation <> m.incarnation THEN 'restored'
    END,
    CASE WHEN l.phase IN ('sealing', 'held') THEN s.ended_at_ns END,
    m.origin
FROM lease AS l CROSS JOIN meta AS m LEFT JOIN session AS s ON s.id = l.session_id;
