//! Small things that must live as long as the tasks they serve: sessions, sealing keys, references.

use std::sync::Arc;

use outlast_wire::Timestamp;

use crate::owner::Owner;

/// A small stored thing that is not a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its name.
    pub key: RecordKey,
    /// Whose it is, if it is anybody's.
    pub owner: Option<Owner>,
    /// When it stops existing, if ever.
    pub expires: Option<Timestamp>,
    /// What it says. Opaque to stores.
    pub bytes: Arc<[u8]>,
}

/// The name of a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey {
    /// What sort of thing it is, such as `session`.
    pub kind: Arc<str>,
    /// Which of them.
    pub key: Arc<str>,
}

/// A change to a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordWrite {
    /// The record is there from now on, in place of one with the same key.
    Put(Record),
    /// No record has this key from now on.
    Delete(RecordKey),
}

impl RecordKey {
    /// The record `key` of that `kind`.
    pub fn new(kind: impl Into<Arc<str>>, key: impl Into<Arc<str>>) -> Self {
        Self {
            kind: kind.into(),
            key: key.into(),
        }
    }
}

impl Record {
    /// Whether the record exists at `now`.
    pub fn lives(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}
