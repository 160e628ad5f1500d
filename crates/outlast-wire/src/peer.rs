//! A task as another implementation sends it, parsed leniently.
//!
//! Peers omit required members, send fractions instead of integers and add their own members. Only
//! the id and a known status are required.

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
    /// When it was created, if the peer sends a valid timestamp.
    pub created: Option<Timestamp>,
    /// When it last changed, if the peer sends a valid timestamp.
    pub updated: Option<Timestamp>,
    /// The time from creation to expiry. `None` if it is unlimited, absent or invalid.
    pub ttl_ms: Option<u64>,
    /// The poll interval that the peer requests.
    pub poll_interval_ms: Option<u64>,
}

/// Why a value is not a task.
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
    /// Its status is unknown.
    #[error(transparent)]
    Unknown(#[from] UnknownStatus),
}

impl PeerTask {
    /// Reads the members that both generations share. `ttl` and `interval` are the names of the two
    /// that differ.
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

/// Reads a duration. Fractions are rounded up, and larger values are cut to the largest safe
/// integer. `None` if it is negative or not a number (A1-11).
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
