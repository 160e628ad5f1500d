//! The methods of V2 tasks and of the protocol around them.

use crate::{method, tool};

/// Returns the state of a task, with its outcome.
pub const GET: &str = "tasks/get";
/// Sends input responses to a task.
pub const UPDATE: &str = "tasks/update";
/// Requests the cancellation of a task.
pub const CANCEL: &str = "tasks/cancel";
/// Notifies of a changed task.
pub const TASKS: &str = "notifications/tasks";
/// Returns the versions and capabilities of a server.
pub const DISCOVER: &str = "server/discover";
/// Opens a stream of notifications.
pub const LISTEN: &str = "subscriptions/listen";
/// The first message of such a stream.
pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// The requests whose result may be `input_required` (V2-MRTR-1).
pub const MULTI_ROUND_TRIP: [&str; 3] = [tool::CALL, method::PROMPTS_GET, method::RESOURCES_READ];

/// The methods of input requests (V2-MRTR-3).
pub const INPUT_METHODS: [&str; 3] = [method::ELICIT, method::CREATE_MESSAGE, method::ROOTS_LIST];
