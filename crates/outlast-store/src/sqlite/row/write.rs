//! From a task to a row.

use outlast_engine::Task;
use outlast_engine::task::State;
use outlast_wire::Raw;
use rusqlite::{Result, Statement, ToSql};

use super::column::{Column, OLD_ROW};
use super::{RowId, text};

/// A task as it is to be written.
#[derive(Clone, Copy)]
pub(in crate::sqlite) struct Change<'a> {
    /// Where it will stand.
    pub(in crate::sqlite) row: RowId,
    /// The task.
    pub(in crate::sqlite) task: &'a Task,
    /// The body, if it has just got one.
    pub(in crate::sqlite) body: Option<&'a Raw>,
}

/// A place to write JSON before it is bound.
#[derive(Default)]
pub(in crate::sqlite) struct Scratch(Vec<u8>);

impl Change<'_> {
    /// Adds the task.
    pub(in crate::sqlite) fn insert(
        self,
        to: &mut Statement<'_>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let task = self.task;
        let origin = &task.origin;
        bind(to, Column::Row, self.row.0)?;
        bind(to, Column::Id, task.id.text().as_str())?;
        bind(to, Column::Owner, task.owner.as_str())?;
        bind(to, Column::Created, task.created.0.cast_signed())?;
        bind(to, Column::RequestKey, task.request_key.as_deref())?;
        bind(to, Column::Method, &*origin.method)?;
        bind(to, Column::Tool, origin.tool.as_deref())?;
        bind(to, Column::Runner, &*origin.runner)?;
        bind(to, Column::Retry, text::retry(origin.retry))?;
        bind(to, Column::Accepts, origin.accepts.bits())?;
        bind(
            to,
            Column::ProgressToken,
            raw(origin.progress_token.as_ref()),
        )?;
        bind(to, Column::Params, raw(origin.params.as_ref()))?;
        bind(to, Column::Body, raw(self.body))?;
        self.bind_changing(to, scratch)?;
        to.raw_execute()?;
        Ok(())
    }

    /// Changes the task that stands at `from`; says whether it was there. The statement must be the
    /// one for a change with such a body and such a move.
    pub(in crate::sqlite) fn update(
        self,
        to: &mut Statement<'_>,
        from: RowId,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        to.raw_bind_parameter(OLD_ROW, from.0)?;
        if self.row != from {
            bind(to, Column::Row, self.row.0)?;
        }
        if let Some(body) = self.body {
            bind(to, Column::Body, body.as_str())?;
        }
        self.bind_changing(to, scratch)?;
        Ok(to.raw_execute()? == 1)
    }

    fn bind_changing(self, to: &mut Statement<'_>, scratch: &mut Scratch) -> Result<()> {
        let task = self.task;
        let lifetime = &task.lifetime;
        let code = match task.state {
            State::Ended(outlast_engine::Ending::Error(code)) => Some(code.0),
            _ => None,
        };
        bind(to, Column::State, text::state(&task.state))?;
        bind(to, Column::ErrorCode, code)?;
        bind(to, Column::Message, task.message.as_deref())?;
        bind(to, Column::Updated, task.updated.0.cast_signed())?;
        bind(to, Column::Ttl, lifetime.ttl.cast_signed())?;
        bind(to, Column::PollInterval, task.poll_interval)?;
        bind(to, Column::Revision, task.revision.0)?;
        bind(to, Column::Attempt, task.attempt.0)?;
        bind(to, Column::Executor, task.executor.0.cast_signed())?;
        bind(to, Column::TtlGranted, lifetime.granted.cast_signed())?;
        bind(to, Column::Keep, text::keep(lifetime.keep))?;
        bind(
            to,
            Column::RunLimit,
            lifetime.run_limit.map(u64::cast_signed),
        )?;
        bind(to, Column::Waited, lifetime.waited.cast_signed())?;
        let since = lifetime.waiting_since.map(|since| since.0.cast_signed());
        bind(to, Column::WaitingSince, since)?;
        let requested = task.cancel.map(|intent| intent.requested.0.cast_signed());
        bind(to, Column::CancelRequested, requested)?;
        let deadline = task.cancel.map(|intent| intent.deadline.0.cast_signed());
        bind(to, Column::CancelDeadline, deadline)?;
        let timeline = scratch.json(|out| text::timeline(out, &task.timeline));
        bind(to, Column::Timeline, timeline)?;
        bind(to, Column::TimelineDropped, task.timeline.dropped)?;

        let keys = &task.asked.keys;
        let asked = (!keys.is_empty()).then(|| scratch.json(|out| text::asked(out, keys)));
        bind(to, Column::Asked, asked)?;
        let asks = task.outstanding();
        let asks = asks.map(|asks| scratch.json(|out| text::asks(out, asks)));
        bind(to, Column::Asks, asks)?;
        let answers = &task.asked.answers;
        let answers =
            (!answers.is_empty()).then(|| scratch.json(|out| text::answers(out, answers)));
        bind(to, Column::Answers, answers)?;
        bind(
            to,
            Column::Handle,
            task.handle.as_ref().map(|handle| &*handle.0),
        )
    }
}

impl Scratch {
    fn json(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &str {
        self.0.clear();
        write(&mut self.0);
        std::str::from_utf8(&self.0).expect("JSON writers make UTF-8")
    }
}

fn bind(to: &mut Statement<'_>, column: Column, value: impl ToSql) -> Result<()> {
    to.raw_bind_parameter(column.parameter(), value)
}

fn raw(raw: Option<&Raw>) -> Option<&str> {
    raw.map(Raw::as_str)
}
