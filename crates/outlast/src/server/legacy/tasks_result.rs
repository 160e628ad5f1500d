//! `tasks/result`: the outcome if the task has ended, else a stream that carries its input requests
//! until it ends.

use outlast_engine::engine::{EndedTask, EngineError, OutcomeOrWait};
use outlast_engine::store::Snapshot;
use outlast_engine::{Ending, TaskId};
use outlast_wire::{RawRef, codes, v1};

use super::LegacyRequest;
use super::tasks::parse_task_id;
use crate::engine_errors::to_wire;
use crate::server::{Reply, audit};

impl LegacyRequest<'_> {
    /// Waits for one request. Cancelling that request drops this future and nothing else
    /// (V1-CANCEL-11).
    pub(super) async fn task_result(self, params: Option<RawRef<'_>>) -> Reply {
        let session = self.session;
        let task = match parse_task_id(params) {
            Ok(task) => task,
            Err(error) => return Reply::from(error),
        };
        let engine = &session.server.engine;
        let wait = match engine.outcome_or_wait(&session.scope(), task).await {
            Ok(OutcomeOrWait::Ended(settled)) => {
                audit::retrieved(&session.owner, task);
                return outcome(task, Ok(settled));
            }
            Ok(OutcomeOrWait::Open(wait)) => wait,
            Err(error) => return self.error_reply(v1::method::RESULT, &error),
        };
        let stream = self.stream.prime();
        // From here on the input requests of a task from before a restart are delivered.
        session.server.follow(session, task);
        let _wait = stream.map(|stream| {
            session
                .input_requests
                .wait_on(&session.streams, task, stream)
        });
        let settled = wait.settled().await;
        // The client may disconnect as soon as it has the result, so the status notification comes
        // first.
        if let Ok(settled) = &settled {
            audit::retrieved(&session.owner, task);
            session.publish_status(&Snapshot::Ended(settled.summary.clone()));
        }
        outcome(task, settled)
    }
}

/// The reply that the underlying request would have had, with the related task (V1-RES-3 to
/// V1-RES-6, V1-RES-13).
fn outcome(task: TaskId, settled: Result<EndedTask, EngineError>) -> Reply {
    let settled = match settled {
        Ok(settled) => settled,
        Err(error) => return Reply::from(to_wire(&error)),
    };
    match (settled.summary.ending, settled.body) {
        (Ending::Result | Ending::ToolError, Some(body)) => {
            match v1::payload_result(body.borrow(), task.text().as_str()) {
                Ok(result) => Reply::Result(result),
                Err(_) => Reply::from(codes::internal("the result is not an object")),
            }
        }
        // V1-RES-4, V1-RES-13: the same error, without `_meta`.
        (Ending::Error(_), Some(error)) => Reply::Error(error),
        // A1-1.
        (Ending::Cancelled, _) => Reply::from(codes::task_cancelled(task.text().as_str())),
        // It expired between the two reads.
        (_, None) => Reply::from(to_wire(&EngineError::Expired)),
    }
}
