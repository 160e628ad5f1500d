//! The stored record of a session: its client, its owner, its last use.

use std::sync::Arc;

use outlast_engine::store::{Record, RecordKey};
use outlast_engine::{Owner, TaskId};
use outlast_wire::Timestamp;
use serde::{Deserialize, Serialize};

use super::preferences::Preferences;
use super::{Session, SessionId};
use crate::server::ClientInfo;

/// The content of the record, apart from its key and owner.
#[derive(Serialize, Deserialize)]
struct Stored<P> {
    #[serde(rename = "peer")]
    client_info: P,
    /// The endpoint that created it, if several share a store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    endpoint: Option<Arc<str>>,
    /// Log level and subscriptions.
    #[serde(flatten)]
    preferences: Preferences,
    /// The last use in milliseconds since 1970. Records of the first version have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    used: Option<u64>,
    /// The owner whose session count it adds to, if that is not its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counts_for: Option<String>,
    /// The tasks that were created in it and may be open.
    #[serde(rename = "made_tasks", default, skip_serializing_if = "Vec::is_empty")]
    created_tasks: Vec<String>,
}

/// A session that was read from the store.
pub(super) struct StoredSession {
    pub(super) client_info: ClientInfo,
    pub(super) endpoint: Option<Arc<str>>,
    pub(super) preferences: Preferences,
    pub(super) used: Option<Timestamp>,
    pub(super) counts_for: Option<Owner>,
    pub(super) created_tasks: Vec<TaskId>,
}

/// The key of the record of a session.
pub(super) fn key(id: &SessionId) -> RecordKey {
    RecordKey::new(KIND, id.as_str())
}

/// The key of the record that names the node which has the session in memory, if several nodes
/// share the store. It is deleted with the session.
pub(super) fn home_key(id: &str) -> RecordKey {
    RecordKey::new(HOME_KIND, home_of_session(id))
}

/// The name of such a record.
pub(crate) fn home_of_session(id: &str) -> Arc<str> {
    format!("session {id}").into()
}

/// The kind of records that name a node.
pub(crate) const HOME_KIND: &str = "home";

/// The record of a session with its last use. It does not expire: a sweep removes idle sessions.
pub(super) fn record(
    session: &Session,
    client_info: &ClientInfo,
    used: Timestamp,
    counts_for: &Owner,
) -> Record {
    let created_tasks = session.created_tasks.all();
    let is_owner = *counts_for == session.owner;
    let stored = Stored {
        client_info,
        endpoint: session.server.backend.only_runner(),
        preferences: session.stored_preferences(),
        used: Some(used.0),
        counts_for: (!is_owner).then(|| counts_for.to_storage().into_owned()),
        created_tasks: created_tasks.iter().map(TaskId::to_string).collect(),
    };
    let bytes = serde_json::to_vec(&stored).expect("strings, numbers and JSON are JSON");
    Record {
        key: key(&session.id),
        owner: Some(session.owner.clone()),
        expires: None,
        bytes: bytes.into(),
    }
}

/// Parses the record of a session; `None` if it is malformed.
pub(super) fn read(record: &Record) -> Option<StoredSession> {
    let stored: Stored<ClientInfo> = serde_json::from_slice(&record.bytes).ok()?;
    let created_tasks = stored.created_tasks.iter().filter_map(|id| id.parse().ok());
    Some(StoredSession {
        client_info: stored.client_info,
        endpoint: stored.endpoint,
        preferences: stored.preferences,
        used: stored.used.map(Timestamp),
        counts_for: stored.counts_for.and_then(|owner| owner.parse().ok()),
        created_tasks: created_tasks.collect(),
    })
}

pub(super) const KIND: &str = "session";
