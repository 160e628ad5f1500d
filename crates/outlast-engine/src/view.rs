//! Views of tasks for the codecs of the wire crate. No generation here: the codecs choose the
//! status words.

use outlast_wire::Timestamp;
use outlast_wire::neutral::{Ending as EndingView, InputRequestView, Phase, TaskView};

use crate::id::TaskIdText;
use crate::input::Outstanding;
use crate::outcome::Ending;
use crate::policy::poll_interval_at;
use crate::store::{Snapshot, TaskSummary};
use crate::task::{Fields, State, Task};

impl Task {
    /// The phase as codecs see it.
    pub fn phase(&self) -> Phase {
        match &self.state {
            State::Working => Phase::Working,
            State::AwaitingInput(_) => Phase::AwaitingInput,
            State::Ended(ending) => Phase::Ended(ending_view(*ending)),
        }
    }

    /// The task as codecs see it at `now`; `id` is the text of its id.
    pub fn view<'a>(&'a self, id: &'a TaskIdText, now: Timestamp) -> TaskView<'a> {
        TaskView {
            id: id.as_str(),
            phase: self.phase(),
            message: self.message.as_deref(),
            created: self.created,
            updated: self.updated,
            ttl_ms: Some(self.lifetime.ttl_ms),
            poll_interval_ms: Some(self.poll_interval_at(now)),
        }
    }
}

impl TaskSummary {
    /// The phase as codecs see it.
    pub fn phase(&self) -> Phase {
        Phase::Ended(ending_view(self.ending))
    }

    /// The task as codecs see it at `now`; `id` is the text of its id.
    pub fn view<'a>(&'a self, id: &'a TaskIdText, now: Timestamp) -> TaskView<'a> {
        TaskView {
            id: id.as_str(),
            phase: self.phase(),
            message: self.message.as_deref(),
            created: self.created,
            updated: self.updated,
            ttl_ms: Some(self.ttl_ms),
            poll_interval_ms: Some(poll_interval_at(
                self.poll_interval_ms,
                self.ttl_ms,
                self.created,
                now,
            )),
        }
    }
}

impl Snapshot {
    /// The phase as codecs see it.
    pub fn phase(&self) -> Phase {
        match self {
            Self::Open(task) => task.phase(),
            Self::Ended(summary) => summary.phase(),
        }
    }

    /// The task as codecs see it at `now`; `id` is the text of its id.
    pub fn view<'a>(&'a self, id: &'a TaskIdText, now: Timestamp) -> TaskView<'a> {
        match self {
            Self::Open(task) => task.view(id, now),
            Self::Ended(summary) => summary.view(id, now),
        }
    }
}

impl Fields {
    fn poll_interval_at(&self, now: Timestamp) -> u64 {
        poll_interval_at(
            self.poll_interval_ms,
            self.lifetime.ttl_ms,
            self.created,
            now,
        )
    }
}

impl Outstanding {
    /// The input requests as codecs see them.
    pub fn views(&self) -> impl Iterator<Item = InputRequestView<'_>> {
        self.iter().map(|(key, request)| InputRequestView {
            key: key.as_str(),
            method: request.kind.method(),
            params: request.params.as_ref(),
        })
    }
}

fn ending_view(ending: Ending) -> EndingView {
    match ending {
        Ending::Result => EndingView::Result,
        Ending::ToolError => EndingView::ToolError,
        Ending::Error(_) => EndingView::Error,
        Ending::Cancelled => EndingView::Cancelled,
    }
}
