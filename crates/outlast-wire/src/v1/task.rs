//! The V1 task: flat in get, cancel, list and notifications, nested on creation.

use crate::json::write::ObjectWriter;
use crate::meta;
use crate::neutral::{Ending, MAX_SAFE_INTEGER, Phase, TaskView};
use crate::object::pick;
use crate::peer::{NotATask, PeerTask};
use crate::raw::{Raw, RawRef};
use crate::status::Status;

/// The status of a phase: a tool result with `isError` is a failure (V1-LIFE-5).
pub fn status(phase: Phase) -> Status {
    match phase {
        Phase::Working => Status::Working,
        Phase::AwaitingInput => Status::InputRequired,
        Phase::Ended(Ending::Result) => Status::Completed,
        Phase::Ended(Ending::ToolError | Ending::Error) => Status::Failed,
        Phase::Ended(Ending::Cancelled) => Status::Cancelled,
    }
}

/// Appends the task: `tasks/get` and `tasks/cancel` results, list items, status params (V1-GET-1,
/// V1-CANCEL-7, V1-NOTIF-3).
pub fn write_task(out: &mut String, view: &TaskView<'_>) {
    let mut fields = ObjectWriter::begin(out);
    fields.text("taskId", view.id);
    fields.text("status", status(view.phase).as_str());
    if let Some(message) = view.message {
        fields.text("statusMessage", message);
    }
    fields.timestamp("createdAt", view.created);
    // V1-LIFE-9: never before the creation.
    fields.timestamp("lastUpdatedAt", view.updated.max(view.created));
    match view.ttl_ms {
        Some(ttl) => fields.number("ttl", ttl.min(MAX_SAFE_INTEGER)),
        // V1-TTL-4: unlimited is written as null, not omitted.
        None => fields.json("ttl", "null"),
    }
    if let Some(interval) = view.poll_interval_ms {
        fields.number("pollInterval", interval.min(MAX_SAFE_INTEGER));
    }
    fields.end();
}

/// The task as JSON.
pub fn task(view: &TaskView<'_>) -> Raw {
    Raw::written(|out| write_task(out, view))
}

/// The response to an augmented request (V1-CREATE-3), with a text for the model to continue with
/// (V1-CREATE-11). It has no related-task mark (A1-17).
pub fn create_result(view: &TaskView<'_>, immediate_response: Option<&str>) -> Raw {
    Raw::written(|out| {
        let mut fields = ObjectWriter::begin(out);
        fields.nested("task", |out| write_task(out, view));
        if let Some(text) = immediate_response {
            fields.nested(meta::META, |out| {
                let mut fields = ObjectWriter::begin(out);
                fields.text(meta::MODEL_IMMEDIATE_RESPONSE, text);
                fields.end();
            });
        }
        fields.end();
    })
}

/// Reads a flat task of a peer.
pub fn read_task(task: RawRef<'_>) -> Result<PeerTask, NotATask> {
    PeerTask::read(task, "ttl", "pollInterval")
}

/// Reads the response to an augmented request: a task, or `None` if the peer sent a plain result,
/// which is then final (A1-6).
pub fn read_created(result: RawRef<'_>) -> Result<Option<PeerTask>, NotATask> {
    let [task] = pick(result, ["task"]).map_err(|_| NotATask::Shape)?;
    match task.filter(|task| task.is_object()) {
        Some(task) => read_task(task).map(Some),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::UnknownStatus;
    use crate::time::Timestamp;

    #[test]
    fn every_phase_has_its_status() {
        for (phase, word) in [
            (Phase::Working, "working"),
            (Phase::AwaitingInput, "input_required"),
            (Phase::Ended(Ending::Result), "completed"),
            (Phase::Ended(Ending::ToolError), "failed"),
            (Phase::Ended(Ending::Error), "failed"),
            (Phase::Ended(Ending::Cancelled), "cancelled"),
        ] {
            assert_eq!(status(phase).as_str(), word);
        }
    }

    #[test]
    fn the_written_task_follows_the_schema_and_reads_back() {
        let view = TaskView {
            id: "t-1",
            phase: Phase::Working,
            message: Some("say \"hi\""),
            created: Timestamp(1_000),
            updated: Timestamp(500),
            ttl_ms: Some(u64::MAX),
            poll_interval_ms: Some(2_000),
        };
        assert_eq!(
            task(&view).as_str(),
            r#"{"taskId":"t-1","status":"working","statusMessage":"say \"hi\"","createdAt":"1970-01-01T00:00:01.000Z","lastUpdatedAt":"1970-01-01T00:00:01.000Z","ttl":9007199254740991,"pollInterval":2000}"#
        );
        let read = read_created(create_result(&view, None).borrow())
            .unwrap()
            .unwrap();
        assert_eq!(read.id, "t-1");
        assert_eq!(read.created, Some(Timestamp(1_000)));
        assert_eq!(read.poll_interval_ms, Some(2_000));
    }

    #[test]
    fn an_incomplete_task_of_a_peer_is_read() {
        let read = |text: &str| read_task(RawRef::parse(text).unwrap());
        let bare = read(r#"{"status":"failed","taskId":"t"}"#).unwrap();
        assert_eq!(
            (bare.status, bare.ttl_ms, bare.created),
            (Status::Failed, None, None)
        );
        let odd = r#"{"taskId":"t","status":"working","ttl":0.5,"pollInterval":-1,"createdAt":"soon","x":[{}]}"#;
        let odd = read(odd).unwrap();
        assert_eq!(
            (odd.ttl_ms, odd.poll_interval_ms, odd.created),
            (Some(1), None, None)
        );
        assert_eq!(
            read(r#"{"taskId":1,"status":"working"}"#),
            Err(NotATask::Id)
        );
        assert_eq!(read(r#"{"taskId":"t"}"#), Err(NotATask::Status));
        assert_eq!(
            read(r#"{"taskId":"t","status":"submitted"}"#),
            Err(UnknownStatus("submitted".into()).into())
        );
    }

    /// A1-6.
    #[test]
    fn a_plain_result_to_an_augmented_call_is_final() {
        let plain = RawRef::parse(r#"{"content":[]}"#).unwrap();
        assert_eq!(read_created(plain), Ok(None));
    }
}
