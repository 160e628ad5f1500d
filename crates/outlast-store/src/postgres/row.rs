//! Converts a row of `tasks` to a task.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::store::{NodeState, NodeStatus, Reason, Record, RecordKey};
use outlast_engine::task::{Fields, InputHistory, ResumeState, State};
use outlast_engine::{
    Attempt, Committed, InputKinds, NodeId, Origin, Revision, StoreError, Task, TaskId,
};
use outlast_wire::{Raw, RawRef, Timestamp};
use tokio_postgres::Row;

use super::text::decode;
use crate::encoding::details::Details;
use crate::encoding::text::{self, StateWord};

/// The columns that [`task`] reads.
pub(super) const COLUMNS: &str = "id, position, owner, request_key, created, state, message, updated, ttl, poll_interval, \
     revision, attempt, executor, timeline, handle, details, method, tool, runner, accepts, retry, progress_token, params";

/// The task in a row.
pub(super) fn task(row: &Row) -> Result<Task, StoreError> {
    let cells = Cells(row);
    let details = cells.text("details")?;
    let mut details = match details.as_deref().map(Details::read) {
        None => Details::default(),
        Some(Ok(details)) => details,
        Some(Err(_)) => return Err(cells.invalid("details")),
    };
    let word = cells.required("state")?;
    let state = match text::read_state(&word).ok_or_else(|| cells.invalid("state"))? {
        StateWord::Working => State::Working,
        StateWord::Ended(ending) => State::Ended(ending),
        StateWord::AwaitingInput => {
            let asks = details.take_input_requests();
            State::AwaitingInput(asks.ok_or_else(|| cells.invalid("details"))?)
        }
    };
    let (created, updated) = (cells.time("created")?, cells.time("updated")?);
    let timeline = text::read_timeline(
        cells.text("timeline")?.as_deref(),
        details.timeline_dropped,
        created,
        state.ending().map(|_| updated),
    );
    let retry = cells.text("retry")?;
    let accepts = u8::try_from(cells.number("accepts")?).map_err(|_| cells.invalid("accepts"))?;
    let origin = Origin {
        method: cells.required("method")?,
        tool: cells.text("tool")?,
        params: cells.raw("params")?,
        runner: cells.required("runner")?,
        progress_token: cells.raw("progress_token")?,
        retry: text::read_retry(retry.as_deref()).ok_or_else(|| cells.invalid("retry"))?,
        accepts: InputKinds::from_bits(accepts),
    };
    let handle: Option<&[u8]> = cells.get("handle")?;
    let fields = Fields {
        id: cells.id()?,
        owner: cells
            .required("owner")?
            .parse()
            .map_err(|_| cells.invalid("owner"))?,
        origin: Arc::new(origin),
        request_key: cells.text("request_key")?,
        executor: NodeId(cells.number("executor")?.cast_unsigned()),
        attempt: Attempt(cells.small("attempt")?),
        revision: cells.revision()?,
        created,
        updated,
        lifetime: details.lifetime(cells.number("ttl")?.cast_unsigned()),
        poll_interval_ms: cells.small("poll_interval")?,
        message: cells.text("message")?,
        cancel: details.cancel(),
        resume_state: handle.map(|bytes| ResumeState(bytes.into())),
        timeline: timeline.map_err(|_| cells.invalid("timeline"))?,
        input: InputHistory::new(details.keys, details.responses),
        state,
    };
    Task::restore(fields).map_err(|error| StoreError::Corrupt(Reason::new(error.to_string())))
}

/// The task in a row, which is committed.
pub(super) fn committed(row: &Row) -> Result<Committed<Task>, StoreError> {
    Ok(Committed::confirmed_by_backend(task(row)?))
}

/// The record in a row of `records`.
pub(super) fn record(row: &Row) -> Result<Record, StoreError> {
    let cells = Cells(row);
    let owner = cells.text("owner")?.map(|owner| owner.parse());
    let expires: Option<i64> = cells.get("expires")?;
    Ok(Record {
        key: RecordKey {
            kind: cells.required("kind")?,
            key: cells.required("key")?,
        },
        owner: owner.transpose().map_err(|_| cells.invalid("owner"))?,
        expires: expires.map(|at| Timestamp(at.cast_unsigned())),
        bytes: cells.get::<&[u8]>("bytes")?.into(),
    })
}

/// The node in a row of `node_overview`.
pub(super) fn node(row: &Row) -> Result<NodeStatus, StoreError> {
    let cells = Cells(row);
    let state = match cells.get("state")? {
        "joined" => NodeState::Joined,
        "lapsed" => NodeState::Lapsed,
        "lost" => NodeState::Lost,
        _ => return Err(cells.invalid("state")),
    };
    let lease = u64::try_from(cells.number("lease")?).ok();
    let address: Option<&str> = cells.get("address")?;
    Ok(NodeStatus {
        node: NodeId(cells.number("node")?.cast_unsigned()),
        epoch: cells.number("epoch")?.cast_unsigned(),
        state,
        address: address.map(Arc::from),
        lease: lease
            .filter(|_| state == NodeState::Joined)
            .map(Duration::from_millis),
        open_tasks: cells.number("open_tasks")?.cast_unsigned(),
    })
}

/// The cells of one row, with typed access.
pub(super) struct Cells<'r>(pub(super) &'r Row);

impl<'r> Cells<'r> {
    fn get<T: tokio_postgres::types::FromSql<'r>>(&self, column: &str) -> Result<T, StoreError> {
        self.0.try_get(column).map_err(|_| self.invalid(column))
    }

    pub(super) fn id(&self) -> Result<TaskId, StoreError> {
        self.get::<&str>("id")?
            .parse()
            .map_err(|_| self.invalid("id"))
    }

    fn text(&self, column: &str) -> Result<Option<Arc<str>>, StoreError> {
        let text: Option<&str> = self.get(column)?;
        Ok(text.map(|text| decode(text).into()))
    }

    fn required(&self, column: &str) -> Result<Arc<str>, StoreError> {
        self.text(column)?.ok_or_else(|| self.invalid(column))
    }

    pub(super) fn number(&self, column: &str) -> Result<i64, StoreError> {
        self.get(column)
    }

    pub(super) fn revision(&self) -> Result<Revision, StoreError> {
        self.small("revision").map(Revision)
    }

    fn small(&self, column: &str) -> Result<u32, StoreError> {
        u32::try_from(self.number(column)?).map_err(|_| self.invalid(column))
    }

    pub(super) fn time(&self, column: &str) -> Result<Timestamp, StoreError> {
        Ok(Timestamp(self.number(column)?.cast_unsigned()))
    }

    pub(super) fn raw(&self, column: &str) -> Result<Option<Raw>, StoreError> {
        let text: Option<&str> = self.get(column)?;
        let parsed = text
            .map(|text| RawRef::parse(text).map(RawRef::to_raw))
            .transpose();
        parsed.map_err(|_| self.invalid(column))
    }

    fn invalid(&self, column: &str) -> StoreError {
        let id = self.0.try_get::<_, &str>("id").unwrap_or("without id");
        StoreError::Corrupt(Reason::new(format!(
            "row {id}: column `{column}` is invalid"
        )))
    }
}
