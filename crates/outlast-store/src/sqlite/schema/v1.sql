-- Version 1. Times are milliseconds since 1970 in UTC; the view `overview` shows them as dates.
--
-- Read the view `tasks`. It joins two tables, so that neither is written twice for a task that is created and
-- ends: the request and its current state are in `opened`, and the end of the task is in `ended`.

-- One row, `mark`, which every transaction of the server rewrites: the id of this store, the number of its commits,
-- the next creation number, whether a server uses the store, and a checksum. Do not change it.
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- Every task. From `state` to `details`: its current state until it ends.
CREATE TABLE opened (
    -- The minute of expiry in the high bits, the creation number in the low 36.
    row INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    owner TEXT NOT NULL,
    request_key TEXT,
    created INTEGER NOT NULL,
    -- working or awaiting_input, unless it had ended when it was inserted.
    state TEXT NOT NULL,
    message TEXT,
    updated INTEGER NOT NULL,
    ttl INTEGER NOT NULL,
    poll_interval INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    executor INTEGER NOT NULL,
    -- The events other than its creation and its end.
    timeline TEXT,
    handle BLOB,
    -- Values that most tasks do not have: input requests, a requested cancellation, limits.
    details TEXT,
    method TEXT NOT NULL,
    tool TEXT,
    runner TEXT NOT NULL,
    accepts INTEGER NOT NULL,
    -- rerun, or null.
    retry TEXT,
    progress_token TEXT,
    params TEXT
);

-- Tasks that have ended, with the same row numbers as in `opened`. These values replace those in `opened`.
CREATE TABLE ended (
    row INTEGER PRIMARY KEY,
    -- result, tool_error, error with its code, or cancelled.
    state TEXT NOT NULL,
    message TEXT,
    updated INTEGER NOT NULL,
    ttl INTEGER NOT NULL,
    poll_interval INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    executor INTEGER NOT NULL,
    timeline TEXT,
    handle BLOB,
    details TEXT,
    -- The result or the error. Last, so that other queries do not read it.
    body TEXT
);

CREATE VIEW tasks AS
SELECT
    opened.row AS row,
    id,
    owner,
    request_key,
    created,
    coalesce(ended.state, opened.state) AS state,
    iif(ended.row IS NULL, opened.message, ended.message) AS message,
    coalesce(ended.updated, opened.updated) AS updated,
    coalesce(ended.ttl, opened.ttl) AS ttl,
    coalesce(ended.poll_interval, opened.poll_interval) AS poll_interval,
    coalesce(ended.revision, opened.revision) AS revision,
    coalesce(ended.attempt, opened.attempt) AS attempt,
    coalesce(ended.executor, opened.executor) AS executor,
    iif(ended.row IS NULL, opened.timeline, ended.timeline) AS timeline,
    iif(ended.row IS NULL, opened.handle, ended.handle) AS handle,
    iif(ended.row IS NULL, opened.details, ended.details) AS details,
    method,
    tool,
    runner,
    accepts,
    retry,
    progress_token,
    params,
    body,
    created + coalesce(ended.ttl, opened.ttl) AS expires
FROM opened LEFT JOIN ended ON ended.row = opened.row;

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
