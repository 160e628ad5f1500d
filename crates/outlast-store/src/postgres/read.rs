//! The statements that read. Each uses an index, whatever the number of stored tasks.

use std::sync::Arc;

use outlast_engine::store::{
    DueTasks, Filter, NodeStatus, Page, Position, Record, RecordKey, Snapshot, Status, Usage,
};
use outlast_engine::{Committed, Owner, Scope, StoreError, Task, TaskId};
use outlast_wire::{Raw, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::columns::{bounded, owner as owner_text};
use super::connection::{Link, Parameter};
use super::nodes;
use super::row::{self, COLUMNS, Cells};
use super::text::encode;

/// Reads on one connection, many at a time.
pub(super) struct Reader {
    pub(super) link: Arc<Link>,
    /// The quoted schema.
    pub(super) schema: String,
}

impl Reader {
    /// The row of a task, if it is in scope.
    async fn find(
        &self,
        columns: &str,
        scope: &Scope,
        id: TaskId,
    ) -> Result<Option<Row>, StoreError> {
        let id = id.to_string();
        let mut sql = format!("SELECT {columns} FROM {}.tasks WHERE id = $1", self.schema);
        let mut parameters: Vec<Parameter<'_>> = vec![(&id, Type::TEXT)];
        let owner = match scope {
            Scope::AnyTask => None,
            Scope::OwnedBy(owner) => Some(owner_text(owner)),
        };
        // P7: the owner is part of the statement.
        if let Some(owner) = &owner {
            sql.push_str(" AND owner = $2");
            parameters.push((owner, Type::TEXT));
        }
        let rows = self.link.query(&sql, &parameters).await?;
        Ok(rows.into_iter().next())
    }

    pub(super) async fn task(
        &self,
        scope: &Scope,
        id: TaskId,
    ) -> Result<Option<Committed<Task>>, StoreError> {
        let found = self.find(COLUMNS, scope, id).await?;
        found.map(|row| row::committed(&row)).transpose()
    }

    pub(super) async fn body(&self, scope: &Scope, id: TaskId) -> Result<Option<Raw>, StoreError> {
        match self.find("id, body", scope, id).await? {
            Some(row) => Cells(&row).raw("body"),
            None => Ok(None),
        }
    }

    pub(super) async fn page(
        &self,
        owner: &Owner,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM {0}.tasks WHERE owner_digest = {0}.digest_of($1) AND position < $2
             ORDER BY position DESC LIMIT $3",
            self.schema
        );
        let (owner, before) = (owner_text(owner), before(after));
        let one_more = bounded(limit as u64).saturating_add(1);
        let parameters: [Parameter<'_>; 3] = [
            (&owner, Type::TEXT),
            (&before, Type::INT8),
            (&one_more, Type::INT8),
        ];
        let rows = self.link.query(&sql, &parameters).await?;
        page(&rows, limit, None)
    }

    pub(super) async fn search(
        &self,
        filter: &Filter,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let before = before(after);
        let one_more = bounded(limit as u64).saturating_add(1);
        let owner = filter.owner.as_ref().map(owner_text);
        let runner = filter.runner.as_deref().map(encode);
        let tool = filter.tool.as_deref().map(encode);
        let from = filter.created_from.map(|from| bounded(from.0));
        let text = filter.text.as_deref().map(encode);
        let mut parameters: Vec<Parameter<'_>> =
            vec![(&before, Type::INT8), (&one_more, Type::INT8)];
        let mut of_owner = String::new();
        let mut tests = String::from("true");
        if let Some(owner) = &owner {
            parameters.push((owner, Type::TEXT));
            let number = parameters.len();
            of_owner = format!("AND owner_digest = {}.digest_of(${number})", self.schema);
        }
        if let Some(runner) = &runner {
            parameters.push((runner, Type::TEXT));
            tests.push_str(&format!(" AND runner = ${}", parameters.len()));
        }
        if let Some(tool) = &tool {
            parameters.push((tool, Type::TEXT));
            tests.push_str(&format!(" AND tool = ${}", parameters.len()));
        }
        if let Some(from) = &from {
            parameters.push((from, Type::INT8));
            tests.push_str(&format!(" AND created >= ${}", parameters.len()));
        }
        if let Some(text) = &text {
            parameters.push((text, Type::TEXT));
            // In the collation C only ASCII letters have another case.
            let part = format!("lower(${} COLLATE \"C\")", parameters.len());
            tests.push_str(&format!(
                " AND (starts_with(id, {part}) OR strpos(lower(tool COLLATE \"C\"), {part}) > 0
                       OR strpos(lower(message COLLATE \"C\"), {part}) > 0)"
            ));
        }
        tests.push_str(&statuses(filter));
        let sql = format!(
            "WITH examined AS MATERIALIZED (
                 SELECT {COLUMNS} FROM {}.tasks WHERE position < $1 {of_owner}
                 ORDER BY position DESC LIMIT {MAX_SEARCHED_TASKS}
             ), matching AS (
                 SELECT * FROM examined WHERE {tests} ORDER BY position DESC LIMIT $2
             )
             SELECT bounds.examined, bounds.last, matching.*
             FROM (SELECT count(*) AS examined, min(position) AS last FROM examined) AS bounds
             LEFT JOIN matching ON true ORDER BY matching.position DESC",
            self.schema
        );
        let rows = self.link.query(&sql, &parameters).await?;
        let Some(first) = rows.first() else {
            return Ok(Page {
                tasks: Vec::new(),
                next: None,
            });
        };
        let cells = Cells(first);
        let examined = cells.number("examined")?;
        let rest = if examined < MAX_SEARCHED_TASKS {
            None
        } else {
            Some(Position(cells.number("last")?.cast_unsigned()))
        };
        // Without a match, the only row has the bounds alone.
        let has_match = first
            .try_get::<_, Option<&str>>("id")
            .is_ok_and(|id| id.is_some());
        page(if has_match { &rows } else { &[] }, limit, rest)
    }

    pub(super) async fn due(&self, now: Timestamp, limit: usize) -> Result<DueTasks, StoreError> {
        let (now, most) = (bounded(now.0), bounded(limit as u64));
        let one_more = most.saturating_add(1);
        let due = format!(
            "SELECT id, revision, due FROM {}.tasks WHERE due <= $1 ORDER BY due LIMIT $2",
            self.schema
        );
        let next = format!(
            "SELECT min(due) AS due FROM {}.tasks WHERE due > $1",
            self.schema
        );
        let expire = format!(
            "DELETE FROM {0}.records WHERE (kind, key) IN
             (SELECT kind, key FROM {0}.records WHERE expires <= $1 ORDER BY expires LIMIT $2)",
            self.schema
        );
        let both: [Parameter<'_>; 2] = [(&now, Type::INT8), (&one_more, Type::INT8)];
        let (due, next, expired) = tokio::join!(
            self.link.query(&due, &both),
            self.link.query(&next, &both[..1]),
            self.link.query(&expire, &both),
        );
        // Expired records are invisible already. A later call deletes them.
        drop(expired);
        let rows = due?;
        let mut tasks = DueTasks::default();
        for row in &rows {
            let cells = Cells(row);
            if tasks.tasks.len() == limit {
                tasks.next = Some(cells.time("due")?);
                return Ok(tasks);
            }
            tasks.tasks.push((cells.id()?, cells.revision()?));
        }
        let next = next?;
        let next: Option<i64> = next.first().and_then(|row| row.get("due"));
        tasks.next = next.map(|due| Timestamp(due.cast_unsigned()));
        Ok(tasks)
    }

    pub(super) async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        let sql = nodes::statement(&self.schema);
        let rows = self.link.query(&sql, &[]).await?;
        rows.iter().map(row::node).collect()
    }

    pub(super) async fn usage(&self, owner: &Owner) -> Result<Usage, StoreError> {
        let sql = format!(
            "SELECT owner_digest = '\\x' AS of_all, open, retained FROM {0}.counts
             WHERE owner_digest IN ('\\x', {0}.digest_of($1))",
            self.schema
        );
        let owner = owner_text(owner);
        let mut usage = Usage::default();
        for row in self.link.query(&sql, &[(&owner, Type::TEXT)]).await? {
            let cells = Cells(&row);
            let (open, retained) = (cells.number("open")?, cells.number("retained")?);
            if row.get("of_all") {
                usage.open = open.cast_unsigned();
                usage.retained = retained.cast_unsigned();
            } else {
                usage.owner_open = u32::try_from(open).unwrap_or(u32::MAX);
                usage.owner_retained = u32::try_from(retained).unwrap_or(u32::MAX);
            }
        }
        Ok(usage)
    }

    pub(super) async fn record(
        &self,
        key: &RecordKey,
        now: Timestamp,
    ) -> Result<Option<Record>, StoreError> {
        let sql = format!(
            "SELECT kind, key, owner, expires, bytes FROM {}.records WHERE kind = $1 AND key = $2",
            self.schema
        );
        let (kind, name) = (encode(&key.kind), encode(&key.key));
        let rows = self
            .link
            .query(&sql, &[(&kind, Type::TEXT), (&name, Type::TEXT)])
            .await?;
        let found = rows.first().map(row::record).transpose()?;
        Ok(found.filter(|record| record.exists_at(now)))
    }

    pub(super) async fn records(
        &self,
        kind: &str,
        owner: Option<&Owner>,
        now: Timestamp,
    ) -> Result<Vec<Record>, StoreError> {
        let sql = format!(
            "SELECT kind, key, owner, expires, bytes FROM {}.records
             WHERE kind = $1 AND ($2::text IS NULL OR owner = $2) ORDER BY key",
            self.schema
        );
        let (kind, owner) = (encode(kind), owner.map(owner_text));
        let rows = self
            .link
            .query(&sql, &[(&kind, Type::TEXT), (&owner, Type::TEXT)])
            .await?;
        let mut records = rows
            .iter()
            .map(row::record)
            .collect::<Result<Vec<_>, _>>()?;
        records.retain(|record| record.exists_at(now));
        Ok(records)
    }
}

/// The position before which a page begins.
fn before(after: Option<Position>) -> i64 {
    after.map_or(i64::MAX, |position| bounded(position.0))
}

/// A page of up to `limit` rows, of which one more may be given. If all were given, the next page
/// begins after `rest`.
fn page(rows: &[Row], limit: usize, rest: Option<Position>) -> Result<Page, StoreError> {
    let shown = &rows[..rows.len().min(limit)];
    let tasks = shown
        .iter()
        .map(|row| row::committed(row).map(Snapshot::from));
    let tasks = tasks.collect::<Result<Vec<_>, _>>()?;
    let next = match shown.last() {
        Some(last) if rows.len() > limit => {
            Some(Position(Cells(last).number("position")?.cast_unsigned()))
        }
        _ => rest,
    };
    Ok(Page { tasks, next })
}

/// The test of the status, by the words in the column `state`.
fn statuses(filter: &Filter) -> String {
    let chosen = Status::ALL
        .into_iter()
        .filter(|status| filter.statuses.contains(*status));
    let tests: Vec<_> = chosen
        .map(|status| match status {
            Status::Working => "state = 'working'",
            Status::InputRequired => "state = 'awaiting_input'",
            Status::Completed => "state = 'result'",
            Status::Failed => "(state = 'tool_error' OR starts_with(state, 'error '))",
            Status::Cancelled => "state = 'cancelled'",
        })
        .collect();
    if tests.is_empty() {
        String::new()
    } else {
        format!(" AND ({})", tests.join(" OR "))
    }
}

/// The maximum number of tasks that one search examines.
const MAX_SEARCHED_TASKS: i64 = 1_000;
