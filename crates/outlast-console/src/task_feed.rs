//! Sends the changes of tasks to the open pages, as `mcpTaskStatus` events.
//!
//! Changes of one task within [`COALESCE_TIME`] become one event with its newest revision. The feed
//! runs only while a page is open.

use std::collections::HashSet;
use std::time::Duration;

use outlast_engine::engine::Change;
use outlast_engine::{EngineError, Scope, TaskId};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout};

use crate::console::App;
use crate::events::Audience;
use crate::task_row::TaskRow;

/// Whether the feed runs.
#[derive(Debug, Default)]
pub(crate) struct TaskFeed {
    is_running: Mutex<bool>,
}

impl TaskFeed {
    /// Starts the feed, unless it runs. Called after a page has subscribed.
    pub(crate) fn start(&self, app: &App) {
        let mut is_running = self.is_running.lock();
        if !*is_running {
            *is_running = true;
            tokio::spawn(run(app.clone()));
        }
    }

    /// Whether the feed ends, because no page is open.
    fn ends(&self, app: &App) -> bool {
        let mut is_running = self.is_running.lock();
        *is_running = app.events().has_readers();
        !*is_running
    }
}

async fn run(app: App) {
    let mut changes = app.engine().changes();
    loop {
        let Ok(first) = timeout(IDLE_CHECK_INTERVAL, changes.next()).await else {
            if app.feed().ends(&app) {
                return;
            }
            continue;
        };
        let mut changed = HashSet::new();
        let mut is_incomplete = false;
        let mut record = |change| match change {
            Change::Task(id) | Change::Progress(id, _) => {
                changed.insert(id);
            }
            _ => is_incomplete = true,
        };
        record(first);
        let end = Instant::now() + COALESCE_TIME;
        loop {
            tokio::select! {
                () = sleep_until(end) => break,
                change = changes.next() => record(change),
            }
        }
        if is_incomplete || changed.len() > MAX_BATCH_TASKS {
            app.events().resync();
            continue;
        }
        for id in changed {
            publish(&app, id).await;
        }
        if app.feed().ends(&app) {
            return;
        }
    }
}

async fn publish(app: &App, id: TaskId) {
    match app.engine().get(&Scope::AnyTask, id).await {
        Ok(task) => {
            let audience = Audience::Owner(task.owner().clone());
            let row = TaskRow::of(app.engine(), &task);
            app.events().publish(audience, "mcpTaskStatus", &row);
        }
        // A call that is not a task also reports progress, and no page shows it.
        Err(EngineError::NotFound | EngineError::Expired) => {
            let removed = json!({ "taskId": id.to_string() });
            app.events()
                .publish(Audience::Operators, "taskRemoved", &removed);
        }
        Err(_) => app.events().resync(),
    }
}

/// How long changes are collected.
const COALESCE_TIME: Duration = Duration::from_millis(100);

/// Above this number of changed tasks, pages load their data again instead.
const MAX_BATCH_TASKS: usize = 500;

const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(30);
