//! The records of the memory store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use outlast_wire::Timestamp;

use crate::owner::Owner;
use crate::runtime::{Mutex, MutexGuard};
use crate::store::{Record, RecordKey, RecordWrite};

#[derive(Debug, Default)]
pub(super) struct Records(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    records: BTreeMap<RecordKey, Record>,
    expiry: BTreeSet<(Timestamp, RecordKey)>,
}

impl Records {
    /// Most changes write none.
    #[inline]
    pub(super) fn write(&self, writes: Vec<RecordWrite>) {
        if !writes.is_empty() {
            self.write_some(writes);
        }
    }

    fn write_some(&self, writes: Vec<RecordWrite>) {
        let mut kept = self.kept();
        for write in writes {
            match write {
                RecordWrite::Delete(key) => kept.delete(&key),
                RecordWrite::Put(record) => {
                    kept.delete(&record.key);
                    if let Some(expires) = record.expires {
                        kept.expiry.insert((expires, record.key.clone()));
                    }
                    kept.records.insert(record.key.clone(), record);
                }
            }
        }
    }

    pub(super) fn get(&self, key: &RecordKey, now: Timestamp) -> Option<Record> {
        self.kept()
            .records
            .get(key)
            .filter(|record| record.lives(now))
            .cloned()
    }

    pub(super) fn of_kind(&self, kind: &str, owner: Option<&Owner>, now: Timestamp) -> Vec<Record> {
        let kept = self.kept();
        let first = RecordKey {
            kind: kind.into(),
            key: Arc::from(""),
        };
        let of_kind = kept
            .records
            .range(first..)
            .take_while(|(key, _)| &*key.kind == kind);
        of_kind
            .map(|(_, record)| record)
            .filter(|record| record.lives(now))
            .filter(|record| owner.is_none() || record.owner.as_ref() == owner)
            .cloned()
            .collect()
    }

    pub(super) fn forget_expired(&self, now: Timestamp, limit: usize) {
        let mut kept = self.kept();
        for _ in 0..limit {
            let Some((at, key)) = kept.expiry.first() else {
                return;
            };
            if *at > now {
                return;
            }
            let key = key.clone();
            kept.delete(&key);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock()
    }
}

impl Kept {
    fn delete(&mut self, key: &RecordKey) {
        if let Some(record) = self.records.remove(key)
            && let Some(expires) = record.expires
        {
            self.expiry.remove(&(expires, record.key));
        }
    }
}
