//! JSON-RPC errors: the owned object and the view of a received one.

use std::borrow::Cow;

use crate::json::write::ObjectWriter;
use crate::object::pick;
use crate::raw::{Raw, RawRef};

/// An error object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct ErrorObject {
    /// The code; [`crate::codes`] has the known ones.
    pub code: i64,
    /// What happened, in one sentence.
    pub message: String,
    /// Further data.
    pub data: Option<Raw>,
}

impl ErrorObject {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// This error with `data`.
    #[must_use]
    pub fn with_data(mut self, data: Raw) -> Self {
        self.data = Some(data);
        self
    }

    /// The JSON object.
    pub fn to_raw(&self) -> Raw {
        Raw::written(|out| {
            let mut fields = ObjectWriter::begin(out);
            fields.plain("code", self.code);
            fields.text("message", &self.message);
            if let Some(data) = &self.data {
                fields.json("data", data.as_str());
            }
            fields.end();
        })
    }
}

/// A received error: its parts, and the whole text for exact relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorView<'a> {
    /// The object as received, unknown members included.
    pub raw: RawRef<'a>,
    /// Its code.
    pub code: i64,
    /// Its message.
    pub message: Cow<'a, str>,
    /// Its data, not parsed.
    pub data: Option<RawRef<'a>>,
}

impl<'a> ErrorView<'a> {
    /// Reads an error object. Returns `None` without an integer code and a string message
    /// (V1-BASE-5).
    pub fn read(raw: RawRef<'a>) -> Option<Self> {
        let [code, message, data] = pick(raw, ["code", "message", "data"]).ok()?;
        Some(Self {
            raw,
            code: code?.integer()?,
            message: message.filter(|message| message.is_text())?.text_or_json(),
            data,
        })
    }

    /// The same error, owned and without unknown members.
    pub fn to_object(&self) -> ErrorObject {
        ErrorObject {
            code: self.code,
            message: self.message.clone().into_owned(),
            data: self.data.map(RawRef::to_raw),
        }
    }
}
