//! The JSON-RPC 2.0 envelope: parsed in one pass, written without parsing its payload.

mod error;
mod id;
mod malformed;
mod message;
mod peek;
pub mod write;

pub use error::{ErrorObject, ErrorView};
pub use id::{BadId, Id};
pub use malformed::{Fault, Malformed, Sort};
pub use message::{Limits, Message, Notification, Outcome, Request, Response};
pub use peek::AnsweredId;
