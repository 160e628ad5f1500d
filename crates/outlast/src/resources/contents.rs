//! What is in a resource.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

/// What is in a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    what: What,
    mime: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Text(String),
    Bytes(Vec<u8>),
}

impl Contents {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            what: What::Text(text.into()),
            mime: None,
        }
    }

    /// Anything else.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            what: What::Bytes(bytes.into()),
            mime: None,
        }
    }

    /// The same, of this type; without it the type of the resource counts.
    pub fn mime(mut self, mime: &str) -> Self {
        self.mime = Some(mime.to_owned());
        self
    }

    /// The contents as those of `uri`, which is of the type `mime` unless they say otherwise.
    pub(crate) fn at(&self, uri: &str, mime: Option<&str>) -> Value {
        let mut at = json!({ "uri": uri });
        if let Some(mime) = self.mime.as_deref().or(mime) {
            at["mimeType"] = mime.into();
        }
        match &self.what {
            What::Text(text) => at["text"] = text.as_str().into(),
            What::Bytes(bytes) => at["blob"] = BASE64_STANDARD.encode(bytes).into(),
        }
        at
    }
}
