//! What most servers and clients need: `use outlast::prelude::*`.

pub use crate::client::{Client, ClientOptions, Target};
#[cfg(feature = "schemars")]
pub use crate::tools::Json;
pub use crate::tools::{Hints, Tool, ToolContext, ToolFailure, ToolResult, text};
pub use crate::{Server, ServerError, TaskSupport};
