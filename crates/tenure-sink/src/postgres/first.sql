-- Tables and functions of a sink, first version. {schema} stands for the sink's schema, {rule} for its rule.
--
-- For people as well: SELECT * FROM {schema}.rows() shows whose turn it is, {schema}.sink_operation what was applied,
-- {schema}.sink_journal what operators did. An authority's tables may stand in the same schema.
--
-- Functions that change the fence, and those that show a grant, are for whoever made the sink: they are taken away from PUBLIC
-- at the end, and allow gives them to a role. Whoever writes needs USAGE on the schema, and nothing else.
--
-- Under the rule held the authority's tables must stand in this schema. Where another role has made them, let it run before:
-- GRANT CREATE, USAGE ON SCHEMA {schema} TO ROLE; GRANT SELECT ON {schema}.held TO ROLE, with the role that runs this.

CREATE TABLE {schema}.sink_migration (
    number     integer     PRIMARY KEY,
    name       text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE {schema}.sink_namespace (
    single       boolean PRIMARY KEY DEFAULT true CHECK (single),
    rule         text    NOT NULL CHECK (rule IN ('sealed', 'high-water', 'held')),
    reopen_count bigint  NOT NULL DEFAULT 0 CHECK (reopen_count >= 0),
    floor        bigint           CHECK (floor > 0),
    secret       bytea   NOT NULL DEFAULT uuid_send(gen_random_uuid()) -- what marks a written down exemption in its transaction
);

-- Whether a text is a name: 1 to 512 bytes without control characters.
CREATE FUNCTION {schema}.sink_is_name(name text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(octet_length(name) BETWEEN 1 AND 512 AND (name COLLATE "C") !~ '[\x01-\x1f\x7f-\x9f]', false)
$$;

CREATE TABLE {schema}.sink_fence (
    resource   text COLLATE "C" PRIMARY KEY CHECK ({schema}.sink_is_name(resource)),
    epoch      bigint      NOT NULL CHECK (epoch > 0),
    grant_id   uuid        NOT NULL,
    generation text        NOT NULL, -- in which it was sealed: SERVER:REOPEN_COUNT
    server     text        NOT NULL, -- the first part of it
    reopened   boolean     NOT NULL DEFAULT false, -- the sink was reopened since: generation is another one now
    started    timestamptz, -- since when the server ran that was last seen to be that one, and
    file       text,        -- the file of this table: together they tell it, and a dump or a copy, without reading the disk
    seal_no    bigint      NOT NULL CHECK (seal_no > 0),
    enrolled   text[]      NOT NULL,
    sealed_at  timestamptz NOT NULL DEFAULT clock_timestamp(), -- decides nothing
    sealed_by  text        NOT NULL,
    secret     bytea       NOT NULL DEFAULT uuid_send(gen_random_uuid()) -- of this seal; what marks an admitted token in its transaction
) WITH (fillfactor = 50);

CREATE TABLE {schema}.sink_operation (
    resource    text COLLATE "C",
    operation   text COLLATE "C" CHECK ({schema}.sink_is_name(operation)),
    epoch       bigint      NOT NULL CHECK (epoch > 0),
    seal_no     bigint      NOT NULL,
    digest      bytea       NOT NULL CHECK (octet_length(digest) = 32),
    state       text        NOT NULL,
    outcome     text        NOT NULL CHECK (octet_length(outcome) <= 65536),
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(), -- decides nothing
    PRIMARY KEY (resource, operation)
);

-- What operators did: reopening, forgetting, protecting, exempting, and each use of an exemption.
CREATE TABLE {schema}.sink_journal (
    number  bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    who     text        NOT NULL,
    event   text        NOT NULL,
    about   text        NOT NULL,
    why     text        NOT NULL
);

CREATE TABLE {schema}.sink_protected (
    relation regclass    PRIMARY KEY,
    resource text,                 -- the column; NULL when all rows are of one resource
    named    text        NOT NULL, -- how the resource's name is made of it, %s stands for the column's value
    guard    text        NOT NULL, -- the trigger's function
    since    timestamptz NOT NULL DEFAULT clock_timestamp(),
    who      text        NOT NULL
);

CREATE TABLE {schema}.sink_exempt (
    role  text        PRIMARY KEY,
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    who   text        NOT NULL,
    why   text        NOT NULL
);

CREATE TYPE {schema}.sink_description AS (
    version integer, rule text, generation text, floor bigint, resource text,
    epoch bigint, grant_id uuid, sealed_generation text, seal_no bigint, enrolled text[], sealed_at timestamptz, sealed_by text
);
-- sealed: the row as it is now. wrong-generation: the present one. stale, conflict: epoch and grant of the other token.
-- below-floor: the floor.
CREATE TYPE {schema}.sink_sealing AS (
    sealing text, epoch bigint, grant_id uuid, generation text, seal_no bigint, enrolled text[], floor bigint
);
-- forgotten: the floor as it is now. above: epoch and grant of the row, which stays.
CREATE TYPE {schema}.sink_forgetting AS (forgetting text, floor bigint, epoch bigint, grant_id uuid);
-- Why the grant of a token is over at the authority, whose its newest grant is, and how long the grant has been over.
CREATE TYPE {schema}.sink_ending AS (why text, holder text, ago_ms bigint);
-- admitted, stale, unsealed, conflict; current is the epoch in the way. over: ending says why, current is the authority's newest.
CREATE TYPE {schema}.sink_judgement AS (verdict text, current bigint, seal_no bigint, ending {schema}.sink_ending);
-- The same, or found: the operation as it was applied before.
CREATE TYPE {schema}.sink_finding AS (
    verdict text, current bigint, seal_no bigint, epoch bigint, digest bytea, outcome text, ending {schema}.sink_ending
);
-- written, replay: the epoch and the outcome with which the operation stands.
CREATE TYPE {schema}.sink_applied AS (verdict text, epoch bigint, outcome text);

-- Which server this is: a copy on another one, a promotion, a recovery to an earlier point, a dump that was put back and a copy of
-- the database each make it another. The tables' oid tells a dump; it is kept by VACUUM FULL, TRUNCATE and ALTER TABLE. The database's
-- tells a copy of it in the same cluster: it is the last folder of the table's file, where it is read without a look into a table.
CREATE FUNCTION {schema}.sink_server() RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN NOT pg_is_in_recovery() THEN
        'postgres:' || (pg_control_system()).system_identifier || ':'
            || substring(pg_relation_filepath('{schema}.sink_fence') FROM '([0-9]+)/[0-9]+$') || ':'
            || '{schema}.sink_fence'::regclass::oid || ':'
            || ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int
    END
$$;

-- What writers of a resource hold together, and a seal alone. Two resources that share a key only wait for each other.
CREATE FUNCTION {schema}.sink_key(resource text) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT hashtextextended(resource COLLATE "C", '{schema}.sink_fence'::regclass::oid::bigint)
$$;

-- Who is asking, for people.
CREATE FUNCTION {schema}.sink_caller() RETURNS text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN format('role %s, application "%s"%s',
        CASE current_setting('role') WHEN 'none' THEN session_user::text ELSE current_setting('role') || ' (' || session_user || ')' END,
        current_setting('application_name'), ' at ' || host(inet_client_addr()));
END $$;

-- Writes down what an operator does.
CREATE FUNCTION {schema}.sink_note(_event text, _about text, _why text) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO {schema}.sink_journal (who, event, about, why) VALUES ({schema}.sink_caller(), _event, _about, _why)
$$;

-- Refuses what cannot be a token.
CREATE FUNCTION {schema}.sink_expect_token(_resource text, _epoch bigint, _grant_id uuid) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF _epoch IS NULL OR _grant_id IS NULL OR _epoch < 1 OR NOT {schema}.sink_is_name(_resource) THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = 'this is no token: it has a resource, an epoch of at least 1, and a grant',
            DETAIL = format('resource %s, epoch %s, grant %s', coalesce(quote_literal(_resource), 'NULL'),
                coalesce(_epoch::text, 'NULL'), CASE WHEN _grant_id IS NULL THEN 'NULL' ELSE 'given' END),
            HINT = 'A name has 1 to 512 bytes without control characters. Show the token that the authority granted.';
    END IF;
END $$;

-- What is answered is on the disk. The rest of the transaction waits for it as well.
CREATE FUNCTION {schema}.sink_lasts() RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'
$$;

-- The sessions that hold a key, each in a line for people; with it those that could be ended now: they have done nothing
-- for _idle, being idle in their transaction or waiting for a client that does not read.
CREATE FUNCTION {schema}.sink_holders(_key bigint, _idle interval, OUT who text, OUT idle integer[])
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    SELECT
        string_agg(CASE
            WHEN l.pid IS NULL THEN format('the prepared transaction %s, since %s', quote_literal(p.gid), p.prepared)
            ELSE format('pid %s (role %s, application "%s"%s), in a transaction since %s, %s since %s', l.pid, a.usename,
                a.application_name, ' at ' || host(a.client_addr), coalesce(a.xact_start::text, '?'),
                coalesce(a.state, '?'), coalesce(a.state_change::text, '?'))
        END, '; ' ORDER BY l.pid),
        array_agg(l.pid) FILTER (WHERE a.state_change <= clock_timestamp() - _idle
            AND (a.state LIKE 'idle in transaction%' OR a.state = 'active' AND a.wait_event_type = 'Client'))
    FROM pg_locks l
    LEFT JOIN pg_stat_activity a ON a.pid = l.pid
    LEFT JOIN pg_locks t ON l.pid IS NULL AND t.pid IS NULL AND t.locktype = 'transactionid' AND t.granted
        AND t.virtualtransaction = l.virtualtransaction
    LEFT JOIN pg_prepared_xacts p ON p.transaction = t.transactionid
    WHERE l.locktype = 'advisory' AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid() AND l.objsubid = 1
        AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
        AND (l.classid::bigint << 32 | l.objid::bigint) = _key
$$;

-- Waits until no transaction is open that has checked a token of the resource, and keeps others from checking one until
-- this transaction ends. Whoever holds it off without doing anything is ended, if the sink's owner has the right to.
--
-- Who ends nobody waits all the same. It looks around after its first turn and before its last. Between them it waits in one
-- piece: whoever gives its place up lets in all who have come since, and would be held off for ever by transactions that
-- overlap and are each longer than a turn.
CREATE FUNCTION {schema}.sink_take(_resource text, _wait interval, _ends boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = 0 AS $$
DECLARE
    key constant bigint := {schema}.sink_key(_resource);
    patience constant interval := greatest(least('1 second', _wait / 3), '1 millisecond');
    until constant timestamptz := clock_timestamp() + _wait;
    remains interval;
    turn interval;
    who text;
    idle integer[];
    each integer;
    missing text := '';
BEGIN
    IF _wait IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'say how long to wait: NULL is no bound';
    END IF;
    IF pg_try_advisory_xact_lock(key) THEN
        RETURN;
    END IF;
    LOOP
        remains := until - clock_timestamp();
        EXIT WHEN remains <= '0';
        turn := CASE WHEN turn IS NULL OR remains <= patience THEN least(patience, remains) ELSE remains - patience END;
        BEGIN
            PERFORM set_config('lock_timeout', greatest(1, ceil(extract(epoch FROM turn) * 1000))::int::text, true);
            PERFORM pg_advisory_xact_lock(key);
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            -- Looked at below; the next turn waits again.
        END;
        SELECT h.who, h.idle INTO who, idle FROM {schema}.sink_holders(key, patience) h;
        FOREACH each IN ARRAY CASE WHEN _ends THEN coalesce(idle, '{}') ELSE '{}' END LOOP
            BEGIN
                PERFORM pg_terminate_backend(each);
            EXCEPTION WHEN insufficient_privilege THEN
                missing := format(' The owner of %s may not end it: GRANT pg_signal_backend TO %s lets it.', '{schema}', current_user);
            END;
        END LOOP;
    END LOOP;
    -- Whoever was ended just now is gone in a moment.
    IF pg_try_advisory_xact_lock(key) THEN
        RETURN;
    END IF;
    who := coalesce(who, (SELECT h.who FROM {schema}.sink_holders(key, patience) h));
    IF NOT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') THEN
        missing := missing || format(' The owner of %s may not see what others do: GRANT pg_read_all_stats TO %s lets it.',
            '{schema}', current_user);
    END IF;
    RAISE EXCEPTION USING ERRCODE = '55P03',
        MESSAGE = format('the fence of %s is held by another transaction, and did not come free within %s ms',
            quote_literal(_resource), round(extract(epoch FROM _wait) * 1000)),
        DETAIL = 'Held by ' || coalesce(who, 'nobody any more') || '.',
        HINT = 'Let it end, or end it: SELECT pg_terminate_backend(PID), ROLLBACK PREPARED GID. Then repeat the call.' || missing;
END $$;

-- What a takeover calls is in PL/pgSQL, which keeps its plans: a function in SQL that sets something is planned anew at each call,
-- which took three quarters of the time of this one and of seal.
CREATE FUNCTION {schema}.describe(resource text) RETURNS {schema}.sink_description
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    made {schema}.sink_description;
BEGIN
    SELECT (SELECT max(m.number) FROM {schema}.sink_migration m), n.rule, {schema}.sink_server() || ':' || n.reopen_count, n.floor,
        f.resource, f.epoch, f.grant_id, f.generation, f.seal_no, f.enrolled, f.sealed_at, f.sealed_by INTO made
    FROM {schema}.sink_namespace n LEFT JOIN {schema}.sink_fence f ON f.resource = $1;
    RETURN made;
END $$;

-- The fences after a name, at most as many as asked for; without one, a row without a resource.
CREATE FUNCTION {schema}.rows(after text DEFAULT '', most integer DEFAULT 1000) RETURNS SETOF {schema}.sink_description
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT (SELECT max(m.number) FROM {schema}.sink_migration m), n.rule, {schema}.sink_server() || ':' || n.reopen_count, n.floor,
        f.resource, f.epoch, f.grant_id, f.generation, f.seal_no, f.enrolled, f.sealed_at, f.sealed_by
    FROM {schema}.sink_namespace n
    LEFT JOIN (SELECT * FROM {schema}.sink_fence g WHERE g.resource > $1 ORDER BY g.resource LIMIT $2) f ON true
    ORDER BY f.resource
$$;

-- What speaks against a seal, and the present generation; sealing is NULL when nothing does.
CREATE FUNCTION {schema}.sink_against_seal(
    n {schema}.sink_namespace, f {schema}.sink_fence, _epoch bigint, _grant_id uuid, _generation text
) RETURNS {schema}.sink_sealing
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    present constant text := {schema}.sink_server() || ':' || n.reopen_count;
BEGIN
    RETURN (CASE
        WHEN _generation IS DISTINCT FROM present THEN 'wrong-generation'
        WHEN f.epoch IS NULL AND _epoch <= n.floor THEN 'below-floor'
        WHEN f.epoch > _epoch THEN 'stale'
        WHEN f.epoch = _epoch AND f.grant_id <> _grant_id THEN 'conflict'
    END, f.epoch, f.grant_id, present, NULL::bigint, NULL::text[], n.floor);
END $$;

-- Registers a token, if it is not older than what is registered. generation is the one that the authority has bound for it,
-- as describe showed it; enrolled is all that the caller knows to be enrolled.
CREATE FUNCTION {schema}.seal(
    resource text, epoch bigint, grant_id uuid, generation text, enrolled text[] DEFAULT '{}', wait interval DEFAULT '5 seconds'
) RETURNS {schema}.sink_sealing
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = 0 AS $$
#variable_conflict use_column
DECLARE
    n {schema}.sink_namespace;
    f {schema}.sink_fence;
    made {schema}.sink_sealing;
BEGIN
    PERFORM {schema}.sink_expect_token(seal.resource, seal.epoch, seal.grant_id);
    IF EXISTS (SELECT FROM unnest(seal.enrolled) u WHERE NOT {schema}.sink_is_name(u)) THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'an enrolled sink''s id is no name',
            HINT = 'A name has 1 to 512 bytes without control characters.';
    END IF;
    IF '{rule}' = 'high-water' THEN
        RAISE EXCEPTION USING ERRCODE = 'TN105', MESSAGE = 'this sink is under the rule high-water, which is never sealed',
            HINT = 'Do not enrol it.';
    END IF;
    IF '{rule}' = 'held' THEN
        PERFORM {schema}.sink_expect_authority();
    END IF;
    -- Whoever is refused anyway waits for nobody, and ends nobody.
    SELECT * INTO STRICT n FROM {schema}.sink_namespace;
    SELECT * INTO f FROM {schema}.sink_fence WHERE resource = seal.resource;
    made := {schema}.sink_against_seal(n, f, seal.epoch, seal.grant_id, seal.generation);
    IF made.sealing IS NOT NULL THEN
        RETURN made;
    END IF;
    -- A holder that seals once more ends none of its own transactions.
    PERFORM {schema}.sink_take(seal.resource, seal.wait, f.epoch IS DISTINCT FROM seal.epoch);
    PERFORM set_config('lock_timeout', greatest(1, extract(epoch FROM seal.wait) * 1000)::int::text, true);
    -- Locked, so that a reopening or a forgetting that came after this transaction's snapshot is met by an error.
    SELECT * INTO STRICT n FROM {schema}.sink_namespace FOR SHARE;
    SELECT * INTO f FROM {schema}.sink_fence WHERE resource = seal.resource FOR NO KEY UPDATE;
    made := {schema}.sink_against_seal(n, f, seal.epoch, seal.grant_id, seal.generation);
    IF made.sealing IS NOT NULL THEN
        RETURN made;
    END IF;
    PERFORM {schema}.sink_lasts();
    INSERT INTO {schema}.sink_fence AS f (resource, epoch, grant_id, generation, server, started, file, seal_no, enrolled, sealed_by)
    VALUES (seal.resource, seal.epoch, seal.grant_id, made.generation, {schema}.sink_server(), pg_postmaster_start_time(),
        pg_relation_filepath('{schema}.sink_fence'), 1,
        ARRAY(SELECT DISTINCT u COLLATE "C" FROM unnest(seal.enrolled) u ORDER BY 1), {schema}.sink_caller())
    ON CONFLICT (resource) DO UPDATE SET epoch = excluded.epoch, grant_id = excluded.grant_id,
        generation = excluded.generation, server = excluded.server, reopened = false, started = excluded.started,
        file = excluded.file, seal_no = f.seal_no + 1,
        enrolled = ARRAY(SELECT DISTINCT u COLLATE "C" FROM unnest(f.enrolled || excluded.enrolled) u ORDER BY 1),
        sealed_at = clock_timestamp(), sealed_by = excluded.sealed_by, secret = excluded.secret
    RETURNING 'sealed', f.epoch, f.grant_id, f.generation, f.seal_no, f.enrolled, NULL::bigint INTO made;
    RETURN made;
END $$;

-- A transaction with a snapshot does not see a fence that was made since, and would leave it as it is.
CREATE FUNCTION {schema}.sink_expect_read_committed(_doing text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION USING ERRCODE = '0A000',
            MESSAGE = format('%s does not work at this isolation level: it would not see what it has waited for', _doing),
            HINT = 'BEGIN ISOLATION LEVEL READ COMMITTED first.';
    END IF;
END $$;

-- Closes a retired resource for every token at or below the cut, and drops its row unless that lies above.
CREATE FUNCTION {schema}.forget(resource text, cut bigint, wait interval DEFAULT '5 seconds') RETURNS {schema}.sink_forgetting
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = 0 AS $$
#variable_conflict use_column
DECLARE
    f {schema}.sink_fence;
    made {schema}.sink_forgetting;
BEGIN
    IF forget.cut IS NULL OR forget.cut < 1 OR NOT {schema}.sink_is_name(forget.resource) THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'forget takes a resource and a cut of at least 1';
    END IF;
    PERFORM {schema}.sink_expect_read_committed('forget');
    -- Whoever is refused anyway waits for nobody, and ends nobody.
    SELECT * INTO f FROM {schema}.sink_fence WHERE resource = forget.resource;
    IF f.epoch > forget.cut IS NOT TRUE THEN
        PERFORM {schema}.sink_take(forget.resource, forget.wait, true);
        PERFORM set_config('lock_timeout', greatest(1, extract(epoch FROM forget.wait) * 1000)::int::text, true);
        -- In the order of reopen, which would otherwise wait for this one while this one waits for it.
        PERFORM FROM {schema}.sink_namespace FOR NO KEY UPDATE;
        SELECT * INTO f FROM {schema}.sink_fence WHERE resource = forget.resource FOR UPDATE;
    END IF;
    IF f.epoch > forget.cut THEN
        made.forgetting := 'above'; made.epoch := f.epoch; made.grant_id := f.grant_id;
        RETURN made;
    END IF;
    PERFORM {schema}.sink_lasts();
    UPDATE {schema}.sink_namespace SET floor = greatest(floor, forget.cut) RETURNING 'forgotten', floor INTO made.forgetting, made.floor;
    DELETE FROM {schema}.sink_fence WHERE resource = forget.resource;
    PERFORM {schema}.sink_note('forget', forget.resource, 'up to epoch ' || forget.cut);
    RETURN made;
END $$;

-- After a restore that the server cannot notice: nothing counts as sealed any more. Returns the new generation.
--
-- It waits for every transaction that has looked at a fence, and keeps others from looking until it ends: so for a dump as
-- well. Every row is written: a transaction whose snapshot is older meets an error.
CREATE FUNCTION {schema}.reopen(why text DEFAULT '', wait interval DEFAULT '5 seconds') RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = 0 AS $$
DECLARE
    made text;
BEGIN
    PERFORM {schema}.sink_expect_read_committed('reopen');
    PERFORM set_config('lock_timeout', greatest(1, extract(epoch FROM reopen.wait) * 1000)::int::text, true);
    PERFORM {schema}.sink_lasts();
    -- Before the namespace: a seal has read fences when it takes that.
    LOCK TABLE {schema}.sink_fence IN ACCESS EXCLUSIVE MODE;
    UPDATE {schema}.sink_namespace SET reopen_count = reopen_count + 1
    RETURNING {schema}.sink_server() || ':' || reopen_count INTO STRICT made;
    UPDATE {schema}.sink_fence SET reopened = true;
    PERFORM {schema}.sink_note('reopen', made, reopen.why);
    RETURN made;
END $$;

-- The first write of an epoch under the rule high-water. Whoever would raise the row takes it for itself at once: two who
-- had it together would each wait for the other.
CREATE FUNCTION {schema}.sink_raise(_resource text, _epoch bigint, _grant_id uuid) RETURNS {schema}.sink_judgement
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    f {schema}.sink_fence;
    lowest bigint;
    made {schema}.sink_judgement;
    here constant text := {schema}.sink_server();
    present text;
BEGIN
    LOOP
        SELECT * INTO f FROM {schema}.sink_fence WHERE resource = _resource FOR NO KEY UPDATE;
        IF FOUND THEN
            made.current := f.epoch;
            made.seal_no := f.seal_no;
            IF f.epoch > _epoch THEN
                made.verdict := 'stale';
            ELSIF f.epoch = _epoch THEN
                made.verdict := CASE WHEN f.grant_id = _grant_id THEN 'admitted' ELSE 'conflict' END;
            ELSE
                UPDATE {schema}.sink_fence SET epoch = _epoch, grant_id = _grant_id, server = here, reopened = false,
                    generation = here || ':' || (SELECT n.reopen_count FROM {schema}.sink_namespace n),
                    seal_no = f.seal_no + 1, sealed_at = clock_timestamp(), sealed_by = {schema}.sink_caller(),
                    secret = uuid_send(gen_random_uuid())
                WHERE resource = _resource;
                made := ('admitted', _epoch, f.seal_no + 1, NULL);
            END IF;
            RETURN made;
        END IF;
        -- Locked, so that a forgetting that came after this transaction's snapshot is met by an error.
        SELECT n.floor, here || ':' || n.reopen_count INTO STRICT lowest, present FROM {schema}.sink_namespace n FOR SHARE;
        IF _epoch <= lowest THEN
            RETURN ('stale', lowest, NULL, NULL)::{schema}.sink_judgement;
        END IF;
        INSERT INTO {schema}.sink_fence (resource, epoch, grant_id, generation, server, seal_no, enrolled, sealed_by)
        VALUES (_resource, _epoch, _grant_id, present, here, 1, '{}', {schema}.sink_caller())
        ON CONFLICT (resource) DO NOTHING;
        IF FOUND THEN
            RETURN ('admitted', _epoch, 1, NULL)::{schema}.sink_judgement;
        END IF;
    END LOOP;
END $$;

-- The rule held needs the authority in this schema.
CREATE FUNCTION {schema}.sink_expect_authority() RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF to_regclass('{schema}.held') IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'TN107',
            MESSAGE = 'no authority is in the schema {schema} (there is no view {schema}.held)',
            HINT = 'Make the authority there first (its address with create=true), or take the rule sealed.';
    ELSIF NOT has_table_privilege('{schema}.held', 'SELECT') THEN
        RAISE EXCEPTION USING ERRCODE = 'TN107',
            MESSAGE = format('%s may not read what the authority says', current_user),
            HINT = format('Let the authority''s owner run: GRANT SELECT ON {schema}.held TO %I', current_user);
    END IF;
END $$;

-- What the authority in this schema says against a token that the fence has admitted: over, or no verdict. It is read after the
-- fence's locks and by a statement of its own, against the server's clock, and nothing of it is locked: a lock would keep the
-- holder's own renewals waiting.
CREATE FUNCTION {schema}.sink_against(_resource text, _epoch bigint, _grant_id uuid) RETURNS {schema}.sink_judgement
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    h record;
    why text;
    since_ns bigint;
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        -- Its snapshot is as old as the transaction: a grant that was taken away since would still stand in it.
        RAISE EXCEPTION USING ERRCODE = '0A000',
            MESSAGE = format('under the rule held a token is checked in a READ COMMITTED transaction, and this one is %s',
                upper(current_setting('transaction_isolation'))),
            DETAIL = 'It would see the authority''s records as they were when it began.',
            HINT = 'Begin it with BEGIN ISOLATION LEVEL READ COMMITTED, or make a sink under the rule sealed.';
    END IF;
    SELECT v.version, v.epoch, v.grant_id, v.owner, v.since_ns, v.deadline_ns, v.ending, v.ended_ns, v.now_ns INTO h
    FROM {schema}.held v WHERE v.resource = _resource;
    IF NOT FOUND THEN
        RETURN ('over', NULL, NULL, ('unknown', NULL, NULL))::{schema}.sink_judgement;
    ELSIF h.version IS DISTINCT FROM 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'TN107', MESSAGE = format('the authority speaks version %s, and this sink version 1', h.version),
            HINT = 'Use the same version of both.';
    ELSIF h.epoch < _epoch THEN
        why := 'restored';
    ELSIF h.epoch > _epoch OR h.grant_id IS DISTINCT FROM _grant_id THEN
        why := 'superseded'; since_ns := h.since_ns;
    ELSIF h.ending IS NOT NULL THEN
        why := h.ending; since_ns := h.ended_ns;
    ELSIF (h.now_ns < h.deadline_ns) IS NOT TRUE THEN
        why := 'expired'; since_ns := h.deadline_ns;
    ELSE
        RETURN NULL;
    END IF;
    RETURN ('over', h.epoch, NULL, (why, h.owner, greatest(0, h.now_ns - since_ns) / 1000000))::{schema}.sink_judgement;
END $$;

-- Checks a token, and answers with the verdict. An admitted one stays admitted until this transaction ends: no newer one is
-- sealed before. Everything that decides stands in the fence's row, or is the server itself.
CREATE FUNCTION {schema}.judge(resource text, epoch bigint, grant_id uuid) RETURNS {schema}.sink_judgement
LANGUAGE plpgsql VOLATILE SECURITY DEFINER {planning} AS $$
#variable_conflict use_column
DECLARE
    f record;
    lowest bigint;
    made {schema}.sink_judgement;
    marks text;
    mark text;
    -- One that may not write is none that checks: the lock on the row says so.
    sees_all constant boolean := '{rule}' <> 'high-water' AND current_setting('transaction_read_only') = 'off'
        AND current_setting('transaction_isolation') IN ('read committed', 'read uncommitted');
BEGIN
    -- Whoever changes a fence has this lock alone. A statement that begins under it sees what was changed, unless its snapshot
    -- is the transaction's: then the row is locked as well, which fails when the snapshot is older than the seal. Not the row alone,
    -- or back-to-back writers would keep a seal waiting. Under high-water, writers change it, and the row is what they wait for.
    PERFORM pg_advisory_xact_lock_shared({schema}.sink_key(judge.resource));
    IF sees_all THEN
        SELECT f.epoch, f.grant_id, f.server, f.reopened, f.started, f.file, f.seal_no, f.secret INTO f
        FROM {schema}.sink_fence f WHERE f.resource = judge.resource;
    ELSE
        SELECT f.epoch, f.grant_id, f.server, f.reopened, f.started, f.file, f.seal_no, f.secret INTO f
        FROM {schema}.sink_fence f WHERE f.resource = judge.resource AND ('{rule}' <> 'high-water' OR f.epoch >= judge.epoch)
        FOR SHARE;
    END IF;
    IF f.epoch = judge.epoch AND f.grant_id = judge.grant_id
        AND ('{rule}' = 'high-water' OR f.server = {schema}.sink_server() AND NOT f.reopened)
    THEN
        IF '{rule}' = 'held' THEN
            made := {schema}.sink_against(judge.resource, judge.epoch, judge.grant_id);
            IF made.verdict = 'over' THEN
                RETURN made;
            END IF;
        END IF;
        made := ('admitted', f.epoch, f.seal_no, NULL);
        -- The server was started anew since the seal, or the table was written anew, and it is the same: the next check is a short
        -- one again. One writer says so, and nobody waits for it.
        IF sees_all AND (f.started IS DISTINCT FROM pg_postmaster_start_time()
            OR f.file IS DISTINCT FROM pg_relation_filepath('{schema}.sink_fence'))
        THEN
            PERFORM FROM {schema}.sink_fence f WHERE f.resource = judge.resource FOR NO KEY UPDATE SKIP LOCKED;
            IF FOUND THEN
                UPDATE {schema}.sink_fence f
                SET started = pg_postmaster_start_time(), file = pg_relation_filepath('{schema}.sink_fence')
                WHERE f.resource = judge.resource;
            END IF;
        END IF;
    ELSE
        PERFORM {schema}.sink_expect_token(judge.resource, judge.epoch, judge.grant_id);
        IF f.epoch > judge.epoch THEN
            RETURN ('stale', f.epoch, f.seal_no, NULL)::{schema}.sink_judgement;
        ELSIF f.epoch = judge.epoch AND f.grant_id <> judge.grant_id THEN
            RETURN ('conflict', f.epoch, f.seal_no, NULL)::{schema}.sink_judgement;
        ELSIF f.epoch IS NOT NULL THEN
            RETURN ('unsealed', f.epoch, f.seal_no, NULL)::{schema}.sink_judgement;
        ELSIF '{rule}' <> 'high-water' THEN
            SELECT n.floor INTO lowest FROM {schema}.sink_namespace n WHERE n.single AND judge.epoch <= n.floor;
            RETURN (CASE WHEN FOUND THEN 'stale' ELSE 'unsealed' END, lowest, NULL, NULL)::{schema}.sink_judgement;
        END IF;
        made := {schema}.sink_raise(judge.resource, judge.epoch, judge.grant_id);
        IF made.verdict <> 'admitted' THEN
            RETURN made;
        END IF;
        SELECT f.secret INTO f FROM {schema}.sink_fence f WHERE f.resource = judge.resource;
    END IF;
    -- The mark by which protected tables know it. It counts in this transaction alone, and only who can read the secret can
    -- make one.
    mark := encode(sha256(f.secret || xid8send(pg_current_xact_id())), 'hex');
    marks := coalesce(current_setting('tenure.admitted', true), '');
    IF strpos(marks, mark) = 0 THEN
        PERFORM set_config('tenure.admitted', marks || mark, true);
    END IF;
    RETURN made;
END $$;

-- Checks a token, and answers with the place of what is written under it between two seals. One that is refused raises an error:
-- whoever does not look at an answer goes no further. Where it is not to, NULL is the answer, and judge says why.
--
-- Every write pays for this, so it goes one short way, which is judge's for a token that is admitted in a READ COMMITTED transaction,
-- and leaves all else to judge. Setting the search path for the call would take a fifth of its time, so every name is written in full;
-- reading the server's identity from its files another fifth; and each function or operator that is left out a fiftieth.
CREATE FUNCTION {schema}.admit(resource text, epoch bigint, grant_id uuid, raises boolean DEFAULT true) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $$
DECLARE
    -- A statement of its own, before the next one takes its snapshot.
    seen constant pg_catalog.text := CASE WHEN pg_catalog.current_setting('transaction_isolation')
            OPERATOR(pg_catalog.||) pg_catalog.current_setting('transaction_read_only') OPERATOR(pg_catalog.=) 'read committedoff'
        AND pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended(admit.resource COLLATE pg_catalog."C",
            '{schema}.sink_fence'::pg_catalog.regclass::pg_catalog.oid::pg_catalog.int8)) IS NOT NULL THEN admit.resource END;
    marks pg_catalog.text := coalesce(pg_catalog.current_setting('tenure.admitted', true), '');
    mark pg_catalog.text;
    place bigint;
    made {schema}.sink_judgement;
BEGIN
    -- Not even begun elsewhere: under SERIALIZABLE, what is read here would count.
    IF seen IS NOT NULL THEN
        SELECT f.seal_no,
            pg_catalog.encode(pg_catalog.sha256(f.secret OPERATOR(pg_catalog.||) pg_catalog.xid8send(pg_catalog.pg_current_xact_id())), 'hex')
        INTO place, mark
        FROM {schema}.sink_fence f
        WHERE '{rule}' OPERATOR(pg_catalog.<>) 'high-water' AND f.resource OPERATOR(pg_catalog.=) seen
            AND f.epoch OPERATOR(pg_catalog.=) admit.epoch AND f.grant_id OPERATOR(pg_catalog.=) admit.grant_id AND NOT f.reopened
            AND f.started OPERATOR(pg_catalog.=) pg_catalog.pg_postmaster_start_time()
            AND f.file OPERATOR(pg_catalog.=) pg_catalog.pg_relation_filepath('{schema}.sink_fence'::pg_catalog.regclass){held};
    END IF;
    IF place IS NOT NULL THEN
        marks := CASE WHEN pg_catalog.strpos(marks, mark) OPERATOR(pg_catalog.>) 0 THEN marks
            ELSE pg_catalog.set_config('tenure.admitted', marks OPERATOR(pg_catalog.||) mark, true) END;
        RETURN place;
    END IF;
    made := {schema}.judge(admit.resource, admit.epoch, admit.grant_id);
    IF made.verdict OPERATOR(pg_catalog.=) 'admitted' THEN
        RETURN made.seal_no;
    ELSIF raises THEN
        PERFORM {schema}.sink_refuse(made.verdict, admit.resource, admit.epoch, made.current, made.ending);
    END IF;
    RETURN NULL;
END $$;

-- Whether a token of the resource was admitted in this transaction.
CREATE FUNCTION {schema}.sink_is_admitted(_resource text) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM {schema}.sink_fence f WHERE f.resource = _resource AND strpos(
        current_setting('tenure.admitted', true),
        encode(sha256(f.secret || xid8send(pg_current_xact_id())), 'hex')) > 0)
$$;

-- Says who is in the way, since when, and what to do next.
CREATE FUNCTION {schema}.sink_refuse(
    _verdict text, _resource text, _epoch bigint, _current bigint, _ending {schema}.sink_ending DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    f {schema}.sink_fence;
    name constant text := quote_literal(_resource);
    who text;
BEGIN
    SELECT * INTO f FROM {schema}.sink_fence WHERE resource = _resource;
    who := CASE
        WHEN f.epoch IS NULL AND _current IS NOT NULL THEN format('Epochs up to %s were retired.', _current)
        WHEN f.epoch IS NULL THEN 'Nothing is registered.'
        ELSE format('Epoch %s was registered at %s by %s.', f.epoch, f.sealed_at, f.sealed_by)
    END;
    IF _verdict = 'stale' THEN
        RAISE EXCEPTION USING ERRCODE = 'TN101',
            MESSAGE = format('stale: epoch %s of %s was shown, epoch %s is registered', _epoch, name, _current),
            DETAIL = who,
            HINT = 'Roll back and stop this worker: it has lost the resource for good. Whoever acquires it anew gets a higher epoch.';
    ELSIF _verdict = 'conflict' THEN
        RAISE EXCEPTION USING ERRCODE = 'TN103',
            MESSAGE = format('conflict: another grant of epoch %s of %s is registered', _current, name),
            DETAIL = who,
            HINT = 'Roll back and stop this worker: the authority has granted this epoch twice, so it has lost its memory. See its history.';
    END IF;
    IF _verdict = 'over' THEN
        RAISE EXCEPTION USING ERRCODE = 'TN106',
            MESSAGE = format('over: epoch %s of %s was shown, and the authority says that %s', _epoch, name, CASE _ending.why
                WHEN 'expired' THEN 'its deadline passed'
                WHEN 'superseded' THEN 'another grant has followed it'
                WHEN 'free' THEN 'it was given back or taken away'
                WHEN 'unknown' THEN 'it knows nothing of the resource'
                ELSE 'it is over: ' || _ending.why END),
            DETAIL = concat_ws(' ',
                CASE WHEN _ending.ago_ms IS NOT NULL THEN format('It has been so for %s s.', round(_ending.ago_ms / 1000.0, 1)) END,
                CASE WHEN _current IS NOT NULL THEN
                    format('The newest grant is epoch %s of %s.', _current, quote_literal(_ending.holder)) END,
                who),
            HINT = 'Roll back and stop this worker: it has lost the resource for good. Whoever acquires it anew gets a higher epoch.';
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'TN102',
        MESSAGE = format('unsealed: epoch %s of %s is not registered here, or not in the present generation', _epoch, name),
        DETAIL = who,
        HINT = 'It is no loss. Roll back, bind and seal this token here, and repeat the transaction.';
END $$;

-- Checks a token, then looks for an operation. Who claims it is the only one until the transaction ends.
CREATE FUNCTION {schema}.judge_operation(
    resource text, epoch bigint, grant_id uuid, operation text, claims boolean
) RETURNS {schema}.sink_finding
LANGUAGE plpgsql VOLATILE SECURITY DEFINER {planning} AS $$
#variable_conflict use_column
DECLARE
    made {schema}.sink_finding;
    judged {schema}.sink_judgement;
BEGIN
    made.seal_no := {schema}.admit(judge_operation.resource, judge_operation.epoch, judge_operation.grant_id, false);
    IF made.seal_no IS NULL THEN
        judged := {schema}.judge(judge_operation.resource, judge_operation.epoch, judge_operation.grant_id);
        made.verdict := judged.verdict; made.current := judged.current; made.seal_no := judged.seal_no; made.ending := judged.ending;
    ELSE
        made.verdict := 'admitted'; made.current := judge_operation.epoch;
    END IF;
    IF made.verdict <> 'admitted' THEN
        RETURN made;
    END IF;
    IF NOT {schema}.sink_is_name(judge_operation.operation) THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = 'this is no operation id: it has 1 to 512 bytes without control characters';
    END IF;
    IF claims THEN
        PERFORM pg_advisory_xact_lock(hashtextextended(judge_operation.operation COLLATE "C", ~{schema}.sink_key(judge_operation.resource)));
    ELSIF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted')
        AND '{rule}' = 'high-water'
    THEN
        -- An older write that this transaction has waited for is not in its snapshot.
        RAISE EXCEPTION USING ERRCODE = '0A000',
            MESSAGE = 'under the rule high-water, look operations up in a READ COMMITTED transaction: another one cannot see what it has waited for';
    END IF;
    SELECT o.epoch, o.digest, o.outcome INTO made.epoch, made.digest, made.outcome
    FROM {schema}.sink_operation o WHERE o.resource = judge_operation.resource AND o.operation = judge_operation.operation;
    IF FOUND THEN
        made.verdict := 'found';
    END IF;
    RETURN made;
END $$;

-- Records an operation whose effect stands with this transaction, in which its token was admitted.
CREATE FUNCTION {schema}.record(resource text, epoch bigint, seal_no bigint, operation text, digest bytea, outcome text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT {schema}.sink_is_admitted(record.resource) THEN
        RAISE EXCEPTION USING ERRCODE = 'TN104',
            MESSAGE = format('no token of %s was admitted in this transaction', quote_literal(record.resource));
    END IF;
    INSERT INTO {schema}.sink_operation (resource, operation, epoch, seal_no, digest, state, outcome)
    VALUES (record.resource, record.operation, record.epoch, record.seal_no, record.digest, 'done', record.outcome);
END $$;

-- Checks a token, then claims an operation and records it. written: now make the effect, in this transaction. replay: it
-- stands already, do not make it again. Other content under the same id is an error, and so is a token that is refused.
CREATE FUNCTION {schema}.apply(
    resource text, epoch bigint, grant_id uuid, operation text, digest bytea, outcome text DEFAULT ''
) RETURNS {schema}.sink_applied
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found constant {schema}.sink_finding :=
        {schema}.judge_operation(apply.resource, apply.epoch, apply.grant_id, apply.operation, true);
BEGIN
    IF found.verdict = 'admitted' THEN
        PERFORM {schema}.record(apply.resource, apply.epoch, found.seal_no, apply.operation, apply.digest, apply.outcome);
        RETURN ('written', apply.epoch, apply.outcome)::{schema}.sink_applied;
    ELSIF found.verdict = 'found' AND found.digest = apply.digest THEN
        RETURN ('replay', found.epoch, found.outcome)::{schema}.sink_applied;
    ELSIF found.verdict = 'found' THEN
        RAISE EXCEPTION USING ERRCODE = 'TN103',
            MESSAGE = format('conflict: the operation %s of %s stands with other content, under epoch %s',
                quote_literal(apply.operation), quote_literal(apply.resource), found.epoch),
            DETAIL = format('Its outcome is %s.', quote_literal(left(found.outcome, 200))),
            HINT = 'Roll back. The same operation id is the same content: give another intent another id.';
    END IF;
    PERFORM {schema}.sink_refuse(found.verdict, apply.resource, apply.epoch, found.current, found.ending);
END $$;

-- Looks for the effect of an operation, for a token that is admitted: a row, or none. Only for the holder is an absence final.
CREATE FUNCTION {schema}.lookup(resource text, epoch bigint, grant_id uuid, operation text)
RETURNS TABLE (applied_in bigint, digest bytea, outcome text)
LANGUAGE plpgsql VOLATILE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found constant {schema}.sink_finding :=
        {schema}.judge_operation(lookup.resource, lookup.epoch, lookup.grant_id, lookup.operation, false);
BEGIN
    IF found.verdict = 'found' THEN
        RETURN QUERY SELECT found.epoch, found.digest, found.outcome;
    ELSIF found.verdict <> 'admitted' THEN
        PERFORM {schema}.sink_refuse(found.verdict, lookup.resource, lookup.epoch, found.current, found.ending);
    END IF;
END $$;

-- Whether the current role is exempt from protection; each transaction that makes use of it is written down, once for each
-- table. A member of such a role takes it by SET ROLE: being able to is not enough.
CREATE FUNCTION {schema}.sink_is_exempt(_table text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    taken constant text := CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role') END;
    mark constant text := (SELECT encode(sha256(n.secret || convert_to(pg_current_xact_id()::text || ' ' || _table, 'UTF8')), 'hex')
        FROM {schema}.sink_namespace n);
BEGIN
    IF NOT EXISTS (SELECT FROM {schema}.sink_exempt e WHERE e.role = taken) THEN
        RETURN false;
    END IF;
    -- Whoever sets this to something else is written down more often.
    IF current_setting('tenure.exempted', true) IS DISTINCT FROM mark THEN
        PERFORM {schema}.sink_note('exemption used', _table, 'transaction ' || pg_current_xact_id()::text);
        PERFORM set_config('tenure.exempted', mark, true);
    END IF;
    RETURN true;
END $$;

-- Refuses a write to a protected table, unless the role is exempt.
CREATE FUNCTION {schema}.sink_expect_exempt(_table text, _resource text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    f {schema}.sink_fence;
BEGIN
    IF {schema}.sink_is_exempt(_table) THEN
        RETURN;
    END IF;
    SELECT * INTO f FROM {schema}.sink_fence WHERE resource = _resource;
    RAISE EXCEPTION USING ERRCODE = 'TN104',
        MESSAGE = format('%s is protected: no token of %s was admitted in this transaction', _table,
            CASE WHEN _resource IS NULL THEN 'a row''s resource, which is NULL,' ELSE quote_literal(_resource) END),
        DETAIL = CASE
            WHEN f.epoch IS NULL THEN 'Nothing is registered for it.'
            ELSE format('Epoch %s was registered at %s by %s.', f.epoch, f.sealed_at, f.sealed_by)
        END,
        HINT = 'Whoever holds the resource begins its transaction with SELECT {schema}.admit(resource, epoch, grant). '
            'An operator does SET ROLE to an exempt role first; {schema}.exempt makes one.';
END $$;

-- TRUNCATE takes the rows of every resource.
CREATE FUNCTION {schema}.sink_guard_truncate() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT {schema}.sink_is_exempt(TG_RELID::regclass::text) THEN
        RAISE EXCEPTION USING ERRCODE = 'TN104',
            MESSAGE = format('%s is protected: TRUNCATE takes the rows of every resource', TG_RELID::regclass),
            HINT = 'Delete the rows of the resource that is held. An operator does SET ROLE to an exempt role first; '
                '{schema}.exempt makes one.';
    END IF;
    RETURN NULL;
END $$;

-- Makes the function of a table's trigger. It names the column, so that the column is found once and not for each row. It
-- belongs to the sink's owner, as whoever protects the table need not. A row that stays with its resource is looked up once.
CREATE FUNCTION {schema}.sink_make_guard(_relation regclass, _column text, _before text, _after text) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    guard constant text := 'sink_guard_' || substr(replace(gen_random_uuid()::text, '-', ''), 1, 16);
    value constant text := CASE
        WHEN _column IS NULL THEN '%1$L::text'
        -- Written by its type, and not by a cast: that may be a function of the type's owner, which would run as the sink's.
        -- A column's own collation may not be compared with the fence's, or take two names for one.
        ELSE '((%1$L || CASE WHEN %3$s.%2$I IS NOT NULL THEN format(''%%s'', %3$s.%2$I) END || %4$L) COLLATE "C")'
    END;
    old constant text := format(value, _before, _column, 'OLD', _after);
    new constant text := format(value, _before, _column, 'NEW', _after);
    -- Whether what was admitted in this transaction is a token of this resource.
    expect constant text := 'PERFORM FROM {schema}.sink_fence f WHERE f.resource = whose AND strpos(current_setting(''tenure.admitted'', true), '
        'encode(sha256(f.secret || xid8send(pg_current_xact_id())), ''hex'')) > 0; '
        'IF NOT FOUND THEN PERFORM {schema}.sink_expect_exempt(TG_RELID::regclass::text, whose); END IF;';
BEGIN
    EXECUTE format($guard$
        CREATE FUNCTION {schema}.%1$I() RETURNS trigger
        LANGUAGE plpgsql VOLATILE SECURITY DEFINER {planning} AS $%1$s$
        DECLARE
            whose text := CASE TG_OP WHEN 'INSERT' THEN %3$s ELSE %2$s END;
        BEGIN
            %4$s
            IF TG_OP = 'DELETE' THEN
                RETURN OLD;
            ELSIF TG_OP = 'UPDATE' AND (%2$s = %3$s) IS NOT TRUE THEN
                whose := %3$s;
                %4$s
            END IF;
            RETURN NEW;
        END $%1$s$ $guard$, guard, old, new, expect);
    RETURN guard;
END $$;

-- The triggers that a protected table needs, and its partitions: is_set when one is what it should be, is_on when it fires always,
-- also where session_replication_role is replica.
CREATE FUNCTION {schema}.sink_needed(_relation regclass, _guard text)
RETURNS TABLE (part regclass, name text, is_there boolean, is_set boolean, is_on boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT part.oid::regclass, n.name, g.oid IS NOT NULL,
        g.oid IS NOT NULL AND g.tgfoid IS NOT DISTINCT FROM to_regprocedure(n.calls)::oid AND g.tgtype = n.form
            AND g.tgqual IS NULL AND g.tgattr::text = '',
        g.tgenabled IS NOT DISTINCT FROM 'A'
    FROM (SELECT _relation AS oid UNION SELECT t.relid FROM pg_partition_tree(_relation) t) part
    CROSS JOIN (VALUES
        ('zz_tenure_guard', format('{schema}.%I()', _guard), 31), -- before INSERT, UPDATE, DELETE of each row
        ('zz_tenure_guard_truncate', '{schema}.sink_guard_truncate()', 34)
    ) n (name, calls, form)
    LEFT JOIN pg_trigger g ON g.tgrelid = part.oid AND g.tgname = n.name
$$;

-- From now on no row of the table is written without an admitted token of its resource, whoever does it. resource is the
-- column that holds it; named says how its name is made of the value, such as 'tenant-%s'. Without a column all rows belong to
-- the one resource that named says. Who calls it must own the table. Protecting it once more also covers what was added to it,
-- and mends what was taken away.
CREATE FUNCTION {schema}.protect(relation regclass, resource text DEFAULT NULL, named text DEFAULT '%s') RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    wrong text;
    hint text := NULL;
    before text := split_part(protect.named, '%s', 1);
    behind text := split_part(protect.named, '%s', 2);
    kept {schema}.sink_protected;
    guard text;
    each record;
BEGIN
    SELECT CASE
        WHEN c.oid IS NULL THEN 'there is no such table'
        WHEN c.relkind NOT IN ('r', 'p') THEN format('%s is no table', protect.relation)
        WHEN c.relispartition THEN format('%s is a partition, and is covered with the table that it is part of: protect %s',
            protect.relation, pg_partition_root(protect.relation))
        WHEN c.relpersistence = 't' THEN format('%s is a temporary table', protect.relation)
        WHEN c.relnamespace = '{schema}'::regnamespace AND c.relname LIKE 'sink\_%' THEN format('%s is the sink''s own', protect.relation)
        WHEN protect.named IS NULL OR (length(protect.named) - length(replace(protect.named, '%s', ''))) / 2 <>
            CASE WHEN protect.resource IS NULL THEN 0 ELSE 1 END
        THEN format('named is %L, which does not fit: %%s stands once for the column''s value, and without a column not at all',
            protect.named)
        WHEN protect.resource IS NULL AND NOT {schema}.sink_is_name(protect.named) THEN 'named is no name of a resource'
        WHEN protect.resource IS NOT NULL AND a.attname IS NULL THEN
            format('%s has no column %I', protect.relation, protect.resource)
        WHEN a.attgenerated <> '' THEN
            format('the column %I is generated, and is not there yet when a row is checked', protect.resource)
        WHEN NOT (b.oid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype, 'text'::regtype, 'varchar'::regtype, 'name'::regtype,
            'uuid'::regtype) OR b.typtype = 'e')
        THEN format('the column %I is of type %s, which can be written in several ways', protect.resource,
            format_type(a.atttypid, a.atttypmod))
    END INTO wrong
    FROM (SELECT 1) one
    LEFT JOIN pg_class c ON c.oid = protect.relation
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = protect.resource AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_type b ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'it cannot be protected: ' || wrong,
            HINT = 'Name an ordinary or partitioned table, and a column that is text, varchar, uuid, an integer or an enum.';
    END IF;
    kept := {schema}.sink_kept(protect.relation);
    IF kept.guard IS NOT NULL AND (kept.resource IS DISTINCT FROM protect.resource OR kept.named <> protect.named) THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = format('%s is protected already, by the column %s named %L', protect.relation, coalesce(kept.resource, '(none)'), kept.named),
            HINT = 'SELECT {schema}.unprotect(...) first; do both in one transaction.';
    END IF;
    guard := kept.guard;
    IF guard IS NULL OR to_regprocedure(format('{schema}.%I()', guard)) IS NULL THEN
        guard := {schema}.sink_make_guard(protect.relation, protect.resource, before, behind);
    END IF;
    -- The last of its kind by name: what others change in a row, they change before. Partitions are given it with the table.
    SELECT bool_and(n.is_set) AS is_set, bool_or(n.is_there AND n.part = protect.relation) AS is_there INTO STRICT each
    FROM {schema}.sink_needed(protect.relation, guard) n WHERE n.name = 'zz_tenure_guard';
    IF NOT each.is_set THEN
        IF each.is_there THEN
            EXECUTE format('DROP TRIGGER zz_tenure_guard ON %s', protect.relation);
        END IF;
        EXECUTE format('CREATE TRIGGER zz_tenure_guard BEFORE INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW EXECUTE FUNCTION {schema}.%I()',
            protect.relation, guard);
    END IF;
    -- A trigger on TRUNCATE is not handed down to partitions.
    FOR each IN
        SELECT n.part, n.is_there FROM {schema}.sink_needed(protect.relation, guard) n
        WHERE n.name = 'zz_tenure_guard_truncate' AND NOT n.is_set
    LOOP
        IF each.is_there THEN
            EXECUTE format('DROP TRIGGER zz_tenure_guard_truncate ON %s', each.part);
        END IF;
        EXECUTE format('CREATE TRIGGER zz_tenure_guard_truncate BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION {schema}.sink_guard_truncate()',
            each.part);
    END LOOP;
    FOR each IN SELECT n.part, n.name FROM {schema}.sink_needed(protect.relation, guard) n WHERE NOT n.is_on LOOP
        EXECUTE format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER %I', each.part, each.name);
    END LOOP;
    IF guard IS DISTINCT FROM kept.guard THEN
        PERFORM {schema}.sink_keep(protect.relation, protect.resource, protect.named, guard);
    END IF;
    IF EXISTS (SELECT FROM pg_class c JOIN pg_inherits i ON i.inhparent = c.oid WHERE c.oid = protect.relation AND c.relkind = 'r') THEN
        RAISE WARNING '% has child tables, whose rows are not protected with it: protect each of them', protect.relation;
    END IF;
END $$;

-- What is known of a protected table, for those who may not read the sink's own.
CREATE FUNCTION {schema}.sink_kept(_relation regclass) RETURNS {schema}.sink_protected
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT p FROM {schema}.sink_protected p WHERE p.relation = _relation
$$;

-- Whoever calls it need not own the sink, and names a function that would be dropped one day: so the table's owner must have set it as
-- the table's trigger before.
CREATE FUNCTION {schema}.sink_keep(_relation regclass, _resource text, _named text, _guard text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid
        WHERE g.tgrelid = _relation AND g.tgname = 'zz_tenure_guard' AND g.tgenabled = 'A'
            AND p.pronamespace = '{schema}'::regnamespace AND p.proname = _guard AND _guard ~ '^sink_guard_[0-9a-f]{16}$')
    THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = format('%s is not guarded by %s', _relation, _guard),
            HINT = 'SELECT {schema}.protect(...) does it.';
    END IF;
    INSERT INTO {schema}.sink_protected (relation, resource, named, guard, who)
    VALUES (_relation, _resource, _named, _guard, {schema}.sink_caller())
    ON CONFLICT ON CONSTRAINT sink_protected_pkey DO UPDATE SET guard = excluded.guard;
    PERFORM {schema}.sink_note('protect', _relation::text, format('column %s, named %L', coalesce(_resource, '(none)'), _named));
END $$;

CREATE FUNCTION {schema}.sink_drop_guard(_relation regclass, _why text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    gone text;
BEGIN
    DELETE FROM {schema}.sink_protected p WHERE p.relation = _relation RETURNING p.guard INTO gone;
    IF FOUND THEN
        EXECUTE format('DROP FUNCTION IF EXISTS {schema}.%I()', gone);
        PERFORM {schema}.sink_note('unprotect', _relation::text, _why);
    END IF;
END $$;

-- Takes the protection away; true when there was one.
CREATE FUNCTION {schema}.unprotect(relation regclass, why text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    was constant boolean := ({schema}.sink_kept(unprotect.relation)).guard IS NOT NULL;
    part regclass;
BEGIN
    IF coalesce(unprotect.why, '') = '' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'say why the protection is taken away: it is written down';
    END IF;
    EXECUTE format('DROP TRIGGER IF EXISTS zz_tenure_guard ON %s', unprotect.relation);
    FOR part IN
        SELECT g.tgrelid FROM pg_trigger g
        WHERE g.tgname = 'zz_tenure_guard_truncate'
            AND (g.tgrelid = unprotect.relation OR g.tgrelid IN (SELECT t.relid FROM pg_partition_tree(unprotect.relation) t))
    LOOP
        EXECUTE format('DROP TRIGGER zz_tenure_guard_truncate ON %s', part);
    END LOOP;
    PERFORM {schema}.sink_drop_guard(unprotect.relation, unprotect.why);
    RETURN was;
END $$;

-- The protected tables. whole is false when a trigger of one of them, or of one of its partitions, is missing, switched off or
-- another one: protect it once more. It is false as well where another trigger comes after the check, and may change what was checked
-- (give that one a name that sorts before), and where the column has another name now: unprotect it, and protect it again.
CREATE FUNCTION {schema}.protected()
RETURNS TABLE (relation regclass, resource text, named text, since timestamptz, who text, whole boolean)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.relation, p.resource, p.named, p.since, p.who, NOT EXISTS (
        SELECT FROM {schema}.sink_needed(p.relation, p.guard) n
        WHERE NOT n.is_set OR NOT n.is_on
            OR EXISTS (SELECT FROM pg_trigger o WHERE o.tgrelid = n.part AND NOT o.tgisinternal AND o.tgenabled <> 'D'
                AND o.tgtype & 3 = 3 AND o.tgname > 'zz_tenure_guard') -- before each row
    ) AND (p.resource IS NULL OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = p.relation AND a.attname = p.resource))
    FROM {schema}.sink_protected p
    JOIN pg_class c ON c.oid = p.relation -- it is not there any more when the table was dropped
    ORDER BY p.relation::text
$$;

-- Whoever has taken this role by SET ROLE, or is it, writes to protected tables without a token; each use is written down.
CREATE FUNCTION {schema}.exempt(role regrole, why text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name constant text := (SELECT r.rolname FROM pg_roles r WHERE r.oid = exempt.role);
BEGIN
    IF coalesce(exempt.why, '') = '' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'say why the role is exempt: it is written down';
    END IF;
    INSERT INTO {schema}.sink_exempt (role, who, why) VALUES (name, {schema}.sink_caller(), exempt.why)
    ON CONFLICT ON CONSTRAINT sink_exempt_pkey DO UPDATE SET who = excluded.who, why = excluded.why, since = excluded.since;
    PERFORM {schema}.sink_note('exempt', name, exempt.why);
END $$;

-- Takes the exemption away; true when there was one.
CREATE FUNCTION {schema}.unexempt(role name, why text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM {schema}.sink_exempt e WHERE e.role = unexempt.role::text;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM {schema}.sink_note('unexempt', unexempt.role::text, coalesce(unexempt.why, ''));
    RETURN true;
END $$;

-- Gives a role the rights for: write (check tokens, apply, look up), seal (what a holder does at a takeover), protect (tables
-- that it owns), operate (reopen, exempt, read the journal).
CREATE FUNCTION {schema}.allow(role regrole, what text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    names constant text[] := CASE allow.what
        WHEN 'write' THEN '{}'
        WHEN 'seal' THEN '{describe,rows,seal,forget}'
        WHEN 'protect' THEN '{protect,unprotect,sink_make_guard,sink_keep,sink_drop_guard,sink_needed}'
        WHEN 'operate' THEN '{describe,rows,reopen,exempt,unexempt}'
    END;
    each regprocedure;
BEGIN
    IF names IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'a role is allowed to write, seal, protect or operate';
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA {schema} TO %s', allow.role);
    FOR each IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = '{schema}'::regnamespace AND p.proname = ANY (names) LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', each, allow.role);
    END LOOP;
    IF allow.what = 'operate' THEN
        EXECUTE format('GRANT SELECT ON {schema}.sink_journal, {schema}.sink_exempt, {schema}.sink_operation TO %s', allow.role);
        -- Without the secret: whoever has it can write to protected tables, and nobody writes that down.
        EXECUTE format('GRANT SELECT (resource, epoch, grant_id, generation, server, reopened, started, file, seal_no, enrolled, '
            'sealed_at, sealed_by) '
            'ON {schema}.sink_fence TO %s', allow.role);
    END IF;
END $$;

DO $$
DECLARE
    each regprocedure;
BEGIN
    -- What writers need stays PUBLIC's: it is closed to those without USAGE on the schema. sink_refuse and sink_is_admitted
    -- show no grant; sink_kept shows what the trigger shows.
    FOR each IN
        SELECT p.oid FROM pg_proc p
        WHERE p.pronamespace = '{schema}'::regnamespace
            AND (p.proname LIKE 'sink\_%' OR p.proname IN ('describe', 'rows', 'seal', 'forget', 'reopen', 'protect', 'unprotect', 'exempt', 'unexempt', 'allow'))
            AND p.proname NOT IN ('sink_is_name', 'sink_expect_token', 'sink_is_admitted', 'sink_refuse', 'sink_kept', 'sink_guard_truncate')
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', each);
    END LOOP;
END $$;

INSERT INTO {schema}.sink_namespace (rule) VALUES ('{rule}');

SELECT {schema}.sink_expect_authority() WHERE '{rule}' = 'held';
