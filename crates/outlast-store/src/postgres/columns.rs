//! Tasks and records as JSON objects whose members are columns.

use std::borrow::Cow;

use outlast_engine::store::{Record, RecordKey, RecordWrite};
use outlast_engine::{NodeId, Owner, Task};
use outlast_wire::Raw;
use serde::Serialize;

use super::text::encode;
use crate::encoding;

/// The columns that an insert writes.
#[derive(Serialize)]
pub(super) struct TaskColumns<'a> {
    #[serde(flatten)]
    state: StateColumns<'a>,
    owner: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_key: Option<Cow<'a, str>>,
    created: i64,
    method: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<Cow<'a, str>>,
    runner: Cow<'a, str>,
    accepts: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a str>,
}

/// The columns that change with the state.
#[derive(Serialize)]
pub(super) struct StateColumns<'a> {
    id: String,
    state: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Cow<'a, str>>,
    updated: i64,
    ttl: i64,
    due: i64,
    poll_interval: u32,
    revision: u32,
    attempt: u32,
    executor: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<i64>,
    ended: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
}

/// A record to write, or only its key if it is deleted.
#[derive(Serialize)]
pub(super) struct RecordColumns<'a> {
    kind: Cow<'a, str>,
    key: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
}

impl<'a> TaskColumns<'a> {
    pub(super) fn of(task: &'a Task, body: Option<&'a Raw>) -> Self {
        let origin = &task.origin;
        Self {
            state: StateColumns::of(task, body),
            owner: owner(&task.owner),
            request_key: task.request_key.as_deref().map(encode),
            created: bounded(task.created.0),
            method: encode(&origin.method),
            tool: origin.tool.as_deref().map(encode),
            runner: encode(&origin.runner),
            accepts: origin.accepts.bits(),
            retry: encoding::text::retry(origin.retry),
            progress_token: origin.progress_token.as_ref().map(Raw::as_str),
            params: origin.params.as_ref().map(Raw::as_str),
        }
    }
}

impl<'a> StateColumns<'a> {
    pub(super) fn of(task: &'a Task, body: Option<&'a Raw>) -> Self {
        let ended = task.state.ending().is_some();
        let has_node = !ended && task.executor != NodeId::DETACHED;
        let executor = task.executor.0.cast_signed();
        Self {
            id: task.id.to_string(),
            state: encoding::text::state(&task.state),
            message: task.message.as_deref().map(encode),
            updated: bounded(task.updated.0),
            ttl: bounded(task.lifetime.ttl_ms),
            due: bounded(task.due().0),
            poll_interval: task.poll_interval_ms,
            revision: task.revision.0,
            attempt: task.attempt.0,
            executor,
            node: has_node.then_some(executor),
            ended,
            timeline: written(|out| encoding::text::timeline(out, task)),
            handle: task.resume_state.as_ref().map(|state| hex(&state.0)),
            details: written(|out| encoding::details::write(out, task)),
            body: body.map(Raw::as_str),
        }
    }
}

impl<'a> RecordColumns<'a> {
    pub(super) fn of(write: &'a RecordWrite) -> Self {
        match write {
            RecordWrite::Put(record) => Self::put(record),
            RecordWrite::Delete(key) => Self::key(key),
        }
    }

    pub(super) fn put(record: &'a Record) -> Self {
        Self {
            owner: record.owner.as_ref().map(owner),
            expires: record.expires.map(|at| bounded(at.0)),
            bytes: Some(hex(&record.bytes)),
            ..Self::key(&record.key)
        }
    }

    pub(super) fn key(key: &'a RecordKey) -> Self {
        Self {
            kind: encode(&key.kind),
            key: encode(&key.key),
            owner: None,
            expires: None,
            bytes: None,
        }
    }
}

/// What a JSON writer writes, or `None` if it writes nothing.
fn written(write: impl FnOnce(&mut Vec<u8>)) -> Option<String> {
    let mut out = Vec::new();
    write(&mut out);
    let out = String::from_utf8(out).expect("JSON writers make UTF-8");
    (!out.is_empty()).then(|| encode(&out).into_owned())
}

/// The text of an owner in a column.
pub(super) fn owner(owner: &Owner) -> String {
    encode(&owner.to_storage()).into_owned()
}

/// A number of milliseconds in a column. Times after the year 292 million are that year.
pub(super) fn bounded(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// Bytes as PostgreSQL writes them.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(2 + 2 * bytes.len());
    text.push_str("\\x");
    for byte in bytes {
        // A string takes every text.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
