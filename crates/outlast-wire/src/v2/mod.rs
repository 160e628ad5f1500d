//! Tasks of MCP 2026-07-28: the extension `io.modelcontextprotocol/tasks`, and the protocol that it
//! needs.
//!
//! Output follows the published schemas exactly. Input is parsed leniently.

mod cache;
mod capability;
mod discover;
mod get;
mod input;
mod listen;
pub mod method;
mod mrtr;
mod read;
mod request;
mod result;
mod task;
mod update;

pub use cache::{CacheHint, CacheScope};
pub use capability::{
    EXTENSION, declare_tasks, declares_tasks, required_capability, strip_legacy_tasks,
};
pub use discover::{Discover, discover_result};
pub use get::{Unwritable, get_result, notification_params};
pub use input::{InputRequestEntry, InputResponseEntry, read_input_requests, read_input_responses};
pub use listen::{Filter, acknowledged_params, listen_params, listen_result};
pub use mrtr::{InputRequired, Retry, input_required_result, retry_params};
pub use read::{DetailedTask, Payload, read_created, read_detailed, subscription};
pub use request::{RequestMeta, frame, request_params};
pub use result::{ResultMembers, ResultType, ack, inlined, modern_error};
pub use task::{create_result, status};
pub use update::{Update, update_params};
