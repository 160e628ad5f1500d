//! Tasks at servers as text and as JSON.

use outlast::wire::PeerTask;
use serde_json::{Value, json};

pub(super) fn list(tasks: &[PeerTask]) -> Value {
    tasks.iter().map(one).collect()
}

/// A task as V1 writes it; what the server did not say is left out.
pub(super) fn one(task: &PeerTask) -> Value {
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

pub(super) fn print_table(tasks: &[PeerTask]) {
    if tasks.is_empty() {
        eprintln!("you have no tasks at this server; `outlast call --detach` makes some");
        return;
    }
    println!(
        "{:<36}  {:<14}  {:<24}  MESSAGE",
        "TASK", "STATUS", "CREATED"
    );
    for task in tasks {
        let created = task.created.map(|at| at.to_string()).unwrap_or_default();
        let message = task.message.as_deref().unwrap_or_default();
        println!(
            "{:<36}  {:<14}  {created:<24}  {message}",
            task.id,
            task.status.to_string()
        );
    }
}

/// One line about a task.
pub(super) fn line(task: &PeerTask) -> String {
    let message = task
        .message
        .as_deref()
        .map(|message| format!("  {message}"));
    format!(
        "{}  {}{}",
        task.id,
        task.status,
        message.unwrap_or_default()
    )
}

pub(super) fn print_one(task: &PeerTask) {
    let row = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            println!("{name:<9}{value}");
        }
    };
    row("task", Some(task.id.clone()));
    row("status", Some(task.status.to_string()));
    row("message", task.message.clone());
    row("created", task.created.map(|at| at.to_string()));
    row("updated", task.updated.map(|at| at.to_string()));
    row(
        "kept",
        task.ttl_ms
            .map(|ttl| format!("{} s from its creation", ttl / 1_000)),
    );
}
