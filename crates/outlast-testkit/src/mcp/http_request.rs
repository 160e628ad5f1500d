//! The bytes of an HTTP request, and the headers and the `_meta` of a modern one.

use serde_json::{Value, json};

/// The protocol version whose requests are independent of each other.
pub const MODERN: &str = "2026-07-28";

/// The bytes of a request with `host`, `content-length` and these headers. A header of `other`
/// replaces those of the same name, and one with an empty value is omitted; `other` may repeat a
/// name.
pub(super) fn request_bytes(
    authority: &str,
    method: &str,
    path: &str,
    usual: &[(&str, &str)],
    other: &[(&str, &str)],
    body: &[u8],
) -> Vec<u8> {
    let length = body.len().to_string();
    let own = [("host", authority), ("content-length", length.as_str())];
    let is_kept = |(name, _): &&(&str, &str)| {
        let mut others = other.iter();
        !others.any(|(replacing, _)| replacing.eq_ignore_ascii_case(name))
    };
    let kept = own.iter().chain(usual).filter(is_kept);
    let mut request = format!("{method} {path} HTTP/1.1\r\n");
    for (name, value) in kept.chain(other).filter(|(_, value)| !value.is_empty()) {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    let mut request = request.into_bytes();
    request.extend_from_slice(body);
    request
}

/// The headers of every message of `version`.
pub(super) fn message_headers(version: &str) -> [(&'static str, &str); 3] {
    [
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", version),
    ]
}

/// The headers in which a modern message repeats its method and name (V2-HDR-1).
pub(super) fn modern_headers(message: &Value) -> Vec<(&'static str, &str)> {
    let params = &message["params"];
    let mut names = ["name", "uri", "taskId"].into_iter();
    let name = names.find_map(|name| params[name].as_str());
    let method = message["method"].as_str();
    let headers = [("mcp-method", method), ("mcp-name", name)];
    let sent = headers
        .into_iter()
        .filter_map(|(header, value)| Some((header, value?)));
    sent.collect()
}

/// `params` with the `_meta` of a modern request of a client with these capabilities. Other members
/// of `_meta` stay.
pub fn with_modern_meta(mut params: Value, capabilities: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    let client = &mut params["_meta"]["io.modelcontextprotocol/clientInfo"];
    if client.is_null() {
        *client = json!({ "name": "by-hand", "version": "1" });
    }
    params
}

/// The capabilities of a client whose only feature is tasks of V2.
pub fn tasks_only() -> Value {
    json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } })
}
