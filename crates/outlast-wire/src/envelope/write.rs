//! Writes messages. Ids and payloads are inserted unchanged.
//!
//! Every function returns one message without a line break, for a line transport. Line breaks of a
//! pretty-printed payload are replaced and nothing else is changed (V1-STDIO-1, V2-STDIO-1).

use std::borrow::Cow;
use std::fmt::Write as _;

use memchr::memchr2;

use crate::envelope::Id;
use crate::json::scan;
use crate::json::write::quote;
use crate::raw::RawRef;

/// A request.
pub fn request(id: &Id, method: &str, params: Option<RawRef<'_>>) -> String {
    let mut out = begin(params);
    let _ = write!(out, ",\"id\":{id}");
    call(out, method, params)
}

/// A notification.
pub fn notification(method: &str, params: Option<RawRef<'_>>) -> String {
    call(begin(params), method, params)
}

/// A response with a result.
pub fn result(id: &Id, result: RawRef<'_>) -> String {
    let mut out = begin(Some(result));
    let _ = write!(out, ",\"id\":{id},\"result\":");
    end(out, result)
}

/// A response with the result that `write` appends. It must be one JSON value without a line break,
/// because it is not checked.
pub fn result_with(id: &Id, write: impl FnOnce(&mut String)) -> String {
    let mut out = String::with_capacity(CAPACITY_BYTES);
    out.push_str(BEGIN);
    let _ = write!(out, ",\"id\":{id},\"result\":");
    write(&mut out);
    out.push('}');
    debug_assert!(scan::is_value(&out), "a writer made invalid JSON: {out}");
    out
}

/// A response with an error. Without a readable id the member is omitted: both schemas make it
/// optional there and do not allow null (V1-BASE-3).
pub fn error(id: Option<&Id>, error: RawRef<'_>) -> String {
    let mut out = begin(Some(error));
    if let Some(id) = id {
        let _ = write!(out, ",\"id\":{id}");
    }
    out.push_str(",\"error\":");
    end(out, error)
}

/// Returns `json` on one line. A line break in valid JSON is only white space between tokens, so a
/// space has the same meaning.
pub fn to_line(json: RawRef<'_>) -> Cow<'_, str> {
    let text = json.as_str();
    match memchr2(b'\n', b'\r', text.as_bytes()) {
        Some(_) => Cow::Owned(text.replace(['\n', '\r'], " ")),
        None => Cow::Borrowed(text),
    }
}

fn begin(payload: Option<RawRef<'_>>) -> String {
    let mut out = String::with_capacity(payload.map_or(0, |payload| payload.as_str().len()) + 96);
    out.push_str(BEGIN);
    out
}

fn call(mut out: String, method: &str, params: Option<RawRef<'_>>) -> String {
    out.push_str(",\"method\":");
    quote(&mut out, method);
    let Some(params) = params else {
        out.push('}');
        return out;
    };
    out.push_str(",\"params\":");
    end(out, params)
}

fn end(mut out: String, payload: RawRef<'_>) -> String {
    out.push_str(&to_line(payload));
    out.push('}');
    out
}

const BEGIN: &str = "{\"jsonrpc\":\"2.0\"";

/// The capacity for a task in its envelope, with a short message.
const CAPACITY_BYTES: usize = 384;
