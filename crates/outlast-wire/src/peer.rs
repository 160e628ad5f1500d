//! A task as another implementation tells it, read with tolerance.
//!
//! Peers leave out what is required, send fractions where integers belong and add members of their
//! own. Only what makes a task usable is insisted on: its id and a status word that is known.

use crate::neutral::MAX_SAFE_INTEGER;
use crate::object::pick;
use crate::raw::RawRef;
use crate::status::{Status, UnknownStatus};
use crate::time::Timestamp;

/// A task hosted by a peer, of either generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerTask {
    /// Its id, opaque to us.
    pub id: String,
    /// Its status.
    pub status: Status,
    /// Its status message.
    pub message: Option<String>,
    /// When the peer says it was created, if it says so legibly.
    pub created: Option<Timestamp>,
    /// When the peer says it last changed, if it says so legibly.
    pub updated: Option<Timestamp>,
    /// Its lifetime from creation; `None` where it is unlimited, unsaid or nonsense.
    pub ttl_ms: Option<u64>,
    /// How often the peer wants to be asked.
    pub poll_interval_ms: Option<u64>,
}

/// What the peer sent is not a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotATask {
    /// It is not an object.
    #[error("task is not an object")]
    Shape,
    /// It has no string `taskId`.
    #[error("task without a string `taskId`")]
    Id,
    /// It has no string `status`.
    #[error("task without a string `status`")]
    Status,
    /// Its status is none of the five.
    #[error(transparent)]
    Unknown(#[from] UnknownStatus),
}

impl PeerTask {
    /// Reads the members both generations share; `ttl` and `interval` name the two that differ.
    pub(crate) fn read(task: RawRef<'_>, ttl: &str, interval: &str) -> Result<Self, NotATask> {
        let [id, status, message, created, updated, ttl, interval] = pick(
            task,
            [
                "taskId",
                "status",
                "statusMessage",
                "createdAt",
                "lastUpdatedAt",
                ttl,
                interval,
            ],
        )
        .map_err(|_| NotATask::Shape)?;
        let text = |value: Option<RawRef<'_>>| Some(value?.text()?.into_owned());
        let moment = |value: Option<RawRef<'_>>| value?.text()?.parse().ok();
        Ok(Self {
            id: text(id).ok_or(NotATask::Id)?,
            status: text(status).ok_or(NotATask::Status)?.parse()?,
            message: text(message),
            created: moment(created),
            updated: moment(updated),
            ttl_ms: ttl.and_then(millis),
            poll_interval_ms: interval.and_then(millis),
        })
    }
}

/// A duration: fractions are rounded up, what no integer holds is cut to the largest safe one;
/// `None` if it is negative or not a number (A1-11).
pub(crate) fn millis(value: RawRef<'_>) -> Option<u64> {
    let number = value.number().filter(|number| *number >= 0.0)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and the cast saturates"
    )]
    let whole = number.ceil() as u64;
    Some(whole.min(MAX_SAFE_INTEGER))
}
