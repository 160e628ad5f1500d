//! Why a request to a server has no result.

use std::time::Duration;

use outlast_wire::envelope::{ErrorObject, ErrorView};
use outlast_wire::{Raw, RawRef, codes, object};

use crate::transport::link::LinkError;

/// Why a request has no result. The variant says who must act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server answered with an error.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The message or its answer did not get through.
    #[error(transparent)]
    Transport(LinkError),
    /// The server did not answer in time.
    #[error("the server did not answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The server answered with something that the method does not allow.
    #[error("the server's answer makes no sense: {0}")]
    Malformed(String),
    /// Nothing was sent, because our own store could not take note of it first: repair that.
    #[error("nothing was sent, because it could not be stored first: {0}")]
    NotStored(String),
    /// The server does not offer that.
    #[error("the server does not support {0}")]
    Unsupported(String),
}

/// A JSON-RPC error as a server sent it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct PeerError {
    /// Its code.
    pub code: i64,
    /// Its message.
    pub message: String,
    /// The whole object as it came.
    pub raw: Raw,
    /// The HTTP status with which the server refused the request, without acting on it.
    pub refused: Option<Refusal>,
}

/// A refusal of an overloaded server: 429 or 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The value of `Retry-After`.
    pub retry_after: Option<Duration>,
}

impl Error {
    /// The same for a log: without anything that the server said.
    pub(crate) fn brief(&self) -> String {
        match self {
            Self::Peer(error) => format!("the server answered with error {}", error.code),
            Self::Transport(error) => error.brief(),
            Self::Malformed(_) => "the server's answer makes no sense".into(),
            Self::Unsupported(_) => "the server does not support that".into(),
            Self::NotStored(_) => "our store did not take note of it".into(),
            Self::TimedOut(_) => self.to_string(),
        }
    }

    /// The code of the server's error, if it is one.
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::Peer(error) => Some(error.code),
            _ => None,
        }
    }

    /// How long the server wants to be left alone, if it says so: by a header or in its error (A2-29).
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Transport(LinkError::Refused { retry_after, .. }) => *retry_after,
            Self::Peer(error) => {
                if let Some(pause) = error.refused.and_then(|refusal| refusal.retry_after) {
                    return Some(pause);
                }
                let said = object::find(error.raw.borrow(), &["data", "retryAfterMs"])?;
                let millis = u64::try_from(said.integer()?).ok()?;
                Some(Duration::from_millis(millis))
            }
            _ => None,
        }
    }

    /// Whether the same request may succeed later. An error whose code says that the request itself is wrong, such as
    /// -32602 for an unknown task (V1-ERR-1), does not pass.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Peer(error) => {
                let is_servers_failure = match error.code {
                    codes::HEADER_MISMATCH
                    | codes::MISSING_CAPABILITY
                    | codes::UNSUPPORTED_VERSION
                    | codes::RESOURCE_NOT_FOUND => false,
                    code => code == codes::INTERNAL_ERROR || codes::SERVER_ERRORS.contains(&code),
                };
                is_servers_failure || error.refused.is_some()
            }
            Self::Transport(error) => !matches!(error, LinkError::TooLarge { .. }),
            Self::TimedOut(_) | Self::NotStored(_) => true,
            Self::Malformed(_) | Self::Unsupported(_) => false,
        }
    }

    /// Whether the server has certainly not acted on the request.
    pub fn nothing_happened(&self) -> bool {
        match self {
            Self::Transport(error) => error.nothing_happened(),
            Self::NotStored(_) => true,
            Self::Peer(error) => error.refused.is_some(),
            Self::TimedOut(_) | Self::Malformed(_) | Self::Unsupported(_) => false,
        }
    }
}

impl PeerError {
    /// An error object as it came; `None` if it is none.
    pub(crate) fn read(error: RawRef<'_>) -> Option<Self> {
        ErrorView::read(error).map(|view| Self::of(&view))
    }

    pub(crate) fn of(view: &ErrorView<'_>) -> Self {
        Self {
            code: view.code,
            message: view.message.clone().into_owned(),
            raw: view.raw.to_raw(),
            refused: None,
        }
    }
}

impl From<ErrorObject> for PeerError {
    fn from(error: ErrorObject) -> Self {
        Self {
            code: error.code,
            raw: error.to_raw(),
            message: error.message,
            refused: None,
        }
    }
}

impl From<LinkError> for Error {
    /// The server's own error counts more than the HTTP status that came with it.
    fn from(error: LinkError) -> Self {
        let LinkError::Refused {
            status,
            retry_after,
            error: Some(raw),
            ..
        } = &error
        else {
            return Self::Transport(error);
        };
        match PeerError::read(raw.borrow()) {
            Some(peer) => Self::Peer(PeerError {
                refused: Some(Refusal {
                    status: *status,
                    retry_after: *retry_after,
                }),
                ..peer
            }),
            None => Self::Transport(error),
        }
    }
}
