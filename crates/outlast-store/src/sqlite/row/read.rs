//! Converts a row to a task. An invalid value is an error that names it.

use std::sync::Arc;

use outlast_engine::index::StoredTask;
use outlast_engine::store::TaskSummary;
use outlast_engine::task::{Fields, InputHistory, ResumeState, State, Timeline};
use outlast_engine::{Attempt, InputKinds, NodeId, Origin, Owner, Revision, Task, TaskId};
use outlast_wire::{Raw, RawRef, Timestamp};
use rusqlite::Row;
use rusqlite::types::ValueRef;

use super::RowId;
use super::columns::Column;
use crate::encoding::details::Details;
use crate::encoding::text::{self, StateWord};

/// A row that cannot be read as a task.
#[derive(Debug, thiserror::Error)]
pub(in crate::sqlite) enum RowError {
    /// SQLite could not read it.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// It contains an invalid value.
    #[error("row {row} (task {task}): {what}")]
    InvalidValue {
        row: i64,
        task: String,
        what: String,
    },
}

/// The names in the last row.
#[derive(Default)]
pub(in crate::sqlite) struct LastNames {
    owner: Option<Owner>,
    runner: Option<Arc<str>>,
    tool: Option<Arc<str>>,
}

/// Reads the summary of a task, or `None` if it is open and must be read in full. Reads the columns
/// of [`select_summary_sql`](super::select_summary_sql). Consecutive rows often have the same
/// owner, runner and tool, so the caller keeps their names, and the tasks share them.
pub(in crate::sqlite) fn summary_or_open(
    row: &Row<'_>,
    last: &mut LastNames,
) -> Result<(RowId, Option<StoredTask>), RowError> {
    let cells = Cells(row);
    let at = RowId(cells.integer(Column::Row)?);
    let StateWord::Ended(ending) = cells.state()? else {
        return Ok((at, None));
    };
    let owner = cells.owner()?;
    let owner = match &mut last.owner {
        Some(last) if *last == owner => last.clone(),
        last => last.insert(owner).clone(),
    };
    let runner = cells.text(Column::Runner)?;
    let runner = match &mut last.runner {
        Some(last) if **last == *runner => last.clone(),
        last => last.insert(runner.into()).clone(),
    };
    let tool = match (cells.maybe_text(Column::Tool)?, &mut last.tool) {
        (None, _) => None,
        (Some(tool), Some(last)) if **last == *tool => Some(last.clone()),
        (Some(tool), last) => Some(last.insert(tool.into()).clone()),
    };
    let summary = TaskSummary {
        id: cells.id()?,
        owner,
        request_key: cells.shared(Column::RequestKey)?,
        runner,
        tool,
        ending,
        message: cells.shared(Column::Message)?,
        created: cells.timestamp(Column::Created)?,
        updated: cells.timestamp(Column::Updated)?,
        ttl_ms: cells.integer(Column::Ttl)?.cast_unsigned(),
        poll_interval_ms: cells.small(Column::PollInterval)?,
        revision: Revision(cells.small(Column::Revision)?),
        attempt: Attempt(cells.small(Column::Attempt)?),
    };
    Ok((at, Some(StoredTask::Ended(summary))))
}

/// Reads the whole task, from the columns of [`select_sql`](super::select_sql).
pub(in crate::sqlite) fn task(row: &Row<'_>) -> Result<Task, RowError> {
    let cells = Cells(row);
    let mut details = cells
        .json(Column::Details, Details::read)?
        .unwrap_or_default();
    let state = match cells.state()? {
        StateWord::Working => State::Working,
        StateWord::Ended(ending) => State::Ended(ending),
        StateWord::AwaitingInput => {
            let asks = details.take_input_requests();
            let asks = asks
                .ok_or_else(|| cells.invalid_value("it awaits input without an input request"))?;
            State::AwaitingInput(asks)
        }
    };
    let (created, updated) = (
        cells.timestamp(Column::Created)?,
        cells.timestamp(Column::Updated)?,
    );
    let fields = Fields {
        id: cells.id()?,
        owner: cells.owner()?,
        origin: Arc::new(cells.origin()?),
        request_key: cells.shared(Column::RequestKey)?,
        executor: NodeId(cells.integer(Column::Executor)?.cast_unsigned()),
        attempt: Attempt(cells.small(Column::Attempt)?),
        revision: Revision(cells.small(Column::Revision)?),
        created,
        updated,
        lifetime: details.lifetime(cells.integer(Column::Ttl)?.cast_unsigned()),
        poll_interval_ms: cells.small(Column::PollInterval)?,
        message: cells.shared(Column::Message)?,
        cancel: details.cancel(),
        resume_state: cells.maybe_bytes(Column::Handle)?.map(ResumeState),
        timeline: cells.timeline(
            details.timeline_dropped,
            created,
            state.ending().map(|_| updated),
        )?,
        input: InputHistory::new(details.keys, details.responses),
        state,
    };
    Task::restore(fields).map_err(|error| cells.invalid_value(error.what))
}

/// The cells of one row, with typed access.
struct Cells<'r>(&'r Row<'r>);

impl<'r> Cells<'r> {
    fn id(&self) -> Result<TaskId, RowError> {
        let text = self.text(Column::Id)?;
        text.parse().map_err(|_| self.unexpected(Column::Id))
    }

    fn owner(&self) -> Result<Owner, RowError> {
        let text = self.text(Column::Owner)?;
        text.parse().map_err(|_| self.unexpected(Column::Owner))
    }

    fn state(&self) -> Result<StateWord, RowError> {
        text::read_state(self.text(Column::State)?).ok_or_else(|| self.unexpected(Column::State))
    }

    fn origin(&self) -> Result<Origin, RowError> {
        let retry = text::read_retry(self.maybe_text(Column::Retry)?);
        let accepts = u8::try_from(self.integer(Column::Accepts)?);
        Ok(Origin {
            method: self.text(Column::Method)?.into(),
            tool: self.shared(Column::Tool)?,
            params: self.raw(Column::Params)?,
            runner: self.text(Column::Runner)?.into(),
            progress_token: self.raw(Column::ProgressToken)?,
            retry: retry.ok_or_else(|| self.unexpected(Column::Retry))?,
            accepts: InputKinds::from_bits(accepts.map_err(|_| self.unexpected(Column::Accepts))?),
        })
    }

    fn timeline(
        &self,
        dropped: u32,
        created: Timestamp,
        ended: Option<Timestamp>,
    ) -> Result<Timeline, RowError> {
        let text = self.maybe_text(Column::Timeline)?;
        text::read_timeline(text, dropped, created, ended)
            .map_err(|error| self.bad_json(Column::Timeline, &error))
    }

    fn text(&self, column: Column) -> Result<&'r str, RowError> {
        self.maybe_text(column)?
            .ok_or_else(|| self.unexpected(column))
    }

    fn maybe_text(&self, column: Column) -> Result<Option<&'r str>, RowError> {
        match self.0.get_ref(column as usize)? {
            ValueRef::Null => Ok(None),
            ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Some(text)),
                Err(_) => Err(self.unexpected(column)),
            },
            _ => Err(self.unexpected(column)),
        }
    }

    fn shared(&self, column: Column) -> Result<Option<Arc<str>>, RowError> {
        Ok(self.maybe_text(column)?.map(Arc::from))
    }

    fn integer(&self, column: Column) -> Result<i64, RowError> {
        match self.0.get_ref(column as usize)? {
            ValueRef::Integer(number) => Ok(number),
            _ => Err(self.unexpected(column)),
        }
    }

    fn small(&self, column: Column) -> Result<u32, RowError> {
        u32::try_from(self.integer(column)?).map_err(|_| self.unexpected(column))
    }

    fn timestamp(&self, column: Column) -> Result<Timestamp, RowError> {
        Ok(Timestamp(self.integer(column)?.cast_unsigned()))
    }

    fn maybe_bytes(&self, column: Column) -> Result<Option<Arc<[u8]>>, RowError> {
        match self.0.get_ref(column as usize)? {
            ValueRef::Null => Ok(None),
            ValueRef::Blob(bytes) => Ok(Some(bytes.into())),
            _ => Err(self.unexpected(column)),
        }
    }

    fn raw(&self, column: Column) -> Result<Option<Raw>, RowError> {
        self.json(column, |text| RawRef::parse(text).map(RawRef::to_raw))
    }

    fn json<T>(
        &self,
        column: Column,
        read: impl FnOnce(&str) -> Result<T, serde_json::Error>,
    ) -> Result<Option<T>, RowError> {
        let text = self.maybe_text(column)?;
        text.map(read)
            .transpose()
            .map_err(|error| self.bad_json(column, &error))
    }

    fn bad_json(&self, column: Column, error: &serde_json::Error) -> RowError {
        self.invalid_value(format!("column `{}`: {error}", column.name()))
    }

    fn unexpected(&self, column: Column) -> RowError {
        let found: String = match self.0.get_ref(column as usize) {
            Ok(ValueRef::Text(text)) => String::from_utf8_lossy(text).chars().take(40).collect(),
            Ok(value) => value.data_type().to_string(),
            Err(error) => error.to_string(),
        };
        self.invalid_value(format!("column `{}` contains `{found}`", column.name()))
    }

    fn invalid_value(&self, what: impl Into<String>) -> RowError {
        let task = match self.0.get_ref(Column::Id as usize) {
            Ok(ValueRef::Text(text)) => String::from_utf8_lossy(text).chars().take(40).collect(),
            _ => "without id".to_owned(),
        };
        RowError::InvalidValue {
            row: self.0.get(Column::Row as usize).unwrap_or_default(),
            task,
            what: what.into(),
        }
    }
}
