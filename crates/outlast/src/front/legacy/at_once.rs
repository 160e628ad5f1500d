//! The looks of a client that polls, answered without a stream.
//!
//! They are most of what a server hears, and there is nothing to say before their answer and nothing to cancel.
//! A task that is not found goes the way of every other request.

use outlast_wire::envelope::{Request, write};
use outlast_wire::v1;

use super::tasks::named;
use crate::front::{Reply, Session};

impl Session {
    /// The answer to `tasks/get`, and to `tasks/result` for a task that has ended, as a line.
    pub(crate) async fn at_once(&self, request: &Request<'_>) -> Option<String> {
        // Filters see every request, and only a version with tasks has these methods (V1-CAP-13).
        if !self.front.filters.is_empty() || !self.peer()?.has_tasks() {
            return None;
        }
        let reply = match &*request.method {
            v1::method::GET => {
                let id = named(request.params).ok()?;
                let task = self.front.engine.get(&self.scope(), id).await.ok()?;
                let view = |out: &mut String| v1::write_task(out, &task.view(&id.text()));
                return Some(write::result_with(&request.id, view));
            }
            v1::method::RESULT => self.ended(named(request.params).ok()?).await.ok()??,
            _ => return None,
        };
        match reply {
            Reply::Result(result) => Some(write::result(&request.id, result.borrow())),
            Reply::Error(error) => Some(write::error(Some(&request.id), error.borrow())),
            Reply::Nothing => None,
        }
    }
}
