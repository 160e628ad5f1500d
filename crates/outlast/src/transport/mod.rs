//! Bytes to messages and back. What a message means is the business of fronts and backs.
//!
//! | where | what |
//! |---|---|
//! | [`stdio`], [`http`] | a server: on a pipe, over Streamable HTTP |
//! | [`link`] | a client's connection, whatever carries it |
//! | [`child`], [`http_client`], [`duplex`] | what carries it: a child process, HTTP, this process |

pub mod child;
pub mod duplex;
pub mod http;
pub mod http_client;
mod lines;
pub mod link;
pub mod register;
pub mod stdio;
