//! Pieces of content, as results of tools and messages of prompts have them.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::resources::Contents;

/// A text.
pub fn text(text: impl Into<String>) -> Value {
    json!({ "type": "text", "text": text.into() })
}

/// A picture, such as `image/png`.
pub fn image(mime: &str, bytes: &[u8]) -> Value {
    json!({ "type": "image", "mimeType": mime, "data": BASE64_STANDARD.encode(bytes) })
}

/// A sound, such as `audio/wav`.
pub fn audio(mime: &str, bytes: &[u8]) -> Value {
    json!({ "type": "audio", "mimeType": mime, "data": BASE64_STANDARD.encode(bytes) })
}

/// A resource with what is in it.
pub fn resource(uri: &str, contents: &Contents) -> Value {
    json!({ "type": "resource", "resource": contents.at(uri, None) })
}

/// The result of a tool that is made of these pieces.
pub fn result(pieces: impl IntoIterator<Item = Value>) -> Value {
    json!({ "content": pieces.into_iter().collect::<Vec<_>>() })
}
