//! The V2 task members and the response that creates a task.

use crate::json::write::ObjectWriter;
use crate::neutral::{Ending, MAX_SAFE_INTEGER, Phase, TaskView};
use crate::raw::Raw;
use crate::status::Status;

/// The status of a phase: a tool result with `isError` is a result (V2-LIFE-3), and only a JSON-RPC
/// error is a failure (V2-LIFE-2).
pub fn status(phase: Phase) -> Status {
    match phase {
        Phase::Working => Status::Working,
        Phase::AwaitingInput => Status::InputRequired,
        Phase::Ended(Ending::Result | Ending::ToolError) => Status::Completed,
        Phase::Ended(Ending::Error) => Status::Failed,
        Phase::Ended(Ending::Cancelled) => Status::Cancelled,
    }
}

/// The response to a call that became a task. The members of the task are members of the result
/// itself (V2-CREATE-2). It has no outcome and no input requests, even if the task already has them
/// (V2-CREATE-3).
pub fn create_result(view: &TaskView<'_>) -> Raw {
    Raw::written(|out| {
        let mut fields = ObjectWriter::begin(out);
        fields.text("resultType", "task");
        write_fields(&mut fields, view);
        fields.end();
    })
}

/// Writes the task members, next to any others of the object.
pub(super) fn write_fields(fields: &mut ObjectWriter<'_>, view: &TaskView<'_>) {
    fields.text("taskId", view.id);
    fields.text("status", status(view.phase).as_str());
    if let Some(message) = view.message {
        fields.text("statusMessage", message);
    }
    fields.timestamp("createdAt", view.created);
    fields.timestamp("lastUpdatedAt", view.updated.max(view.created));
    match view.ttl_ms {
        Some(ttl) => fields.number("ttlMs", ttl.min(MAX_SAFE_INTEGER)),
        None => fields.json("ttlMs", "null"),
    }
    if let Some(interval) = view.poll_interval_ms {
        fields.number("pollIntervalMs", interval.min(MAX_SAFE_INTEGER));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    #[test]
    fn every_phase_has_its_status() {
        for (phase, word) in [
            (Phase::Working, "working"),
            (Phase::AwaitingInput, "input_required"),
            (Phase::Ended(Ending::Result), "completed"),
            (Phase::Ended(Ending::ToolError), "completed"),
            (Phase::Ended(Ending::Error), "failed"),
            (Phase::Ended(Ending::Cancelled), "cancelled"),
        ] {
            assert_eq!(status(phase).as_str(), word);
        }
    }

    #[test]
    fn creation_is_flat_and_uses_the_new_names() {
        let view = TaskView {
            id: "t",
            phase: Phase::Working,
            message: None,
            created: Timestamp(0),
            updated: Timestamp(1),
            ttl_ms: None,
            poll_interval_ms: Some(1_500),
        };
        assert_eq!(
            create_result(&view).as_str(),
            r#"{"resultType":"task","taskId":"t","status":"working","createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.001Z","ttlMs":null,"pollIntervalMs":1500}"#
        );
    }
}
