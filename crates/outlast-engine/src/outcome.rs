//! How a call ends: the outcome with its unparsed body, and the ending, which a task stores without
//! the body.

use std::fmt;

use outlast_wire::envelope::ErrorObject;
use outlast_wire::{Raw, tool};

/// What the underlying request would have returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A result.
    Result(Raw),
    /// A result that the tool flagged with `isError`.
    ToolError(Raw, StatusMessage),
    /// A JSON-RPC error object with its code.
    Error(Raw, ErrorCode, StatusMessage),
    /// The work stopped because of a cancellation.
    Cancelled,
}

/// A status message, if there is one.
pub type StatusMessage = Option<std::sync::Arc<str>>;

/// A JSON-RPC error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(pub i64);

/// How a task ended, without the body. The status words of both generations follow from it.
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

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Result => "result",
            Self::ToolError => "tool error",
            Self::Error(_) => "error",
            Self::Cancelled => "cancelled",
        })
    }
}

impl Ending {
    /// Whether the outcome has a body: a result or an error.
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

    /// An error made by this library.
    pub fn error(code: ErrorCode, message: impl Into<std::sync::Arc<str>>) -> Self {
        let message = message.into();
        let object = serde_json::json!({ "code": code.0, "message": &*message });
        let body = Raw::encode(&object).expect("a number and a string are JSON");
        Self::Error(body, code, Some(message))
    }

    /// The error of a call that may or may not have run. Its `data` is `{"outcome":"unknown"}`, so
    /// that a program can tell it from an error of the tool.
    pub fn unknown(message: impl Into<std::sync::Arc<str>>) -> Self {
        let (code, message) = (ErrorCode(-32603), message.into());
        let data = serde_json::json!({ "outcome": "unknown" });
        let object = serde_json::json!({ "code": code.0, "message": &*message, "data": data });
        let body = Raw::encode(&object).expect("numbers and strings are JSON");
        Self::Error(body, code, Some(message))
    }

    /// Whether this is an error like that of [`Outcome::unknown`], from this or another server.
    pub fn is_unknown(&self) -> bool {
        let Self::Error(body, ..) = self else {
            return false;
        };
        let body: serde_json::Value = body.open().unwrap_or_default();
        body["data"]["outcome"] == "unknown"
    }

    /// How the call ended, without the body.
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

    /// Returns the body, unless cancelled.
    pub(crate) fn into_body(self) -> Option<Raw> {
        match self {
            Self::Result(body) | Self::ToolError(body, _) | Self::Error(body, ..) => Some(body),
            Self::Cancelled => None,
        }
    }

    /// The first text of the result, or the message of the error; `None` if there is no text.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Result(body) | Self::ToolError(body, _) => tool::first_text(body.borrow()),
            Self::Error(_, _, message) => message.as_deref().map(str::to_owned),
            Self::Cancelled => None,
        }
    }

    /// The status message of the outcome, if it has one.
    pub fn message(&self) -> StatusMessage {
        match self {
            Self::ToolError(_, message) | Self::Error(_, _, message) => message.clone(),
            Self::Result(_) | Self::Cancelled => None,
        }
    }
}
