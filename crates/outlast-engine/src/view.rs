//! A task as the codecs of the wire crate see it. No generation here: the words are made there.

use outlast_wire::neutral::{AskView, Ending as Shown, Phase, TaskView};

use crate::ask::Outstanding;
use crate::id::IdText;
use crate::outcome::Ending;
use crate::store::{Brief, Snapshot};
use crate::task::{State, Task};

impl Task {
    /// The task as codecs see it; `id` is the text of its id.
    pub fn view<'a>(&'a self, id: &'a IdText) -> TaskView<'a> {
        TaskView {
            id: id.as_str(),
            phase: match &self.state {
                State::Working => Phase::Working,
                State::AwaitingInput(_) => Phase::AwaitingInput,
                State::Ended(ending) => Phase::Ended(shown(*ending)),
            },
            message: self.message.as_deref(),
            created: self.created,
            updated: self.updated,
            ttl_ms: Some(self.lifetime.ttl),
            poll_interval_ms: Some(self.poll_interval.into()),
        }
    }
}

impl Brief {
    /// The task as codecs see it; `id` is the text of its id.
    pub fn view<'a>(&'a self, id: &'a IdText) -> TaskView<'a> {
        TaskView {
            id: id.as_str(),
            phase: Phase::Ended(shown(self.ending)),
            message: self.message.as_deref(),
            created: self.created,
            updated: self.updated,
            ttl_ms: Some(self.ttl),
            poll_interval_ms: Some(self.poll_interval.into()),
        }
    }
}

impl Snapshot {
    /// The task as codecs see it; `id` is the text of its id.
    pub fn view<'a>(&'a self, id: &'a IdText) -> TaskView<'a> {
        match self {
            Self::Open(task) => task.view(id),
            Self::Ended(brief) => brief.view(id),
        }
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
