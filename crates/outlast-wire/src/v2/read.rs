//! Tasks as a V2 server tells them.

use crate::envelope::Id;
use crate::meta;
use crate::object::pick;
use crate::peer::{NotATask, PeerTask};
use crate::raw::{Raw, RawRef};
use crate::status::Status;
use crate::v2::ask::{Ask, read_asks};

/// A task with what came of it, or what it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetailedTask {
    /// The task.
    pub task: PeerTask,
    /// What its status brings along.
    pub payload: Payload,
}

/// What the status of a task brings along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Nothing: it works, was cancelled, or the peer left out what belongs there.
    Nothing,
    /// Its questions.
    Asks(Vec<Ask>),
    /// Its result, unopened.
    Result(Raw),
    /// Its error, unopened.
    Error(Raw),
}

/// Reads the flat answer that hands out a task. A payload in it is ignored (V2-CREATE-3).
pub fn read_created(result: RawRef<'_>) -> Result<PeerTask, NotATask> {
    PeerTask::read(result, "ttlMs", "pollIntervalMs")
}

/// Reads a `tasks/get` result or the params of a task notification.
pub fn read_detailed(result: RawRef<'_>) -> Result<DetailedTask, NotATask> {
    let task = read_created(result)?;
    let [asks, outcome, error] =
        pick(result, ["inputRequests", "result", "error"]).map_err(|_| NotATask::Shape)?;
    let kept = |value: Option<RawRef<'_>>| {
        let object = value.filter(|value| value.is_object());
        object.map(RawRef::to_raw)
    };
    let payload = match task.status {
        Status::InputRequired => asks.and_then(read_asks).map(Payload::Asks),
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
