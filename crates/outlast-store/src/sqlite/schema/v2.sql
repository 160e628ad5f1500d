-- Version 2. The sizes in `overview` are bytes. `length` of a text counts characters.

DROP VIEW overview;

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
    length(CAST(params AS BLOB)) AS params_size,
    length(CAST(body AS BLOB)) AS body_size
FROM tasks;
