//! Progress of tasks that waits for the writer: of each task only the newest.

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_engine::engine::Progress;
use outlast_engine::{NodeId, TaskId};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Progress that the writer takes.
#[derive(Debug, Default)]
pub(super) struct PendingProgress(Mutex<BTreeMap<TaskId, (NodeId, Progress)>>);

/// The text of progress in a column.
#[derive(Deserialize, Serialize)]
struct ProgressText {
    done: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Arc<str>>,
}

impl PendingProgress {
    /// Adds progress. Returns whether there was none, so that the writer must be notified.
    pub(super) fn add(&self, node: NodeId, id: TaskId, progress: &Progress) -> bool {
        let mut pending = self.0.lock();
        let first = pending.is_empty();
        pending.insert(id, (node, progress.clone()));
        first
    }

    pub(super) fn take(&self) -> Vec<(TaskId, NodeId, String)> {
        let pending = std::mem::take(&mut *self.0.lock());
        let texts = pending.into_iter().filter_map(|(id, (node, progress))| {
            let text = ProgressText {
                done: progress.done,
                total: progress.total,
                message: progress.message,
            };
            Some((id, node, serde_json::to_string(&text).ok()?))
        });
        texts.collect()
    }
}

/// Progress from its text.
pub(super) fn read(text: &str) -> Option<Progress> {
    let text: ProgressText = serde_json::from_str(text).ok()?;
    Some(Progress {
        done: text.done,
        total: text.total,
        message: text.message,
    })
}
