//! A session as it is stored: who the client is, whose session it is, until when.

use outlast_engine::store::{Record, RecordKey};
use outlast_wire::Timestamp;
use serde::{Deserialize, Serialize};

use super::preferences::Wishes;
use super::{Session, SessionId};
use crate::front::Peer;

/// What is stored of a session besides its key, its owner and its end.
#[derive(Serialize, Deserialize)]
struct Stored<P> {
    peer: P,
    /// What the client wants to hold for the session.
    #[serde(flatten)]
    wishes: Wishes,
}

/// The key of the record of a session.
pub(super) fn key(id: &SessionId) -> RecordKey {
    RecordKey::new(KIND, id.as_str())
}

/// The record of a session.
pub(super) fn record(session: &Session, peer: &Peer, expires: Timestamp) -> Record {
    let wishes = session.wishes();
    let bytes = serde_json::to_vec(&Stored { peer, wishes }).expect("strings and JSON are JSON");
    Record {
        key: key(&session.id),
        owner: Some(session.owner.clone()),
        expires: Some(expires),
        bytes: bytes.into(),
    }
}

/// The client whose session a record keeps, and what it wants, if the record is readable.
pub(super) fn read(record: &Record) -> Option<(Peer, Wishes)> {
    let stored: Stored<Peer> = serde_json::from_slice(&record.bytes).ok()?;
    Some((stored.peer, stored.wishes))
}

pub(super) const KIND: &str = "session";
