//! The methods of V1 tasks.

use crate::{method, tool};

/// Returns the state of a task.
pub const GET: &str = "tasks/get";
/// Waits for the outcome of the underlying request.
pub const RESULT: &str = "tasks/result";
/// Lists the caller's tasks.
pub const LIST: &str = "tasks/list";
/// Cancels a task.
pub const CANCEL: &str = "tasks/cancel";
/// Notifies of a changed status.
pub const STATUS: &str = "notifications/tasks/status";
/// Starts the handshake.
pub const INITIALIZE: &str = "initialize";
/// Completes the handshake.
pub const INITIALIZED: &str = "notifications/initialized";

/// The requests that can be augmented with `task` (V1-CREATE-9).
pub const AUGMENTABLE: [&str; 3] = [tool::CALL, method::CREATE_MESSAGE, method::ELICIT];
