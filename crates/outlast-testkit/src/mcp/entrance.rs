//! What carries the words of a caller: a pipe, or Streamable HTTP.

use std::sync::Arc;

use outlast::server::McpServer;
use outlast_testkit::mcp::Line;
use serde_json::Value;
use tokio::io::BufReader;

use crate::streamable::Streamable;

/// The two ways on either side of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Pipe,
    Http,
}

pub(crate) const WAYS: [Way; 2] = [Way::Pipe, Way::Http];

/// Where a gateway lets its clients in.
#[derive(Clone)]
pub(crate) enum Entrance {
    Pipe(Arc<McpServer>),
    Http {
        /// Such as `127.0.0.1:8040`.
        authority: String,
        token: Option<String>,
    },
}

pub(crate) enum Wire {
    Pipe(Line),
    Http(Streamable),
    /// There was one.
    Closed,
}

impl Wire {
    /// A way in for a client that speaks `version`.
    pub(crate) fn to(entrance: &Entrance, version: &'static str) -> Self {
        match entrance {
            Entrance::Pipe(front) => {
                let (line, theirs) = Line::pair();
                let (read, write) = tokio::io::split(theirs);
                let front = front.clone();
                tokio::spawn(async move {
                    outlast::transport::stdio::serve_on(front, BufReader::new(read), write).await
                });
                Self::Pipe(line)
            }
            Entrance::Http { authority, token } => {
                Self::Http(Streamable::new(authority, token.as_deref(), version))
            }
        }
    }

    /// Sends a message.
    pub(crate) async fn send(&mut self, message: Value) {
        match self {
            Self::Pipe(line) => line.write(message).await,
            Self::Http(http) => http.send(message).await,
            Self::Closed => panic!("nobody hears {message}"),
        }
    }

    /// The next message.
    pub(crate) async fn hear(&mut self) -> Value {
        match self {
            Self::Pipe(line) => line.next().await,
            Self::Http(http) => http.hear().await,
            Self::Closed => panic!("there is nothing to hear"),
        }
    }

    /// Takes a request back without a word, where a request has a stream of its own to be closed (V2-CANC-1).
    pub(crate) fn close(&mut self, id: i64) -> bool {
        match self {
            Self::Http(http) => http.close(id),
            Self::Pipe(_) | Self::Closed => false,
        }
    }
}
