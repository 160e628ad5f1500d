//! Content blocks of tool results and prompt messages.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::resources::Contents;

/// A text block.
pub fn text_block(text: impl Into<String>) -> Value {
    json!({ "type": "text", "text": text.into() })
}

/// An image block, with a type such as `image/png`.
pub fn image_block(mime: &str, bytes: &[u8]) -> Value {
    json!({ "type": "image", "mimeType": mime, "data": BASE64_STANDARD.encode(bytes) })
}

/// An audio block, with a type such as `audio/wav`.
pub fn audio_block(mime: &str, bytes: &[u8]) -> Value {
    json!({ "type": "audio", "mimeType": mime, "data": BASE64_STANDARD.encode(bytes) })
}

/// An embedded resource.
pub fn resource_block(uri: &str, contents: &Contents) -> Value {
    json!({ "type": "resource", "resource": contents.at(uri, None) })
}

/// A tool result with these blocks.
pub fn result(pieces: impl IntoIterator<Item = Value>) -> Value {
    json!({ "content": pieces.into_iter().collect::<Vec<_>>() })
}
