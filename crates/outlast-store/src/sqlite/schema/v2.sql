-- Version 2. What is promised is in the ledger first and comes into these tables a moment later: a task that begins and
-- ends within that moment is one row of `opened`.

-- The result or the error of a task that had ended when it came here. Last, so that looking at tasks does not read it.
ALTER TABLE opened ADD COLUMN body TEXT;

-- Which ledger goes with this file.
INSERT INTO meta VALUES ('ledger', random());

-- What the ledger says up to this number is in the tables.
INSERT INTO meta VALUES ('filled_to', 0);

DROP VIEW overview;

DROP VIEW tasks;

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
    iif(ended.row IS NULL, opened.body, ended.body) AS body,
    created + coalesce(ended.ttl, opened.ttl) AS expires
FROM opened LEFT JOIN ended ON ended.row = opened.row;

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
