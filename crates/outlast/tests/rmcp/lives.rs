//! How long a handler lives: one for each session, as long as the session or one of its tasks needs it.

use outlast::store::open_store;

use crate::client::{Stage, text};

#[tokio::test(start_paused = true)]
async fn a_handler_outlives_its_session_while_a_task_runs_and_then_ends() {
    let mut stage = Stage::new().await;
    let mut client = stage.client().await;
    let task = client.task("gated").await;
    stage.hear("at the gate").await;
    drop(client);
    // Another session of the same person finds the task, and has a handler of its own.
    let mut other = stage.client().await;
    stage.hear("made").await;
    assert_eq!(other.status(&task).await, "working");
    stage.equipment.gate.add_permits(1);
    assert_eq!(text(&other.result(&task).await), "through");
    stage.hear("dropped").await;
    assert_eq!(other.tool("echo").await, "{}");
}

#[tokio::test(start_paused = true)]
async fn a_handler_ends_with_its_session_when_nothing_runs() {
    let mut stage = Stage::new().await;
    let mut client = stage.client().await;
    assert_eq!(client.tool("echo").await, "{}");
    drop(client);
    stage.hear("dropped").await;
}

#[tokio::test]
async fn a_call_that_may_be_repeated_runs_again_after_a_crash_with_a_handler_of_its_own() {
    // The fourth promise: `gated` says that it only reads, `elicit` says nothing.
    let folder = tempfile::tempdir().unwrap();
    let url = folder.path().join("tasks.db");
    let url = url.to_str().unwrap().parse().unwrap();
    let store = open_store(&url, Default::default()).await.unwrap();
    let mut stage = Stage::on(store.clone()).await;
    let mut client = stage.client().await;
    let again = client.task("gated").await;
    stage.hear("at the gate").await;
    let lost = client.task("elicit").await;
    client.told("elicitation/create").await;
    let engine = stage.engine.clone();
    drop((client, stage));
    engine.shutdown(std::time::Duration::ZERO).await.unwrap();
    store.close().await.unwrap();

    let store = open_store(&url, Default::default()).await.unwrap();
    let mut stage = Stage::on(store).await;
    stage.hear("at the gate").await;
    stage.equipment.gate.add_permits(1);
    let mut client = stage.client().await;
    assert_eq!(text(&client.result(&again).await), "through");
    let answer = client.result(&lost).await;
    assert_eq!(answer["error"]["code"], -32603);
    assert!(text(&answer).contains("outcome is unknown"), "{answer}");
}
