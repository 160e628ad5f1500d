//! The description that a server sends of itself, and its generation of tasks.

use std::sync::Arc;

use outlast_wire::Raw;
use outlast_wire::v1::ServerTasks;
use outlast_wire::version::{self, Era};

/// The description that a server sends of itself.
#[derive(Clone, Debug)]
pub struct ServerDescription {
    /// Its name.
    pub name: Arc<str>,
    /// The negotiated protocol version.
    pub version: Arc<str>,
    /// Its capabilities, unopened.
    pub capabilities: Raw,
    /// Its `serverInfo`, unopened.
    pub info: Option<Raw>,
    /// Its instructions for the model.
    pub instructions: Option<String>,
    /// Its generation of tasks.
    pub generation: Generation,
}

/// How a server supports tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Generation {
    /// No tasks.
    None,
    /// The `tasks` utility of 2025-11-25.
    V1(ServerTasks),
    /// The extension `io.modelcontextprotocol/tasks` of 2026-07-28.
    V2,
}

impl ServerDescription {
    /// The era of the negotiated version.
    pub fn era(&self) -> Era {
        // Only supported versions are negotiated.
        version::era(&self.version).unwrap_or(Era::Legacy)
    }

    /// Whether the era is modern.
    pub fn is_modern(&self) -> bool {
        self.era() == Era::Modern
    }
}

impl Generation {
    /// Whether a tool call may become a task: in V1 if the tool also allows it (V1-TOOL-1), in V2
    /// as the server decides.
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

    /// The name of the generation: `none`, `v1`, `v2`.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::V1(_) => "v1",
            Self::V2 => "v2",
        }
    }
}
