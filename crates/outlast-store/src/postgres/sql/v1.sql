-- Version 1. Times are milliseconds since 1970 in UTC; the view `overview` shows them as dates.
-- Every function that writes takes one advisory lock first, so that writes of several nodes are in one order.

CREATE TABLE tasks (
    id TEXT COLLATE "C" PRIMARY KEY,
    -- The order of insertion.
    position BIGINT GENERATED ALWAYS AS IDENTITY,
    owner TEXT NOT NULL,
    -- Digests, because an index cannot hold a long text.
    owner_digest BYTEA NOT NULL,
    request_key TEXT,
    request_digest BYTEA,
    created BIGINT NOT NULL,
    state TEXT NOT NULL,
    message TEXT,
    updated BIGINT NOT NULL,
    ttl BIGINT NOT NULL,
    due BIGINT NOT NULL,
    poll_interval BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    executor BIGINT NOT NULL,
    -- The executor while the task is open and not detached.
    node BIGINT,
    -- The node that a claim offered the task to.
    offered BIGINT,
    ended BOOLEAN NOT NULL,
    timeline TEXT,
    handle BYTEA,
    details TEXT,
    method TEXT NOT NULL,
    tool TEXT,
    runner TEXT NOT NULL,
    accepts BIGINT NOT NULL,
    retry TEXT,
    progress_token TEXT,
    params TEXT,
    body TEXT
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX tasks_by_position ON tasks (position);
CREATE INDEX tasks_by_owner ON tasks (owner_digest, position);
CREATE INDEX tasks_by_request_key ON tasks (owner_digest, request_digest) WHERE request_digest IS NOT NULL;
CREATE INDEX tasks_by_due ON tasks (due);
CREATE INDEX tasks_by_node ON tasks (node) WHERE node IS NOT NULL;

-- The counts that quotas limit. The empty digest has the counts of all owners.
CREATE TABLE counts (
    owner_digest BYTEA PRIMARY KEY,
    open BIGINT NOT NULL,
    retained BIGINT NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE records (
    kind TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    owner TEXT,
    expires BIGINT,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (kind, key)
);
CREATE INDEX records_by_expiry ON records (expires) WHERE expires IS NOT NULL;

-- The nodes that joined, with their leases on the clock of the database.
CREATE TABLE nodes (
    node BIGINT PRIMARY KEY,
    epoch BIGINT NOT NULL,
    -- The store that the node uses, and its notification channel.
    writer BIGINT NOT NULL,
    -- Where other nodes reach it, if it published that.
    address TEXT,
    joined TIMESTAMPTZ NOT NULL,
    expires TIMESTAMPTZ NOT NULL,
    -- Other nodes may claim its tasks, and it must join again.
    lost BOOLEAN NOT NULL DEFAULT false,
    -- The last change that it has read.
    seen BIGINT NOT NULL
) WITH (fillfactor = 50);

-- What other nodes have not read yet. A change without a task says that a node left. One with progress says how far
-- the work of the task is.
CREATE TABLE changes (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    node BIGINT NOT NULL,
    task TEXT,
    progress TEXT
);

-- One row per open store. A write of an older generation is refused: its connection was lost.
CREATE TABLE writers (
    writer BIGINT PRIMARY KEY,
    generation BIGINT NOT NULL,
    opened TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE FUNCTION lock_writes() RETURNS VOID LANGUAGE sql SET search_path FROM CURRENT AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('outlast ' || current_schema(), 0))
$$;

CREATE FUNCTION digest_of(name TEXT) RETURNS BYTEA LANGUAGE sql STABLE AS $$
    SELECT sha256(convert_to(name, 'UTF8'))
$$;

-- Writes records of different keys: those with bytes are put, the others are deleted. Leaves out those of refused steps.
CREATE FUNCTION write_records(writes JSONB, refused INT[] DEFAULT '{}') RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM records AS r
        USING jsonb_to_recordset(writes) AS w (step INT, kind TEXT, key TEXT, bytes TEXT)
        WHERE r.kind = w.kind AND r.key = w.key AND w.bytes IS NULL AND (w.step = ANY (refused)) IS NOT TRUE;
    INSERT INTO records (kind, key, owner, expires, bytes)
        SELECT w.kind, w.key, w.owner, w.expires, w.bytes
        FROM jsonb_to_recordset(writes)
            AS w (step INT, kind TEXT, key TEXT, owner TEXT, expires BIGINT, bytes BYTEA)
        WHERE w.bytes IS NOT NULL AND (w.step = ANY (refused)) IS NOT TRUE
        ON CONFLICT (kind, key) DO UPDATE
        SET owner = excluded.owner, expires = excluded.expires, bytes = excluded.bytes;
END $$;

-- Writes a record if the bytes under its key are the expected ones, or if it is absent and none are expected. Returns
-- whether it did.
CREATE FUNCTION swap_record(swap JSONB) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
DECLARE
    stored BYTEA;
BEGIN
    SELECT bytes INTO stored FROM records
        WHERE kind = swap -> 'record' ->> 'kind' AND key = swap -> 'record' ->> 'key'
            AND (expires IS NULL OR expires > (swap ->> 'now')::BIGINT);
    IF stored IS DISTINCT FROM (swap ->> 'expected')::BYTEA THEN
        RETURN false;
    END IF;
    PERFORM write_records(jsonb_build_array(swap -> 'record'));
    RETURN true;
END $$;

-- Removes different tasks. Returns the steps that were refused.
CREATE FUNCTION remove_tasks(steps JSONB, lost_nodes BIGINT[], joined_nodes BIGINT[])
RETURNS TABLE (step INT, reply TEXT) LANGUAGE plpgsql AS $$
DECLARE
    refused INT[];
    owners_without_tasks BYTEA[];
BEGIN
    WITH given AS MATERIALIZED (
        SELECT * FROM jsonb_to_recordset(steps) AS s (step INT, writer BIGINT, id TEXT, expected BIGINT)
    ), removed AS (
        DELETE FROM tasks AS t USING given AS g
        WHERE t.id = g.id AND t.revision = g.expected AND g.writer <> ALL (lost_nodes)
        RETURNING g.step, g.writer, t.id, t.owner_digest, t.ended
    ), counted AS (
        INSERT INTO counts AS c
        SELECT coalesce(r.owner_digest, '\x'), -count(*) FILTER (WHERE NOT r.ended), -count(*)
        FROM removed AS r GROUP BY GROUPING SETS ((r.owner_digest), ()) HAVING count(*) > 0
        ON CONFLICT (owner_digest) DO UPDATE
        SET open = c.open + excluded.open, retained = c.retained + excluded.retained
        RETURNING c.owner_digest, c.retained
    ), recorded AS (
        INSERT INTO changes (node, task)
        SELECT r.writer, r.id FROM removed AS r
        WHERE array_remove(joined_nodes, r.writer) <> '{}' ORDER BY r.step
    )
    SELECT
        (SELECT array_agg(g.step) FROM given AS g
            WHERE (SELECT count(*) FROM removed) < jsonb_array_length(steps)
                AND NOT EXISTS (SELECT FROM removed AS r WHERE r.step = g.step)),
        (SELECT array_agg(c.owner_digest) FROM counted AS c WHERE c.retained = 0 AND c.owner_digest <> '\x')
        INTO refused, owners_without_tasks;
    IF owners_without_tasks IS NOT NULL THEN
        DELETE FROM counts WHERE owner_digest = ANY (owners_without_tasks);
    END IF;
    IF refused IS NOT NULL THEN
        RETURN QUERY SELECT s.step, CASE WHEN s.writer = ANY (lost_nodes) THEN 'lost' ELSE 'conflict' END
            FROM jsonb_to_recordset(steps) AS s (step INT, writer BIGINT) WHERE s.step = ANY (refused);
    END IF;
END $$;

-- Replaces different tasks. Returns the steps that were refused.
CREATE FUNCTION replace_tasks(steps JSONB, lost_nodes BIGINT[], joined_nodes BIGINT[])
RETURNS TABLE (step INT, reply TEXT) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
    WITH given AS MATERIALIZED (
        SELECT * FROM jsonb_to_recordset(steps) AS s (
            step INT, writer BIGINT, expected BIGINT, id TEXT, state TEXT, message TEXT, updated BIGINT, ttl BIGINT,
            due BIGINT, poll_interval BIGINT, revision BIGINT, attempt BIGINT, executor BIGINT, node BIGINT,
            ended BOOLEAN, timeline TEXT, handle BYTEA, details TEXT, body TEXT
        )
    ), replaced AS (
        UPDATE tasks AS t
        SET state = g.state, message = g.message, updated = g.updated, ttl = g.ttl, due = g.due,
            poll_interval = g.poll_interval, revision = g.revision, attempt = g.attempt, executor = g.executor,
            node = g.node, ended = g.ended, timeline = g.timeline, handle = g.handle, details = g.details,
            offered = CASE WHEN g.executor = before.executor THEN before.offered END,
            body = coalesce(g.body, t.body)
        FROM given AS g JOIN tasks AS before ON before.id = g.id
        WHERE t.id = g.id AND t.revision = g.expected AND g.writer <> ALL (lost_nodes)
        RETURNING g.step, g.writer, t.id, t.owner_digest, before.ended::INT - t.ended::INT AS opened
    ), counted AS (
        INSERT INTO counts AS c
        SELECT coalesce(r.owner_digest, '\x'), sum(r.opened), 0
        FROM replaced AS r GROUP BY GROUPING SETS ((r.owner_digest), ()) HAVING sum(r.opened) <> 0
        ON CONFLICT (owner_digest) DO UPDATE SET open = c.open + excluded.open
    ), recorded AS (
        INSERT INTO changes (node, task)
        SELECT r.writer, r.id FROM replaced AS r
        WHERE array_remove(joined_nodes, r.writer) <> '{}' ORDER BY r.step
    )
    SELECT g.step, CASE WHEN g.writer = ANY (lost_nodes) THEN 'lost' ELSE 'conflict' END
    FROM given AS g
    WHERE (SELECT count(*) FROM replaced) < jsonb_array_length(steps)
        AND NOT EXISTS (SELECT FROM replaced AS r WHERE r.step = g.step);
END $$;

-- Inserts different tasks, without a quota. If `refusal` is given, it is the reply to those that could be inserted, and
-- nothing is. Returns the steps that were refused.
CREATE FUNCTION insert_tasks(steps JSONB, lost_nodes BIGINT[], refusal TEXT DEFAULT NULL)
RETURNS TABLE (step INT, reply TEXT, existing TEXT) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
    WITH given AS MATERIALIZED (
        SELECT s.*, digest_of(s.owner) AS owner_digest, digest_of(s.request_key) AS request_digest,
            same_request.id AS same_request,
            CASE
                WHEN s.node = ANY (lost_nodes) THEN 'lost'
                WHEN same_id.id IS NOT NULL THEN 'exists'
                WHEN same_request.id IS NOT NULL THEN 'existing'
                ELSE refusal
            END AS reply
        FROM jsonb_to_recordset(steps) AS s (
            step INT, id TEXT, owner TEXT, request_key TEXT, created BIGINT, state TEXT, message TEXT, updated BIGINT,
            ttl BIGINT, due BIGINT, poll_interval BIGINT, revision BIGINT, attempt BIGINT, executor BIGINT,
            node BIGINT, ended BOOLEAN, timeline TEXT, handle BYTEA, details TEXT, method TEXT, tool TEXT,
            runner TEXT, accepts BIGINT, retry TEXT, progress_token TEXT, params TEXT, body TEXT
        )
        LEFT JOIN tasks AS same_id ON same_id.id = s.id
        LEFT JOIN tasks AS same_request
            ON same_request.owner_digest = digest_of(s.owner) AND same_request.request_digest = digest_of(s.request_key)
    ), inserted AS (
        INSERT INTO tasks (
            id, owner, owner_digest, request_key, request_digest, created, state, message, updated, ttl, due,
            poll_interval, revision, attempt, executor, node, ended, timeline, handle, details, method, tool, runner,
            accepts, retry, progress_token, params, body
        )
        SELECT g.id, g.owner, g.owner_digest, g.request_key, g.request_digest, g.created, g.state, g.message,
            g.updated, g.ttl, g.due, g.poll_interval, g.revision, g.attempt, g.executor, g.node, g.ended, g.timeline,
            g.handle, g.details, g.method, g.tool, g.runner, g.accepts, g.retry, g.progress_token, g.params, g.body
        FROM given AS g
        WHERE g.reply IS NULL ORDER BY g.step
        RETURNING tasks.owner_digest, tasks.ended
    ), counted AS (
        INSERT INTO counts AS c
        SELECT coalesce(i.owner_digest, '\x'), count(*) FILTER (WHERE NOT i.ended), count(*)
        FROM inserted AS i GROUP BY GROUPING SETS ((i.owner_digest), ()) HAVING count(*) > 0
        ON CONFLICT (owner_digest) DO UPDATE
        SET open = c.open + excluded.open, retained = c.retained + excluded.retained
    )
    SELECT g.step, g.reply, g.same_request FROM given AS g WHERE g.reply IS NOT NULL;
END $$;

-- Inserts different tasks in their order, as far as the quotas admit them. Returns the steps that were refused.
CREATE FUNCTION insert_within_quotas(steps JSONB, lost_nodes BIGINT[])
RETURNS TABLE (step INT, reply TEXT, existing TEXT) LANGUAGE plpgsql AS $$
DECLARE
    all_fit BOOLEAN;
    one JSONB;
    refusal TEXT;
BEGIN
    WITH given AS (
        SELECT digest_of(s.owner) AS owner_digest, count(*) AS tasks, min(s.owner_open) AS owner_open,
            min(s.owner_retained) AS owner_retained, min(s.all_open) AS all_open, min(s.all_retained) AS all_retained
        FROM jsonb_to_recordset(steps) AS s (
            owner TEXT, owner_open BIGINT, owner_retained BIGINT, all_open BIGINT, all_retained BIGINT
        ) GROUP BY s.owner
    )
    SELECT bool_and(
            coalesce(own.open, 0) + g.tasks <= g.owner_open AND coalesce(own.retained, 0) + g.tasks <= g.owner_retained
        ) AND coalesce(max(every.open), 0) + sum(g.tasks) <= min(g.all_open)
        AND coalesce(max(every.retained), 0) + sum(g.tasks) <= min(g.all_retained)
        INTO all_fit
        FROM given AS g
        LEFT JOIN counts AS own ON own.owner_digest = g.owner_digest
        LEFT JOIN counts AS every ON every.owner_digest = '\x';
    IF all_fit THEN
        RETURN QUERY SELECT * FROM insert_tasks(steps, lost_nodes);
        RETURN;
    END IF;
    -- A refused step leaves room for the next one.
    FOR one IN SELECT jsonb_array_elements(steps) LOOP
        SELECT CASE
                WHEN coalesce(every.retained, 0) >= s.all_retained THEN 'full'
                WHEN coalesce(every.open, 0) >= s.all_open THEN 'busy'
                WHEN coalesce(own.open, 0) >= s.owner_open THEN 'owner_busy'
                WHEN coalesce(own.retained, 0) >= s.owner_retained THEN 'owner_full'
            END
            INTO refusal
            FROM jsonb_to_record(one) AS s (
                owner TEXT, owner_open BIGINT, owner_retained BIGINT, all_open BIGINT, all_retained BIGINT
            )
            LEFT JOIN counts AS own ON own.owner_digest = digest_of(s.owner)
            LEFT JOIN counts AS every ON every.owner_digest = '\x';
        RETURN QUERY SELECT * FROM insert_tasks(jsonb_build_array(one), lost_nodes, refusal);
    END LOOP;
END $$;

-- Executes steps in one transaction, wave after wave. The steps of a wave concern different tasks, request keys and
-- records, so that their order does not matter. Returns a row for each step that was refused.
--
-- The plans are cached while tables grow from nothing to millions of rows, so they must use indexes from the beginning.
CREATE FUNCTION write_batch(this_writer BIGINT, this_generation BIGINT, waves JSONB)
RETURNS TABLE (step INT, reply TEXT, existing TEXT) LANGUAGE plpgsql
SET search_path FROM CURRENT SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    lost_nodes BIGINT[];
    joined_nodes BIGINT[];
    wave JSONB;
    refused INT[];
BEGIN
    PERFORM lock_writes();
    IF NOT EXISTS (SELECT FROM writers WHERE writer = this_writer AND generation = this_generation) THEN
        RAISE EXCEPTION 'the connection of this writer was replaced';
    END IF;
    -- The node does not wait for the reply any more.
    IF clock_timestamp() > statement_timestamp() + INTERVAL '8 seconds' THEN
        RAISE EXCEPTION 'other nodes held the write lock for too long';
    END IF;
    SELECT coalesce(array_agg(node) FILTER (WHERE lost), '{}'), coalesce(array_agg(node) FILTER (WHERE NOT lost), '{}')
        INTO lost_nodes, joined_nodes FROM nodes;
    FOR wave IN SELECT jsonb_array_elements(waves) LOOP
        refused := '{}';
        IF wave ? 'removes' THEN
            FOR step, reply IN
                SELECT r.step, r.reply FROM remove_tasks(wave -> 'removes', lost_nodes, joined_nodes) AS r
            LOOP
                refused := refused || step;
                RETURN NEXT;
            END LOOP;
        END IF;
        IF wave ? 'replaces' THEN
            FOR step, reply IN
                SELECT r.step, r.reply FROM replace_tasks(wave -> 'replaces', lost_nodes, joined_nodes) AS r
            LOOP
                refused := refused || step;
                RETURN NEXT;
            END LOOP;
        END IF;
        IF wave ? 'inserts' THEN
            FOR step, reply, existing IN
                SELECT r.step, r.reply, r.existing FROM insert_within_quotas(wave -> 'inserts', lost_nodes) AS r
            LOOP
                refused := refused || step;
                RETURN NEXT;
            END LOOP;
            existing := NULL;
        END IF;
        IF wave ? 'records' THEN
            PERFORM write_records(wave -> 'records', refused);
        END IF;
        IF wave ? 'swaps' THEN
            FOR step IN
                SELECT (s.value ->> 'step')::INT FROM jsonb_array_elements(wave -> 'swaps') AS s
                WHERE NOT swap_record(s.value)
            LOOP
                reply := 'kept';
                RETURN NEXT;
            END LOOP;
        END IF;
        IF wave ? 'progress' THEN
            INSERT INTO changes (node, task, progress)
                SELECT s.node, s.id, s.progress
                FROM jsonb_to_recordset(wave -> 'progress') AS s (step INT, node BIGINT, id TEXT, progress TEXT)
                WHERE array_remove(joined_nodes, s.node) <> '{}' ORDER BY s.step;
        END IF;
    END LOOP;
END $$;

-- Starts a generation of a writer, after which no write of an earlier one takes place.
CREATE FUNCTION start_writer(this_writer BIGINT) RETURNS BIGINT
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    started BIGINT;
BEGIN
    PERFORM lock_writes();
    DELETE FROM writers WHERE opened < now() - INTERVAL '1 day' AND writer <> this_writer
        AND NOT EXISTS (SELECT FROM nodes WHERE nodes.writer = writers.writer AND NOT lost);
    INSERT INTO writers AS w (writer, generation) VALUES (this_writer, 1)
        ON CONFLICT (writer) DO UPDATE SET generation = w.generation + 1, opened = now()
        RETURNING generation INTO started;
    RETURN started;
END $$;

-- Joins a node, under a new epoch if it had joined before. Returns the epoch and the last change.
CREATE FUNCTION join_node(
    this_node BIGINT, this_writer BIGINT, this_address TEXT, lease_ms BIGINT, OUT epoch BIGINT, OUT last BIGINT
)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM lock_writes();
    last := coalesce(pg_sequence_last_value(pg_get_serial_sequence('changes', 'seq')::regclass), 0);
    INSERT INTO nodes AS n (node, epoch, writer, address, joined, expires, seen)
        VALUES (this_node, 1, this_writer, this_address, clock_timestamp(),
            clock_timestamp() + lease_ms * INTERVAL '1 millisecond', last)
        ON CONFLICT (node) DO UPDATE SET epoch = n.epoch + 1, writer = excluded.writer,
            address = coalesce(excluded.address, n.address), joined = excluded.joined, expires = excluded.expires, seen = excluded.seen, lost = false
        RETURNING n.epoch INTO epoch;
END $$;

CREATE FUNCTION leave_node(this_node BIGINT) RETURNS VOID LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM lock_writes();
    DELETE FROM nodes WHERE node = this_node;
    INSERT INTO changes (node) SELECT this_node WHERE EXISTS (SELECT FROM nodes WHERE NOT lost);
END $$;

-- Marks nodes as lost whose lease has lapsed. A database that just started waits for one lease, because the
-- nodes could not renew.
CREATE FUNCTION mark_lost_nodes(lease_ms BIGINT) RETURNS BIGINT
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    marked BIGINT;
BEGIN
    IF NOT EXISTS (SELECT FROM nodes WHERE NOT lost AND expires < clock_timestamp())
        OR pg_postmaster_start_time() > clock_timestamp() - lease_ms * INTERVAL '1 millisecond' THEN
        RETURN 0;
    END IF;
    PERFORM lock_writes();
    WITH newly AS (
        UPDATE nodes SET lost = true WHERE NOT lost AND expires < clock_timestamp() RETURNING node
    ), told AS (
        INSERT INTO changes (node, task) SELECT node, NULL FROM newly RETURNING 1
    )
    SELECT count(*) INTO marked FROM told;
    DELETE FROM nodes WHERE lost AND expires < clock_timestamp() - INTERVAL '1 hour';
    RETURN marked;
END $$;

-- Renews the leases of nodes that were not lost, and returns these nodes.
CREATE FUNCTION renew_nodes(these BIGINT[], epochs BIGINT[], last_seen BIGINT, lease_ms BIGINT)
RETURNS SETOF BIGINT LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    RETURN QUERY UPDATE nodes AS n
        SET expires = clock_timestamp() + lease_ms * INTERVAL '1 millisecond', seen = greatest(n.seen, last_seen)
        FROM unnest(these, epochs) AS mine (node, epoch)
        WHERE n.node = mine.node AND n.epoch = mine.epoch AND NOT n.lost
        RETURNING n.node;
    DELETE FROM changes WHERE seq <= (SELECT min(seen) FROM nodes WHERE NOT lost);
END $$;

-- Offers open tasks of nodes that are not joined to a node, and returns them. After a claim whose reply was lost,
-- `again` returns also what that claim offered.
CREATE FUNCTION claim_tasks(this_node BIGINT, at_most BIGINT, again BOOLEAN) RETURNS SETOF tasks
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM lock_writes();
    RETURN QUERY
    WITH RECURSIVE executors (node) AS (
        (SELECT t.node FROM tasks AS t WHERE t.node IS NOT NULL ORDER BY t.node LIMIT 1)
        UNION ALL
        SELECT (SELECT t.node FROM tasks AS t WHERE t.node > e.node ORDER BY t.node LIMIT 1)
        FROM executors AS e WHERE e.node IS NOT NULL
    ), absent AS (
        SELECT e.node FROM executors AS e
        WHERE e.node IS NOT NULL AND NOT EXISTS (SELECT FROM nodes AS n WHERE n.node = e.node AND NOT n.lost)
    ), orphans AS (
        SELECT t.id FROM tasks AS t
        WHERE t.node IN (SELECT a.node FROM absent AS a)
            AND (NOT EXISTS (SELECT FROM nodes AS n WHERE n.node = t.offered AND NOT n.lost)
                OR again AND t.offered = this_node)
        LIMIT at_most FOR UPDATE SKIP LOCKED
    )
    UPDATE tasks AS t SET offered = this_node FROM orphans WHERE t.id = orphans.id RETURNING t.*;
END $$;

CREATE VIEW overview AS
SELECT
    id,
    owner,
    state,
    coalesce(tool, method) AS what,
    message,
    to_timestamp(created / 1000.0) AS created,
    to_timestamp(updated / 1000.0) AS updated,
    to_timestamp((created::numeric + ttl) / 1000.0) AS expires,
    attempt,
    octet_length(params) AS params_size,
    octet_length(body) AS body_size
FROM tasks;

-- The nodes with their load and the time that is left of their leases.
CREATE VIEW node_overview AS
SELECT
    node,
    epoch,
    CASE WHEN lost THEN 'lost' WHEN expires < clock_timestamp() THEN 'lapsed' ELSE 'joined' END AS state,
    address,
    joined,
    expires,
    (SELECT count(*) FROM tasks WHERE tasks.node = nodes.node) AS open_tasks
FROM nodes;
