//! Tasks of MCP 2025-11-25: the `tasks` utility, its types and its capabilities.
//!
//! Output follows the published schema exactly. Input is parsed leniently.

mod capability;
mod initialize;
mod list;
pub mod method;
mod request;
mod result;
mod task;
mod tool;

pub use capability::{ClientTasks, ServerTasks};
pub use initialize::{Initialize, initialize_params, initialize_result};
pub use list::{TaskPage, list_result, read_list};
pub use request::{TaskRequest, ToolCall, augment};
pub use result::payload_result;
pub use task::{create_result, read_created, read_task, status, task, write_task};
pub use tool::{TaskSupport, set_task_support, strip_execution, task_support};
