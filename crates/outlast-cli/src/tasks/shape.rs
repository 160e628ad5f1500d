//! Tasks as text and as JSON.

use outlast::engine::task::Happening;
use outlast::engine::{Clock, SystemClock, Task};
use outlast::wire::{Timestamp, v1};
use serde_json::{Value, json};

/// A JSON array of tasks.
pub(super) fn list(tasks: &[Task]) -> Value {
    tasks.iter().map(one).collect()
}

/// A task as V1 writes it, with where it comes from.
pub(super) fn one(task: &Task) -> Value {
    let id = task.id.text();
    let mut shown: Value = v1::task(&task.view(&id, SystemClock.now()))
        .open()
        .unwrap_or_default();
    shown["tool"] = json!(task.origin.tool.as_deref());
    shown["owner"] = json!(task.owner.to_storage());
    shown["attempt"] = json!(task.attempt.0);
    shown["timeline"] = task
        .timeline
        .moments
        .iter()
        .map(|moment| json!({ "at": moment.at.to_string(), "what": word(&moment.what) }))
        .collect();
    shown
}

/// A table for people.
pub(super) fn print_table(tasks: &[Task], now: Timestamp) {
    if tasks.is_empty() {
        eprintln!("no tasks here; `outlast demo` makes some");
        return;
    }
    println!(
        "{:<26}  {:<14}  {:<12}  {:>8}  {:>8}  MESSAGE",
        "TASK", "STATUS", "TOOL", "AGE", "LEFT"
    );
    for task in tasks {
        let status = v1::status(task.phase());
        let tool = task.origin.tool.as_deref().unwrap_or("-");
        let age = length(now.since(task.created));
        let left = length(task.expires().since(now));
        let message = task.message.as_deref().unwrap_or("");
        println!(
            "{:<26}  {status:<14}  {tool:<12}  {age:>8}  {left:>8}  {message}",
            task.id
        );
    }
}

/// One line about a task.
pub(super) fn line(task: &Task) -> String {
    let status = v1::status(task.phase());
    let message = task
        .message
        .as_deref()
        .map(|message| format!("  {message}"));
    format!("{}  {status}{}", task.id, message.unwrap_or_default())
}

/// All about one task, for people.
pub(super) fn print_one(task: &Task) {
    println!("task     {}", task.id);
    println!("status   {}", v1::status(task.phase()));
    println!("tool     {}", task.origin.tool.as_deref().unwrap_or("-"));
    println!("owner    {}", task.owner);
    println!("attempt  {}", task.attempt.0);
    println!("created  {}", task.created);
    println!("expires  {}", task.expires());
    if let Some(message) = &task.message {
        println!("message  {message}");
    }
    if let Some(params) = &task.origin.params {
        println!("params   {}", params.as_str());
    }
    for moment in &task.timeline.moments {
        println!("  {}  {}", moment.at, word(&moment.what));
    }
}

fn word(what: &Happening) -> String {
    match what {
        Happening::Created => "created".into(),
        Happening::Claimed(attempt) => format!("taken over, attempt {}", attempt.0),
        Happening::Status(text) => format!("status: {text}"),
        Happening::Attached => "attached".into(),
        Happening::Asked(key) => format!("asked {key}"),
        Happening::Answered(key) => format!("answered {key}"),
        Happening::Withdrawn(key) => format!("withdrew {key}"),
        Happening::CancelRequested => "cancel requested".into(),
        Happening::Extended(ttl) => format!("time to live now {ttl} ms"),
        Happening::Ended => "ended".into(),
    }
}

fn length(millis: u64) -> String {
    match millis / 1_000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}
