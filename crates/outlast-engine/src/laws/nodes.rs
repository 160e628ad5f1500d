//! Several engines on one store: which node may take over which task (P4).

use std::sync::Arc;

use crate::id::{NodeId, TaskId};
use crate::laws::fixtures::*;
use crate::store::{NodeState, NodeStatus, Store, StoreEvents};

/// A task of a joined node is not offered, not even to that node.
pub async fn tasks_of_a_joined_node_are_not_offered(store: &Arc<dyn Store>) {
    let _feeds = joined(store, [NODE_A, NODE_B]).await;
    stored(store, task_at(1, NODE_A)).await;
    stored(store, task_at(2, NODE_B)).await;
    assert_eq!(offered(store, NODE_A).await, []);
    assert_eq!(offered(store, NODE_B).await, []);
}

/// A task of a node that left is offered to one node, once.
pub async fn orphans_are_offered_once(store: &Arc<dyn Store>) {
    let _feeds = joined(store, [NODE_A, NODE_B, NODE_C]).await;
    let orphan = stored(store, task_at(1, NODE_A)).await;
    stored(store, task_at(2, NODE_B)).await;
    leave(store, NODE_A).await;
    assert_eq!(offered(store, NODE_B).await, [orphan.id]);
    assert_eq!(offered(store, NODE_B).await, []);
    assert_eq!(offered(store, NODE_C).await, []);
}

/// An offer contains the current state of the task.
pub async fn offer_shows_the_current_task(store: &Arc<dyn Store>) {
    let orphan = stored(store, task_at(1, NODE_A)).await;
    let orphan = changed(store, &orphan, request_input(&orphan, "name")).await;
    let _feeds = joined(store, [NODE_B]).await;
    let offers = store.claim(NODE_B, 10).await.expect("the store is open");
    assert_eq!(offers.len(), 1);
    assert_eq!(*offers[0], *orphan);
}

/// A detached task is not offered: neither one that was detached from the start, nor one whose
/// executor left after it gave the work away.
pub async fn detached_tasks_are_never_offered(store: &Arc<dyn Store>) {
    let first = stored(store, task_at(1, NodeId::DETACHED)).await;
    let _feeds = joined(store, [NODE_A, NODE_B]).await;
    stored(store, task_at(2, NodeId::DETACHED)).await;
    let given = stored(store, task_at(3, NODE_A)).await;
    let given = changed(store, &given, detach(&given)).await;
    assert_eq!(given.executor, NodeId::DETACHED);
    let left_behind = stored(store, task_at(4, NODE_A)).await;
    leave(store, NODE_A).await;
    changed(store, &first, status(&first, "reported")).await;
    assert_eq!(offered(store, NODE_B).await, [left_behind.id]);
    assert_eq!(offered(store, NODE_B).await, []);
}

/// A task whose executor never joined, for example one of a previous process, is offered.
pub async fn tasks_of_an_unknown_node_are_offered(store: &Arc<dyn Store>) {
    let orphan = stored(store, task_at(1, NodeId(77))).await;
    let _feeds = joined(store, [NODE_A]).await;
    assert_eq!(offered(store, NODE_A).await, [orphan.id]);
}

/// An ended task is not offered.
pub async fn ended_tasks_are_not_offered(store: &Arc<dyn Store>) {
    let task = stored(store, task_at(1, NodeId(77))).await;
    ended(store, &task, result("1")).await;
    let _feeds = joined(store, [NODE_A]).await;
    assert_eq!(offered(store, NODE_A).await, []);
}

/// At most `limit` tasks are offered; the others are offered later.
pub async fn offers_are_limited(store: &Arc<dyn Store>) {
    let mut orphans = Vec::new();
    for n in 0..5 {
        orphans.push(stored(store, task_at(n, NodeId(77))).await.id);
    }
    let _feeds = joined(store, [NODE_A]).await;
    let mut all = Vec::new();
    for expected in [2, 2, 1, 0] {
        let some = store.claim(NODE_A, 2).await.expect("the store is open");
        assert_eq!(some.len(), expected);
        all.extend(some.iter().map(|task| task.id));
    }
    all.sort();
    orphans.sort();
    assert_eq!(all, orphans);
}

/// If a node leaves before it takes over a task, the task is offered again.
pub async fn offer_returns_when_its_node_leaves(store: &Arc<dyn Store>) {
    let orphan = stored(store, task_at(1, NodeId(77))).await;
    let _feeds = joined(store, [NODE_A, NODE_B]).await;
    assert_eq!(offered(store, NODE_A).await, [orphan.id]);
    assert_eq!(offered(store, NODE_B).await, []);
    leave(store, NODE_A).await;
    assert_eq!(offered(store, NODE_B).await, [orphan.id]);
}

/// An offer stays valid if another node changes the task in the meantime.
pub async fn offer_survives_the_write_of_another(store: &Arc<dyn Store>) {
    let orphan = stored(store, task_at(1, NodeId(77))).await;
    let orphan = changed(store, &orphan, request_input(&orphan, "name")).await;
    let _feeds = joined(store, [NODE_A, NODE_B]).await;
    assert_eq!(offered(store, NODE_A).await, [orphan.id]);
    changed(store, &orphan, provide_input("name")).await;
    assert_eq!(offered(store, NODE_B).await, []);
}

/// A task that was taken over belongs to its new executor until that node leaves.
pub async fn task_taken_over_belongs_to_its_new_executor(store: &Arc<dyn Store>) {
    let orphan = stored(store, task_at(1, NodeId(77))).await;
    let _feeds = joined(store, [NODE_A, NODE_B]).await;
    assert_eq!(offered(store, NODE_A).await, [orphan.id]);
    changed(store, &orphan, take_over(NODE_A)).await;
    assert_eq!(offered(store, NODE_B).await, []);
    leave(store, NODE_A).await;
    assert_eq!(offered(store, NODE_B).await, [orphan.id]);
}

/// A removed task is not offered.
pub async fn removed_task_is_not_offered(store: &Arc<dyn Store>) {
    let orphan = stored(store, task_at(1, NodeId(77))).await;
    removed(store, &orphan).await;
    let _feeds = joined(store, [NODE_A]).await;
    assert_eq!(offered(store, NODE_A).await, []);
}

/// If several nodes claim at the same time, each task goes to exactly one of them (P5).
pub async fn of_many_nodes_one_is_offered_an_orphan(store: &Arc<dyn Store>) {
    let mut orphans = Vec::new();
    for n in 0..40 {
        orphans.push(stored(store, task_at(n, NodeId(77))).await.id);
    }
    let nodes = [11, 12, 13, 14].map(NodeId);
    let _feeds = joined(store, nodes).await;
    let claims = nodes.map(|node| {
        let store = store.clone();
        async move {
            let mut all = Vec::new();
            while let [first, rest @ ..] = &claimed(&store, node, 3).await[..] {
                all.push(*first);
                all.extend(rest);
            }
            all
        }
    });
    let mut all = at_once(claims).await.concat();
    all.sort();
    orphans.sort();
    assert_eq!(all, orphans);
}

/// Joined nodes are listed in the order of their ids, with the open tasks that they execute.
pub async fn joined_nodes_are_listed_with_their_load(store: &Arc<dyn Store>) {
    assert_eq!(listed(store).await, []);
    let _feeds = joined(store, [NODE_B, NODE_A, NODE_C]).await;
    let given = stored(store, task_at(1, NODE_A)).await;
    stored(store, task_at(2, NODE_A)).await;
    ended(store, &given, result("1")).await;
    stored(store, task_at(3, NodeId(77))).await;
    leave(store, NODE_C).await;
    let nodes = listed(store).await;
    let load: Vec<_> = nodes.iter().map(|of| (of.node, of.open_tasks)).collect();
    assert_eq!(load, [(NODE_A, 1), (NODE_B, 0)]);
    for node in nodes {
        assert_eq!((node.epoch, node.address), (1, None));
        assert_eq!(node.state, NodeState::Joined);
    }
}

/// A node that joins again has the next epoch and its last published address.
pub async fn address_is_kept_when_a_node_joins_again(store: &Arc<dyn Store>) {
    let _feeds = joined(store, [NODE_A, NODE_B]).await;
    for address in ["http://127.0.0.1:1", "http://127.0.0.1:2"] {
        let published = store.publish_address(NODE_A, address).await;
        published.expect("the store is open");
    }
    let _feeds = joined(store, [NODE_A]).await;
    let addresses = listed(store).await.into_iter();
    let addresses: Vec<_> = addresses.map(|node| (node.epoch, node.address)).collect();
    assert_eq!(
        addresses,
        [(2, Some("http://127.0.0.1:2".into())), (1, None)]
    );
}

async fn listed(store: &Arc<dyn Store>) -> Vec<NodeStatus> {
    store.nodes().await.expect("the store is open")
}

/// Joins nodes. A node whose events are dropped may be treated as gone.
async fn joined(
    store: &Arc<dyn Store>,
    nodes: impl IntoIterator<Item = NodeId>,
) -> Vec<StoreEvents> {
    let mut feeds = Vec::new();
    for node in nodes {
        feeds.push(store.join(node).await.expect("the store is open"));
    }
    feeds
}

async fn leave(store: &Arc<dyn Store>, node: NodeId) {
    store.leave(node).await.expect("the store is open");
}

async fn offered(store: &Arc<dyn Store>, node: NodeId) -> Vec<TaskId> {
    claimed(store, node, 100).await
}

async fn claimed(store: &Arc<dyn Store>, node: NodeId, limit: usize) -> Vec<TaskId> {
    let offers = store.claim(node, limit).await;
    let offers = offers.expect("the store is open");
    offers.iter().map(|task| task.id).collect()
}
