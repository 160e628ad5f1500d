//! Transports: they convert bytes to messages and back. The server side and the client side
//! interpret the messages.
//!
//! | where | what |
//! |---|---|
//! | [`stdio`], [`http`] | a server: on a pipe, over Streamable HTTP |
//! | [`link`] | the connection of a client, for every transport |
//! | [`child`], [`http_client`], [`duplex`] | its transports: a child process, HTTP, this process |
//! | [`child_registry`] | a record of child processes, so that the next run can end them |

#[cfg(feature = "client")]
pub mod child;
#[cfg(feature = "client")]
pub mod child_registry;
#[cfg(feature = "client")]
pub mod duplex;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "client")]
pub mod http_client;
#[cfg(feature = "client")]
mod lines;
#[cfg(feature = "client")]
pub mod link;
#[cfg(feature = "server")]
pub mod stdio;
