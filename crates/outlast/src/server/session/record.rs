//! A session as it is stored: who the client is, whose session it is, when it was used last.

use std::sync::Arc;

use outlast_engine::store::{Record, RecordKey};
use outlast_engine::{Owner, TaskId};
use outlast_wire::Timestamp;
use serde::{Deserialize, Serialize};

use super::preferences::Wishes;
use super::{Session, SessionId};
use crate::server::Peer;

/// What is stored of a session besides its key and its owner.
#[derive(Serialize, Deserialize)]
struct Stored<P> {
    peer: P,
    /// The endpoint at which it began, where several share a store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    endpoint: Option<Arc<str>>,
    /// What the client wants to hold for the session.
    #[serde(flatten)]
    wishes: Wishes,
    /// When it was used last, in milliseconds since 1970. Records of the first version have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    used: Option<u64>,
    /// Whose number of sessions it adds to, if that is not its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counts_for: Option<String>,
    /// The tasks that were made in it and may be open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    made_tasks: Vec<String>,
}

/// A session that was read from the store.
pub(super) struct StoredSession {
    pub(super) peer: Peer,
    pub(super) endpoint: Option<Arc<str>>,
    pub(super) wishes: Wishes,
    pub(super) used: Option<Timestamp>,
    pub(super) counts_for: Option<Owner>,
    pub(super) made_tasks: Vec<TaskId>,
}

/// The key of the record of a session.
pub(super) fn key(id: &SessionId) -> RecordKey {
    RecordKey::new(KIND, id.as_str())
}

/// The record of a session that was used at `used`. It does not expire: a sweep removes idle sessions.
pub(super) fn record(
    session: &Session,
    peer: &Peer,
    used: Timestamp,
    counts_for: &Owner,
) -> Record {
    let made_tasks = session.made_tasks.all();
    let is_owner = *counts_for == session.owner;
    let stored = Stored {
        peer,
        endpoint: session.front.service.only_runner(),
        wishes: session.wishes(),
        used: Some(used.0),
        counts_for: (!is_owner).then(|| counts_for.to_storage().into_owned()),
        made_tasks: made_tasks.iter().map(TaskId::to_string).collect(),
    };
    let bytes = serde_json::to_vec(&stored).expect("strings, numbers and JSON are JSON");
    Record {
        key: key(&session.id),
        owner: Some(session.owner.clone()),
        expires: None,
        bytes: bytes.into(),
    }
}

/// The session that a record holds, if the record is readable.
pub(super) fn read(record: &Record) -> Option<StoredSession> {
    let stored: Stored<Peer> = serde_json::from_slice(&record.bytes).ok()?;
    let made_tasks = stored.made_tasks.iter().filter_map(|id| id.parse().ok());
    Some(StoredSession {
        peer: stored.peer,
        endpoint: stored.endpoint,
        wishes: stored.wishes,
        used: stored.used.map(Timestamp),
        counts_for: stored.counts_for.and_then(|owner| owner.parse().ok()),
        made_tasks: made_tasks.collect(),
    })
}

pub(super) const KIND: &str = "session";
