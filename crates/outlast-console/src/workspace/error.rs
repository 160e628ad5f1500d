//! Why an operation of a workspace failed.

use outlast::client::{CallError, CancelError, ConnectionName, Error};

/// Why an operation of a workspace failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// There is no such connection.
    #[error("there is no connection to {} from {}", .0.server, .0.source)]
    UnknownConnection(ConnectionName),
    /// The name is in use.
    #[error("there is already a connection to {} from {}", .0.server, .0.source)]
    NameInUse(ConnectionName),
    /// The connection is not open.
    #[error("{} is not connected: {}", .0.server, .1)]
    NotConnected(ConnectionName, String),
    /// There are too many connections.
    #[error("there are already {0} connections; remove one first")]
    TooManyConnections(usize),
    /// There are too many open calls.
    #[error("{0} calls are running already; wait for one or cancel one")]
    TooManyCalls(usize),
    /// There is no such call.
    #[error("there is no such call; it may have been dropped from the list")]
    UnknownCall,
    /// There is no such task.
    #[error("there is no task {0}")]
    UnknownTask(String),
    /// The item has left: the text says why.
    #[error("{0}")]
    Gone(String),
    /// The server or the receiver refused.
    #[error("{0}")]
    Refused(String),
    /// The call was not made.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The call was not cancelled.
    #[error(transparent)]
    Cancel(#[from] CancelError),
    /// The request failed.
    #[error(transparent)]
    Request(#[from] Error),
}
