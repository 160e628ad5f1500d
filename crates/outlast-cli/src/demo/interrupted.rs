//! The tasks that were running when the previous process ended, and how each was recovered.

use outlast::engine::{Clock, Engine, SystemClock};
use outlast::store::Snapshot;
use outlast::store::StoreUrl;
use outlast::task::{Scope, Task};
use outlast_engine::store::{Filter, Status};
use outlast_store::sqlite::SqliteReader;

use super::board::short;
use crate::exit::Failure;
use crate::terminal::{self, StyledLine, Tone, say};

/// Returns the tasks in the store that have not ended, the oldest first. Call it before the engine
/// opens the store, because the engine recovers them.
pub(super) fn find(url: &StoreUrl) -> Result<Vec<Task>, Failure> {
    let reader = match url {
        StoreUrl::Sqlite(path) => SqliteReader::open(path)?,
        StoreUrl::Memory | StoreUrl::Postgres(_) => None,
    };
    let Some(reader) = reader else {
        return Ok(Vec::new());
    };
    let now = SystemClock.now();
    let open = Filter {
        statuses: [Status::Working, Status::InputRequired]
            .into_iter()
            .collect(),
        ..Filter::default()
    };
    let mut tasks = reader.search(&open, MAX_TASKS_READ)?;
    tasks.retain(|task| !task.is_expired(now));
    tasks.reverse();
    Ok(tasks)
}

/// Prints how each of `tasks` was recovered.
pub(super) async fn print(tasks: &[Task], engine: &Engine) -> Result<(), Failure> {
    if tasks.is_empty() {
        return Ok(());
    }
    let count = match tasks.len() {
        1 => "1 task was".to_owned(),
        several => format!("{several} tasks were"),
    };
    say!("The previous process ended while {count} running:");
    for task in tasks {
        let snapshot = engine
            .get(&Scope::OwnedBy(task.owner.clone()), task.id)
            .await;
        terminal::err(row(task, snapshot.ok().as_ref()));
    }
    say!("");
    Ok(())
}

fn row(task: &Task, now: Option<&Snapshot>) -> StyledLine {
    let tool = task.origin.tool.as_deref().unwrap_or("-");
    let id = short(&task.id.to_string());
    let (tone, what) = match now {
        Some(Snapshot::Open(now)) if now.attempt != task.attempt => (
            Tone::Success,
            "runs again: the tool is read-only, so this is safe",
        ),
        Some(Snapshot::Open(_)) => (Tone::Success, "continues"),
        Some(Snapshot::Ended(_)) => (
            Tone::Warning,
            "not run again: outcome unknown, it may have had effects",
        ),
        None => (Tone::Muted, "has expired"),
    };
    let name = StyledLine::new()
        .text("  ")
        .tone(Tone::Strong, format_args!("{tool:<10}"));
    name.tone(Tone::Muted, format_args!(" {id}  "))
        .tone(tone, what)
}

/// How many of the newest tasks are read.
const MAX_TASKS_READ: usize = 1_000;
