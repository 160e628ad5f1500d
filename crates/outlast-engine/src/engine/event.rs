//! The events that watchers receive.

use std::sync::Arc;

use outlast_wire::Raw;
use outlast_wire::log::Log;

use crate::store::{Committed, TaskSummary};
use crate::task::Task;

/// An event of a call.
#[derive(Clone, Debug)]
pub enum Event {
    /// A task changed, and the change is stored.
    Stored(Committed<Task>),
    /// A call that is not a task changed.
    Plain(Arc<Task>),
    /// Progress of the work. Not stored.
    Progress(Progress),
    /// A log message of the work. Not stored.
    Log(Log),
    /// The work runs as a task elsewhere. Not stored.
    RunsAsTask,
}

/// Progress of the work.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The amount that is done. It grows.
    pub done: f64,
    /// The total amount, if known.
    pub total: Option<f64>,
    /// A description of the current step.
    pub message: Option<Arc<str>>,
}

impl Progress {
    /// A status text with these numbers: after the last status text of the work, else after
    /// `message`, else alone.
    pub(crate) fn as_status(&self, last_text: Option<&str>) -> String {
        let numbers = match self.total {
            Some(total) => format!("{} of {total}", self.done),
            None => format!("{}", self.done),
        };
        match (last_text, self.message.as_deref()) {
            (Some(last_text), _) => format!("{last_text} ({numbers})"),
            (None, Some(message)) => message.to_owned(),
            (None, None) => numbers,
        }
    }
}

/// A task that has ended, with its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedTask {
    /// How it ended.
    pub summary: Committed<TaskSummary>,
    /// The unparsed result or error. `None` if cancelled.
    pub body: Option<Raw>,
}
