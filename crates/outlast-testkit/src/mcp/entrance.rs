//! Where a server lets its clients in, and what carries the messages of a client: a pipe, or Streamable HTTP.

use std::sync::Arc;

use serde_json::Value;
use tokio::io::DuplexStream;

use super::Line;
use super::streamable::Streamable;

/// The two transports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A line for each message.
    Pipe,
    /// Streamable HTTP.
    Http,
}

/// Both.
pub const WAYS: [Way; 2] = [Way::Pipe, Way::Http];

/// Where a server lets its clients in.
#[derive(Clone)]
pub enum Entrance {
    /// It serves this end of a pipe.
    Pipe(Arc<dyn Fn(DuplexStream) + Send + Sync>),
    /// It listens there.
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
    /// There was one.
    Closed,
}

impl Wire {
    /// A way in for a client that speaks `version`.
    pub(super) fn to(entrance: &Entrance, version: &'static str) -> Self {
        match entrance {
            Entrance::Pipe(serve) => {
                let (line, theirs) = Line::pair();
                serve(theirs);
                Self::Pipe(line)
            }
            Entrance::Http { authority, token } => {
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
    pub(super) async fn hear(&mut self) -> Value {
        match self {
            Self::Pipe(line) => line.next().await,
            Self::Http(http) => http.hear().await,
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
