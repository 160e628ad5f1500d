//! Several nodes on one database: each answers for the tasks of the others, and the work of a lost node
//! is recovered.

use std::sync::atomic::Ordering;
use std::time::Duration;

use outlast_engine::engine::Event;
use outlast_engine::{Ending, ErrorCode, RetryClass};
use outlast_store::postgres::{HEARTBEAT, LEASE};
use outlast_testkit::{PostgresServer, PostgresSync, until};
use tokio::time::sleep;

use crate::connected;
use crate::node::{Node, raw, scope};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_on_one_node_wakes_when_another_finishes() {
    let [one, two] = nodes().await;
    let id = one.create("gate", RetryClass::Never).await;
    let (ended, ()) = tokio::join!(two.ended(id), async { one.open_gate() });
    assert_eq!(ended.body, Some(raw("1")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn input_responses_and_cancels_reach_the_node_that_runs_the_call() {
    let [one, two] = nodes().await;
    let task = one.create("ask", RetryClass::Never).await;
    two.answer(task).await;
    assert_eq!(one.ended(task).await.body, Some(raw("7")));
    let endless = one.create("gate", RetryClass::Never).await;
    let engine = two.engine.clone();
    let cancel = async move { engine.cancel_now(&scope(), endless).await.map(|_| ()) };
    two.run("a cancel", cancel).await.expect("it is stored");
    until("the call stops", || one.engine.running() == 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_and_progress_reach_a_watcher_at_another_node() {
    let [one, two] = nodes().await;
    let id = one.create("report", RetryClass::Never).await;
    let engine = two.engine.clone();
    let mut watch = two
        .run("a watch", async move { engine.watch(&scope(), id).await })
        .await
        .expect("it is stored");
    one.open_gate();
    let seen = two.run("status and progress", async move {
        let (mut progress, mut status) = (None, None);
        while progress.is_none() || status.is_none() {
            match watch.next().await {
                Some(Event::Progress(reported)) => progress = Some(reported.done),
                Some(Event::Stored(task)) if task.message.is_some() => {
                    status.clone_from(&task.message);
                }
                Some(_) => {}
                None => panic!("the task ended"),
            }
        }
        (progress, status)
    });
    assert_eq!(seen.await, (Some(1.0), Some("reported".into())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_are_woken_after_their_connections_were_cut() {
    let server = PostgresServer::start(PostgresSync::Off, "");
    let url = server.url("cut");
    let (one, two) = (Node::start(&url).await, Node::start(&url).await);
    let id = one.create("gate", RetryClass::Never).await;
    let client = connected(&server).await;
    let cut =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'outlast'";
    let (ended, ()) = tokio::join!(two.ended(id), async {
        client.query(cut, &[]).await.unwrap();
        one.open_gate();
        client.query(cut, &[]).await.unwrap();
    });
    assert_eq!(ended.body, Some(raw("1")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_joins_again_recovers_what_was_left_meanwhile() {
    let server = PostgresServer::shared();
    let url = server.url("meanwhile");
    let (one, two) = (Node::start(&url).await, Node::start(&url).await);
    let id = two.create("gate", RetryClass::Rerun).await;
    let client = connected(server).await;
    // The second node is gone without an event that the first one can read.
    let lose = "WITH gone AS (DELETE FROM meanwhile.nodes WHERE node = $1)
                UPDATE meanwhile.nodes SET lost = true WHERE node <> $1";
    let gone = two.engine.node().0.cast_signed();
    two.die();
    client.execute(lose, &[&gone]).await.unwrap();
    one.open_gate();
    assert_eq!(one.ended(id).await.body, Some(raw("1")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_leaves_hands_its_tasks_over() {
    let [one, two] = nodes().await;
    let lost = one.create("gate", RetryClass::Never).await;
    let again = one.create("gate", RetryClass::Rerun).await;
    let engine = one.engine.clone();
    let left = one.run("a shutdown", async move {
        engine.shutdown(Duration::ZERO).await
    });
    assert_eq!(left.await.expect("the store is open").interrupted, 2);
    two.open_gate();
    assert_eq!(two.ended(lost).await.summary.ending, UNKNOWN);
    assert_eq!(two.ended(again).await.body, Some(raw("1")));
    assert_eq!(two.tools.started.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_a_dead_node_are_recovered() {
    let [one, two] = nodes().await;
    let lost = one.create("gate", RetryClass::Never).await;
    let again = one.create("gate", RetryClass::Rerun).await;
    one.die();
    two.open_gate();
    assert_eq!(two.ended(lost).await.summary.ending, UNKNOWN);
    assert_eq!(two.ended(again).await.body, Some(raw("1")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_its_lease_joins_again_and_keeps_unclaimed_tasks() {
    let server = PostgresServer::shared();
    let one = Node::start(&server.url("unclaimed")).await;
    let id = one.create("gate", RetryClass::Never).await;
    let client = connected(server).await;
    let lose = "UPDATE unclaimed.nodes SET lost = true";
    assert_eq!(client.execute(lose, &[]).await.unwrap(), 1);
    // Its writes are refused until it has joined again, and then stored.
    one.open_gate();
    assert_eq!(one.ended(id).await.body, Some(raw("1")));
    let joined = "SELECT epoch FROM unclaimed.nodes WHERE NOT lost";
    let epoch: i64 = client.query_one(joined, &[]).await.unwrap().get(0);
    assert_eq!(epoch, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_tasks_were_claimed_stops_their_calls() {
    let server = PostgresServer::shared();
    let url = server.url("claimed");
    let one = Node::start(&url).await;
    let id = one.create("gate", RetryClass::Never).await;
    let client = connected(server).await;
    client
        .execute("UPDATE claimed.nodes SET lost = true", &[])
        .await
        .unwrap();
    // The second node claims the task when it starts.
    let two = Node::start(&url).await;
    assert_eq!(two.ended(id).await.summary.ending, UNKNOWN);
    until("the call stops", || one.engine.running() == 0);
    assert_eq!(one.ended(id).await.summary.ending, UNKNOWN);
    one.open_gate();
    let next = loop {
        // Creation is refused until the node has joined again.
        let engine = one.engine.clone();
        let created = one.run("a new task", async move {
            engine
                .create(crate::node::call("gate", RetryClass::Never))
                .await
        });
        if let Ok(created) = created.await {
            break created.task().id;
        }
    };
    assert_eq!(two.ended(next).await.body, Some(raw("1")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_calls_survive_an_outage_of_the_database() {
    let server = PostgresServer::start(PostgresSync::On, "");
    let url = server.url("outage");
    let (one, two) = (Node::start(&url).await, Node::start(&url).await);
    let id = one.create("gate", RetryClass::Never).await;
    server.crash();
    one.open_gate();
    until("the node reports the outage", || {
        !matches!(
            *one.store.health().borrow(),
            outlast_engine::store::Health::Ready
        )
    });
    server.launch().unwrap();
    one.reads_again(id).await;
    two.reads_again(id).await;
    let (on_one, on_two) = tokio::join!(one.ended(id), two.ended(id));
    assert_eq!((on_one.body, on_two.body), (Some(raw("1")), Some(raw("1"))));
    assert_eq!(two.tools.started.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_longer_than_a_lease_costs_no_lease() {
    let server = PostgresServer::start(PostgresSync::On, "");
    let url = server.url("outage");
    let nodes = [Node::start(&url).await, Node::start(&url).await];
    let ids = [
        nodes[0].create("gate", RetryClass::Never).await,
        nodes[1].create("gate", RetryClass::Never).await,
    ];
    server.crash();
    sleep(Duration::from_secs(12)).await;
    server.launch().unwrap();
    // Every lease has lapsed. A node that marked another as lost would do it within this time.
    sleep(LEASE + 2 * HEARTBEAT).await;
    for (node, id) in nodes.iter().zip(ids) {
        node.open_gate();
        assert_eq!(node.ended(id).await.body, Some(raw("1")));
        assert_eq!(node.tools.started.load(Ordering::SeqCst), 1);
    }
    let client = connected(&server).await;
    let epochs = "SELECT epoch, lost FROM outage.nodes";
    let rows = client.query(epochs, &[]).await.unwrap();
    let joined: Vec<(i64, bool)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(joined, [(1, false), (1, false)]);
}

async fn nodes() -> [Node; 2] {
    let url = PostgresServer::shared().fresh_url();
    [Node::start(&url).await, Node::start(&url).await]
}

/// The ending of a task whose outcome is unknown.
const UNKNOWN: Ending = Ending::Error(ErrorCode(-32603));
