//! How a call ends: the outcome with its unopened body, and the summary that a task keeps of it.

use outlast_wire::envelope::ErrorObject;
use outlast_wire::{Raw, tool};

/// What the underlying request would have answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A result.
    Result(Raw),
    /// A result that the tool flagged with `isError`.
    ToolError(Raw, Message),
    /// A JSON-RPC error object with its code.
    Error(Raw, ErrorCode, Message),
    /// The work stopped because it was asked to.
    Cancelled,
}

/// A sentence about an ending that stands alone, for status displays.
pub type Message = Option<std::sync::Arc<str>>;

/// A JSON-RPC error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(pub i64);

/// How a task ended, without the body. Enough for every status word of every generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A result.
    Result,
    /// A result flagged `isError`.
    ToolError,
    /// A JSON-RPC error.
    Error(ErrorCode),
    /// Cancelled; there is no body.
    Cancelled,
}

impl Ending {
    /// Whether there is a result or an error to go with it.
    pub fn has_body(self) -> bool {
        self != Self::Cancelled
    }
}

impl From<ErrorObject> for Outcome {
    fn from(error: ErrorObject) -> Self {
        let body = error.to_raw();
        Self::Error(body, ErrorCode(error.code), Some(error.message.into()))
    }
}

impl Outcome {
    /// The outcome of a tool that returned `result`, by its flag `isError`.
    pub fn of_tool(result: Raw) -> Self {
        if tool::is_error(result.borrow()) {
            let message = tool::first_text(result.borrow()).map(Into::into);
            Self::ToolError(result, message)
        } else {
            Self::Result(result)
        }
    }

    /// The error that this library makes itself.
    pub fn error(code: ErrorCode, message: impl Into<std::sync::Arc<str>>) -> Self {
        let message = message.into();
        let object = serde_json::json!({ "code": code.0, "message": &*message });
        let body = Raw::encode(&object).expect("a number and a string are JSON");
        Self::Error(body, code, Some(message))
    }

    /// The error of a call that may or may not have been carried out. Its `data` is `{"outcome":"unknown"}`, so that a
    /// program can tell it from an error of the tool.
    pub fn unknown(message: impl Into<std::sync::Arc<str>>) -> Self {
        let (code, message) = (ErrorCode(-32603), message.into());
        let data = serde_json::json!({ "outcome": "unknown" });
        let object = serde_json::json!({ "code": code.0, "message": &*message, "data": data });
        let body = Raw::encode(&object).expect("numbers and strings are JSON");
        Self::Error(body, code, Some(message))
    }

    /// Whether this is the error that [`Outcome::unknown`] makes, also if another server sent it.
    pub fn is_unknown(&self) -> bool {
        let Self::Error(body, ..) = self else {
            return false;
        };
        let body: serde_json::Value = body.open().unwrap_or_default();
        body["data"]["outcome"] == "unknown"
    }

    /// The summary.
    pub fn ending(&self) -> Ending {
        match self {
            Self::Result(_) => Ending::Result,
            Self::ToolError(..) => Ending::ToolError,
            Self::Error(_, code, _) => Ending::Error(*code),
            Self::Cancelled => Ending::Cancelled,
        }
    }

    /// The body, unless cancelled.
    pub fn body(&self) -> Option<&Raw> {
        match self {
            Self::Result(body) | Self::ToolError(body, _) | Self::Error(body, ..) => Some(body),
            Self::Cancelled => None,
        }
    }

    /// The body, taken out.
    pub(crate) fn into_body(self) -> Option<Raw> {
        match self {
            Self::Result(body) | Self::ToolError(body, _) | Self::Error(body, ..) => Some(body),
            Self::Cancelled => None,
        }
    }

    /// The sentence to show, where the outcome brings one.
    pub fn message(&self) -> Message {
        match self {
            Self::ToolError(_, message) | Self::Error(_, _, message) => message.clone(),
            Self::Result(_) | Self::Cancelled => None,
        }
    }
}
