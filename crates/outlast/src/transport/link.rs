//! A connection to a server as two queues of messages, for every transport.
//!
//! Messages are lines of JSON here. The [client side](crate::client) interprets them.

use std::sync::Arc;
use std::time::Duration;

use outlast_wire::Raw;
use outlast_wire::envelope::{Id, Limits};
use tokio::sync::mpsc;

use super::http_client::DirectRequests;

/// A connection to a server.
///
/// Dropping `outgoing` closes the connection; `incoming` ends when it is closed.
#[derive(Debug)]
pub struct Link {
    /// Messages to the server.
    pub outgoing: mpsc::Sender<Outgoing>,
    /// Messages from the server.
    pub incoming: mpsc::Receiver<Incoming>,
    /// Sends requests whose responses bypass `incoming`.
    pub(crate) direct: Option<Arc<DirectRequests>>,
}

impl Link {
    /// A connection of two queues.
    pub fn new(outgoing: mpsc::Sender<Outgoing>, incoming: mpsc::Receiver<Incoming>) -> Self {
        Self {
            outgoing,
            incoming,
            direct: None,
        }
    }
}

/// A message to the server, or a command to the transport.
#[derive(Clone, Debug)]
pub enum Outgoing {
    /// A message.
    Message(OutgoingMessage),
    /// The handshake is complete. From now on HTTP requests name this version, and the transport
    /// opens its general stream if it has one.
    Opened {
        /// The version that was agreed.
        version: Arc<str>,
    },
    /// The response to this request is no longer needed.
    Abandon(Id),
    /// Cancels a stateless request: closes its stream, or sends `line` if it has none (V2-CANC-1).
    Cancel {
        /// The request.
        id: Id,
        /// The cancellation message.
        line: String,
    },
}

/// A message and what a transport needs to send it.
#[derive(Clone, Debug)]
pub struct OutgoingMessage {
    /// The message, on one line.
    pub line: String,
    /// Its kind.
    pub kind: MessageKind,
    /// Additional headers, for transports with headers.
    pub headers: Vec<(String, String)>,
}

/// The kind of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// A request, by its id.
    Request(Id),
    /// The request that opens a session, by its id.
    Opening(Id),
    /// A stateless request, by its id: it has no session, and its stream is not resumed
    /// (V2-HTTP-7).
    Stateless(Id),
    /// A notification or a response: it gets no response.
    OneWay,
}

/// A message from the server, or an event of the transport.
#[derive(Clone, Debug)]
pub enum Incoming {
    /// A message.
    Message {
        /// Its text.
        line: Vec<u8>,
        /// The request on whose stream it arrived, for transports with streams.
        via: Option<Id>,
    },
    /// A request failed.
    Failed {
        /// The request.
        id: Id,
        /// Why.
        error: TransportError,
    },
    /// The connection is closed. Nothing follows.
    Closed(TransportError),
}

/// Why a connection or a request failed. The variant says whether the server has acted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// No connection could be opened; the server has received nothing.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The server does not know the session; it has not acted. Open a new one (V1-SESS-5).
    #[error("the server does not know the session any more")]
    SessionGone,
    /// The server rejected the message with an HTTP status; it has not acted.
    #[error(
        "the server responded with HTTP status {status}{}",
        detail_suffix(detail)
    )]
    Refused {
        /// The status.
        status: u16,
        /// The beginning of the body.
        detail: String,
        /// The value of `Retry-After`.
        retry_after: Option<Duration>,
        /// The JSON-RPC error in the body, if there is one.
        error: Option<Raw>,
    },
    /// The server redirects to another origin, which is not followed.
    #[error("the server redirects to {0}, which is not followed")]
    Redirected(String),
    /// The connection broke before the response arrived; whether the server acted is unknown.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The server sent a message that exceeds the limit; its content is unknown.
    #[error("the server sent a message of {} bytes, more than the limit of {limit}", byte_count(*bytes, *is_whole))]
    TooLarge {
        /// How many bytes were received.
        bytes: u64,
        /// Whether that is the whole message.
        is_whole: bool,
        /// The limit in bytes.
        limit: u64,
    },
    /// The server's process ended.
    #[error("the server ended ({status}){}", detail_suffix(printed))]
    Ended {
        /// Its exit status.
        status: String,
        /// The last lines of its output that are not messages.
        printed: String,
    },
    /// This side closed it.
    #[error("the connection was closed")]
    Closed,
}

impl TransportError {
    /// A short form for logs, without text from the server.
    pub(crate) fn brief(&self) -> String {
        match self {
            Self::Refused { status, .. } => {
                format!("the server responded with HTTP status {status}")
            }
            Self::Redirected(_) => "the server redirects to another URL".into(),
            Self::Ended { status, .. } => format!("the server ended ({status})"),
            Self::Unreachable(_)
            | Self::SessionGone
            | Self::Broken(_)
            | Self::TooLarge { .. }
            | Self::Closed => self.to_string(),
        }
    }

    /// Whether the server has certainly not acted on the message.
    pub fn server_has_not_acted(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_) | Self::SessionGone | Self::Refused { .. } | Self::Redirected(_)
        )
    }

    /// Whether a later attempt may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::SessionGone | Self::Broken(_) | Self::Ended { .. } => true,
            Self::Refused { status, .. } => matches!(status, 408 | 425 | 429 | 500..),
            Self::Redirected(_) | Self::TooLarge { .. } | Self::Closed => false,
        }
    }
}

impl OutgoingMessage {
    /// A message without headers.
    pub fn new(line: String, kind: MessageKind) -> Self {
        Self {
            line,
            kind,
            headers: Vec::new(),
        }
    }

    /// The id, if it is a request.
    pub fn request(&self) -> Option<&Id> {
        match &self.kind {
            MessageKind::Request(id) | MessageKind::Opening(id) | MessageKind::Stateless(id) => {
                Some(id)
            }
            MessageKind::OneWay => None,
        }
    }
}

fn byte_count(bytes: u64, is_whole: bool) -> String {
    if is_whole {
        bytes.to_string()
    } else {
        format!("at least {bytes}")
    }
}

/// The parser limits for a message whose size the transport has checked.
pub(crate) fn limits_without_size() -> Limits {
    Limits {
        bytes: usize::MAX,
        ..Limits::default()
    }
}

/// The maximum size of a message with a payload of up to `payload` bytes: at least the default.
pub(crate) fn message_bytes(payload: usize) -> usize {
    payload
        .saturating_add(MAX_ENVELOPE_BYTES)
        .max(Limits::default().bytes)
}

/// The maximum size of a message without its payload.
const MAX_ENVELOPE_BYTES: usize = 64 << 10;

fn detail_suffix(detail: &str) -> String {
    if detail.is_empty() {
        String::new()
    } else {
        format!(": {detail}")
    }
}

/// The capacity of each queue, in messages.
pub(crate) const QUEUE_MESSAGES: usize = 1_024;
