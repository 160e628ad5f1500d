//! The table `records`: small values that are not tasks.

use outlast_engine::store::{Record, RecordKey, RecordSwap, RecordWrite};
use outlast_engine::{Owner, OwnerParseError};
use outlast_wire::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, Statement, params};

use super::connect;

/// The statements that change records.
pub(super) struct RecordStatements<'c> {
    find: Statement<'c>,
    put: Statement<'c>,
    delete: Statement<'c>,
    expire: Statement<'c>,
    next_expiry: Statement<'c>,
}

impl<'c> RecordStatements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        let prepare = |sql| connect::prepare(connection, sql);
        Ok(Self {
            find: prepare(FIND)?,
            put: prepare(
                "INSERT OR REPLACE INTO records (kind, key, owner, expires, bytes)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?,
            delete: prepare("DELETE FROM records WHERE kind = ?1 AND key = ?2")?,
            expire: prepare(
                "DELETE FROM records WHERE (kind, key) IN (
                     SELECT kind, key FROM records WHERE expires <= ?1 ORDER BY expires LIMIT ?2)",
            )?,
            next_expiry: prepare(NEXT_EXPIRY)?,
        })
    }

    /// Executes the writes.
    pub(super) fn write(&mut self, writes: &[RecordWrite]) -> rusqlite::Result<()> {
        for write in writes {
            match write {
                RecordWrite::Put(record) => self.put.execute(params![
                    &*record.key.kind,
                    &*record.key.key,
                    record.owner.as_ref().map(Owner::to_storage),
                    record.expires.map(sortable),
                    &*record.bytes,
                ])?,
                RecordWrite::Delete(key) => self.delete.execute([&*key.kind, &*key.key])?,
            };
        }
        Ok(())
    }

    /// Writes a record if the stored one is the expected one at `now`.
    pub(super) fn swap(&mut self, swap: &RecordSwap, now: Timestamp) -> rusqlite::Result<bool> {
        let key = &swap.record.key;
        let stored = self
            .find
            .query_row([&*key.kind, &*key.key], record)
            .optional()?;
        let stored = stored.filter(|record| record.exists_at(now));
        let matches = stored.map(|record| record.bytes) == swap.expected;
        if matches {
            self.write(&[RecordWrite::Put(swap.record.clone())])?;
        }
        Ok(matches)
    }

    /// Deletes up to `limit` records that have expired at `now`.
    pub(super) fn expire(&mut self, now: Timestamp, limit: u32) -> rusqlite::Result<()> {
        self.expire.execute(params![sortable(now), limit])?;
        Ok(())
    }

    /// When the next record expires.
    pub(super) fn next_expiry(&mut self) -> rusqlite::Result<Option<Timestamp>> {
        self.next_expiry.query_row((), expiry)
    }
}

/// When the next record expires.
pub(super) fn next_expiry(connection: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    connection.query_row(NEXT_EXPIRY, (), expiry)
}

/// The record under `key`, unless it has expired.
pub(super) fn one(
    connection: &Connection,
    key: &RecordKey,
    now: Timestamp,
) -> rusqlite::Result<Option<Record>> {
    let found = connection
        .prepare_cached(FIND)?
        .query_row([&*key.kind, &*key.key], record)
        .optional()?;
    Ok(found.filter(|record| record.exists_at(now)))
}

/// All unexpired records of a kind, of one owner if `owner` is given.
pub(super) fn of_kind(
    connection: &Connection,
    kind: &str,
    owner: Option<&Owner>,
    now: Timestamp,
) -> rusqlite::Result<Vec<Record>> {
    let sql = "SELECT kind, key, owner, expires, bytes FROM records
               WHERE kind = ?1 AND (?2 IS NULL OR owner = ?2) ORDER BY key";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![kind, owner.map(Owner::to_storage)], record)?;
    rows.filter(|row| row.as_ref().map_or(true, |record| record.exists_at(now)))
        .collect()
}

/// All records, expired ones included.
pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<Record>> {
    let sql = "SELECT kind, key, owner, expires, bytes FROM records ORDER BY kind, key";
    connection.prepare(sql)?.query_map((), record)?.collect()
}

fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    let owner = row.get_ref(2)?.as_str_or_null()?.map(str::parse);
    let owner = owner.transpose().map_err(|error: OwnerParseError| {
        rusqlite::Error::FromSqlConversionFailure(2, Type::Text, error.into())
    })?;
    let expires: Option<i64> = row.get(3)?;
    Ok(Record {
        key: RecordKey {
            kind: row.get(0)?,
            key: row.get(1)?,
        },
        owner,
        expires: expires.map(|at| Timestamp(at.cast_unsigned())),
        bytes: row.get_ref(4)?.as_blob()?.into(),
    })
}

fn expiry(row: &Row<'_>) -> rusqlite::Result<Option<Timestamp>> {
    let expires: Option<i64> = row.get(0)?;
    Ok(expires.map(|at| Timestamp(at.cast_unsigned())))
}

/// A timestamp as a number with the same order. Larger ones are cut to the maximum.
fn sortable(at: Timestamp) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

const FIND: &str =
    "SELECT kind, key, owner, expires, bytes FROM records WHERE kind = ?1 AND key = ?2";

const NEXT_EXPIRY: &str = "SELECT min(expires) FROM records WHERE expires IS NOT NULL";
