//! What most servers and clients need: `use outlast::prelude::*`.

pub use crate::TaskSupport;
#[cfg(feature = "client")]
pub use crate::client::{Client, ClientOptions, Target};
#[cfg(all(feature = "schemars", feature = "server"))]
pub use crate::local_tools::Json;
#[cfg(feature = "server")]
pub use crate::local_tools::{Hints, Tool, ToolContext, ToolFailure, ToolResult, text};
#[cfg(feature = "server")]
pub use crate::{Server, ServerError};
