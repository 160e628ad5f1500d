//! The methods of V1 tasks.

use crate::{method, tool};

/// Asks where a task stands.
pub const GET: &str = "tasks/get";
/// Waits for what the underlying request would have answered.
pub const RESULT: &str = "tasks/result";
/// Lists the caller's tasks.
pub const LIST: &str = "tasks/list";
/// Cancels a task.
pub const CANCEL: &str = "tasks/cancel";
/// Tells that a status changed.
pub const STATUS: &str = "notifications/tasks/status";
/// Opens a conversation.
pub const INITIALIZE: &str = "initialize";
/// Ends the opening.
pub const INITIALIZED: &str = "notifications/initialized";

/// The requests that `task` can be put on (V1-CREATE-9).
pub const AUGMENTABLE: [&str; 3] = [tool::CALL, method::CREATE_MESSAGE, method::ELICIT];
