-- The ledger of calls, first version. {schema} stands for the schema of the sink beside which it lives.
--
-- A role that writes it needs, beside the right to write (SELECT {schema}.allow('app', 'write')):
--     GRANT SELECT, INSERT, UPDATE ON {schema}.ledger_attempt TO app; GRANT SELECT ON {schema}.ledger_migration TO app

DO $$ BEGIN
    IF (SELECT n.rule FROM {schema}.sink_namespace n) NOT IN ('sealed', 'held') THEN
        RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the sink is never sealed, and a ledger needs its seals',
            HINT = 'Make another sink for it, under the rule sealed or held.';
    END IF;
END $$;

CREATE TABLE {schema}.ledger_migration (
    number     integer     PRIMARY KEY,
    name       text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE {schema}.ledger_attempt (
    resource    text COLLATE "C" CHECK ({schema}.sink_is_name(resource)),
    operation   text COLLATE "C" CHECK ({schema}.sink_is_name(operation)),
    epoch       bigint      NOT NULL CHECK (epoch > 0),
    seal_no     bigint      NOT NULL,
    digest      bytea       NOT NULL CHECK (octet_length(digest) = 32),
    state       text        NOT NULL,
    outcome     text                 CHECK (octet_length(outcome) <= 65536),
    system      text        NOT NULL,
    owner       text        NOT NULL,
    intended_at timestamptz NOT NULL DEFAULT clock_timestamp(), -- decides nothing
    changed_at  timestamptz NOT NULL DEFAULT clock_timestamp(), -- decides nothing
    decided_by  text,
    why         text,
    PRIMARY KEY (resource, operation, epoch)
);

CREATE INDEX ledger_open ON {schema}.ledger_attempt (resource, operation, epoch)
    WHERE state IN ('intent', 'sent', 'unknown');
