//! A handler that panics, hangs, or is cancelled.

use std::time::Duration;

use outlast::Server;
use rmcp::model::{ErrorData, InitializeRequestParams, InitializeResult};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::json;

use crate::harness::{Harness, RmcpTestClient, text};

#[tokio::test(start_paused = true)]
async fn a_panic_fails_only_its_call() {
    let mut harness = Harness::new().await;
    let mut client = harness.client().await;
    let other = client.task("gated").await;
    harness.wait_for_report("at the gate").await;
    let plain = client.call("tools/call", json!({ "name": "boom" })).await;
    assert_eq!(plain["error"]["code"], -32603);
    let task = client.task("boom").await;
    let answer = client.result(&task).await;
    assert_eq!(answer["error"]["code"], -32603);
    assert_eq!(client.status(&task).await, "failed");
    harness.control.gate.add_permits(1);
    assert_eq!(text(&client.result(&other).await), "through");
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_task_notifies_the_handler() {
    // V1-CANCEL-3, V1-CANCEL-5.
    let mut harness = Harness::new().await;
    let mut client = harness.client().await;
    let task = client.task("listens").await;
    harness.wait_for_report("listens").await;
    let cancelled = client.call("tasks/cancel", json!({ "taskId": task })).await;
    assert_eq!(cancelled["result"]["status"], "cancelled");
    harness.wait_for_report("cancelled").await;
    assert_eq!(client.status(&task).await, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_call_without_a_task_notifies_the_handler() {
    // V1-CANC-3.
    let mut harness = Harness::new().await;
    let mut client = harness.client().await;
    let id = client
        .send("tools/call", json!({ "name": "listens" }))
        .await;
    harness.wait_for_report("listens").await;
    client
        .notify("notifications/cancelled", json!({ "requestId": id }))
        .await;
    harness.wait_for_report("cancelled").await;
}

#[tokio::test(start_paused = true)]
async fn a_hanging_call_is_dropped_after_the_grace_period() {
    let mut harness = Harness::new().await;
    let mut client = harness.client().await;
    let task = client.task("deaf").await;
    harness.wait_for_report("deaf").await;
    client.call("tasks/cancel", json!({ "taskId": task })).await;
    harness.wait_for_report("work ended").await;
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_task_withdraws_its_input_request() {
    // V1-INPUT-11.
    let mut harness = Harness::new().await;
    let mut client = harness.client().await;
    let task = client.task("elicit").await;
    let request = client.next_message("elicitation/create").await;
    client.call("tasks/cancel", json!({ "taskId": task })).await;
    client.name(&request, "too late").await;
    harness.wait_for_report("work ended").await;
    assert_eq!(client.status(&task).await, "cancelled");
}

/// Never responds to `initialize`.
struct NeverInitializes;

impl ServerHandler for NeverInitializes {
    async fn initialize(
        &self,
        _: InitializeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        std::future::pending().await
    }
}

/// Panics in `initialize`.
struct PanicsOnInitialize;

impl ServerHandler for PanicsOnInitialize {
    async fn initialize(
        &self,
        _: InitializeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        panic!("on purpose")
    }
}

async fn initialize_error<H: ServerHandler>(make: fn() -> H) -> String {
    let limited = Server::rmcp(make).with(|rmcp| rmcp.start_timeout(Duration::from_secs(1)));
    let running = limited.build().start().await.unwrap();
    let mut client = RmcpTestClient::connect(running.mcp().clone());
    let answer = client.initialize_legacy(json!({})).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    // The session is not initialized, and can be.
    let again = client.initialize_legacy(json!({})).await;
    assert_eq!(again["error"]["code"], -32603, "{again}");
    text(&answer)
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_start_times_out() {
    let why = initialize_error(|| NeverInitializes).await;
    assert!(why.contains("within 1 s"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_at_start_is_an_error() {
    let why = initialize_error(|| PanicsOnInitialize).await;
    assert!(why.contains("panic"), "{why}");
    let why = initialize_error(|| -> NeverInitializes { panic!("on purpose") }).await;
    assert!(why.contains("panic"), "{why}");
}
