-- Version 1. Times are milliseconds since 1970 in UTC; the view `overview` shows them as dates.

CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

-- No task has had this place in the order of creation, nor a later one.
INSERT INTO meta VALUES ('next_position', 1);

CREATE TABLE tasks (
    -- The minute of expiry in the high bits, the place in the order of creation in the low 36.
    row INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    owner TEXT NOT NULL,
    -- working, awaiting_input, result, tool_error, error or cancelled.
    state TEXT NOT NULL,
    error_code INTEGER,
    message TEXT,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    ttl INTEGER NOT NULL,
    poll_interval INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    request_key TEXT,
    method TEXT NOT NULL,
    tool TEXT,
    runner TEXT NOT NULL,
    retry TEXT NOT NULL,
    accepts INTEGER NOT NULL,
    executor INTEGER NOT NULL,
    ttl_granted INTEGER NOT NULL,
    keep TEXT NOT NULL,
    run_limit INTEGER,
    waited INTEGER NOT NULL,
    waiting_since INTEGER,
    cancel_requested INTEGER,
    cancel_deadline INTEGER,
    progress_token TEXT,
    timeline TEXT NOT NULL,
    timeline_dropped INTEGER NOT NULL,
    asked TEXT,
    asks TEXT,
    answers TEXT,
    handle BLOB,
    params TEXT,
    -- The result or the error. Last, so that looking at tasks does not read it.
    body TEXT,
    expires INTEGER AS (created + ttl) VIRTUAL
);

CREATE TABLE records (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    owner TEXT,
    expires INTEGER,
    bytes BLOB NOT NULL,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID;

CREATE INDEX records_by_expiry ON records (expires) WHERE expires IS NOT NULL;

CREATE VIEW overview AS
SELECT
    id,
    owner,
    state,
    coalesce(tool, method) AS what,
    message,
    datetime(created / 1000, 'unixepoch') AS created,
    datetime(updated / 1000, 'unixepoch') AS updated,
    datetime(expires / 1000, 'unixepoch') AS expires,
    attempt,
    length(params) AS params_size,
    length(body) AS body_size
FROM tasks;
