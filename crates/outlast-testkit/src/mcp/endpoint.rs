//! How a client reaches a server, and what carries its messages: a pipe or Streamable HTTP.

use std::sync::Arc;

use serde_json::Value;
use tokio::io::DuplexStream;

use super::Line;
use super::streamable::Streamable;

/// The two transports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A line for each message.
    Pipe,
    /// Streamable HTTP.
    Http,
}

/// Both transports.
pub const TRANSPORTS: [Transport; 2] = [Transport::Pipe, Transport::Http];

/// How a client reaches a server.
#[derive(Clone)]
pub enum ServerEndpoint {
    /// The server serves the given end of a pipe.
    Pipe(Arc<dyn Fn(DuplexStream) + Send + Sync>),
    /// The server listens at an address.
    Http {
        /// Such as `127.0.0.1:8040`.
        authority: String,
        /// The bearer token.
        token: Option<String>,
    },
}

/// What carries the messages of a client.
pub(super) enum Wire {
    Pipe(Line),
    Http(Streamable),
    /// It was closed.
    Closed,
}

impl Wire {
    /// A connection of a client of `version`.
    pub(super) fn to(endpoint: &ServerEndpoint, version: &'static str) -> Self {
        match endpoint {
            ServerEndpoint::Pipe(serve) => {
                let (line, theirs) = Line::pair();
                serve(theirs);
                Self::Pipe(line)
            }
            ServerEndpoint::Http { authority, token } => {
                Self::Http(Streamable::new(authority, token.as_deref(), version))
            }
        }
    }

    /// Sends a message.
    pub(super) async fn send(&mut self, message: Value) {
        match self {
            Self::Pipe(line) => line.write(message).await,
            Self::Http(http) => http.send(message).await,
            Self::Closed => panic!("the connection is closed: {message}"),
        }
    }

    /// The next message.
    pub(super) async fn receive(&mut self) -> Value {
        match self {
            Self::Pipe(line) => line.next().await,
            Self::Http(http) => http.receive().await,
            Self::Closed => panic!("the connection is closed"),
        }
    }

    /// Cancels a request by closing its own stream, if it has one (V2-CANC-1).
    pub(super) fn close(&mut self, id: i64) -> bool {
        match self {
            Self::Http(http) => http.close(id),
            Self::Pipe(_) | Self::Closed => false,
        }
    }
}
