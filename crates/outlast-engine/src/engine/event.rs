//! What watchers hear.

use std::sync::Arc;

use outlast_wire::Raw;
use outlast_wire::log::Log;

use crate::store::{Committed, TaskSummary};
use crate::task::Task;

/// News of a call.
#[derive(Clone, Debug)]
pub enum Event {
    /// A task changed, and the change is stored.
    Stored(Committed<Task>),
    /// A call that is no task changed.
    Plain(Arc<Task>),
    /// The work moved on. Not stored.
    Progress(Progress),
    /// The work has something to say. Not stored.
    Log(Log),
    /// The work runs as a task somewhere else. Not stored.
    RunsAsTask,
}

/// How far the work has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// How much is done. Grows.
    pub done: f64,
    /// How much there is to do, if known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<Arc<str>>,
}

impl Progress {
    /// A status text with these numbers: after the text that the work gave last, else `message`,
    /// else the numbers alone.
    pub(crate) fn as_status(&self, said: Option<&str>) -> String {
        let numbers = match self.total {
            Some(total) => format!("{} of {total}", self.done),
            None => format!("{}", self.done),
        };
        match (said, self.message.as_deref()) {
            (Some(said), _) => format!("{said} ({numbers})"),
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
    /// The result or the error, unopened; none if cancelled.
    pub body: Option<Raw>,
}
