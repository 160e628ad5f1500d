//! The lifetime of a handler: one for each session, as long as the session or one of its tasks.

use outlast::store::open_store;

use crate::harness::{Harness, text};

#[tokio::test(start_paused = true)]
async fn a_handler_outlives_its_session_while_a_task_runs() {
    let mut harness = Harness::new().await;
    let mut client = harness.client().await;
    let task = client.task("gated").await;
    harness.wait_for_report("at the gate").await;
    drop(client);
    // Another session of the same owner finds the task, and has its own handler.
    let mut other = harness.client().await;
    harness.wait_for_report("made").await;
    assert_eq!(other.status(&task).await, "working");
    harness.control.gate.add_permits(1);
    assert_eq!(text(&other.result(&task).await), "through");
    harness.wait_for_report("dropped").await;
    assert_eq!(other.tool("echo").await, "{}");
}

#[tokio::test(start_paused = true)]
async fn a_handler_ends_with_its_session_when_nothing_runs() {
    let mut harness = Harness::new().await;
    let mut client = harness.client().await;
    assert_eq!(client.tool("echo").await, "{}");
    drop(client);
    harness.wait_for_report("dropped").await;
}

#[tokio::test]
async fn a_repeatable_call_reruns_with_a_new_handler() {
    // P5: `gated` is read-only, `elicit` is not.
    let folder = tempfile::tempdir().unwrap();
    let url = folder.path().join("tasks.db");
    let url = url.to_str().unwrap().parse().unwrap();
    let store = open_store(&url, Default::default()).await.unwrap();
    let mut harness = Harness::on(store.clone()).await;
    let mut client = harness.client().await;
    let again = client.task("gated").await;
    harness.wait_for_report("at the gate").await;
    let lost = client.task("elicit").await;
    client.next_message("elicitation/create").await;
    let engine = harness.engine.clone();
    drop((client, harness));
    engine.shutdown(std::time::Duration::ZERO).await.unwrap();
    store.close().await.unwrap();

    let store = open_store(&url, Default::default()).await.unwrap();
    let mut harness = Harness::on(store).await;
    harness.wait_for_report("at the gate").await;
    harness.control.gate.add_permits(1);
    let mut client = harness.client().await;
    assert_eq!(text(&client.result(&again).await), "through");
    let response = client.result(&lost).await;
    assert_eq!(response["error"]["code"], -32603);
    assert!(text(&response).contains("outcome is unknown"), "{response}");
}
