//! A task as both codecs see it: the borrowed view that the engine fills.
//!
//! Nothing of the engine is here and nothing of a generation: V1 and V2 words are made from this in
//! [`crate::v1`] and [`crate::v2`].

use crate::raw::Raw;
use crate::time::Timestamp;

/// One task at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskView<'a> {
    /// Its id.
    pub id: &'a str,
    /// Where it stands.
    pub phase: Phase,
    /// Words for people and models.
    pub message: Option<&'a str>,
    /// When it was created.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
    /// How long it lives, from its creation; `None` is for ever.
    pub ttl_ms: Option<u64>,
    /// How often to look at it.
    pub poll_interval_ms: Option<u64>,
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The work runs.
    Working,
    /// The work waits for answers.
    AwaitingInput,
    /// The work is over.
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

/// A question that a task waits for an answer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskView<'a> {
    /// Names the question within its task.
    pub key: &'a str,
    /// The request that is asked, such as `elicitation/create`.
    pub method: &'a str,
    /// Its parameters, unopened.
    pub params: Option<&'a Raw>,
}

/// The largest integer that every reader of JSON gets right, and the largest the schemas allow.
pub(crate) const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;
