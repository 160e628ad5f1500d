//! A handler that panics, hangs, or is not wanted any more.

use std::time::Duration;

use outlast::Outlast;
use rmcp::model::{ErrorData, InitializeRequestParams, InitializeResult};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::json;

use crate::client::{Client, Stage, text};

#[tokio::test(start_paused = true)]
async fn a_panic_is_an_internal_error_of_that_call_and_of_no_other() {
    let mut stage = Stage::new().await;
    let mut client = stage.client().await;
    let other = client.task("gated").await;
    stage.hear("at the gate").await;
    let plain = client.call("tools/call", json!({ "name": "boom" })).await;
    assert_eq!(plain["error"]["code"], -32603);
    let task = client.task("boom").await;
    let answer = client.result(&task).await;
    assert_eq!(answer["error"]["code"], -32603);
    assert_eq!(client.status(&task).await, "failed");
    stage.equipment.gate.add_permits(1);
    assert_eq!(text(&client.result(&other).await), "through");
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_task_tells_the_handler() {
    // V1-CANCEL-3, V1-CANCEL-5.
    let mut stage = Stage::new().await;
    let mut client = stage.client().await;
    let task = client.task("listens").await;
    stage.hear("listens").await;
    let cancelled = client.call("tasks/cancel", json!({ "taskId": task })).await;
    assert_eq!(cancelled["result"]["status"], "cancelled");
    stage.hear("heard").await;
    assert_eq!(client.status(&task).await, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_plain_call_tells_the_handler() {
    // V1-CANC-3.
    let mut stage = Stage::new().await;
    let mut client = stage.client().await;
    let id = client
        .send("tools/call", json!({ "name": "listens" }))
        .await;
    stage.hear("listens").await;
    client
        .notify("notifications/cancelled", json!({ "requestId": id }))
        .await;
    stage.hear("heard").await;
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_stop_is_dropped_after_a_while() {
    let mut stage = Stage::new().await;
    let mut client = stage.client().await;
    let task = client.task("deaf").await;
    stage.hear("deaf").await;
    client.call("tasks/cancel", json!({ "taskId": task })).await;
    stage.hear("work ended").await;
}

#[tokio::test(start_paused = true)]
async fn a_question_is_taken_back_when_its_task_is_cancelled() {
    // V1-INPUT-11.
    let mut stage = Stage::new().await;
    let mut client = stage.client().await;
    let task = client.task("elicit").await;
    let asked = client.told("elicitation/create").await;
    client.call("tasks/cancel", json!({ "taskId": task })).await;
    client.name(&asked, "too late").await;
    stage.hear("work ended").await;
    assert_eq!(client.status(&task).await, "cancelled");
}

/// Never begins.
struct Asleep;

impl ServerHandler for Asleep {
    async fn initialize(
        &self,
        _: InitializeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        std::future::pending().await
    }
}

/// Breaks at the beginning.
struct Broken;

impl ServerHandler for Broken {
    async fn initialize(
        &self,
        _: InitializeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        panic!("on purpose")
    }
}

async fn first_words<H: ServerHandler>(make: fn() -> H) -> String {
    let outlast = Outlast::builder().build();
    let patient = outlast
        .rmcp(make)
        .with(|rmcp| rmcp.patience(Duration::from_secs(1)));
    let (_engine, front) = patient.server().open().await.unwrap();
    let mut client = Client::connect(front);
    let answer = client.introduce(json!({})).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    // The session has not begun, and can be begun.
    let again = client.introduce(json!({})).await;
    assert_eq!(again["error"]["code"], -32603, "{again}");
    text(&answer)
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_begin_is_not_waited_for_for_ever() {
    let why = first_words(|| Asleep).await;
    assert!(why.contains("within 1 s"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_breaks_at_the_beginning_is_an_error() {
    let why = first_words(|| Broken).await;
    assert!(why.contains("panic"), "{why}");
    let why = first_words(|| -> Asleep { panic!("on purpose") }).await;
    assert!(why.contains("panic"), "{why}");
}
