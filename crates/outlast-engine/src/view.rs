//! A task as the codecs of the wire crate see it. No generation here: the words are made there.

use outlast_wire::Timestamp;
use outlast_wire::neutral::{AskView, Ending as Shown, Phase, TaskView};

use crate::input::Outstanding;
use crate::id::IdText;
use crate::outcome::Ending;
use crate::policy::poll_interval_at;
use crate::store::{Brief, Snapshot};
use crate::task::{Fields, State, Task};

impl Task {
    /// The phase as codecs see it.
    pub fn phase(&self) -> Phase {
        match &self.state {
            State::Working => Phase::Working,
            State::AwaitingInput(_) => Phase::AwaitingInput,
            State::Ended(ending) => Phase::Ended(shown(*ending)),
        }
    }

    /// The task as codecs see it at `now`; `id` is the text of its id.
    pub fn view<'a>(&'a self, id: &'a IdText, now: Timestamp) -> TaskView<'a> {
        TaskView {
            id: id.as_str(),
            phase: self.phase(),
            message: self.message.as_deref(),
            created: self.created,
            updated: self.updated,
            ttl_ms: Some(self.lifetime.ttl),
            poll_interval_ms: Some(self.poll_interval_at(now)),
        }
    }
}

impl Brief {
    /// The phase as codecs see it.
    pub fn phase(&self) -> Phase {
        Phase::Ended(shown(self.ending))
    }

    /// The task as codecs see it at `now`; `id` is the text of its id.
    pub fn view<'a>(&'a self, id: &'a IdText, now: Timestamp) -> TaskView<'a> {
        TaskView {
            id: id.as_str(),
            phase: self.phase(),
            message: self.message.as_deref(),
            created: self.created,
            updated: self.updated,
            ttl_ms: Some(self.ttl),
            poll_interval_ms: Some(poll_interval_at(
                self.poll_interval,
                self.ttl,
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
            Self::Ended(brief) => brief.phase(),
        }
    }

    /// The task as codecs see it at `now`; `id` is the text of its id.
    pub fn view<'a>(&'a self, id: &'a IdText, now: Timestamp) -> TaskView<'a> {
        match self {
            Self::Open(task) => task.view(id, now),
            Self::Ended(brief) => brief.view(id, now),
        }
    }
}

impl Fields {
    fn poll_interval_at(&self, now: Timestamp) -> u64 {
        poll_interval_at(self.poll_interval, self.lifetime.ttl, self.created, now)
    }
}

impl Outstanding {
    /// The questions as codecs see them.
    pub fn views(&self) -> impl Iterator<Item = AskView<'_>> {
        self.iter().map(|(key, question)| AskView {
            key: key.as_str(),
            method: question.kind.method(),
            params: question.params.as_ref(),
        })
    }
}

fn shown(ending: Ending) -> Shown {
    match ending {
        Ending::Result => Shown::Result,
        Ending::ToolError => Shown::ToolError,
        Ending::Error(_) => Shown::Error,
        Ending::Cancelled => Shown::Cancelled,
    }
}
