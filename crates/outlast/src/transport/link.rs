//! A connection to a server as two queues of messages, whatever carries them: a child's pipes, HTTP, this process.
//!
//! Messages stay lines of JSON here. Ids, answers and meaning are the business of [`back`](crate::client).

use std::sync::Arc;
use std::time::Duration;

use outlast_wire::Raw;
use outlast_wire::envelope::{Id, Limits};
use tokio::sync::mpsc;

use super::http_client::DirectRequests;

/// A connection to a server.
///
/// Dropping `outgoing` closes it in an orderly way; `incoming` ends when that is done.
#[derive(Debug)]
pub struct Link {
    /// What goes to the server.
    pub outgoing: mpsc::Sender<Outgoing>,
    /// What comes from it.
    pub incoming: mpsc::Receiver<Incoming>,
    /// Sends requests whose answers do not come with the other messages.
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

/// Something for the server, or for the transport itself.
#[derive(Clone, Debug)]
pub enum Outgoing {
    /// A message.
    Message(Parcel),
    /// The handshake is over: requests name this version from now on, and the transport listens in general if it
    /// has to do anything for that.
    Opened {
        /// The version that was agreed.
        version: Arc<str>,
    },
    /// Nobody waits for the answer to this request any more.
    Abandon(Id),
    /// The same of a request that stands alone, and the server is to know: its stream is closed where it has one of
    /// its own, else this is sent (V2-CANC-1).
    Withdraw {
        /// The request.
        id: Id,
        /// The message that says so.
        line: String,
    },
}

/// One message and what a transport must know of it.
#[derive(Clone, Debug)]
pub struct Parcel {
    /// The message, on one line.
    pub line: String,
    /// What sort it is.
    pub kind: Kind,
    /// Headers where the transport has any.
    pub headers: Vec<(String, String)>,
}

/// The sorts of message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A request, by its id.
    Request(Id),
    /// The request that opens a session, by its id.
    Opening(Id),
    /// A request that stands alone, by its id: it belongs to no session, and its stream is not resumed (V2-HTTP-7).
    Stateless(Id),
    /// A notification or an answer: nothing comes back.
    OneWay,
}

/// Something from the server, or from the transport itself.
#[derive(Clone, Debug)]
pub enum Incoming {
    /// A message as it came.
    Message {
        /// Its text.
        line: Vec<u8>,
        /// The request on whose own stream it came, where the transport has such streams.
        via: Option<Id>,
    },
    /// A request will not be answered.
    Failed {
        /// The request.
        id: Id,
        /// Why.
        error: LinkError,
    },
    /// The connection is over; nothing follows.
    Closed(LinkError),
}

/// Why a connection or one exchange on it came to nothing. The variant says what the server knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// There is no way to the server; it has seen nothing.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The session is gone; the server has done nothing. A new one must be opened (V1-SESS-5).
    #[error("the session is gone")]
    SessionGone,
    /// The server refused the message by an HTTP status; it has done nothing.
    #[error("the server answered with HTTP status {status}{}", shown(detail))]
    Refused {
        /// The status.
        status: u16,
        /// The beginning of what it said.
        detail: String,
        /// How long it wants to be left alone, if it says so.
        retry_after: Option<Duration>,
        /// The JSON-RPC error in the body, if there is one.
        error: Option<Raw>,
    },
    /// The server points to another origin, where we do not follow.
    #[error("the server redirects to {0}, which is not followed")]
    Redirected(String),
    /// The connection broke before an answer came; what the server did is unknown.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The server sent a message that is larger than it may be; what it says is unknown.
    #[error("the server sent a message of {} bytes, more than the limit of {limit}", sent(*bytes, *is_whole))]
    TooLarge {
        /// How many bytes were seen of it.
        bytes: u64,
        /// Whether that is all of it.
        is_whole: bool,
        /// How many it may have.
        limit: u64,
    },
    /// The server's process ended.
    #[error("the server ended ({status}){}", shown(printed))]
    Ended {
        /// How it ended.
        status: String,
        /// The last lines of its standard error and of its standard output that were no messages.
        printed: String,
    },
    /// We closed it.
    #[error("the connection was closed")]
    Closed,
}

impl LinkError {
    /// The same for a log: without anything that the server said.
    pub(crate) fn brief(&self) -> String {
        match self {
            Self::Refused { status, .. } => {
                format!("the server answered with HTTP status {status}")
            }
            Self::Redirected(_) => "the server redirects to another place".into(),
            Self::Ended { status, .. } => format!("the server ended ({status})"),
            Self::Unreachable(_)
            | Self::SessionGone
            | Self::Broken(_)
            | Self::TooLarge { .. }
            | Self::Closed => self.to_string(),
        }
    }

    /// Whether the server has certainly not acted on the message.
    pub fn nothing_happened(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_) | Self::SessionGone | Self::Refused { .. } | Self::Redirected(_)
        )
    }

    /// Whether trying again later may help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::SessionGone | Self::Broken(_) | Self::Ended { .. } => true,
            Self::Refused { status, .. } => matches!(status, 408 | 425 | 429 | 500..),
            Self::Redirected(_) | Self::TooLarge { .. } | Self::Closed => false,
        }
    }
}

impl Parcel {
    /// A message without headers.
    pub fn new(line: String, kind: Kind) -> Self {
        Self {
            line,
            kind,
            headers: Vec::new(),
        }
    }

    /// The request whose answer is awaited, if any.
    pub fn request(&self) -> Option<&Id> {
        match &self.kind {
            Kind::Request(id) | Kind::Opening(id) | Kind::Stateless(id) => Some(id),
            Kind::OneWay => None,
        }
    }
}

fn sent(bytes: u64, is_whole: bool) -> String {
    if is_whole {
        bytes.to_string()
    } else {
        format!("at least {bytes}")
    }
}

/// What is asked of a message that a transport has passed on: its size was checked there.
pub(crate) fn passed_on() -> Limits {
    Limits {
        bytes: usize::MAX,
        ..Limits::default()
    }
}

/// The most bytes of a message whose payload may have `payload` bytes: never less than by default.
pub(crate) fn message_bytes(payload: usize) -> usize {
    payload
        .saturating_add(ENVELOPE)
        .max(Limits::default().bytes)
}

/// What a message has beside its payload, at most.
const ENVELOPE: usize = 64 << 10;

fn shown(detail: &str) -> String {
    if detail.is_empty() {
        String::new()
    } else {
        format!(": {detail}")
    }
}

/// How many messages may wait on either side of a connection before its writer has to wait.
pub(crate) const QUEUE: usize = 1_024;
