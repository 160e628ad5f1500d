//! Transports: they convert bytes to messages and back. The server side and the client side
//! interpret the messages.
//!
//! | where | what |
//! |---|---|
//! | [`stdio`], [`http`] | a server: on a pipe, over Streamable HTTP |
//! | [`link`] | the connection of a client, for every transport |
//! | [`child`], [`http_client`], [`duplex`] | its transports: a child process, HTTP, this process |
//! | [`child_registry`] | child processes, recorded so that the next run of this process can end them |

pub mod child;
pub mod child_registry;
pub mod duplex;
pub mod http;
pub mod http_client;
mod lines;
pub mod link;
pub mod stdio;
