//! The words of MCP tasks on the wire: envelope, shapes of both generations, codes, keys, headers.
//!
//! No clock, no I/O, no async runtime, no randomness. What a task *is* lives in `outlast-engine`.
//!
//! | where | what |
//! |---|---|
//! | [`envelope`] | one JSON-RPC message, read in one pass and written with payloads spliced in |
//! | [`Raw`], [`RawRef`], [`object`] | JSON that is carried unopened, and edits of single members |
//! | [`neutral`] | a task as the engine shows it to the codecs |
//! | [`v1`], [`v2`] | the two generations: words, shapes, capabilities |
//! | [`PeerTask`], [`Status`] | a task as a peer tells it |
//! | [`params`], [`notice`], [`tool`] | what both generations share |
//! | [`meta`], [`headers`], [`codes`], [`version`] | keys, HTTP headers, error codes, versions |

pub mod codes;
pub mod envelope;
pub mod headers;
mod json;
pub mod meta;
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
pub use time::{BadTimestamp, Timestamp};
