//! `initialize` and its effects.

use std::sync::Arc;

use outlast::store::MemoryStore;
use outlast::{Tool, Tools, text};
use serde_json::{Value, json};

use crate::harness::{StdioClient, samples};

#[tokio::test(start_paused = true)]
async fn tasks_are_declared_when_some_tool_can_run_as_one() {
    let mut client = StdioClient::connect(Arc::new(MemoryStore::new()), samples()).await;
    let result = client.introduce("2025-11-25", json!({})).await;
    // V1-CAP-1, V1-CAP-3, S2-86.
    let tasks = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
    assert_eq!(result["capabilities"]["tasks"], tasks);
    assert_eq!(result["protocolVersion"], "2025-11-25");
}

#[tokio::test(start_paused = true)]
async fn tasks_are_absent_when_no_tool_opts_in() {
    // S2-85, V1-CAP-11.
    let plain = Tool::new("plain", "no task", |_, _| async move { Ok(text("done")) });
    let mut client =
        StdioClient::connect(Arc::new(MemoryStore::new()), Tools::new().with(plain)).await;
    let result = client.introduce("2025-11-25", json!({})).await;
    assert_eq!(result["capabilities"].get("tasks"), None);
    let response = client
        .call("tools/call", json!({ "name": "plain", "task": {} }))
        .await;
    assert_eq!(response["result"]["content"][0]["text"], "done");
    let rejected = client.call("tasks/get", json!({ "taskId": "x" })).await;
    assert_eq!(rejected["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn an_older_revision_has_no_tasks() {
    // V1-CAP-13.
    for version in ["2025-06-18", "2025-03-26"] {
        let mut client = StdioClient::connect(Arc::new(MemoryStore::new()), samples()).await;
        let result = client.introduce(version, json!({})).await;
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["capabilities"].get("tasks"), None);
        let list = client.call("tools/list", json!({})).await;
        let tools = list["result"]["tools"].as_array().unwrap();
        assert!(
            tools.iter().all(|tool| tool.get("execution").is_none()),
            "{list}"
        );
        let response = client
            .call(
                "tools/call",
                json!({ "name": "slow", "task": { "ttl": 1 } }),
            )
            .await;
        assert_eq!(response["result"]["content"][0]["text"], "done");
    }
}

#[tokio::test(start_paused = true)]
async fn only_ping_is_served_before_initialize() {
    let mut client = StdioClient::connect(Arc::new(MemoryStore::new()), samples()).await;
    assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
    let rejected = client.call("tools/list", json!({})).await;
    assert_eq!(rejected["error"]["code"], -32600);
    client.introduce("2025-11-25", json!({})).await;
    let again = client
        .call(
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": {} }),
        )
        .await;
    assert_eq!(again["error"]["code"], -32600);
}

#[tokio::test(start_paused = true)]
async fn tools_list_has_the_task_support() {
    let mut client = StdioClient::new().await;
    let list = client.call("tools/list", json!({})).await;
    let support = |name: &str| -> Value {
        let tools = list["result"]["tools"].as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        tool.get("execution")
            .map(|execution| execution["taskSupport"].clone())
            .unwrap_or_default()
    };
    // V1-TOOL-7, V1-TOOL-8, S2-31.
    assert_eq!(support("slow"), "optional");
    assert_eq!(support("must"), "required");
    assert_eq!(support("echo"), Value::Null);
}
