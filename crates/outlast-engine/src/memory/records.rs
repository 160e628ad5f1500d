//! The records of the memory store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use outlast_wire::Timestamp;

use crate::owner::Owner;
use crate::runtime::{Mutex, MutexGuard};
use crate::store::{Record, RecordKey, RecordSwap, RecordWrite};

#[derive(Debug, Default)]
pub(super) struct Records(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    records: BTreeMap<RecordKey, Record>,
    expiry: BTreeSet<(Timestamp, RecordKey)>,
}

impl Records {
    /// The common case without records is inlined.
    #[inline]
    pub(super) fn write(&self, writes: Vec<RecordWrite>) {
        if !writes.is_empty() {
            self.write_some(writes);
        }
    }

    fn write_some(&self, writes: Vec<RecordWrite>) {
        let mut tables = self.tables();
        for write in writes {
            match write {
                RecordWrite::Delete(key) => tables.delete(&key),
                RecordWrite::Put(record) => tables.put(record),
            }
        }
    }

    pub(super) fn swap(&self, swap: RecordSwap, now: Timestamp) -> bool {
        let mut tables = self.tables();
        let stored = tables.records.get(&swap.record.key);
        let stored = stored.filter(|record| record.exists_at(now));
        let matches = stored.map(|record| &record.bytes) == swap.expected.as_ref();
        if matches {
            tables.put(swap.record);
        }
        matches
    }

    pub(super) fn get(&self, key: &RecordKey, now: Timestamp) -> Option<Record> {
        self.tables()
            .records
            .get(key)
            .filter(|record| record.exists_at(now))
            .cloned()
    }

    pub(super) fn of_kind(&self, kind: &str, owner: Option<&Owner>, now: Timestamp) -> Vec<Record> {
        let tables = self.tables();
        let first = RecordKey {
            kind: kind.into(),
            key: Arc::from(""),
        };
        let of_kind = tables
            .records
            .range(first..)
            .take_while(|(key, _)| &*key.kind == kind);
        of_kind
            .map(|(_, record)| record)
            .filter(|record| record.exists_at(now))
            .filter(|record| owner.is_none() || record.owner.as_ref() == owner)
            .cloned()
            .collect()
    }

    pub(super) fn delete_expired(&self, now: Timestamp, limit: usize) {
        let mut tables = self.tables();
        for _ in 0..limit {
            let Some((at, key)) = tables.expiry.first() else {
                return;
            };
            if *at > now {
                return;
            }
            let key = key.clone();
            tables.delete(&key);
        }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock()
    }
}

impl Tables {
    fn put(&mut self, record: Record) {
        self.delete(&record.key);
        if let Some(expires) = record.expires {
            self.expiry.insert((expires, record.key.clone()));
        }
        self.records.insert(record.key.clone(), record);
    }

    fn delete(&mut self, key: &RecordKey) {
        if let Some(record) = self.records.remove(key)
            && let Some(expires) = record.expires
        {
            self.expiry.remove(&(expires, record.key));
        }
    }
}
