//! A server as it introduced itself, and how it does tasks.

use std::sync::Arc;

use outlast_wire::Raw;
use outlast_wire::v1::ServerTasks;

/// A server as it introduced itself.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its name.
    pub name: Arc<str>,
    /// The version of the protocol that was agreed.
    pub version: Arc<str>,
    /// What it can do, unopened.
    pub capabilities: Raw,
    /// Who it is, unopened.
    pub info: Option<Raw>,
    /// What it wants the model to know.
    pub instructions: Option<String>,
    /// How it does tasks.
    pub generation: Generation,
}

/// How a server does tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Generation {
    /// Not at all.
    None,
    /// By the `tasks` utility of 2025-11-25.
    V1(ServerTasks),
}

impl Generation {
    /// Whether a tool may be called as a task, where the tool allows it (V1-TOOL-1).
    pub fn takes_tool_tasks(self) -> bool {
        matches!(self, Self::V1(tasks) if tasks.tools_call)
    }

    /// Whether tasks can be cancelled.
    pub fn cancels(self) -> bool {
        matches!(self, Self::V1(tasks) if tasks.cancel)
    }

    /// Whether tasks can be listed.
    pub fn lists(self) -> bool {
        matches!(self, Self::V1(tasks) if tasks.list)
    }
}
