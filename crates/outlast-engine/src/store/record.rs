//! Small stored values that are not tasks: sessions, sealing keys, references to tasks of other
//! servers.

use std::sync::Arc;

use outlast_wire::Timestamp;

use crate::owner::Owner;

/// A small stored value that is not a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its name.
    pub key: RecordKey,
    /// Its owner, if it has one.
    pub owner: Option<Owner>,
    /// When it expires, if it does.
    pub expires: Option<Timestamp>,
    /// Its content. Opaque to stores.
    pub bytes: Arc<[u8]>,
}

/// The name of a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey {
    /// The kind of value, such as `session`.
    pub kind: Arc<str>,
    /// Its key within the kind.
    pub key: Arc<str>,
}

/// A change to a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordWrite {
    /// Writes the record. It replaces one with the same key.
    Put(Record),
    /// Deletes the record with this key, if there is one.
    Delete(RecordKey),
}

/// A write that depends on what is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordSwap {
    /// The bytes that have to be stored under the key of `record`, or `None` if there must be no
    /// unexpired record.
    pub expected: Option<Arc<[u8]>>,
    /// The record to write.
    pub record: Record,
}

impl RecordKey {
    /// The name of the record `key` of that `kind`.
    pub fn new(kind: impl Into<Arc<str>>, key: impl Into<Arc<str>>) -> Self {
        Self {
            kind: kind.into(),
            key: key.into(),
        }
    }
}

impl Record {
    /// Whether the record has not expired at `now`.
    pub fn exists_at(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}
