//! The methods of V2 tasks and of the protocol around them.

use crate::{method, tool};

/// Asks where a task stands, outcome included.
pub const GET: &str = "tasks/get";
/// Answers questions of a task.
pub const UPDATE: &str = "tasks/update";
/// Asks for a task to stop.
pub const CANCEL: &str = "tasks/cancel";
/// Tells that a task changed.
pub const TASKS: &str = "notifications/tasks";
/// Asks what a server is and can do.
pub const DISCOVER: &str = "server/discover";
/// Opens a stream of notifications.
pub const LISTEN: &str = "subscriptions/listen";
/// The first message of such a stream.
pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// The requests that may be answered with `input_required` (V2-MRTR-1).
pub const MULTI_ROUND_TRIP: [&str; 3] = [tool::CALL, method::PROMPTS_GET, method::RESOURCES_READ];

/// What may be asked of a client (V2-MRTR-3).
pub const ASKABLE: [&str; 3] = [method::ELICIT, method::CREATE_MESSAGE, method::ROOTS_LIST];
