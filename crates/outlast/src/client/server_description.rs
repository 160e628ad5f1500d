//! A server as it introduced itself, and how it does tasks.

use std::sync::Arc;

use outlast_wire::Raw;
use outlast_wire::v1::ServerTasks;
use outlast_wire::version::{self, Era};

/// A server as it introduced itself.
#[derive(Clone, Debug)]
pub struct ServerDescription {
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
    /// By the extension `io.modelcontextprotocol/tasks` on 2026-07-28.
    V2,
}

impl ServerDescription {
    /// The era in which it is spoken to.
    pub fn era(&self) -> Era {
        // Only versions that we speak are agreed upon.
        version::era(&self.version).unwrap_or(Era::Legacy)
    }

    /// Whether that is the modern one.
    pub fn is_modern(&self) -> bool {
        self.era() == Era::Modern
    }
}

impl Generation {
    /// Whether a tool may be called as a task: in V1 where the tool allows it (V1-TOOL-1), in V2 as the server decides.
    pub fn supports_tool_tasks(self) -> bool {
        match self {
            Self::None => false,
            Self::V1(tasks) => tasks.tools_call,
            Self::V2 => true,
        }
    }

    /// Whether tasks can be cancelled.
    pub fn cancels(self) -> bool {
        match self {
            Self::None => false,
            Self::V1(tasks) => tasks.cancel,
            Self::V2 => true,
        }
    }

    /// Whether tasks can be listed.
    pub fn lists(self) -> bool {
        matches!(self, Self::V1(tasks) if tasks.list)
    }

    /// The word for it: `none`, `v1`, `v2`.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::V1(_) => "v1",
            Self::V2 => "v2",
        }
    }
}
