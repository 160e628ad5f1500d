//! Operations that are queued together are executed in one batch. What depends on each other keeps its
//! order, and a refused operation affects no other.

use std::sync::Arc;

use outlast_engine::laws::fixtures::*;
use outlast_engine::store::{Insert, RecordWrite};
use outlast_engine::{Store, StoreError};
use outlast_testkit::PostgresServer;
use outlast_wire::Timestamp;

use crate::opened;

#[tokio::test]
async fn writes_of_one_task_keep_their_order() {
    let store = fresh().await;
    let first = task(1);
    let at = first.updated.plus(1_000);
    let second = change(&first, status(&first, "begins"), at);
    let third = change(&second.next, status(&second.next, "continues"), at);
    let last = change(&third.next, end(&third.next, result("1")), at);
    let expected = last.next.clone();
    let other = task(2);
    let also = change(&other, end(&other, result("2")), at);
    let (inserted, second, third, last, other, also) = tokio::join!(
        store.insert(insertion(first)),
        store.replace(second),
        store.replace(third),
        store.replace(last),
        store.insert(insertion(other)),
        store.replace(also),
    );
    assert!(inserted.is_ok() && other.is_ok());
    for replaced in [second, third, last, also] {
        assert!(replaced.is_ok(), "{replaced:?}");
    }
    assert_eq!(loaded(&store, id(1)).await, Some(expected));
    let used = store.usage(&ada()).await.unwrap();
    assert_eq!((used.open, used.owner_open), (0, 0));
    assert_eq!((used.retained, used.owner_retained), (2, 2));
    let newest = loaded(&store, id(2)).await.expect("it is there");
    let (removed, again) = tokio::join!(
        store.remove(NODE_A, vec![(id(2), newest.revision)]),
        async { store.insert(insertion(task(2))).await },
    );
    assert_eq!(removed, Ok(vec![id(2)]));
    assert!(again.is_ok(), "{again:?}");
}

#[tokio::test]
async fn a_refused_write_affects_no_other() {
    let store = fresh().await;
    let before = stored(&store, task(1)).await;
    let quota = LARGE_QUOTA.with_owner_open(3);
    let insert = |n| {
        let written = record("note", &format!("of task {n}"));
        store.insert(Insert {
            quota,
            records: vec![put(&written)],
            ..insertion(task(n))
        })
    };
    let mut stale = change(&before, status(&before, "stale"), before.updated);
    stale.expected.0 += 1;
    let newest = change(&before, status(&before, "newest"), before.updated);
    let (same, two, three, four, stale, newest, gone) = tokio::join!(
        insert(1),
        insert(2),
        insert(3),
        insert(4),
        store.replace(stale),
        store.replace(newest),
        store.remove(NODE_A, vec![(id(9), before.revision)]),
    );
    assert_eq!(same.err(), Some(StoreError::Exists(id(1))));
    assert!(two.is_ok() && three.is_ok());
    let owner = ada();
    assert_eq!(four.err(), Some(StoreError::OwnerBusy { owner, limit: 3 }));
    assert!(is_conflict(&stale), "{stale:?}");
    assert!(newest.is_ok(), "{newest:?}");
    assert_eq!(gone, Ok(vec![]));
    assert_eq!(store.usage(&ada()).await.unwrap().owner_open, 3);
    for (n, is_written) in [(1, false), (2, true), (3, true), (4, false)] {
        let key = record("note", &format!("of task {n}")).key;
        let found = store.record(&key, Timestamp(0)).await.unwrap();
        assert_eq!(found.is_some(), is_written, "task {n}");
    }
}

#[tokio::test]
async fn writes_of_one_record_keep_their_order() {
    let store = fresh().await;
    let (first, mut last) = (record("note", "one"), record("note", "one"));
    last.bytes = Arc::from([9]);
    let delete = RecordWrite::Delete(first.key.clone());
    let (one, two, three) = tokio::join!(
        store.write_records(vec![put(&first), delete.clone(), put(&first)]),
        store.write_records(vec![delete]),
        store.write_records(vec![put(&last)]),
    );
    assert!(one.is_ok() && two.is_ok() && three.is_ok());
    let found = store.record(&last.key, Timestamp(0)).await.unwrap();
    assert_eq!(found, Some(last));
}

async fn fresh() -> Arc<dyn Store> {
    Arc::new(opened(&PostgresServer::shared().fresh_url()).await)
}
