//! Store events: a node receives the changes of the other nodes (P6).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::engine::Progress;
use crate::id::NodeId;
use crate::laws::fixtures::*;
use crate::store::{Replace, Store, StoreEvent, StoreEvents};

/// Every other node receives an event of a change, the node that made it does not.
pub async fn other_nodes_receive_a_change(store: &Arc<dyn Store>) {
    let task = stored(store, task(1)).await;
    let (mut here, mut there, mut elsewhere) = joined_nodes(store).await;
    changed(store, &task, status(&task, "drawing")).await;
    received(&mut there, StoreEvent::TaskChanged(task.id)).await;
    received(&mut elsewhere, StoreEvent::TaskChanged(task.id)).await;
    not_received(&mut here, StoreEvent::TaskChanged(task.id));
}

/// Every other node receives an event of an end.
pub async fn other_nodes_receive_an_end(store: &Arc<dyn Store>) {
    let task = stored(store, task(1)).await;
    let (mut here, mut there, _elsewhere) = joined_nodes(store).await;
    let end = change(&task, end(&task, result("1")), CREATED.plus(1));
    let reply = store
        .replace(Replace {
            node: NODE_B,
            ..end
        })
        .await;
    assert!(reply.is_ok());
    received(&mut here, StoreEvent::TaskChanged(task.id)).await;
    not_received(&mut there, StoreEvent::TaskChanged(task.id));
}

/// Every other node receives an event of a removal.
pub async fn other_nodes_receive_a_removal(store: &Arc<dyn Store>) {
    let task = stored(store, task(1)).await;
    let (mut here, mut there, _elsewhere) = joined_nodes(store).await;
    removed(store, &task).await;
    received(&mut there, StoreEvent::TaskChanged(task.id)).await;
    not_received(&mut here, StoreEvent::TaskChanged(task.id));
}

/// A node receives the changes of a writer that never joined.
pub async fn change_by_an_unknown_node_is_received(store: &Arc<dyn Store>) {
    let task = stored(store, task(1)).await;
    let mut here = store.join(NODE_A).await.expect("the store is open");
    let change = change(&task, status(&task, "drawing"), CREATED.plus(1));
    let node = NodeId(77);
    let reply = store.replace(Replace { node, ..change }).await;
    assert!(reply.is_ok());
    received(&mut here, StoreEvent::TaskChanged(task.id)).await;
}

/// Every other node receives the progress of a task, the node that published it does not.
pub async fn other_nodes_receive_progress(store: &Arc<dyn Store>) {
    let task = stored(store, task(1)).await;
    let (mut here, mut there, mut elsewhere) = joined_nodes(store).await;
    let progress = Progress {
        done: 1.5,
        total: Some(3.0),
        message: Some("half \u{0} done".into()),
    };
    store.publish_progress(NODE_A, task.id, &progress);
    let event = StoreEvent::Progress(task.id, progress);
    received(&mut there, event.clone()).await;
    received(&mut elsewhere, event.clone()).await;
    not_received(&mut here, event);
}

/// An event arrives after its change is visible (P1, P6).
pub async fn event_arrives_after_the_change_is_visible(store: &Arc<dyn Store>) {
    let mut task = stored(store, task(1)).await;
    let mut there = store.join(NODE_B).await.expect("the store is open");
    let _here = store.join(NODE_A).await.expect("the store is open");
    let writer = store.clone();
    let last = task.revision.0 + 50;
    let writes = tokio::spawn(async move {
        while task.revision.0 < last {
            let message = format!("page {}", task.revision);
            task = changed(&writer, &task, status(&task, &message)).await;
        }
    });
    // An event arrives after its change is visible, so a node that reads the task after the last
    // event sees the last change.
    let mut seen = 0;
    while seen < last {
        received(&mut there, StoreEvent::TaskChanged(id(1))).await;
        seen = open_snapshot(store, id(1)).await.revision.0;
    }
    writes.await.expect("the writes succeed");
}

/// The remaining nodes receive an event when a node leaves.
pub async fn other_nodes_receive_the_departure_of_a_node(store: &Arc<dyn Store>) {
    let (_here, mut there, mut elsewhere) = joined_nodes(store).await;
    store.leave(NODE_A).await.expect("the store is open");
    received(&mut there, StoreEvent::NodeLeft).await;
    received(&mut elsewhere, StoreEvent::NodeLeft).await;
}

async fn joined_nodes(store: &Arc<dyn Store>) -> (StoreEvents, StoreEvents, StoreEvents) {
    let here = store.join(NODE_A).await.expect("the store is open");
    let there = store.join(NODE_B).await.expect("the store is open");
    let elsewhere = store.join(NODE_C).await.expect("the store is open");
    (here, there, elsewhere)
}

/// Waits for this event. Others may arrive before it.
async fn received(events: &mut StoreEvents, event: StoreEvent) {
    let wait = async {
        while let Some(received) = events.recv().await {
            if received == event {
                return;
            }
        }
        panic!("the feed ended before {event:?} came");
    };
    let soon = timeout(EVENT_TIMEOUT, wait).await;
    assert!(soon.is_ok(), "{event:?} never came");
}

/// Checks that this node has not received `event`. Call it after another node has received the
/// event, so that the event cannot arrive later.
fn not_received(events: &mut StoreEvents, event: StoreEvent) {
    while let Ok(received) = events.try_recv() {
        assert_ne!(received, event, "a node does not receive its own changes");
    }
}

const EVENT_TIMEOUT: Duration = Duration::from_secs(20);
