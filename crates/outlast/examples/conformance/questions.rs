//! Input requests of the suite.

use serde_json::{Value, json};

pub(crate) fn form(message: &str, property: &str, kind: &str) -> Value {
    json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object", "properties": { property: { "type": kind } }, "required": [property],
        },
    })
}

pub(crate) fn sampling(question: &str, tokens: u32) -> Value {
    let content = json!({ "type": "text", "text": question });
    json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": tokens })
}
