//! The mapping from engine errors to JSON-RPC errors.

use outlast_engine::engine::EngineError;
use outlast_engine::transition::Refused;
use outlast_engine::{Engine, Scope, StoreError, TaskId};
use outlast_wire::codes::{internal, invalid_params, shutting_down, task_expired, task_not_found};
use outlast_wire::envelope::ErrorObject;
use outlast_wire::v1;

use crate::log_limit::LogLimit;

static REJECTIONS: LogLimit = LogLimit::new();

/// The error object for `error`.
pub(crate) fn to_wire(error: &EngineError) -> ErrorObject {
    match error {
        EngineError::NotFound => task_not_found(),
        EngineError::Expired => task_expired(),
        // V1-CANCEL-1, V1-ERR-3.
        EngineError::Refused(Refused::AlreadyEnded(_) | Refused::CallEnded) => {
            invalid_params(error.to_string())
        }
        EngineError::Refused(Refused::Expired) => task_expired(),
        EngineError::BadCursor => invalid_params("invalid cursor"),
        EngineError::TooLarge { .. } | EngineError::KeyConflict(_) => {
            invalid_params(error.to_string())
        }
        EngineError::Store(StoreError::Starting) => internal(error.to_string()),
        EngineError::Closing => shutting_down(error.to_string(), std::process::id()),
        // V1-ERR-4, S2-58: limits, an unavailable store.
        _ => {
            REJECTIONS.log(|left_out| tracing::warn!(%error, left_out, "rejected a request"));
            internal(error.to_string())
        }
    }
}

/// The error of a rejected `tasks/cancel`. It names the status of a task that has ended (S0-60,
/// V1-CANCEL-1).
pub(crate) async fn cancel_to_wire(
    engine: &Engine,
    scope: &Scope,
    id: TaskId,
    error: &EngineError,
) -> ErrorObject {
    if !matches!(error, EngineError::Refused(Refused::AlreadyEnded(_))) {
        return to_wire(error);
    }
    match engine.get(scope, id).await {
        Ok(task) => {
            let text = id.text();
            let status = v1::status(task.view(&text, engine.now()).phase);
            invalid_params(format!(
                "Cannot cancel task: already in terminal status '{status}'"
            ))
        }
        // It expired meanwhile.
        Err(error) => to_wire(&error),
    }
}
