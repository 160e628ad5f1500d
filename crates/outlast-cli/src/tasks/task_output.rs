//! Tasks of a store as JSON, and the full description of one task.

use outlast::engine::{Clock, SystemClock};
use outlast::task::Task;
use outlast::task::TimelineEvent;
use outlast_wire::v1;
use serde_json::{Value, json};

use super::task_row::{TaskRow, row};
use crate::terminal::{self, StyledLine, Tone};

/// A task in the format of V1, with its origin. `is_store_open`: whether a process has the store
/// open.
pub(super) fn task_json(task: &Task, is_store_open: bool) -> Value {
    let id = task.id.text();
    let mut shown: Value = v1::task(&task.view(&id, SystemClock.now()))
        .open()
        .unwrap_or_default();
    shown["tool"] = json!(task.origin.tool.as_deref());
    shown["owner"] = json!(task.owner.to_storage());
    shown["attempt"] = json!(task.attempt.0);
    shown["running"] = json!(is_store_open && task.state.ending().is_none());
    shown["timeline"] = task
        .timeline
        .entries
        .iter()
        .map(|entry| json!({ "at": entry.at.to_string(), "what": event_text(&entry.event) }))
        .collect();
    shown
}

/// Prints everything about one task.
pub(super) fn print_task(task: &Task, is_store_open: bool) {
    row("task", task.id.to_string());
    row("status", TaskRow::stored(task, is_store_open).status());
    row("tool", task.origin.tool.as_deref().unwrap_or("-"));
    row("owner", task.owner.to_string());
    row("attempt", task.attempt.0.to_string());
    row("created", task.created.to_string());
    row("expires", task.expires().to_string());
    if let Some(message) = &task.message {
        row("message", &**message);
    }
    if let Some(params) = &task.origin.params {
        let params: Value = params.open().unwrap_or_default();
        row("arguments", params["arguments"].to_string());
    }
    for entry in &task.timeline.entries {
        let at = StyledLine::new().tone(Tone::Muted, format_args!("  {}  ", entry.at));
        terminal::out(at.text(event_text(&entry.event)));
    }
}

fn event_text(what: &TimelineEvent) -> String {
    match what {
        TimelineEvent::Created => "created".into(),
        TimelineEvent::Claimed(attempt) => format!("taken over, attempt {}", attempt.0),
        TimelineEvent::Status(text) => format!("status: {text}"),
        TimelineEvent::ResumeStateSaved => "attached".into(),
        TimelineEvent::InputRequested(key) => format!("input requested: {key}"),
        TimelineEvent::InputProvided(key) => format!("input response: {key}"),
        TimelineEvent::InputWithdrawn(key) => format!("input request withdrawn: {key}"),
        TimelineEvent::CancelRequested => "cancel requested".into(),
        TimelineEvent::Detached => "detached".into(),
        TimelineEvent::Extended(ttl) => format!("time to live now {ttl} ms"),
        TimelineEvent::Ended => "ended".into(),
    }
}
