//! What belongs to tools: their arguments, hints, failures, and what they ask the client.
//!
//! [`Tool`](crate::Tool), [`ToolContext`](crate::ToolContext), [`Tools`](crate::Tools), `Json`,
//! [`text`](crate::text) and [`current`](crate::current) are at the root of the crate.

pub use crate::local_tools::{
    Arguments, DetachError, ElicitError, Hints, Role, SamplingMessage, SamplingRequest,
    SamplingResponse, ToolFailure, ToolResult,
};
#[cfg(feature = "schemars")]
pub use crate::local_tools::{Elicited, Output};
