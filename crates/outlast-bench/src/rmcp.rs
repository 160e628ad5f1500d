//! The peer: `TaskManager` of rmcp 3.8, through its public interface.
//!
//! It tells nobody when a task has ended, so the operation itself rings a bell as its last act, and the
//! caller looks once it has heard that: the cheapest way there is to wait for it.

use rmcp::model::{CallToolResult, ContentBlock, TaskStatus};
use rmcp::task_manager::{TaskManager, TaskOptions};
use tokio::sync::oneshot;

use crate::load::Life;

/// A manager whose operations end at once.
#[derive(Clone)]
pub(crate) struct Peer {
    manager: TaskManager,
}

impl Peer {
    pub(crate) fn new() -> Self {
        Self {
            manager: TaskManager::new(),
        }
    }

    pub(crate) fn spawn(&self) -> (String, oneshot::Receiver<()>) {
        let (ring, bell) = oneshot::channel();
        // Without a TTL its sweep has least to do.
        let options = TaskOptions::new().with_ttl_ms(None);
        let task = self.manager.spawn(options, |_| {
            Box::pin(async move {
                let result = result();
                let _ = ring.send(());
                Ok(result)
            })
        });
        (task.task_id, bell)
    }
}

impl Life for Peer {
    async fn live(&self) {
        let (id, bell) = self.spawn();
        bell.await.expect("it rings");
        loop {
            let found = self.manager.get_task(&id).expect("it is kept");
            if found.task.status == TaskStatus::Completed {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}

/// What every operation returns, here and there: 200 bytes and more as JSON.
pub(crate) fn result() -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(TEXT)])
}

const TEXT: &str = concat!(
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901",
    "0123456789012345678901234567890123456789012345678901234567890123456789",
);
