//! Error codes of both generations, and the errors with a fixed text.

use crate::envelope::{ErrorObject, ErrorView};
use crate::json::write::{ObjectWriter, quoted};
use crate::object;
use crate::raw::{Raw, RawRef};

/// The text is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is not a valid request, or not allowed in this state.
pub const INVALID_REQUEST: i64 = -32600;
/// The method does not exist here.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are invalid; also for an unknown, foreign or expired task (V1-ERR-1, V2-ERR-1).
pub const INVALID_PARAMS: i64 = -32602;
/// An internal error of the receiver.
pub const INTERNAL_ERROR: i64 = -32603;
/// V2: a header and the body disagree (V2-CODE-1).
pub const HEADER_MISMATCH: i64 = -32020;
/// V2: the request lacks a required capability (V2-CODE-1).
pub const MISSING_CAPABILITY: i64 = -32021;
/// V2: the protocol version is not supported (V2-CODE-1).
pub const UNSUPPORTED_VERSION: i64 = -32022;
/// V1: a resource is unknown. Not sent under V2 (V2-CODE-2).
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// V1: a url elicitation must be completed first (V1-ELIC-15). Not sent under V2 (V2-CODE-2).
pub const URL_ELICITATION_REQUIRED: i64 = -32042;
/// The codes that JSON-RPC reserves for servers. V1 and V2 define some of them.
pub const SERVER_ERRORS: std::ops::RangeInclusive<i64> = -32099..=-32000;
/// The user declined (V1-SAMP-4).
pub const DECLINED_BY_USER: i64 = -1;

/// -32600, with the reason.
pub fn invalid_request(reason: impl Into<String>) -> ErrorObject {
    ErrorObject::new(INVALID_REQUEST, reason)
}

/// -32601 for `method`.
pub fn method_not_found(method: &str) -> ErrorObject {
    ErrorObject::new(METHOD_NOT_FOUND, format!("method `{method}` not found"))
}

/// -32602, with the reason.
pub fn invalid_params(reason: impl Into<String>) -> ErrorObject {
    ErrorObject::new(INVALID_PARAMS, reason)
}

/// -32602 for a task that is unknown, foreign or removed: all three get the same text, so that a
/// caller does not learn which ids exist (V1-SEC-2, V2-SEC-2).
pub fn task_not_found() -> ErrorObject {
    ErrorObject::new(INVALID_PARAMS, "Task not found")
}

/// -32602 for a task that expired while a request waited for it (V1-ERR-8, A1-23).
pub fn task_expired() -> ErrorObject {
    ErrorObject::new(INVALID_PARAMS, "task expired")
}

/// -32603, with the reason.
pub fn internal(reason: impl Into<String>) -> ErrorObject {
    ErrorObject::new(INTERNAL_ERROR, reason)
}

/// The server process `pid` is stopping and did not start the request.
pub fn shutting_down(reason: impl Into<String>, pid: u32) -> ErrorObject {
    let data = format!("{{\"{SHUTTING_DOWN}\":{pid}}}");
    let data = Raw::parse(data).expect("a name and a number are JSON");
    internal(reason).with_data(data)
}

/// Whether an error is that of [`shutting_down`] with this `pid`.
pub fn is_shutting_down(error: &ErrorView<'_>, pid: u32) -> bool {
    let named = error
        .data
        .and_then(|data| object::find(data, &[SHUTTING_DOWN])?.integer());
    error.code == INTERNAL_ERROR && named == Some(pid.into())
}

/// The member of an error's `data` with the id of the stopping process.
const SHUTTING_DOWN: &str = "shuttingDown";

/// -32603 for the result of a task that was cancelled (A1-1).
pub fn task_cancelled(task: &str) -> ErrorObject {
    ErrorObject::new(INTERNAL_ERROR, "Task cancelled").with_data(Raw::written(|out| {
        let mut fields = ObjectWriter::begin(out);
        fields.text("taskId", task);
        fields.text("status", "cancelled");
        fields.end();
    }))
}

/// -32020: a header differs from the body (V2-HDR-2, V2-HH-2).
pub fn header_mismatch(reason: impl Into<String>) -> ErrorObject {
    ErrorObject::new(HEADER_MISMATCH, reason)
}

/// -32021 with the capabilities in `required`, an object in the form of client capabilities
/// (V2-META-5).
pub fn missing_capability(reason: impl Into<String>, required: RawRef<'_>) -> ErrorObject {
    ErrorObject::new(MISSING_CAPABILITY, reason).with_data(Raw::written(|out| {
        let mut fields = ObjectWriter::begin(out);
        fields.json("requiredCapabilities", required.as_str());
        fields.end();
    }))
}

/// -32022 with the supported and the requested version (V2-VER-1).
pub fn unsupported_version(requested: &str, supported: &[&str]) -> ErrorObject {
    let message = format!("protocol version {} is not supported", quoted(requested));
    ErrorObject::new(UNSUPPORTED_VERSION, message).with_data(Raw::written(|out| {
        let mut fields = ObjectWriter::begin(out);
        fields.texts("supported", supported);
        fields.text("requested", requested);
        fields.end();
    }))
}

/// -32042 with an array of the url elicitations that must be completed first (V1-ELIC-15, A1-34).
pub fn url_elicitation_required(
    reason: impl Into<String>,
    elicitations: RawRef<'_>,
) -> ErrorObject {
    ErrorObject::new(URL_ELICITATION_REQUIRED, reason).with_data(Raw::written(|out| {
        let mut fields = ObjectWriter::begin(out);
        fields.json("elicitations", elicitations.as_str());
        fields.end();
    }))
}

/// Returns the code to send under V2 for `code`: V2 forbids two older codes (V2-CODE-2, BR-IN-11).
pub fn for_modern(code: i64) -> i64 {
    match code {
        RESOURCE_NOT_FOUND => INVALID_PARAMS,
        URL_ELICITATION_REQUIRED => INTERNAL_ERROR,
        other => other,
    }
}
