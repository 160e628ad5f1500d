//! Tasks as a V2 server sends them.

use crate::envelope::Id;
use crate::meta;
use crate::object::pick;
use crate::peer::{NotATask, PeerTask};
use crate::raw::{Raw, RawRef};
use crate::status::Status;
use crate::v2::input::{InputRequestEntry, read_input_requests};

/// A task with its outcome or its input requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetailedTask {
    /// The task.
    pub task: PeerTask,
    /// The payload for its status.
    pub payload: Payload,
}

/// The payload for the status of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// None: it works, was cancelled, or the peer omitted the payload.
    Nothing,
    /// Its input requests.
    InputRequests(Vec<InputRequestEntry>),
    /// Its result, not parsed.
    Result(Raw),
    /// Its error, not parsed.
    Error(Raw),
}

/// Reads the flat response that creates a task. A payload in it is ignored (V2-CREATE-3).
pub fn read_created(result: RawRef<'_>) -> Result<PeerTask, NotATask> {
    PeerTask::read(result, "ttlMs", "pollIntervalMs")
}

/// Reads a `tasks/get` result or the params of a task notification.
pub fn read_detailed(result: RawRef<'_>) -> Result<DetailedTask, NotATask> {
    let task = read_created(result)?;
    let [input_requests, outcome, error] =
        pick(result, ["inputRequests", "result", "error"]).map_err(|_| NotATask::Shape)?;
    let kept = |value: Option<RawRef<'_>>| {
        let object = value.filter(|value| value.is_object());
        object.map(RawRef::to_raw)
    };
    let payload = match task.status {
        Status::InputRequired => input_requests
            .and_then(read_input_requests)
            .map(Payload::InputRequests),
        Status::Completed => kept(outcome).map(Payload::Result),
        Status::Failed => kept(error).map(Payload::Error),
        Status::Working | Status::Cancelled => None,
    };
    Ok(DetailedTask {
        task,
        payload: payload.unwrap_or(Payload::Nothing),
    })
}

/// The listen request that notification params or a listen result belong to (V2-SUB-4).
pub fn subscription(params: RawRef<'_>) -> Option<Id> {
    Id::read(meta::value(params, meta::SUBSCRIPTION_ID)?).ok()
}
