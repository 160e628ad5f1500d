//! What an engine's refusal is in JSON-RPC. The only place where the two meet.

use outlast_engine::StoreError;
use outlast_engine::engine::EngineError;
use outlast_engine::transition::Refused;
use outlast_wire::codes::{internal, invalid_params, task_expired, task_not_found};
use outlast_wire::envelope::ErrorObject;

/// The error object for `error`.
pub(crate) fn to_wire(error: &EngineError) -> ErrorObject {
    match error {
        EngineError::NotFound => task_not_found(),
        EngineError::Expired => task_expired(),
        // V1-CANCEL-1, V1-ERR-3.
        EngineError::Refused(Refused::AlreadyEnded) => invalid_params("the task has already ended"),
        EngineError::Refused(Refused::Expired) => task_expired(),
        EngineError::BadCursor => invalid_params("invalid cursor"),
        EngineError::TooLarge { .. } | EngineError::KeyConflict(_) => {
            invalid_params(error.to_string())
        }
        EngineError::Store(StoreError::Starting) => internal(error.to_string()),
        // V1-ERR-4, S2-58: limits, a store that is down, an engine that closes.
        _ => {
            tracing::warn!(%error, "a request is refused");
            internal(error.to_string())
        }
    }
}
