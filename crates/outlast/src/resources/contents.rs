//! The contents of a resource.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

/// The contents of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    body: Body,
    mime: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Body {
    Text(String),
    Bytes(Vec<u8>),
}

impl Contents {
    /// Text contents.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            body: Body::Text(text.into()),
            mime: None,
        }
    }

    /// Binary contents.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            body: Body::Bytes(bytes.into()),
            mime: None,
        }
    }

    /// Sets the MIME type. By default it is that of the resource.
    pub fn mime(mut self, mime: &str) -> Self {
        self.mime = Some(mime.to_owned());
        self
    }

    /// The contents of `uri`, with `mime` as the default type.
    pub(crate) fn at(&self, uri: &str, mime: Option<&str>) -> Value {
        let mut at = json!({ "uri": uri });
        if let Some(mime) = self.mime.as_deref().or(mime) {
            at["mimeType"] = mime.into();
        }
        match &self.body {
            Body::Text(text) => at["text"] = text.as_str().into(),
            Body::Bytes(bytes) => at["blob"] = BASE64_STANDARD.encode(bytes).into(),
        }
        at
    }
}
