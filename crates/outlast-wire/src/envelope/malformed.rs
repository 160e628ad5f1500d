//! Why a message is invalid, as an enum with JSON-RPC codes.

use crate::codes;
use crate::envelope::{ErrorObject, Id};

/// An invalid message, with its id if that was readable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct Malformed {
    /// What is wrong.
    pub fault: MalformedReason,
    /// The id, if exactly one valid id was read.
    pub id: Option<Id>,
    /// Whether an error response is sent, and which side chose the id.
    pub kind: MalformedKind,
}

/// The kind of an invalid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MalformedKind {
    /// It has a method, or its kind is unknown: an error is sent back, with its id if there is one.
    Request,
    /// It is a response: the id is one of ours and nothing is sent back.
    Response,
}

/// What is wrong with a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedReason {
    /// It is longer than the limit. Nothing was parsed.
    #[error("message has {size} bytes, more than the limit of {limit}")]
    TooLarge {
        /// Its length.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// It nests deeper than the limit.
    #[error("message nests deeper than {limit} levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// It is not UTF-8.
    #[error("message is not UTF-8")]
    NotUtf8,
    /// It is not JSON.
    #[error("message is not JSON from byte {at} on")]
    NotJson {
        /// The first invalid byte.
        at: usize,
    },
    /// It is an array: neither generation has batches (V1-BASE-6).
    #[error("message is a batch, which is not supported")]
    Batch,
    /// It is a value other than an object.
    #[error("message is not an object")]
    NotAnObject,
    /// A member of the envelope occurs twice.
    #[error("duplicate member `{0}`")]
    Duplicate(String),
    /// `jsonrpc` is missing or not `"2.0"`.
    #[error("member `jsonrpc` is not \"2.0\"")]
    Version,
    /// `id` is neither a string nor an integer.
    #[error("member `id` is neither a string nor an integer")]
    Id,
    /// `method` is not a string.
    #[error("member `method` is not a string")]
    Method,
    /// `params` is not an object.
    #[error("member `params` is not an object")]
    Params,
    /// There is neither a method nor an outcome.
    #[error("neither a request nor a response")]
    Neither,
    /// There is a method and an outcome.
    #[error("both a request and a response")]
    Both,
    /// A response has both `result` and `error`.
    #[error("both `result` and `error`")]
    TwoOutcomes,
    /// A result carries no id.
    #[error("response without `id`")]
    NoId,
    /// `result` is not an object.
    #[error("member `result` is not an object")]
    Result,
    /// `error` lacks an integer code or a string message (V1-BASE-5).
    #[error("member `error` lacks an integer `code` or a string `message`")]
    Error,
}

impl Malformed {
    /// The JSON-RPC code of the error response.
    ///
    /// Text that is not JSON is a parse error, everything else an invalid request. That includes
    /// parameters that are not an object: both schemas require an object in the envelope itself, so
    /// such a message is not a valid request to any method.
    pub fn code(&self) -> i64 {
        match self.fault {
            MalformedReason::NotUtf8 | MalformedReason::NotJson { .. } => codes::PARSE_ERROR,
            _ => codes::INVALID_REQUEST,
        }
    }

    /// The error response.
    pub fn to_error(&self) -> ErrorObject {
        ErrorObject::new(self.code(), self.fault.to_string())
    }
}
