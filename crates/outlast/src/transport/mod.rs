//! Bytes to messages and back. What a message means is the front's business.

pub mod http;
pub mod stdio;
