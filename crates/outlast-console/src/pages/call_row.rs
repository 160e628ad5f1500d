//! A call of the viewer as the pages show it.

use std::time::{SystemTime, UNIX_EPOCH};

use outlast::wire::{RawRef, Status};
use outlast_wire::object;
use serde::Serialize;

use super::json_text::{as_optional_value, as_value, pretty};
use crate::format;
use crate::status_text::readable;
use crate::workspace::{CallOutcome, CallView, Placement};

/// A call of the viewer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallRow {
    pub(crate) id: u64,
    pub(crate) server: String,
    pub(crate) source: String,
    pub(crate) tool: String,
    pub(crate) status: &'static str,
    #[serde(skip)]
    pub(crate) label: &'static str,
    pub(crate) message: Option<String>,
    pub(crate) progress: Option<f64>,
    pub(crate) total: Option<f64>,
    pub(crate) revision: u64,
    pub(crate) task: Option<String>,
    pub(crate) is_inline: bool,
    pub(crate) is_open: bool,
    pub(crate) is_cancelling: bool,
    pub(crate) is_expiring: bool,
    pub(crate) began_ms: u64,
    /// How long it ran, if it has ended.
    pub(crate) took: Option<String>,
    /// When the task expires, if that is known.
    pub(crate) expires_ms: Option<u64>,
    #[serde(serialize_with = "as_value")]
    pub(crate) arguments: String,
    /// The poll interval that the server requests, while the task is open.
    pub(crate) poll: Option<String>,
    pub(crate) immediate_response: Option<String>,
    pub(crate) output_mismatch: Option<String>,
    pub(crate) result: Vec<ResultPart>,
    #[serde(serialize_with = "as_optional_value")]
    pub(crate) raw_result: Option<String>,
}

/// A part of a result.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResultPart {
    /// What it is, for styles: `text`, `error`, `link`, `structured`, `other`.
    pub(crate) kind: &'static str,
    pub(crate) title: String,
    pub(crate) text: String,
}

impl CallRow {
    pub(crate) fn of(call: CallView) -> Self {
        let is_open = call.is_open();
        let (result, raw_result) = match &call.outcome {
            Some(CallOutcome::Result(result) | CallOutcome::ToolError(result)) => {
                (result_parts(result.borrow()), Some(pretty(result.borrow())))
            }
            Some(CallOutcome::Error(error)) => {
                (error_parts(error.borrow()), Some(pretty(error.borrow())))
            }
            _ => (Vec::new(), None),
        };
        let task = call.task.as_ref();
        let ttl_ms = task.and_then(|task| task.ttl_ms);
        let created = task.and_then(|task| task.created);
        let progress = call.progress.as_ref();
        Self {
            id: call.id.0,
            server: call.connection.server.to_string(),
            source: call.connection.source.to_string(),
            status: call.status.as_str(),
            label: label(call.status),
            progress: progress.map(|progress| progress.progress),
            total: progress.and_then(|progress| progress.total),
            revision: call.revision,
            task: task.map(|task| task.id.clone()),
            is_inline: matches!(call.placement, Placement::Inline),
            is_open,
            is_cancelling: call.is_cancelling,
            is_expiring: call.is_expiring,
            began_ms: millis(call.began),
            took: call.ended.map(|ended| {
                let took = ended.duration_since(call.began).unwrap_or_default();
                format::duration(took.as_millis() as u64)
            }),
            expires_ms: created
                .zip(ttl_ms)
                .map(|(created, ttl)| created.plus(ttl).0),
            arguments: pretty(call.arguments.borrow()),
            poll: task
                .filter(|_| is_open)
                .and_then(|task| task.poll_interval_ms)
                .map(format::interval),
            message: call.message.as_deref().map(readable),
            tool: call.tool,
            immediate_response: call.immediate_response,
            output_mismatch: call.output_mismatch,
            result,
            raw_result,
        }
    }
}

/// The status word for people.
pub(crate) fn label(status: Status) -> &'static str {
    match status {
        Status::Working => "Working",
        Status::InputRequired => "Input Required",
        Status::Completed => "Completed",
        Status::Failed => "Failed",
        Status::Cancelled => "Cancelled",
    }
}

/// Milliseconds since 1970.
pub(crate) fn millis(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis() as u64
}

/// The content blocks and the structured content of a tool result.
fn result_parts(result: RawRef<'_>) -> Vec<ResultPart> {
    let blocks = object::find(result, &["content"]).and_then(object::elements);
    let mut parts: Vec<_> = blocks.unwrap_or_default().into_iter().map(block).collect();
    if let Some(structured) = object::find(result, &["structuredContent"]) {
        parts.push(ResultPart {
            kind: "structured",
            title: "Structured content".into(),
            text: pretty(structured),
        });
    }
    parts
}

fn block(block: RawRef<'_>) -> ResultPart {
    let text = |path: &[&str]| {
        let found = object::find(block, path).and_then(RawRef::text);
        found.map(std::borrow::Cow::into_owned)
    };
    let kind = text(&["type"]).unwrap_or_default();
    match kind.as_str() {
        "text" => ResultPart {
            kind: "text",
            title: String::new(),
            text: text(&["text"]).unwrap_or_default(),
        },
        "resource_link" => ResultPart {
            kind: "link",
            title: text(&["title"])
                .or_else(|| text(&["name"]))
                .unwrap_or_else(|| "Resource".into()),
            text: text(&["uri"]).unwrap_or_default(),
        },
        "image" | "audio" => ResultPart {
            kind: "other",
            title: format!("{kind} · {}", text(&["mimeType"]).unwrap_or_default()),
            text: format!(
                "{} of base64 data; the raw result has it",
                format::bytes(text(&["data"]).unwrap_or_default().len())
            ),
        },
        "resource" => ResultPart {
            kind: "text",
            title: text(&["resource", "uri"]).unwrap_or_else(|| "Resource".into()),
            text: text(&["resource", "text"])
                .unwrap_or_else(|| "binary data; the raw result has it".into()),
        },
        _ => ResultPart {
            kind: "other",
            title: if kind.is_empty() {
                "Content".into()
            } else {
                kind
            },
            text: pretty(block),
        },
    }
}

fn error_parts(error: RawRef<'_>) -> Vec<ResultPart> {
    let message = object::find(error, &["message"]).and_then(RawRef::text);
    let code = object::find(error, &["code"]).map_or("", RawRef::as_str);
    vec![ResultPart {
        kind: "error",
        title: format!("Error {code}"),
        text: message.unwrap_or_default().into_owned(),
    }]
}
