//! The error of a request to a server.

use std::time::Duration;

use outlast_wire::envelope::{ErrorObject, ErrorView};
use outlast_wire::{Raw, RawRef, codes, object};

use crate::transport::link::TransportError;

/// Why a request has no result. The variant says who must act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server responded with an error.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The message or its response was not transmitted.
    #[error(transparent)]
    Transport(TransportError),
    /// The server did not respond in time.
    #[error("the server did not respond within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The response of the server is invalid for the method.
    #[error("the server's response is invalid: {0}")]
    Malformed(String),
    /// Nothing was sent, because the local store could not record it first. Repair the store.
    #[error("nothing was sent, because the local store could not record it first: {0}")]
    NotStored(String),
    /// The server does not support this.
    #[error("the server does not support {0}")]
    Unsupported(String),
}

/// A JSON-RPC error as the server sent it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct PeerError {
    /// Its code.
    pub code: i64,
    /// Its message.
    pub message: String,
    /// The whole error object.
    pub raw: Raw,
    /// Set if the server refused the request with an HTTP status and did not execute it.
    pub refused: Option<Refusal>,
}

/// A refusal by an overloaded server: 429 or 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The value of `Retry-After`.
    pub retry_after: Option<Duration>,
}

impl Error {
    /// The error for a log, without text from the server.
    pub(crate) fn brief(&self) -> String {
        match self {
            Self::Peer(error) => format!("the server responded with error {}", error.code),
            Self::Transport(error) => error.brief(),
            Self::Malformed(_) => "the server's response is invalid".into(),
            Self::Unsupported(_) => "the server does not support this".into(),
            Self::NotStored(_) => "the local store could not record it".into(),
            Self::TimedOut(_) => self.to_string(),
        }
    }

    /// The code of the server's error, if it sent one.
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::Peer(error) => Some(error.code),
            _ => None,
        }
    }

    /// The delay that the server asks for, in a header or in its error (A2-29).
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Transport(TransportError::Refused { retry_after, .. }) => *retry_after,
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

    /// Whether the same request may succeed later. An error code that blames the request itself,
    /// such as -32602 for an unknown task (V1-ERR-1), is permanent.
    pub(crate) fn is_transient(&self) -> bool {
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
            Self::Transport(error) => !matches!(error, TransportError::TooLarge { .. }),
            Self::TimedOut(_) | Self::NotStored(_) => true,
            Self::Malformed(_) | Self::Unsupported(_) => false,
        }
    }

    /// Whether the server has certainly not executed the request.
    pub fn server_has_not_acted(&self) -> bool {
        match self {
            Self::Transport(error) => error.server_has_not_acted(),
            Self::NotStored(_) => true,
            Self::Peer(error) => error.refused.is_some(),
            Self::TimedOut(_) | Self::Malformed(_) | Self::Unsupported(_) => false,
        }
    }
}

impl PeerError {
    /// Reads an error object; `None` if it is invalid.
    pub(crate) fn read(error: RawRef<'_>) -> Option<Self> {
        ErrorView::read(error).map(|view| Self::of(&view))
    }

    /// The same after `clean` has changed its text. If what is left is no error with the same code,
    /// only the code stays.
    pub(crate) fn cleaned(self, clean: impl Fn(&str) -> String) -> Self {
        let text = clean(self.raw.as_str());
        if text == self.raw.as_str() {
            return self;
        }
        let cleaned = Raw::parse(text).ok();
        let cleaned = cleaned.and_then(|raw| Self::read(raw.borrow()));
        let cleaned = cleaned.filter(|cleaned| cleaned.code == self.code);
        let hidden = || {
            ErrorObject::new(
                self.code,
                "the server's error is not shown: it names our session",
            )
        };
        Self {
            refused: self.refused,
            ..cleaned.unwrap_or_else(|| hidden().into())
        }
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

impl From<TransportError> for Error {
    /// The server's own error takes precedence over the HTTP status that it came with.
    fn from(error: TransportError) -> Self {
        let TransportError::Refused {
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
