//! The wire format of MCP tasks: envelope, types of both generations, codes, keys, headers.
//!
//! No clock, no I/O, no async runtime, no randomness. The task state machine is in
//! `outlast-engine`.
//!
//! | where | what |
//! |---|---|
//! | [`envelope`] | one JSON-RPC message, parsed in one pass and written with unparsed payloads |
//! | [`Raw`], [`RawRef`], [`object`] | unparsed JSON, and edits of single members |
//! | [`neutral`] | the view of a task from which the codecs write |
//! | [`v1`], [`v2`] | the two generations: methods, types, capabilities |
//! | [`PeerTask`], [`Status`] | a task as a peer sends it |
//! | [`params`], [`notice`], [`log`], [`tool`] | the parts that both generations share |
//! | [`meta`], [`headers`], [`codes`], [`version`] | keys, HTTP headers, error codes, versions |
//!
//! ```
//! use outlast_wire::envelope::{Limits, Message, write};
//! use outlast_wire::{params, v1};
//!
//! let line = br#"{"jsonrpc":"2.0","id":"a","method":"tasks/get","params":{"taskId":"7f3a"}}"#; let
//! Ok(Message::Request(request)) = Message::parse(line, &Limits::default()) else { panic!("not a
//! request"); }; assert_eq!(request.method, v1::method::GET); let reply = match
//! params::task_id(request.params) { Ok(_) => write::error(Some(&request.id),
//! outlast_wire::codes::task_not_found().to_raw().borrow()), Err(refused) =>
//! write::error(Some(&request.id), refused.to_raw().borrow()), }; assert_eq!(reply,
//! r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32602,"message":"Task not found"}}"#);
//! ```

pub mod codes;
pub mod envelope;
pub mod headers;
mod json;
pub mod log;
pub mod meta;
pub mod method;
pub mod neutral;
pub mod notice;
pub mod object;
pub mod params;
mod peer;
mod raw;
mod status;
mod time;
pub mod tool;
pub mod v1;
pub mod v2;
pub mod version;

pub use peer::{NotATask, PeerTask};
pub use raw::{Raw, RawRef};
pub use status::{Status, UnknownStatus};
pub use time::{InvalidTimestamp, Timestamp};
