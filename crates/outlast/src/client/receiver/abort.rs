//! Why the request of a hosted task is aborted, for the client handler (S0-62).

use std::collections::HashMap;
use std::sync::Arc;

use outlast_engine::TaskId;
use parking_lot::Mutex;

use crate::client::handler::{ClientHandler, ServerInputRequest, TASK_EXPIRED};

/// The hosted tasks whose handler runs now, each with the reason for which it is aborted.
#[derive(Clone, Default)]
pub(in crate::client) struct AbortReasons(Arc<Mutex<HashMap<TaskId, &'static str>>>);

impl AbortReasons {
    /// Records why the task is about to be aborted. A task whose handler does not run needs none.
    pub(in crate::client) fn set(&self, task: TaskId, reason: &'static str) {
        if let Some(current) = self.0.lock().get_mut(&task) {
            *current = reason;
        }
    }

    /// The handler is asked for `task` from now on.
    pub(super) fn begin(
        &self,
        task: TaskId,
        handler: Arc<dyn ClientHandler>,
        request: Arc<ServerInputRequest>,
    ) -> Pending {
        // Only the end of the TTL ends a task without a reason.
        self.0.lock().insert(task, TASK_EXPIRED);
        Pending {
            reasons: self.clone(),
            task,
            handler,
            request,
            is_answered: false,
        }
    }
}

/// A request that the handler has not answered. Dropping it reports the abort to the handler.
pub(super) struct Pending {
    reasons: AbortReasons,
    task: TaskId,
    handler: Arc<dyn ClientHandler>,
    request: Arc<ServerInputRequest>,
    is_answered: bool,
}

impl Pending {
    pub(super) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let reason = self.reasons.0.lock().remove(&self.task);
        if let Some(reason) = reason.filter(|_| !self.is_answered) {
            self.handler.task_aborted(&self.request, reason);
        }
    }
}
