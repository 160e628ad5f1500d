//! Why a server could not be started, or did not end in order.

use std::io;
use std::net::SocketAddr;

use outlast_engine::{EngineError, StoreError};

/// Why a [`Server`](crate::Server) could not be started, or did not end in order.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address cannot be parsed.
    #[error("{0} is not a socket address; use one like 127.0.0.1:8040")]
    Address(String),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose another address")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
    /// Standard input or output failed.
    #[error("cannot use standard input and output: {0}")]
    Stdio(#[source] io::Error),
    /// Tasks of a previous run cannot be recovered, or running ones cannot be stored.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The store cannot be closed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
