//! Tasks at servers as JSON, and the full description of one task.

use outlast::wire::PeerTask;
use serde_json::{Value, json};

use crate::tasks::{TaskRow, row};

pub(super) fn list(tasks: &[PeerTask]) -> Value {
    tasks.iter().map(task_json).collect()
}

/// A task in the format of V1. Members that the server did not send are left out.
pub(super) fn task_json(task: &PeerTask) -> Value {
    let mut shown =
        json!({ "taskId": task.id, "status": task.status.to_string(), "ttl": task.ttl_ms });
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            shown[name] = value;
        }
    };
    add("statusMessage", task.message.clone().map(Value::from));
    add("createdAt", task.created.map(|at| at.to_string().into()));
    add(
        "lastUpdatedAt",
        task.updated.map(|at| at.to_string().into()),
    );
    add("pollInterval", task.poll_interval_ms.map(Value::from));
    shown
}

pub(super) fn print_task(task: &PeerTask) {
    let add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            row(name, value);
        }
    };
    add("task", Some(task.id.clone()));
    row("status", TaskRow::remote(task).status());
    add("message", task.message.clone());
    add("created", task.created.map(|at| at.to_string()));
    add("updated", task.updated.map(|at| at.to_string()));
    add(
        "kept",
        task.ttl_ms
            .map(|ttl| format!("{} s from its creation", ttl / 1_000)),
    );
}
