//! Which calls become tasks, and when.

use std::sync::Arc;
use std::time::Duration;

use outlast::store::MemoryStore;
use outlast::task::Policy;
use outlast_testkit::{FaultyStore, WriteFault};
use serde_json::json;

use crate::harness::{Harness, name_response};
use crate::stdio_client::{StdioClient, no_tasks};

#[tokio::test(start_paused = true)]
async fn a_quick_call_is_inline_and_stores_nothing() {
    // V2-CREATE-10, V2-CREATE-9: `task` of V1 is ignored.
    let harness = Harness::new().await;
    let mut client = StdioClient::connect(harness.server.clone());
    let params = json!({ "name": "echo", "arguments": { "say": "hi" }, "task": { "ttl": 1 } });
    let received = client.call("tools/call", params).await;
    assert_eq!(received["result"]["resultType"], "complete");
    assert_eq!(received["result"]["content"][0]["text"], "hi");
    harness.open_gate();
    let through = client.tool("gated").await;
    assert_eq!(through["result"]["resultType"], "complete");
    let usage = harness
        .engine
        .usage(&outlast::server::local_owner())
        .await
        .unwrap();
    assert_eq!(usage.retained, 0);
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_becomes_a_task_after_its_grace_period() {
    // V2-CAP-4, V2-CREATE-2, V2-CREATE-3, V2-TTL-1: flat, without payload, with the names of V2.
    let harness = Harness::new().await;
    let mut client = StdioClient::connect(harness.server.clone());
    let begun = tokio::time::Instant::now();
    let created = client.tool("gated").await["result"].clone();
    assert_eq!(begun.elapsed().as_millis() / 10, 70);
    assert_eq!(created["resultType"], "task");
    assert_eq!(created["status"], "working");
    assert!(created["ttlMs"].as_u64() > Some(0) && created["pollIntervalMs"].as_u64() > Some(0));
    for absent in [
        "task",
        "result",
        "error",
        "inputRequests",
        "requestState",
        "ttl",
    ] {
        assert_eq!(created.get(absent), None, "{absent}");
    }
    // V2-CREATE-5: without delay, also on another connection.
    let mut other = StdioClient::connect(harness.server.clone());
    let id = created["taskId"].as_str().unwrap();
    assert_eq!(other.status(id).await["status"], "working");
    harness.open_gate();
    let done = other.until(id, "completed").await;
    // A2-1, V2-GET-6, V2-GET-7.
    assert_eq!(done["result"]["resultType"], "complete");
    assert_eq!(done["result"]["content"][0]["text"], "through");
    assert_eq!(harness.started_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_without_the_extension_never_becomes_a_task() {
    // V2-CAP-6, V2-CAP-11, V2-CAP-14: declarations of earlier requests do not count.
    let harness = Harness::new().await;
    let mut client = StdioClient::connect(harness.server.clone());
    client.task("gated").await;
    for can in [
        no_tasks(),
        json!({ "tasks": { "requests": { "tools": { "call": {} } } } }),
        json!({ "extensions": { "io.modelcontextprotocol/tasks": true } }),
    ] {
        let plain = client
            .send_with("tools/call", json!({ "name": "gated" }), can)
            .await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        harness.gate.add_permits(2);
        let plain = client.response_to(plain).await;
        assert_eq!(plain["result"]["resultType"], "complete");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_only_tool_requires_the_extension() {
    // V2-CAP-9, V2-ERR-4.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let params = json!({ "name": "must" });
    let rejected = client.call_with("tools/call", params, no_tasks()).await;
    assert_eq!(rejected["error"]["code"], -32021);
    let required = &rejected["error"]["data"]["requiredCapabilities"];
    assert_eq!(
        required["extensions"]["io.modelcontextprotocol/tasks"],
        json!({})
    );
    client.task("must").await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_requires_the_capabilities_of_its_input_requests() {
    // V2-META-5.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let params = json!({ "name": "model" });
    let can = json!({ "elicitation": {} });
    let rejected = client.call_with("tools/call", params, can).await;
    assert_eq!(rejected["error"]["code"], -32021);
    let required = &rejected["error"]["data"]["requiredCapabilities"];
    assert_eq!(*required, json!({ "sampling": {} }));
}

#[tokio::test(start_paused = true)]
async fn unknown_tools_are_errors_and_bad_arguments_are_results() {
    // V2-TLS-6.
    let mut client = StdioClient::connect(Harness::new().await.server);
    assert_eq!(client.tool("unknown").await["error"]["code"], -32602);
    let nameless = client.call("tools/call", json!({})).await;
    assert_eq!(nameless["error"]["code"], -32602);
    assert_eq!(client.tool("echo").await["result"]["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn an_input_request_within_the_grace_period_makes_a_task() {
    let mut client = StdioClient::connect(Harness::new().await.server);
    let begun = tokio::time::Instant::now();
    let task = client.task("ask").await;
    assert!(begun.elapsed() < Duration::from_millis(100));
    let asks = client.status(&task).await;
    assert_eq!(asks["status"], "input_required");
    let requests = asks["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create");
    let responses = json!({ key: name_response("Ada") });
    client
        .call(
            "tasks/update",
            json!({ "taskId": task, "inputResponses": responses }),
        )
        .await;
    let done = client.until(&task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Hello, \"Ada\"!");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_stored_is_inline() {
    let policy = Policy::default().with_quota(Policy::default().quota.with_owner_open(1));
    let harness = Harness::with(policy).await;
    let mut client = StdioClient::connect(harness.server.clone());
    client.task("gated").await;
    // The quota is used up.
    let second = client.send("tools/call", json!({ "name": "gated" })).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    harness.gate.add_permits(2);
    let second = client.response_to(second).await;
    assert_eq!(second["result"]["resultType"], "complete");
    assert_eq!(harness.started_calls(), 2);
    // A tool that always runs as a task returns the error.
    let blocked = client.task("gated").await;
    let rejected = client.tool("tidy").await;
    assert_eq!(rejected["error"]["code"], -32603, "{rejected}");
    client
        .call("tasks/cancel", json!({ "taskId": blocked }))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_stored_returns_its_input_requests() {
    let policy = Policy::default().with_quota(Policy::default().quota.with_owner_open(0));
    let mut client = StdioClient::connect(Harness::with(policy).await.server);
    let input_required = client.tool("ask").await["result"].clone();
    assert_eq!(input_required["resultType"], "input_required");
    let key = input_required["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap();
    let retry = json!({
        "name": "ask", "requestState": input_required["requestState"],
        "inputResponses": { key: name_response("Ada") },
    });
    let received = client.call("tools/call", retry).await;
    assert_eq!(received["result"]["content"][0]["text"], "Hello, \"Ada\"!");
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_store_does_not_stop_a_call() {
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let faults = store.faults();
    let harness = Harness::on(Arc::new(store), Policy::default()).await;
    let mut client = StdioClient::connect(harness.server.clone());
    faults.fail_writes(u64::MAX, WriteFault::BeforeCommit);
    let call = client.send("tools/call", json!({ "name": "gated" })).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    harness.open_gate();
    let response = client.response_to(call).await;
    assert_eq!(response["result"]["content"][0]["text"], "through");
}
