//! HTTP headers of both eras: names, values mirrored from bodies, and their encoding.
//!
//! Header names are compared without case, values with case (V2-HH-4).

mod mirror;
mod param;
mod sentinel;

pub use mirror::{OnMissingName, check_method, check_name, check_version, mirrored_name};
pub use param::{
    HeaderParam, InvalidAnnotation, ParamKind, annotations, check_params, mirrored_params,
};
pub use sentinel::{InvalidEncoding, decode, encode};

/// The legacy session of a request (V1-SESS-1).
pub const SESSION_ID: &str = "Mcp-Session-Id";
/// The protocol version of a request (V1-HTTP-10, V2-HH-1).
pub const PROTOCOL_VERSION: &str = "MCP-Protocol-Version";
/// The method of a request (V2-HH-3).
pub const METHOD: &str = "Mcp-Method";
/// The tool, prompt, resource or task of the request (V2-HH-3).
pub const NAME: &str = "Mcp-Name";
/// The prefix of the names of mirrored tool parameters (V2-PARAM-1).
pub const PARAM_PREFIX: &str = "Mcp-Param-";
/// The last event of a stream to resume (V1-SSE-3).
pub const LAST_EVENT_ID: &str = "Last-Event-ID";
