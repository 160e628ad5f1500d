//! Converts responses of a server to outcomes of calls.

use outlast_engine::{ErrorCode, Outcome};
use outlast_wire::{PeerTask, Raw, codes, object, tool};

use super::error::{Error, PeerError};
use super::modern;

/// Removes `resultType` from the result of an outcome (BR-RES-2).
pub(crate) fn without_result_type(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Result(result) => Outcome::Result(modern::without_result_type(&result)),
        Outcome::ToolError(result, message) => {
            Outcome::ToolError(modern::without_result_type(&result), message)
        }
        other => other,
    }
}

impl From<PeerError> for Outcome {
    fn from(error: PeerError) -> Self {
        Self::Error(error.raw, ErrorCode(error.code), Some(error.message.into()))
    }
}

/// Whether a result is empty. Some servers send one for a cancelled or failed task (A1-1).
pub(crate) fn is_empty_result(result: &Raw) -> bool {
    let has = |name| object::find(result.borrow(), &[name]).is_some();
    !has("content") && !has("structuredContent") && !has("toolResult")
}

/// Whether an error response to `tasks/result` is about the task instead of being its outcome: it
/// names the task, or says that there is no result. The TypeScript SDK 1.x sends it for a task that
/// failed by a status update (A1-2).
pub(crate) fn has_no_result(error: &PeerError, task: &PeerTask) -> bool {
    let text = error.message.to_lowercase();
    text.contains(&task.id.to_lowercase()) || text.contains("no result")
}

/// Whether the response to a plain call says that the tool requires a task: -32601, -32600, or an
/// error result that quotes one of them, with one or two prefixes (A1-5).
pub(crate) fn requires_task(response: &Result<Raw, Error>) -> bool {
    let about_tasks = |text: &str| text.to_lowercase().contains("task");
    match response {
        Err(Error::Peer(error)) => {
            matches!(error.code, codes::METHOD_NOT_FOUND | codes::INVALID_REQUEST)
                && about_tasks(&error.message)
        }
        Ok(result) if tool::is_error(result.borrow()) => {
            let text = tool::first_text(result.borrow()).unwrap_or_default();
            let quotes = text.contains("-32601") || text.contains("-32600");
            quotes && text.starts_with("MCP error") && about_tasks(&text)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_wire::envelope::ErrorObject;

    #[test]
    fn required_tasks_are_recognized_in_several_error_forms() {
        // A1-5.
        let error = |code, text: &str| -> Result<Raw, Error> {
            Err(Error::Peer(ErrorObject::new(code, text).into()))
        };
        let result = |text: &str| -> Result<Raw, Error> {
            let block = serde_json::json!({ "type": "text", "text": text });
            let result = serde_json::json!({ "content": [block], "isError": true });
            Ok(Raw::encode(&result).unwrap())
        };
        assert!(requires_task(&error(
            -32601,
            "tool x requires task augmentation"
        )));
        assert!(requires_task(&error(
            -32600,
            "Task augmentation required for tools/call requests"
        )));
        assert!(requires_task(&result(
            "MCP error -32601: Tool x requires task augmentation (taskSupport: 'required')"
        )));
        assert!(requires_task(&result(
            "MCP error -32601: MCP error -32601: needs a task"
        )));
        assert!(!requires_task(&error(-32601, "no such method")));
        assert!(!requires_task(&error(-32602, "task not found")));
        assert!(!requires_task(&result("the task -32601 failed")));
    }
}
