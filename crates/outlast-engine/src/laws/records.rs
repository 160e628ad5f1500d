//! Records: small values next to the tasks, written with them or alone.

use std::sync::Arc;

use outlast_wire::Timestamp;

use crate::laws::fixtures::*;
use crate::owner::Owner;
use crate::policy::Quota;
use crate::store::{Insert, Record, RecordKey, RecordSwap, RecordWrite, Store};

/// A record is read back as it was written.
pub async fn record_is_read_back(store: &Arc<dyn Store>) {
    let every_byte: Vec<u8> = (0..=255).collect();
    let odd = [
        record("session", "s-1"),
        Record {
            owner: Some(ada()),
            expires: Some(CREATED.plus(1)),
            ..record("session", "it's \"odd\"\n🦀")
        },
        Record {
            bytes: every_byte.into(),
            ..record("key", "all bytes")
        },
        Record {
            bytes: Arc::from([]),
            ..record("key", "")
        },
        Record {
            owner: Some(Owner::principal("")),
            expires: Some(Timestamp(i64::MAX as u64)),
            ..record("", "k")
        },
    ];
    write(store, odd.iter().map(put)).await;
    for record in odd {
        assert_eq!(read(store, &record.key).await, Some(record));
    }
    assert_eq!(read(store, &RecordKey::new("session", "s-2")).await, None);
    assert_eq!(read(store, &RecordKey::new("key", "s-1")).await, None);
}

/// A record replaces all parts of the one with the same key.
pub async fn put_replaces(store: &Arc<dyn Store>) {
    let first = Record {
        owner: Some(ada()),
        expires: Some(CREATED.plus(10)),
        ..record("session", "s")
    };
    let second = Record {
        owner: Some(bob()),
        expires: None,
        bytes: Arc::from(*b"second"),
        ..first.clone()
    };
    write(store, [put(&first)]).await;
    write(store, [put(&second)]).await;
    assert_eq!(read(store, &first.key).await, Some(second.clone()));
    assert_eq!(of_kind(store, "session", Some(&ada())).await, []);
    assert_eq!(of_kind(store, "session", Some(&bob())).await, [second]);
}

/// A deleted record is removed. Deleting a record that does not exist is not an error.
pub async fn deleted_record_is_not_found(store: &Arc<dyn Store>) {
    let (gone, stays) = (record("session", "gone"), record("session", "stays"));
    write(store, [put(&gone), put(&stays)]).await;
    let delete = RecordWrite::Delete(gone.key.clone());
    write(store, [delete.clone(), delete]).await;
    assert_eq!(read(store, &gone.key).await, None);
    assert_eq!(of_kind(store, "session", None).await, [stays]);
}

/// Writes of one transaction apply in their order.
pub async fn record_writes_count_in_order(store: &Arc<dyn Store>) {
    let record = record("session", "s");
    let later = Record {
        bytes: Arc::from(*b"later"),
        ..record.clone()
    };
    let delete = || RecordWrite::Delete(record.key.clone());
    write(store, [put(&record), put(&later)]).await;
    assert_eq!(read(store, &record.key).await, Some(later.clone()));
    write(store, [delete(), put(&record)]).await;
    assert_eq!(read(store, &record.key).await, Some(record.clone()));
    write(store, [put(&later), delete()]).await;
    assert_eq!(read(store, &record.key).await, None);
}

/// Records are listed by kind, of all owners or of one. A kind is not matched by its prefix.
pub async fn records_are_listed_by_kind_and_owner(store: &Arc<dyn Store>) {
    let owned = |kind, key, owner: Option<Owner>| Record {
        owner,
        ..record(kind, key)
    };
    let all = [
        owned("session", "1", Some(ada())),
        owned("session", "2", Some(bob())),
        owned("session", "3", None),
        owned("session", "4", Some(ada())),
        owned("sessions", "1", Some(ada())),
        owned("sess", "1", Some(ada())),
        owned("Session", "1", Some(ada())),
    ];
    write(store, all.iter().map(put)).await;
    assert_eq!(of_kind(store, "session", None).await, all[..4]);
    let of_ada = of_kind(store, "session", Some(&ada())).await;
    assert_eq!(of_ada, [all[0].clone(), all[3].clone()]);
    assert_eq!(
        of_kind(store, "session", Some(&Owner::principal("eve"))).await,
        []
    );
    assert_eq!(of_kind(store, "sess%", None).await, []);
    assert_eq!(of_kind(store, "", None).await, []);
}

/// A record exists until its expiry, exclusive (P3).
pub async fn record_expires_exactly(store: &Arc<dyn Store>) {
    let record = Record {
        expires: Some(CREATED.plus(10)),
        ..record("session", "s")
    };
    write(store, [put(&record)]).await;
    for (after, exists) in [(0, true), (9, true), (10, false), (11, false)] {
        let now = CREATED.plus(after);
        let found = store.record(&record.key, now).await;
        let found = found.expect("the store is open");
        assert_eq!(found, exists.then(|| record.clone()), "after {after} ms");
        let listed = store.records("session", None, now).await;
        let listed = listed.expect("the store is open");
        assert_eq!(listed.len(), usize::from(exists), "after {after} ms");
    }
}

/// Expiry deletes no live record: neither a renewed one nor one that never expires.
pub async fn expiry_deletes_no_live_record(store: &Arc<dyn Store>) {
    let brief = Record {
        expires: Some(CREATED.plus(10)),
        ..record("session", "b brief")
    };
    let renewed = Record {
        expires: Some(CREATED.plus(10)),
        ..record("session", "a renewed")
    };
    let eternal = record("session", "c eternal");
    write(store, [put(&brief), put(&renewed), put(&eternal)]).await;
    let renewed = Record {
        expires: Some(CREATED.plus(30)),
        ..renewed
    };
    write(store, [put(&renewed)]).await;
    let now = CREATED.plus(20);
    for _ in 0..3 {
        store.due(now, 100).await.expect("the store is open");
    }
    let left = store.records("session", None, now).await;
    let mut left = left.expect("the store is open");
    left.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(left, [renewed, eternal]);
}

/// A record of an insert is stored with the task.
pub async fn record_is_written_with_an_insert(store: &Arc<dyn Store>) {
    let (old, new) = (record("session", "old"), record("session", "new"));
    write(store, [put(&old)]).await;
    let insert = Insert {
        records: vec![put(&new), RecordWrite::Delete(old.key.clone())],
        ..insertion(task(1))
    };
    store.insert(insert).await.expect("the quota suffices");
    assert_eq!(of_kind(store, "session", None).await, [new]);
}

/// A record of a refused or repeated insert is not written.
pub async fn refused_insert_writes_no_record(store: &Arc<dyn Store>) {
    let kept = record("session", "kept");
    write(store, [put(&kept)]).await;
    stored(store, task_with_key(1, &ada(), "k")).await;
    let none = Quota {
        owner_open: 0,
        ..LARGE_QUOTA
    };
    let refusals = [
        insertion(task(1)),
        insertion(task_with_key(2, &ada(), "k")),
        Insert {
            quota: none,
            ..insertion(task(3))
        },
    ];
    for refused in refusals {
        let records = vec![
            put(&record("session", "new")),
            RecordWrite::Delete(kept.key.clone()),
        ];
        let reply = store.insert(Insert { records, ..refused }).await;
        assert!(!matches!(reply, Ok(crate::store::InsertResult::New(_))));
        let found = of_kind(store, "session", None).await;
        assert_eq!(found, std::slice::from_ref(&kept), "{reply:?}");
    }
}

/// A record of a change is stored with the change.
pub async fn record_is_written_with_a_change(store: &Arc<dyn Store>) {
    let task = stored(store, task(1)).await;
    let record = record("session", "s");
    let mut change = change(&task, request_input(&task, "name"), CREATED.plus(1));
    change.records = vec![put(&record)];
    let reply = store.replace(change).await;
    assert!(reply.is_ok());
    assert_eq!(read(store, &record.key).await, Some(record));
}

/// A record of a conflicting change is not written.
pub async fn conflicting_change_writes_no_record(store: &Arc<dyn Store>) {
    let kept = record("session", "kept");
    write(store, [put(&kept)]).await;
    let task = stored(store, task(1)).await;
    let mut late = change(&task, request_input(&task, "name"), CREATED.plus(1));
    late.records = vec![
        put(&record("session", "new")),
        RecordWrite::Delete(kept.key.clone()),
    ];
    changed(store, &task, status(&task, "drawing")).await;
    assert!(is_conflict(&store.replace(late).await));
    assert_eq!(of_kind(store, "session", None).await, [kept]);
}

/// Records are not removed with tasks.
pub async fn record_outlives_its_task(store: &Arc<dyn Store>) {
    let record = record("session", "s");
    let insert = Insert {
        records: vec![put(&record)],
        ..insertion(task(1))
    };
    store.insert(insert).await.expect("the quota suffices");
    let task = loaded(store, id(1)).await.expect("it is there");
    removed(store, &task).await;
    assert_eq!(read(store, &record.key).await, Some(record));
}

/// A swap that expects no record writes one if it does not exist.
pub async fn swap_puts_a_record_if_there_is_none(store: &Arc<dyn Store>) {
    let first = record("key", "seal");
    let second = with_bytes(&first, b"second");
    assert!(swapped(store, None, &first).await);
    assert!(!swapped(store, None, &second).await);
    assert_eq!(read(store, &first.key).await, Some(first.clone()));
    write(store, [RecordWrite::Delete(first.key.clone())]).await;
    assert!(swapped(store, None, &second).await);
    assert_eq!(read(store, &first.key).await, Some(second));
}

/// A swap that expects bytes writes if exactly these are stored.
pub async fn swap_compares_the_stored_bytes(store: &Arc<dyn Store>) {
    let first = with_bytes(&record("key", "seal"), b"");
    let second = Record {
        owner: Some(ada()),
        expires: Some(CREATED.plus(1_000)),
        ..with_bytes(&first, b"second")
    };
    assert!(!swapped(store, Some(b""), &second).await);
    assert_eq!(read(store, &first.key).await, None);
    write(store, [put(&first)]).await;
    assert!(!swapped(store, Some(b"other"), &second).await);
    assert!(!swapped(store, None, &second).await);
    assert_eq!(read(store, &first.key).await, Some(first.clone()));
    assert!(swapped(store, Some(b""), &second).await);
    assert_eq!(read(store, &first.key).await, Some(second));
}

/// For a swap, an expired record does not exist.
pub async fn expired_record_is_absent_for_a_swap(store: &Arc<dyn Store>) {
    let old = Record {
        expires: Some(CREATED),
        ..record("key", "seal")
    };
    let new = with_bytes(&record("key", "seal"), b"new");
    write(store, [put(&old)]).await;
    assert!(!swapped(store, Some(&old.bytes), &new).await);
    assert!(swapped(store, None, &new).await);
    assert_eq!(read(store, &new.key).await, Some(new));
}

/// If many callers put the same absent record at the same time, one succeeds, and its record stays.
pub async fn of_many_first_swaps_one_succeeds(store: &Arc<dyn Store>) {
    one_of_many_succeeds(store, None).await;
}

/// If many callers replace the same bytes at the same time, one succeeds, and its record stays.
pub async fn of_many_equal_swaps_one_succeeds(store: &Arc<dyn Store>) {
    let first = with_bytes(&record("key", "seal"), b"first");
    write(store, [put(&first)]).await;
    one_of_many_succeeds(store, Some(b"first")).await;
}

async fn one_of_many_succeeds(store: &Arc<dyn Store>, expected: Option<&'static [u8]>) {
    let candidates = [1, 2, 3, 4, 5, 6, 7, 8].map(|n| with_bytes(&record("key", "seal"), &[n]));
    let swaps = candidates.clone().map(|candidate| {
        let store = store.clone();
        async move { swapped(&store, expected, &candidate).await }
    });
    let done = at_once(swaps).await;
    let winners: Vec<_> = candidates
        .iter()
        .zip(done)
        .filter(|(_, done)| *done)
        .map(|(candidate, _)| candidate.clone())
        .collect();
    assert_eq!(winners.len(), 1);
    assert_eq!(read(store, &winners[0].key).await.as_ref(), winners.first());
}

async fn swapped(store: &Arc<dyn Store>, expected: Option<&[u8]>, next: &Record) -> bool {
    let swap = RecordSwap {
        expected: expected.map(Arc::from),
        record: next.clone(),
    };
    let reply = store.swap_record(swap, CREATED).await;
    reply.expect("the store is open")
}

fn with_bytes(record: &Record, bytes: &[u8]) -> Record {
    Record {
        bytes: bytes.into(),
        ..record.clone()
    }
}

async fn write(store: &Arc<dyn Store>, records: impl IntoIterator<Item = RecordWrite>) {
    let records = records.into_iter().collect();
    let written = store.write_records(records).await;
    written.expect("the store is open");
}

async fn read(store: &Arc<dyn Store>, key: &RecordKey) -> Option<Record> {
    let found = store.record(key, CREATED).await;
    found.expect("the store is open")
}

/// The records of a kind, sorted by key.
async fn of_kind(store: &Arc<dyn Store>, kind: &str, owner: Option<&Owner>) -> Vec<Record> {
    let found = store.records(kind, owner, CREATED).await;
    let mut found = found.expect("the store is open");
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found
}
