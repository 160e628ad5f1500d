//! The input of the codecs of V1 and V2: a borrowed view of a task, which the engine builds.
//!
//! It is independent of the engine and of the generations. [`crate::v1`] and [`crate::v2`] derive
//! their status words from it.

use crate::raw::Raw;
use crate::time::Timestamp;

/// A task at one point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskView<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its phase.
    pub phase: Phase,
    /// The status message.
    pub message: Option<&'a str>,
    /// When it was created.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
    /// The time from creation to expiry in milliseconds. `None` is unlimited.
    pub ttl_ms: Option<u64>,
    /// The recommended time between polls in milliseconds.
    pub poll_interval_ms: Option<u64>,
}

/// The phase of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The work runs.
    Working,
    /// The work awaits input.
    AwaitingInput,
    /// The work has ended.
    Ended(Ending),
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// With a result.
    Result,
    /// With a tool result that is flagged `isError`: `failed` in V1 (V1-LIFE-5), `completed` in V2
    /// (V2-LIFE-3).
    ToolError,
    /// With a JSON-RPC error.
    Error,
    /// Because it was cancelled.
    Cancelled,
}

/// An outstanding input request of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputRequestView<'a> {
    /// The key of the input request within its task.
    pub key: &'a str,
    /// The method of the input request, such as `elicitation/create`.
    pub method: &'a str,
    /// Its parameters, not parsed.
    pub params: Option<&'a Raw>,
}

/// The largest integer that every JSON parser reads exactly, and the largest that the schemas
/// allow.
pub(crate) const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;
