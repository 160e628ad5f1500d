//! Opening and closing of a store.

use std::sync::Arc;

use crate::laws::fixtures::*;
use crate::store::{Filter, Health, RecordSwap, Store, StoreError};

/// A store that was just opened can be written.
pub async fn open_store_is_ready(store: &Arc<dyn Store>) {
    assert_eq!(*store.health().borrow(), Health::Ready);
}

/// A closed store reports it, also to receivers from before.
pub async fn closed_store_reports_it(store: &Arc<dyn Store>) {
    let mut before = store.health();
    store.close().await.expect("an open store can be closed");
    let reply = before.wait_for(|health| *health == Health::Closed).await;
    assert!(reply.is_ok());
    assert_eq!(*store.health().borrow(), Health::Closed);
}

/// A closed store refuses every operation as unavailable.
pub async fn closed_store_refuses(store: &Arc<dyn Store>) {
    let given = stored(store, task(1)).await;
    let change = change(&given, status(&given, "drawing"), CREATED.plus(1));
    let record = record("session", "s");
    store.close().await.expect("an open store can be closed");

    let scope = of(&ada());
    refused(store.insert(insertion(task(2))).await);
    refused(store.replace(change).await);
    refused(store.remove(NODE_A, vec![(given.id, given.revision)]).await);
    refused(store.get(&scope, given.id).await);
    refused(store.load(&scope, given.id).await);
    refused(store.body(&scope, given.id).await);
    refused(store.page(&ada(), None, 10).await);
    refused(store.search(&Filter::default(), None, 10).await);
    refused(store.due(CREATED, 10).await);
    refused(store.claim(NODE_A, 10).await);
    refused(store.usage(&ada()).await);
    refused(store.write_records(vec![put(&record)]).await);
    let swap = RecordSwap {
        expected: None,
        record: record.clone(),
    };
    refused(store.swap_record(swap, CREATED).await);
    refused(store.record(&record.key, CREATED).await);
    refused(store.records("session", None, CREATED).await);
    refused(store.join(NODE_A).await);
    refused(store.publish_address(NODE_A, "here").await);
    refused(store.nodes().await);
}

fn refused<T: std::fmt::Debug>(reply: Result<T, StoreError>) {
    assert!(
        matches!(reply, Err(StoreError::Unavailable(_))),
        "a closed store refuses, and does not say {reply:?}"
    );
}
