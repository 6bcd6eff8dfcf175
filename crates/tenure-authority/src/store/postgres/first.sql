-- Tables and functions of a store, first version. {schema} stands for the store's schema.
--
-- For people as well: SELECT * FROM {schema}.history shows what happened. Instants and spans are nanoseconds (*_ns), the
-- instants since 1970 by the server's clock; ids are 16 bytes. A version only serves swaps. In outcome and why, a backslash
-- is written \\ and a zero byte \0.

CREATE TABLE {schema}.migration (
    number     integer     PRIMARY KEY,
    name       text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE {schema}.meta (
    single               boolean PRIMARY KEY CHECK (single),
    identity             text    NOT NULL,
    incarnation          bigint  NOT NULL,
    floor                bigint,
    max_ttl_ns           bigint  NOT NULL,
    quarantined_until_ns bigint,
    version              bigint  NOT NULL,
    versions_dropped     bigint  NOT NULL,  -- no version above it ever stood on a record that is gone
    origin_after         bigint  NOT NULL   -- rows of the history up to it are of another store's clock
);

CREATE TABLE {schema}.session (
    id             bytea   PRIMARY KEY,
    owner_name     text    NOT NULL,
    owner_instance bytea   NOT NULL,
    on_this_host   boolean NOT NULL,
    ttl_ns         bigint  NOT NULL,
    deadline_ns    bigint  NOT NULL,
    renew_seq      bigint  NOT NULL,
    incarnation    bigint  NOT NULL,
    ended          text,                    -- why; NULL while it is live
    ended_at_ns    bigint,
    version        bigint  NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE {schema}.lease (
    resource       text COLLATE "C" PRIMARY KEY,
    epoch          bigint NOT NULL,
    grant_id       bytea  NOT NULL,
    session_id     bytea  NOT NULL,
    owner_name     text   NOT NULL,
    owner_instance bytea  NOT NULL,
    since_ns       bigint NOT NULL,
    phase          text   NOT NULL,
    outcome        text,                    -- when completed
    cut            bigint,                  -- when retiring
    forgotten      text,                    -- when retiring: JSON, the sinks that have forgotten
    sinks          text   NOT NULL,         -- JSON
    version        bigint NOT NULL,
    mark_high      bigint NOT NULL,         -- what its grant is in its session's fingerprint; 0 when none stands
    mark_low       bigint NOT NULL
) WITH (fillfactor = 50);

CREATE INDEX lease_by_session ON {schema}.lease (session_id);

-- The fingerprints of the grants that stand on the sessions. Apart from them, so that grants and renewals touch no row in
-- common.
CREATE TABLE {schema}.holding (
    session_id bytea  PRIMARY KEY,
    high       bigint NOT NULL,
    low        bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE {schema}.history (
    number     bigint      PRIMARY KEY,
    at_ns      bigint      NOT NULL,
    wall       timestamptz NOT NULL DEFAULT clock_timestamp(),  -- decides nothing
    event      text        NOT NULL,
    resource   text COLLATE "C",
    session_id bytea,
    epoch      bigint,
    grant_id   bytea,
    actor      text,
    why        text
);

-- Who waits for which resource, and until when: only then a change of it sends a notification.
CREATE UNLOGGED TABLE {schema}.waiter (
    resource text COLLATE "C" PRIMARY KEY,
    until_ns bigint NOT NULL
) WITH (fillfactor = 50);

CREATE AGGREGATE {schema}.xor(bigint) (SFUNC = int8xor, STYPE = bigint, INITCOND = '0');

-- The server's clock now, not that of the transaction's or the statement's beginning.
CREATE FUNCTION {schema}.clock_ns() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000
$$;

-- For receivers in this schema, under the rule held: whether the newest grant of a resource stands. They know nothing else of
-- these tables; version says what the columns mean. A grant stands while ending is NULL and now_ns lies before deadline_ns.
CREATE VIEW {schema}.held (version, resource, epoch, grant_id, owner, since_ns, deadline_ns, ending, ended_ns, now_ns) AS
SELECT 1, l.resource, l.epoch, encode(l.grant_id, 'hex')::uuid, l.owner_name, l.since_ns, s.deadline_ns,
    CASE
        WHEN l.phase NOT IN ('sealing', 'held') THEN l.phase
        WHEN s.id IS NULL THEN 'swept'
        WHEN s.ended IS NOT NULL THEN s.ended
        WHEN s.incarnation <> m.incarnation THEN 'restored'
    END,
    CASE WHEN l.phase IN ('sealing', 'held') THEN s.ended_at_ns END,
    {schema}.clock_ns()
FROM {schema}.lease l CROSS JOIN {schema}.meta m LEFT JOIN {schema}.session s ON s.id = l.session_id
WHERE m.single;

-- Which server this is, and on which timeline: a promotion changes it at once. The table's number tells a dump that was put back, the
-- database's (the last folder of the table's file) a copy that took its place. NULL on a standby.
CREATE FUNCTION {schema}.identity() RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN NOT pg_is_in_recovery() THEN
        'postgres:' || (pg_control_system()).system_identifier || ':'
            || substring(pg_relation_filepath('{schema}.meta') FROM '([0-9]+)/[0-9]+$') || ':' || '{schema}.meta'::regclass::oid || ':'
            || ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int
    END
$$;

-- The clock for a change. It stands still while the server's is up to a second behind what the caller has seen, and refuses
-- when it is further behind.
CREATE FUNCTION {schema}.now_ns(seen_ns bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    now_ns bigint := {schema}.clock_ns();
BEGIN
    IF now_ns < seen_ns - 1000000000 THEN
        RAISE EXCEPTION USING ERRCODE = 'TN001', MESSAGE = (seen_ns - now_ns)::text;
    END IF;
    RETURN greatest(now_ns, seen_ns);
END $$;

-- Before a change. Each statement must see what was committed before it began, or the locks would be worth nothing.
CREATE FUNCTION {schema}.begin_change() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION USING ERRCODE = 'TN002', MESSAGE = current_setting('transaction_isolation');
    END IF;
END $$;

-- And before one that writes a row of the history: these come one after the other, so that its numbers leave no gap, and what
-- only they change (resources, fingerprints, whether a session is live) stands still from here to the commit.
--
-- Rows that anybody else might hold are locked before it, in the order of their keys: whoever waits for a row keeps nobody
-- waiting but those who want that row. Whoever has this lock waits for none of them, so nobody waits in a circle.
CREATE FUNCTION {schema}.begin_step() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM {schema}.begin_change();
    PERFORM pg_advisory_xact_lock(1415933554, '{schema}.history'::regclass::oid::int);
END $$;

-- What requests need, each with its place in the arrays, as it stood in the calling statement's snapshot.
CREATE FUNCTION {schema}.read(sessions bytea[], resources text[], grants bytea[]) RETURNS TABLE (
    place bigint, observed text,
    identity text, incarnation bigint, floor bigint, max_ttl_ns bigint, quarantined_until_ns bigint, version bigint,
    newest bigint, newest_at_ns bigint, grant_known boolean, high bigint, low bigint,
    c_id bytea, c_owner_name text, c_owner_instance bytea, c_on_this_host boolean, c_ttl_ns bigint, c_deadline_ns bigint,
    c_renew_seq bigint, c_incarnation bigint, c_ended text, c_ended_at_ns bigint, c_version bigint,
    l_resource text, l_epoch bigint, l_grant_id bytea, l_session_id bytea, l_owner_name text, l_owner_instance bytea,
    l_since_ns bigint, l_phase text, l_outcome text, l_cut bigint, l_forgotten text, l_sinks text, l_version bigint,
    h_id bytea, h_owner_name text, h_owner_instance bytea, h_on_this_host boolean, h_ttl_ns bigint, h_deadline_ns bigint,
    h_renew_seq bigint, h_incarnation bigint, h_ended text, h_ended_at_ns bigint, h_version bigint
) LANGUAGE plpgsql STABLE ROWS 1 {planning} AS $$
BEGIN
    RETURN QUERY
    SELECT k.place, {schema}.identity(),
        m.identity, m.incarnation, m.floor, m.max_ttl_ns, m.quarantined_until_ns, m.version,
        coalesce(newest.number, 0), CASE WHEN newest.number > m.origin_after THEN newest.at_ns END,
        k.grant_id IS NULL OR EXISTS (SELECT FROM {schema}.history g WHERE g.grant_id = k.grant_id),
        f.high, f.low,
        c.id, c.owner_name, c.owner_instance, c.on_this_host, c.ttl_ns, c.deadline_ns,
        c.renew_seq, c.incarnation, c.ended, c.ended_at_ns, c.version,
        l.resource, l.epoch, l.grant_id, l.session_id, l.owner_name, l.owner_instance,
        l.since_ns, l.phase, l.outcome, l.cut, l.forgotten, l.sinks, l.version,
        h.id, h.owner_name, h.owner_instance, h.on_this_host, h.ttl_ns, h.deadline_ns,
        h.renew_seq, h.incarnation, h.ended, h.ended_at_ns, h.version
    FROM {schema}.meta m
    LEFT JOIN (SELECT n.number, n.at_ns FROM {schema}.history n ORDER BY n.number DESC LIMIT 1) newest ON true
    CROSS JOIN unnest(sessions, resources, grants) WITH ORDINALITY k (session_id, resource, grant_id, place)
    LEFT JOIN {schema}.session c ON c.id = k.session_id
    LEFT JOIN {schema}.holding f ON f.session_id = k.session_id
    LEFT JOIN {schema}.lease l ON l.resource = k.resource
    LEFT JOIN {schema}.session h ON h.id = l.session_id
    WHERE m.single;
END $$;

-- Renewals, each of another session. Those that were made come back, and those whose session somebody else holds, with a
-- version that is NULL, when nobody is to wait for that. They lock their sessions alone, in the order of the ids, and
-- nothing else, so nobody waits in a circle.
--
-- The store's own record is read after the locks, and not locked: a renewal that is committed after a quarantine began
-- was made at that reading, before it, and says nothing to anybody who reads the new incarnation.
CREATE FUNCTION {schema}.renew(
    _waits boolean, _seen_ns bigint, _ids bytea[], _expected bigint[], _relies_on bytea[], _authority bigint[], _valid_before_ns bigint[],
    _owner_name text[], _owner_instance bytea[], _on_this_host boolean[], _ttl_ns bigint[], _deadline_ns bigint[],
    _renew_seq bigint[], _incarnation bigint[]
) RETURNS TABLE (place bigint, version bigint, now_ns bigint, newest bigint, high bigint, low bigint)
LANGUAGE plpgsql VOLATILE {planning} SET lock_timeout = '{lock_timeout}' AS $$
#variable_conflict use_column
DECLARE
    reading bigint;
    observed text;
    locked bytea[];
BEGIN
    PERFORM {schema}.begin_change();
    IF _waits THEN
        PERFORM FROM {schema}.session s WHERE s.id = ANY (_ids) ORDER BY s.id FOR NO KEY UPDATE;
        locked := _ids;
    ELSE
        locked := ARRAY(SELECT s.id FROM {schema}.session s WHERE s.id = ANY (_ids) FOR NO KEY UPDATE SKIP LOCKED);
    END IF;
    -- A condition on the clock in the statement that waits for the lock would be judged before the wait.
    reading := {schema}.now_ns(_seen_ns);
    observed := {schema}.identity();
    RETURN QUERY
    UPDATE {schema}.session s SET
        owner_name = u.owner_name, owner_instance = u.owner_instance, on_this_host = u.on_this_host, ttl_ns = u.ttl_ns,
        deadline_ns = CASE WHEN u.valid_before_ns IS NULL THEN u.deadline_ns ELSE reading + s.ttl_ns END,
        renew_seq = u.renew_seq, incarnation = u.incarnation, ended = NULL, ended_at_ns = NULL, version = s.version + 1
    FROM unnest(_ids, _expected, _relies_on, _authority, _valid_before_ns, _owner_name, _owner_instance, _on_this_host, _ttl_ns,
            _deadline_ns, _renew_seq, _incarnation) WITH ORDINALITY u (id, expected, relies_on, authority, valid_before_ns,
            owner_name, owner_instance, on_this_host, ttl_ns, deadline_ns, renew_seq, incarnation, place)
        LEFT JOIN {schema}.session r ON r.id = u.relies_on
        LEFT JOIN {schema}.holding f ON f.session_id = u.id,
        {schema}.meta m
    WHERE m.single AND s.id = u.id AND s.version = u.expected AND m.identity = observed
        AND (u.relies_on IS NULL OR r.id IS NOT NULL AND r.ended IS NULL AND r.incarnation = m.incarnation)
        AND (u.authority IS NULL OR u.authority = m.version)
        AND (u.valid_before_ns IS NULL OR reading < u.valid_before_ns)
        AND s.id = ANY (locked)
    RETURNING u.place, s.version, reading,
        coalesce((SELECT n.number FROM {schema}.history n ORDER BY n.number DESC LIMIT 1), 0),
        coalesce(f.high, 0), coalesce(f.low, 0);
    IF cardinality(locked) < cardinality(_ids) THEN
        RETURN QUERY
        SELECT u.place, NULL::bigint, reading, 0::bigint, 0::bigint, 0::bigint
        FROM unnest(_ids) WITH ORDINALITY u (id, place) JOIN {schema}.session s ON s.id = u.id
        WHERE u.id <> ALL (locked);
    END IF;
END $$;

-- One renewal, as `renew` makes many, which relies on the session that it renews, or on none: most calls are of one, and none
-- of them pays for what only many need. Counted in instructions of the server: calling `now_ns` and `begin_change`, which are
-- lines here, would cost 6 percent more, joining the session a second time 9, and locking and reading in one statement 7.
CREATE FUNCTION {schema}.renew_one(
    _waits boolean, _seen_ns bigint, _id bytea, _expected bigint, _relies_on boolean, _authority bigint, _valid_before_ns bigint,
    _owner_name text, _owner_instance bytea, _on_this_host boolean, _ttl_ns bigint, _deadline_ns bigint, _renew_seq bigint,
    _incarnation bigint
) RETURNS TABLE (place bigint, version bigint, now_ns bigint, newest bigint, high bigint, low bigint)
LANGUAGE plpgsql VOLATILE {planning_one} SET lock_timeout = '{lock_timeout}' AS $$
#variable_conflict use_column
DECLARE
    s record;
    now record;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM {schema}.begin_change();
    END IF;
    place := 1;
    IF _waits THEN
        SELECT version, ttl_ns, incarnation, ended INTO s FROM {schema}.session WHERE id = _id FOR NO KEY UPDATE;
    ELSE
        SELECT version, ttl_ns, incarnation, ended INTO s FROM {schema}.session WHERE id = _id FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            RETURN QUERY
            SELECT 1::bigint, NULL::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint FROM {schema}.session WHERE id = _id;
        END IF;
    END IF;
    IF s.version IS DISTINCT FROM _expected THEN
        RETURN;
    END IF;
    -- The lock is held: whatever is read from here on, the clock too, is of after the wait.
    now_ns := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000;
    IF now_ns < _seen_ns THEN
        now_ns := {schema}.now_ns(_seen_ns);
    END IF;
    SELECT m.version, m.identity = {schema}.identity() AS is_itself,
        NOT _relies_on OR s.ended IS NULL AND s.incarnation = m.incarnation AS stands,
        (SELECT n.number FROM {schema}.history n ORDER BY n.number DESC LIMIT 1) AS newest, f.high, f.low
    INTO now
    FROM {schema}.meta m
        LEFT JOIN {schema}.holding f ON f.session_id = _id
    WHERE m.single;
    IF now.is_itself AND now.stands AND (_authority IS NULL OR _authority = now.version)
        AND (_valid_before_ns IS NULL OR now_ns < _valid_before_ns)
    THEN
        version := _expected + 1;
        newest := coalesce(now.newest, 0);
        high := coalesce(now.high, 0);
        low := coalesce(now.low, 0);
        UPDATE {schema}.session SET
            owner_name = _owner_name, owner_instance = _owner_instance, on_this_host = _on_this_host, ttl_ns = _ttl_ns,
            deadline_ns = CASE WHEN _valid_before_ns IS NULL THEN _deadline_ns ELSE renew_one.now_ns + s.ttl_ns END,
            renew_seq = _renew_seq, incarnation = _incarnation, ended = NULL, ended_at_ns = NULL,
            version = renew_one.version
        WHERE id = _id;
        RETURN NEXT;
    END IF;
END $$;

-- A grant comes to the fingerprint of a session, or goes. One of a session that was swept is not kept when it is empty.
CREATE FUNCTION {schema}.toggle(_session_id bytea, _high bigint, _low bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    is_empty boolean;
BEGIN
    UPDATE {schema}.holding SET high = high # _high, low = low # _low WHERE session_id = _session_id
    RETURNING high = 0 AND low = 0 INTO is_empty;
    IF NOT FOUND THEN
        INSERT INTO {schema}.holding VALUES (_session_id, _high, _low);
    ELSIF is_empty AND NOT EXISTS (SELECT FROM {schema}.session WHERE id = _session_id) THEN
        DELETE FROM {schema}.holding WHERE session_id = _session_id;
    END IF;
END $$;

-- One change of a resource, as `put_leases` makes many.
CREATE FUNCTION {schema}.put_lease(
    _seen_ns bigint, _expected bigint, _relies_on bytea, _authority bigint, _valid_before_ns bigint,
    _resource text, _epoch bigint, _grant_id bytea, _session_id bytea, _owner_name text, _owner_instance bytea,
    _since_ns bigint, _phase text, _outcome text, _cut bigint, _forgotten text, _sinks text, _mark_high bigint,
    _mark_low bigint,
    _at_ns bigint, _event text, _of_resource text, _of_session bytea, _of_epoch bigint, _of_grant bytea,
    _actor text, _why text
) RETURNS TABLE (place bigint, version bigint, now_ns bigint, newest bigint)
LANGUAGE plpgsql VOLATILE {planning_one} SET lock_timeout = '{lock_timeout}' AS $$
#variable_conflict use_column
DECLARE
    l record;
    now record;
BEGIN
    SELECT version, session_id, mark_high, mark_low INTO l FROM {schema}.lease WHERE resource = _resource FOR NO KEY UPDATE;
    IF l.version IS DISTINCT FROM _expected THEN
        RETURN;
    END IF;
    -- As `begin_step`.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM {schema}.begin_change();
    END IF;
    PERFORM pg_advisory_xact_lock(1415933554, '{schema}.history'::regclass::oid::int);
    now_ns := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000;
    IF now_ns < _seen_ns THEN
        now_ns := {schema}.now_ns(_seen_ns);
    END IF;
    SELECT m.version, m.versions_dropped, m.identity = {schema}.identity() AS is_itself,
        _relies_on IS NULL OR r.id IS NOT NULL AND r.ended IS NULL AND r.incarnation = m.incarnation AS stands,
        coalesce((SELECT n.number FROM {schema}.history n ORDER BY n.number DESC LIMIT 1), 0) AS newest, w.until_ns
    INTO now
    FROM {schema}.meta m
        LEFT JOIN {schema}.session r ON r.id = _relies_on
        LEFT JOIN {schema}.waiter w ON w.resource = _resource
    WHERE m.single;
    IF now.is_itself AND now.stands AND (_authority IS NULL OR _authority = now.version)
        AND (_valid_before_ns IS NULL OR now_ns < _valid_before_ns)
    THEN
        version := coalesce(_expected, now.versions_dropped) + 1;
        IF _expected IS NULL THEN
            INSERT INTO {schema}.lease VALUES (_resource, _epoch, _grant_id, _session_id, _owner_name, _owner_instance,
                _since_ns, _phase, _outcome, _cut, _forgotten, _sinks, put_lease.version, _mark_high, _mark_low)
            ON CONFLICT DO NOTHING;
        ELSE
            UPDATE {schema}.lease SET
                epoch = _epoch, grant_id = _grant_id, session_id = _session_id, owner_name = _owner_name,
                owner_instance = _owner_instance, since_ns = _since_ns, phase = _phase, outcome = _outcome, cut = _cut,
                forgotten = _forgotten, sinks = _sinks, version = put_lease.version, mark_high = _mark_high,
                mark_low = _mark_low
            WHERE resource = _resource;
        END IF;
        IF NOT FOUND THEN
            RETURN;
        END IF;
        -- A grant that stays goes and comes.
        IF l.session_id = _session_id THEN
            l.mark_high := l.mark_high # _mark_high;
            l.mark_low := l.mark_low # _mark_low;
            _mark_high := 0;
            _mark_low := 0;
        END IF;
        IF l.mark_high <> 0 OR l.mark_low <> 0 THEN
            PERFORM {schema}.toggle(l.session_id, l.mark_high, l.mark_low);
        END IF;
        IF _mark_high <> 0 OR _mark_low <> 0 THEN
            PERFORM {schema}.toggle(_session_id, _mark_high, _mark_low);
        END IF;
        newest := now.newest;
        IF _event IS NOT NULL THEN
            newest := newest + 1;
            INSERT INTO {schema}.history (number, at_ns, event, resource, session_id, epoch, grant_id, actor, why)
            VALUES (newest, _at_ns, _event, _of_resource, _of_session, _of_epoch, _of_grant, _actor, _why);
        END IF;
        IF now.until_ns > now_ns THEN
            PERFORM pg_notify('tenure_{schema}', CASE WHEN _phase IN ('sealing', 'held') THEN 't' ELSE 'f' END || _resource);
        END IF;
        place := 1;
        RETURN NEXT;
    END IF;
END $$;

-- Changes of resources, each of another one. Only those that were made come back.
CREATE FUNCTION {schema}.put_leases(
    _seen_ns bigint, _expected bigint[], _relies_on bytea[], _authority bigint[], _valid_before_ns bigint[],
    _resource text[], _epoch bigint[], _grant_id bytea[], _session_id bytea[], _owner_name text[], _owner_instance bytea[],
    _since_ns bigint[], _phase text[], _outcome text[], _cut bigint[], _forgotten text[], _sinks text[], _mark_high bigint[],
    _mark_low bigint[],
    _at_ns bigint[], _event text[], _of_resource text[], _of_session bytea[], _of_epoch bigint[], _of_grant bytea[],
    _actor text[], _why text[]
) RETURNS TABLE (place bigint, version bigint, now_ns bigint, newest bigint)
LANGUAGE plpgsql VOLATILE {planning} SET lock_timeout = '{lock_timeout}' AS $$
#variable_conflict use_column
DECLARE
    reading bigint;
    observed text;
BEGIN
    PERFORM FROM {schema}.lease l WHERE l.resource = ANY (_resource) ORDER BY l.resource FOR NO KEY UPDATE;
    PERFORM {schema}.begin_step();
    reading := {schema}.now_ns(_seen_ns);
    observed := {schema}.identity();
    RETURN QUERY
    WITH given AS MATERIALIZED (
        SELECT u.*, coalesce(l.version, m.versions_dropped) + 1 AS version,
            l.session_id AS former, l.mark_high AS former_high, l.mark_low AS former_low
        FROM unnest(_expected, _relies_on, _authority, _valid_before_ns, _resource, _epoch, _grant_id, _session_id, _owner_name,
                _owner_instance, _since_ns, _phase, _outcome, _cut, _forgotten, _sinks, _mark_high, _mark_low, _at_ns, _event,
                _of_resource, _of_session, _of_epoch, _of_grant, _actor, _why) WITH ORDINALITY u (expected, relies_on,
                authority, valid_before_ns, resource, epoch, grant_id, session_id, owner_name, owner_instance, since_ns,
                phase, outcome, cut, forgotten, sinks, mark_high, mark_low, at_ns, event, of_resource, of_session,
                of_epoch, of_grant, actor, why, place)
            LEFT JOIN {schema}.lease l ON l.resource = u.resource
            LEFT JOIN {schema}.session r ON r.id = u.relies_on,
            {schema}.meta m
        WHERE m.single AND l.version IS NOT DISTINCT FROM u.expected AND m.identity = observed
            AND (u.relies_on IS NULL OR r.id IS NOT NULL AND r.ended IS NULL AND r.incarnation = m.incarnation)
            AND (u.authority IS NULL OR u.authority = m.version)
            AND (u.valid_before_ns IS NULL OR reading < u.valid_before_ns)
    ), put AS (
        INSERT INTO {schema}.lease AS l
        SELECT resource, epoch, grant_id, session_id, owner_name, owner_instance, since_ns, phase, outcome, cut,
            forgotten, sinks, version, mark_high, mark_low
        FROM given
        ON CONFLICT (resource) DO UPDATE SET
            epoch = excluded.epoch, grant_id = excluded.grant_id, session_id = excluded.session_id,
            owner_name = excluded.owner_name, owner_instance = excluded.owner_instance, since_ns = excluded.since_ns,
            phase = excluded.phase, outcome = excluded.outcome, cut = excluded.cut, forgotten = excluded.forgotten,
            sinks = excluded.sinks, version = excluded.version, mark_high = excluded.mark_high,
            mark_low = excluded.mark_low
    ), deltas AS MATERIALIZED (
        -- A grant that stays is there twice, which is nothing.
        SELECT d.*, f.high = d.high AND f.low = d.low AND s.id IS NULL AS ends
        FROM (
            SELECT t.session_id, {schema}.xor(t.high) AS high, {schema}.xor(t.low) AS low
            FROM (
                SELECT former AS session_id, former_high AS high, former_low AS low FROM given WHERE former IS NOT NULL
                UNION ALL SELECT session_id, mark_high, mark_low FROM given
            ) t
            GROUP BY t.session_id
        ) d
        LEFT JOIN {schema}.holding f ON f.session_id = d.session_id
        LEFT JOIN {schema}.session s ON s.id = d.session_id
        WHERE d.high <> 0 OR d.low <> 0
    ), toggled AS (
        INSERT INTO {schema}.holding AS f
        SELECT session_id, high, low FROM deltas WHERE ends IS NOT TRUE
        ON CONFLICT (session_id) DO UPDATE SET high = f.high # excluded.high, low = f.low # excluded.low
    ), ended AS (
        -- A session that was swept keeps no empty fingerprint.
        DELETE FROM {schema}.holding f USING deltas d WHERE f.session_id = d.session_id AND d.ends
    ), tip AS MATERIALIZED (
        SELECT coalesce((SELECT n.number FROM {schema}.history n ORDER BY n.number DESC LIMIT 1), 0) AS number
    ), told AS (
        INSERT INTO {schema}.history (number, at_ns, event, resource, session_id, epoch, grant_id, actor, why)
        SELECT tip.number + row_number() OVER (ORDER BY place), at_ns, event, of_resource, of_session, of_epoch, of_grant, actor, why
        FROM given, tip WHERE event IS NOT NULL
    ), woken AS MATERIALIZED (
        SELECT pg_notify('tenure_{schema}', CASE WHEN phase IN ('sealing', 'held') THEN 't' ELSE 'f' END || w.resource)
        FROM given JOIN {schema}.waiter w ON w.resource = given.resource WHERE w.until_ns > reading
    )
    SELECT given.place, given.version, reading, tip.number + count(event) OVER ()
    FROM given, tip, (SELECT count(*) FROM woken) w;
END $$;

-- Openings and ends of sessions, each of another one. Only those that were made come back.
CREATE FUNCTION {schema}.put_sessions(
    _seen_ns bigint, _expected bigint[], _relies_on bytea[], _authority bigint[], _valid_before_ns bigint[],
    _id bytea[], _owner_name text[], _owner_instance bytea[], _on_this_host boolean[], _ttl_ns bigint[], _deadline_ns bigint[],
    _renew_seq bigint[], _incarnation bigint[], _ended text[], _ended_at_ns bigint[],
    _at_ns bigint[], _event text[], _of_resource text[], _of_session bytea[], _of_epoch bigint[], _of_grant bytea[],
    _actor text[], _why text[]
) RETURNS TABLE (place bigint, version bigint, now_ns bigint, newest bigint)
LANGUAGE plpgsql VOLATILE {planning} SET lock_timeout = '{lock_timeout}' AS $$
#variable_conflict use_column
DECLARE
    reading bigint;
    observed text;
BEGIN
    PERFORM FROM {schema}.session s WHERE s.id = ANY (_id) ORDER BY s.id FOR NO KEY UPDATE;
    PERFORM {schema}.begin_step();
    reading := {schema}.now_ns(_seen_ns);
    observed := {schema}.identity();
    RETURN QUERY
    WITH given AS MATERIALIZED (
        SELECT u.*, coalesce(s.version, m.versions_dropped) + 1 AS version
        FROM unnest(_expected, _relies_on, _authority, _valid_before_ns, _id, _owner_name, _owner_instance, _on_this_host, _ttl_ns,
                _deadline_ns, _renew_seq, _incarnation, _ended, _ended_at_ns, _at_ns, _event, _of_resource, _of_session, _of_epoch,
                _of_grant, _actor, _why) WITH ORDINALITY u (expected, relies_on, authority, valid_before_ns, id, owner_name,
                owner_instance, on_this_host, ttl_ns, deadline_ns, renew_seq, incarnation, ended, ended_at_ns, at_ns,
                event, of_resource, of_session, of_epoch, of_grant, actor, why, place)
            LEFT JOIN {schema}.session s ON s.id = u.id
            LEFT JOIN {schema}.session r ON r.id = u.relies_on,
            {schema}.meta m
        WHERE m.single AND s.version IS NOT DISTINCT FROM u.expected AND m.identity = observed
            AND (u.relies_on IS NULL OR r.id IS NOT NULL AND r.ended IS NULL AND r.incarnation = m.incarnation)
            AND (u.authority IS NULL OR u.authority = m.version)
            AND (u.valid_before_ns IS NULL OR reading < u.valid_before_ns)
    ), put AS (
        INSERT INTO {schema}.session AS s
        SELECT id, owner_name, owner_instance, on_this_host, ttl_ns, deadline_ns, renew_seq, incarnation, ended,
            ended_at_ns, version
        FROM given
        ON CONFLICT (id) DO UPDATE SET
            owner_name = excluded.owner_name, owner_instance = excluded.owner_instance,
            on_this_host = excluded.on_this_host, ttl_ns = excluded.ttl_ns, deadline_ns = excluded.deadline_ns,
            renew_seq = excluded.renew_seq, incarnation = excluded.incarnation, ended = excluded.ended,
            ended_at_ns = excluded.ended_at_ns, version = excluded.version
    ), tip AS MATERIALIZED (
        SELECT coalesce((SELECT n.number FROM {schema}.history n ORDER BY n.number DESC LIMIT 1), 0) AS number
    ), told AS (
        INSERT INTO {schema}.history (number, at_ns, event, resource, session_id, epoch, grant_id, actor, why)
        SELECT tip.number + row_number() OVER (ORDER BY place), at_ns, event, of_resource, of_session, of_epoch, of_grant, actor, why
        FROM given, tip WHERE event IS NOT NULL
    ), woken AS MATERIALIZED (
        SELECT pg_notify('tenure_{schema}', 'u' || w.resource)
        FROM {schema}.waiter w JOIN {schema}.lease l ON l.resource = w.resource
        WHERE w.until_ns > reading AND l.session_id IN (SELECT id FROM given WHERE ended IS NOT NULL)
    )
    SELECT given.place, given.version, reading, tip.number + count(event) OVER ()
    FROM given, tip, (SELECT count(*) FROM woken) w;
END $$;

-- The rare changes, one at a time: a session or a resource goes, or the store's own record becomes another one. No row comes
-- back when nothing was changed.
CREATE FUNCTION {schema}.change_one(
    seen_ns bigint, expected bigint, relies_on bytea, authority bigint, valid_before_ns bigint,
    drop_session bytea, drop_lease text,
    new_identity text, new_incarnation bigint, new_floor bigint, new_max_ttl_ns bigint, new_quarantined_until_ns bigint,
    at_ns bigint, event text, of_resource text, of_session bytea, of_epoch bigint, of_grant bytea, actor text, why text
) RETURNS TABLE (place bigint, version bigint, now_ns bigint, newest bigint)
LANGUAGE plpgsql VOLATILE {planning} SET lock_timeout = '{lock_timeout}' AS $$
#variable_conflict use_variable
DECLARE
    reading bigint;
    observed text;
    m {schema}.meta;
    dropped {schema}.lease;
BEGIN
    PERFORM FROM {schema}.meta WHERE meta.single FOR NO KEY UPDATE;
    PERFORM FROM {schema}.session s WHERE s.id = drop_session FOR UPDATE;
    PERFORM FROM {schema}.lease l WHERE l.resource = drop_lease FOR UPDATE;
    PERFORM {schema}.begin_step();
    reading := {schema}.now_ns(seen_ns);
    observed := {schema}.identity();
    SELECT * INTO m FROM {schema}.meta WHERE meta.single;
    IF authority <> m.version OR valid_before_ns <= reading
        OR relies_on IS NOT NULL AND NOT EXISTS (SELECT FROM {schema}.session r
            WHERE r.id = relies_on AND r.ended IS NULL AND r.incarnation = m.incarnation)
        OR new_identity IS NULL AND m.identity IS DISTINCT FROM observed
    THEN
        RETURN;
    END IF;
    IF new_identity IS NOT NULL THEN
        UPDATE {schema}.meta SET identity = new_identity, incarnation = new_incarnation, floor = new_floor,
            max_ttl_ns = new_max_ttl_ns, quarantined_until_ns = new_quarantined_until_ns, version = m.version + 1
        WHERE meta.single AND meta.version = expected;
    ELSIF drop_session IS NOT NULL THEN
        DELETE FROM {schema}.session s WHERE s.id = drop_session AND s.version = expected;
    ELSE
        DELETE FROM {schema}.lease l WHERE l.resource = drop_lease AND l.version = expected RETURNING l.* INTO dropped;
    END IF;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF new_identity IS NULL THEN
        UPDATE {schema}.meta SET versions_dropped = expected WHERE meta.single AND meta.versions_dropped < expected;
    END IF;
    IF dropped.mark_high <> 0 OR dropped.mark_low <> 0 THEN
        PERFORM {schema}.toggle(dropped.session_id, dropped.mark_high, dropped.mark_low);
    END IF;
    DELETE FROM {schema}.holding f
    WHERE f.session_id = coalesce(drop_session, dropped.session_id) AND f.high = 0 AND f.low = 0
        AND NOT EXISTS (SELECT FROM {schema}.session s WHERE s.id = f.session_id);
    newest := coalesce((SELECT n.number FROM {schema}.history n ORDER BY n.number DESC LIMIT 1), 0);
    IF event IS NOT NULL THEN
        newest := newest + 1;
        INSERT INTO {schema}.history (number, at_ns, event, resource, session_id, epoch, grant_id, actor, why)
        VALUES (newest, at_ns, event, of_resource, of_session, of_epoch, of_grant, actor, why);
    END IF;
    IF new_identity IS NOT NULL THEN
        PERFORM pg_notify('tenure_{schema}', '*') FROM {schema}.waiter w WHERE w.until_ns > reading LIMIT 1;
    ELSIF drop_lease IS NOT NULL THEN
        PERFORM pg_notify('tenure_{schema}', 'f' || w.resource) FROM {schema}.waiter w
        WHERE w.resource = drop_lease AND w.until_ns > reading;
    END IF;
    place := 1;
    version := expected + 1;
    now_ns := reading;
    RETURN NEXT;
END $$;

-- From now on changes of these resources are told to whoever listens, for so long. It waits for the steps that are under way,
-- which have not seen it.
CREATE FUNCTION {schema}.wait_for(resources text[], span_ns bigint) RETURNS void
LANGUAGE plpgsql VOLATILE {planning} SET lock_timeout = '{lock_timeout}' AS $$
DECLARE
    now_ns bigint;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(1415933554, '{schema}.history'::regclass::oid::int);
    now_ns := {schema}.clock_ns();
    INSERT INTO {schema}.waiter AS w
    SELECT r, now_ns + span_ns FROM unnest(resources) r ORDER BY r COLLATE "C"
    ON CONFLICT (resource) DO UPDATE SET until_ns = greatest(w.until_ns, excluded.until_ns);
    DELETE FROM {schema}.waiter w WHERE w.resource IN (
        SELECT v.resource FROM {schema}.waiter v WHERE v.until_ns < now_ns LIMIT 100 FOR UPDATE SKIP LOCKED
    );
END $$;
