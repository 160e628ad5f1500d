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

-- Records a change for the nodes that are joined, except the one that made it.
CREATE FUNCTION record_change(writer_node BIGINT, changed TEXT, reported TEXT DEFAULT NULL) RETURNS VOID
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT FROM nodes WHERE node <> writer_node AND NOT lost) THEN
        INSERT INTO changes (node, task, progress) VALUES (writer_node, changed, reported);
    END IF;
END $$;

CREATE FUNCTION digest_of(name TEXT) RETURNS BYTEA LANGUAGE sql IMMUTABLE AS $$
    SELECT sha256(convert_to(name, 'UTF8'))
$$;

CREATE FUNCTION count_tasks(owner BYTEA, open_delta BIGINT, retained_delta BIGINT) RETURNS VOID
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO counts AS c VALUES (owner, open_delta, retained_delta), ('\x', open_delta, retained_delta)
    ON CONFLICT (owner_digest) DO UPDATE
        SET open = c.open + excluded.open, retained = c.retained + excluded.retained;
    IF retained_delta < 0 THEN
        DELETE FROM counts WHERE owner_digest = owner AND retained = 0;
    END IF;
END $$;

CREATE FUNCTION write_records(writes JSONB) RETURNS VOID LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    w JSONB;
    r records;
BEGIN
    FOR w IN SELECT jsonb_array_elements(writes) LOOP
        r := jsonb_populate_record(NULL::records, w);
        IF r.bytes IS NULL THEN
            DELETE FROM records WHERE kind = r.kind AND key = r.key;
        ELSE
            INSERT INTO records VALUES (r.*) ON CONFLICT (kind, key) DO UPDATE
                SET owner = excluded.owner, expires = excluded.expires, bytes = excluded.bytes;
        END IF;
    END LOOP;
END $$;

-- Writes a record if the bytes under its key are the expected ones, or if it is absent and none are expected.
CREATE FUNCTION swap_record(op JSONB) RETURNS TEXT LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    stored BYTEA;
BEGIN
    SELECT bytes INTO stored FROM records
        WHERE kind = op -> 'record' ->> 'kind' AND key = op -> 'record' ->> 'key'
            AND (expires IS NULL OR expires > (op ->> 'now')::BIGINT);
    IF stored IS DISTINCT FROM (op ->> 'expected')::BYTEA THEN
        RETURN 'kept';
    END IF;
    PERFORM write_records(jsonb_build_array(op -> 'record'));
    RETURN 'done';
END $$;

CREATE FUNCTION insert_task(op JSONB, OUT reply TEXT, OUT existing TEXT)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    t tasks := jsonb_populate_record(NULL::tasks, op -> 'task');
    all_open BIGINT := 0;
    all_retained BIGINT := 0;
    own_open BIGINT := 0;
    own_retained BIGINT := 0;
BEGIN
    t.owner_digest := digest_of(t.owner);
    t.request_digest := digest_of(t.request_key);
    IF EXISTS (SELECT FROM nodes WHERE node = t.node AND lost) THEN
        reply := 'lost';
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM tasks WHERE id = t.id) THEN
        reply := 'exists';
        RETURN;
    END IF;
    IF t.request_key IS NOT NULL THEN
        SELECT id INTO existing FROM tasks
            WHERE owner_digest = t.owner_digest AND request_digest = t.request_digest;
        IF existing IS NOT NULL THEN
            reply := 'existing';
            RETURN;
        END IF;
    END IF;
    SELECT open, retained INTO all_open, all_retained FROM counts WHERE owner_digest = '\x';
    SELECT open, retained INTO own_open, own_retained FROM counts WHERE owner_digest = t.owner_digest;
    reply := CASE
        WHEN coalesce(all_retained, 0) >= (op ->> 'retained')::numeric THEN 'full'
        WHEN coalesce(all_open, 0) >= (op ->> 'open')::numeric THEN 'busy'
        WHEN coalesce(own_open, 0) >= (op ->> 'owner_open')::numeric THEN 'owner_busy'
        WHEN coalesce(own_retained, 0) >= (op ->> 'owner_retained')::numeric THEN 'owner_full'
    END;
    IF reply IS NOT NULL THEN
        RETURN;
    END IF;
    INSERT INTO tasks OVERRIDING USER VALUE VALUES (t.*);
    PERFORM count_tasks(t.owner_digest, CASE WHEN t.ended THEN 0 ELSE 1 END, 1);
    PERFORM write_records(op -> 'records');
    reply := 'done';
END $$;

CREATE FUNCTION replace_task(op JSONB) RETURNS TEXT LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    t tasks := jsonb_populate_record(NULL::tasks, op -> 'task');
    writer_node BIGINT := (op ->> 'node')::BIGINT;
    before RECORD;
BEGIN
    IF EXISTS (SELECT FROM nodes WHERE node = writer_node AND lost) THEN
        RETURN 'lost';
    END IF;
    SELECT owner_digest, ended, executor INTO before FROM tasks
        WHERE id = t.id AND revision = (op ->> 'expected')::BIGINT FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'conflict';
    END IF;
    UPDATE tasks SET state = t.state, message = t.message, updated = t.updated, ttl = t.ttl, due = t.due,
        poll_interval = t.poll_interval, revision = t.revision, attempt = t.attempt, executor = t.executor,
        node = t.node, ended = t.ended, timeline = t.timeline, handle = t.handle, details = t.details,
        offered = CASE WHEN t.executor = before.executor THEN offered END,
        body = coalesce(t.body, body)
        WHERE id = t.id;
    IF t.ended AND NOT before.ended THEN
        PERFORM count_tasks(before.owner_digest, -1, 0);
    ELSIF before.ended AND NOT t.ended THEN
        PERFORM count_tasks(before.owner_digest, 1, 0);
    END IF;
    PERFORM write_records(op -> 'records');
    PERFORM record_change(writer_node, t.id);
    RETURN 'done';
END $$;

CREATE FUNCTION remove_task(op JSONB) RETURNS TEXT LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    before RECORD;
BEGIN
    IF EXISTS (SELECT FROM nodes WHERE node = (op ->> 'node')::BIGINT AND lost) THEN
        RETURN 'lost';
    END IF;
    DELETE FROM tasks WHERE id = op ->> 'id' AND revision = (op ->> 'expected')::BIGINT
        RETURNING owner_digest, ended INTO before;
    IF NOT FOUND THEN
        RETURN 'conflict';
    END IF;
    PERFORM count_tasks(before.owner_digest, CASE WHEN before.ended THEN 0 ELSE -1 END, -1);
    PERFORM record_change((op ->> 'node')::BIGINT, op ->> 'id');
    RETURN 'done';
END $$;

-- Executes operations in their order, in one transaction. Returns one row for each.
CREATE FUNCTION write_batch(this_writer BIGINT, this_generation BIGINT, ops JSONB)
RETURNS TABLE (reply TEXT, existing TEXT) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    op JSONB;
BEGIN
    PERFORM lock_writes();
    IF NOT EXISTS (SELECT FROM writers WHERE writer = this_writer AND generation = this_generation) THEN
        RAISE EXCEPTION 'the connection of this writer was replaced';
    END IF;
    -- The node does not wait for the reply any more.
    IF clock_timestamp() > statement_timestamp() + INTERVAL '8 seconds' THEN
        RAISE EXCEPTION 'other nodes held the write lock for too long';
    END IF;
    FOR op IN SELECT jsonb_array_elements(ops) LOOP
        existing := NULL;
        CASE op ->> 'kind'
            WHEN 'insert' THEN
                SELECT i.reply, i.existing INTO reply, existing FROM insert_task(op) AS i;
            WHEN 'replace' THEN
                reply := replace_task(op);
            WHEN 'remove' THEN
                reply := remove_task(op);
            WHEN 'records' THEN
                PERFORM write_records(op -> 'records');
                reply := 'done';
            WHEN 'swap' THEN
                reply := swap_record(op);
            WHEN 'progress' THEN
                PERFORM record_change((op ->> 'node')::BIGINT, op ->> 'id', op ->> 'progress');
                reply := 'done';
        END CASE;
        RETURN NEXT;
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
    PERFORM record_change(this_node, NULL);
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
