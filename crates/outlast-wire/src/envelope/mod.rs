//! The JSON-RPC 2.0 envelope: parsed in one pass, written without parsing its payload.

mod error;
mod id;
mod malformed;
mod message;
mod response_id;
pub mod write;

pub use error::{ErrorObject, ErrorView};
pub use id::{Id, InvalidId};
pub use malformed::{Malformed, MalformedKind, MalformedReason};
pub use message::{Limits, Message, Notification, Outcome, Request, Response};
pub use response_id::ResponseIdFinder;
