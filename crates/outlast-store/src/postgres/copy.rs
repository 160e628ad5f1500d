//! Copies a stopped store in a file to a database.
//!
//! Everything is one transaction, which reads back what it wrote and compares it. So the database has
//! either a complete copy or nothing of it.

use std::path::{Path, PathBuf};

use outlast_engine::store::Record;
use outlast_engine::{Scope, Store, StoreError, Task, TaskId};
use outlast_wire::Raw;
use serde::Serialize;
use tokio_postgres::Transaction;
use tokio_postgres::types::Type;

use super::columns::{RecordColumns, TaskColumns};
use super::connection::Connector;
use super::error::PostgresError;
use super::options::PostgresUrl;
use super::row::{self, COLUMNS, Cells};
use super::schema;
use crate::OpenError;
use crate::sqlite::{Sqlite, SqliteOptions, SqliteReader};

/// Why a store was not copied. The database is unchanged, except for empty tables.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// There is no file to copy.
    #[error("there is no store at {}", .0.display())]
    NoStore(PathBuf),
    /// The file cannot be used.
    #[error("{0}")]
    Open(#[from] OpenError),
    /// The file cannot be read, or the copy cannot be read back.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The database cannot be used.
    #[error("{0}")]
    Database(#[from] PostgresError),
    /// The schema is in use.
    #[error(
        "the schema `{0}` contains tasks, records or nodes; choose an empty one with ?schema=NAME in the URL"
    )]
    NotEmpty(String),
    /// The copy differs from the file.
    #[error("the copy was not kept: {0} differs from the file")]
    Differs(String),
}

/// A task to insert, with the number of its step.
#[derive(Serialize)]
struct CopiedTask<'a> {
    step: usize,
    #[serde(flatten)]
    columns: TaskColumns<'a>,
}

impl<'a> CopiedTask<'a> {
    fn of((step, (task, body)): (usize, &'a (Task, Option<Raw>))) -> Self {
        let columns = TaskColumns::of(task, body.as_ref());
        Self { step, columns }
    }
}

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyCounts {
    /// Tasks, open and ended.
    pub tasks: usize,
    /// Records, such as sessions.
    pub records: usize,
}

/// Copies the store in the file at `from` to the schema that `to` names, which must be empty. No process
/// may have the file open.
pub async fn copy_from_sqlite(from: &Path, to: &PostgresUrl) -> Result<CopyCounts, CopyError> {
    if !from.exists() {
        return Err(CopyError::NoStore(from.to_owned()));
    }
    // It checks the file, and no other process can open it during the copy.
    let held = Sqlite::open(from, SqliteOptions::default()).await?;
    let copied = copy(from, to).await;
    held.close().await?;
    copied
}

async fn copy(from: &Path, to: &PostgresUrl) -> Result<CopyCounts, CopyError> {
    let reader = SqliteReader::open(from)?.ok_or_else(|| CopyError::NoStore(from.to_owned()))?;
    let options = to.options(|name| std::env::var(name).ok())?;
    let mut client = Connector::new(&options)?.connect().await?;
    schema::migrate(&mut client, &options.schema).await?;
    let transaction = client.transaction().await.map_err(PostgresError::from)?;
    let quoted = schema::quote(&options.schema);
    let begin = format!(
        "SET LOCAL search_path = {quoted}; SET LOCAL jit = off; SET LOCAL enable_seqscan = off;
         SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SELECT lock_writes()"
    );
    transaction
        .batch_execute(&begin)
        .await
        .map_err(PostgresError::from)?;
    let used = "SELECT EXISTS (SELECT FROM tasks) OR EXISTS (SELECT FROM records) OR EXISTS (SELECT FROM nodes)";
    if first(&transaction, used).await? {
        return Err(CopyError::NotEmpty(options.schema));
    }
    // The oldest first, because lists follow the order of insertion.
    let mut ids = reader.ids(&Scope::AnyTask, "", usize::MAX)?;
    ids.reverse();
    for some in ids.chunks(TASKS_PER_STATEMENT) {
        copy_tasks(&transaction, &reader, some).await?;
    }
    let records = reader.records()?;
    for some in records.chunks(RECORDS_PER_STATEMENT) {
        copy_records(&transaction, some).await?;
    }
    let counts = CopyCounts {
        tasks: ids.len(),
        records: records.len(),
    };
    let sql = "SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM records)";
    let rows = transaction.query_typed(sql, &[]).await;
    let rows = rows.map_err(PostgresError::from)?;
    let found = rows.first().map(|row| (row.get(0), row.get(1)));
    if found != Some((counts.tasks as i64, counts.records as i64)) {
        return Err(CopyError::Differs("the number of tasks or records".into()));
    }
    transaction.commit().await.map_err(PostgresError::from)?;
    Ok(counts)
}

async fn copy_tasks(
    transaction: &Transaction<'_>,
    reader: &SqliteReader,
    ids: &[TaskId],
) -> Result<(), CopyError> {
    let mut tasks: Vec<(Task, Option<Raw>)> = Vec::with_capacity(ids.len());
    for id in ids {
        let task = reader.task(&Scope::AnyTask, *id)?;
        let task = task.ok_or_else(|| CopyError::Differs(format!("task {id}")))?;
        tasks.push((task, reader.body(&Scope::AnyTask, *id)?));
    }
    // A task with a large body is a statement of its own, because JSON in PostgreSQL is limited.
    let mut rest = &tasks[..];
    while !rest.is_empty() {
        let mut size = 0;
        let fits = rest.iter().take_while(|(task, body)| {
            let params = task.origin.params.as_ref().map_or(0, Raw::size);
            size += params + body.as_ref().map_or(0, Raw::size);
            size <= MAX_STATEMENT_BYTES
        });
        let (some, others) = rest.split_at(fits.count().max(1));
        rest = others;
        let steps: Vec<_> = (0..).zip(some).map(CopiedTask::of).collect();
        let sql = "SELECT NOT EXISTS (SELECT FROM insert_tasks($1::text::jsonb, '{}'))";
        execute(transaction, sql, &steps).await?;
        let sql = format!(
            "SELECT {COLUMNS}, body FROM tasks WHERE id IN (SELECT jsonb_array_elements_text($1::text::jsonb))"
        );
        let names: Vec<_> = some.iter().map(|(task, _)| task.id.to_string()).collect();
        let names = json(&names);
        let rows = transaction.query_typed(&sql, &[(&names, Type::TEXT)]).await;
        for row in &rows.map_err(PostgresError::from)? {
            let (copy, body) = (row::task(row)?, Cells(row).raw("body")?);
            let given = some.iter().find(|(task, _)| task.id == copy.id);
            if given.is_none_or(|(task, given)| *task != copy || *given != body) {
                return Err(CopyError::Differs(format!("task {}", copy.id)));
            }
        }
    }
    Ok(())
}

async fn copy_records(transaction: &Transaction<'_>, records: &[Record]) -> Result<(), CopyError> {
    let writes: Vec<_> = records.iter().map(RecordColumns::put).collect();
    let sql = "SELECT true FROM write_records($1::text::jsonb)";
    execute(transaction, sql, &writes).await?;
    let keys = records.iter().map(|record| RecordColumns::key(&record.key));
    let keys = json(&keys.collect::<Vec<_>>());
    let sql = "SELECT r.kind, r.key, r.owner, r.expires, r.bytes FROM records AS r
               JOIN jsonb_populate_recordset(NULL::records, $1::text::jsonb) AS k USING (kind, key)";
    let rows = transaction.query_typed(sql, &[(&keys, Type::TEXT)]).await;
    let rows = rows.map_err(PostgresError::from)?;
    let found = rows
        .iter()
        .map(row::record)
        .collect::<Result<Vec<_>, _>>()?;
    match records.iter().find(|record| !found.contains(record)) {
        Some(missing) => Err(CopyError::Differs(format!(
            "the record {} {}",
            missing.key.kind, missing.key.key
        ))),
        None => Ok(()),
    }
}

/// Executes a statement whose parameter is JSON and whose reply is true.
async fn execute(
    transaction: &Transaction<'_>,
    sql: &str,
    value: &impl Serialize,
) -> Result<(), CopyError> {
    let text = json(value);
    let rows = transaction.query_typed(sql, &[(&text, Type::TEXT)]).await;
    match rows.map_err(PostgresError::from)?.first() {
        Some(row) if row.get(0) => Ok(()),
        _ => Err(CopyError::Differs("a reply of the database".into())),
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("numbers and texts are JSON")
}

async fn first(transaction: &Transaction<'_>, sql: &str) -> Result<bool, CopyError> {
    let rows = transaction.query_typed(sql, &[]).await;
    let rows = rows.map_err(PostgresError::from)?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

const TASKS_PER_STATEMENT: usize = 200;

const RECORDS_PER_STATEMENT: usize = 200;

/// The size of parameters and bodies in one statement, unless one task has more.
const MAX_STATEMENT_BYTES: usize = 4 << 20;
