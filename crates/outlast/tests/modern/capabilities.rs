//! Declared capabilities match the methods that are served, and errors name their cause.

use std::sync::Arc;

use outlast::server::TaskPolicy;
use outlast::store::MemoryStore;
use outlast::task::Policy;
use outlast::{Server, TaskSupport, Tool, Tools, text};
use outlast_testkit::eventually;
use outlast_testkit::{FaultyStore, WriteFault};
use serde_json::{Value, json};

use crate::harness::Harness;
use crate::stdio_client::StdioClient;

async fn serving(tools: Tools) -> StdioClient {
    let server = Server::builder("test", "1").tools(tools).build();
    let running = server.start().await.unwrap();
    StdioClient::connect(running.mcp().clone())
}

#[tokio::test(start_paused = true)]
async fn a_server_without_tasks_has_no_task_methods() {
    // V2-CAP-13, V2-DISC-3.
    let plain = Tool::new("plain", "is no task", |_, _| async { Ok(text("here")) });
    let mut client = serving(Tools::new().with(plain)).await;
    let found = client.call("server/discover", json!({})).await;
    assert_eq!(found["result"]["capabilities"].get("extensions"), None);
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({ "taskId": "x", "inputResponses": {} });
        let rejected = client.call(method, params).await;
        assert_eq!(rejected["error"]["code"], -32601, "{method}");
    }
    assert_eq!(found["result"]["capabilities"].get("prompts"), None);
    assert_eq!(found["result"]["capabilities"].get("resources"), None);
    for method in ["prompts/list", "resources/list", "completion/complete"] {
        let rejected = client.call(method, json!({})).await;
        assert_eq!(rejected["error"]["code"], -32601, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_store_is_an_internal_error() {
    // V2-ERR-3, V2-ERR-5.
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let faults = store.faults();
    let harness = Harness::on(Arc::new(store), Policy::default()).await;
    let mut client = StdioClient::connect(harness.server.clone());
    let task = client.task("gated").await;
    faults.fail_writes(u64::MAX, WriteFault::BeforeCommit);
    let rejected = client.call("tasks/cancel", json!({ "taskId": task })).await;
    assert_eq!(rejected["error"]["code"], -32603, "{rejected}");
    let message = rejected["error"]["message"].as_str().unwrap();
    assert!(message.contains("store"), "{message}");
    faults.fail_writes(0, WriteFault::BeforeCommit);
    let cancelled = client.call("tasks/cancel", json!({ "taskId": task })).await;
    assert!(cancelled["result"].is_object(), "{cancelled}");
}

#[tokio::test(start_paused = true)]
async fn errors_name_their_cause() {
    // V2-ERR-5.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let unknown = client
        .call("tasks/get", json!({ "taskId": "no-such" }))
        .await;
    let message = unknown["error"]["message"].as_str().unwrap();
    assert!(message.contains("not found"), "{message}");
    let params = json!({ "taskId": "no-such" });
    let incapable = client.call_with("tasks/get", params, json!({})).await;
    let message = incapable["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("io.modelcontextprotocol/tasks"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_client_name_changes_nothing() {
    // V2-META-7.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let mut seen: Vec<Value> = Vec::new();
    for name in ["by-hand", "claude-code", "outlast"] {
        let info = json!({ "name": name, "version": "1" });
        let call = json!({
            "name": "echo",
            "arguments": { "say": "hi" },
            "_meta": { "io.modelcontextprotocol/clientInfo": info },
        });
        seen.push(client.call("tools/call", call).await["result"].clone());
    }
    assert!(seen.iter().all(|result| *result == seen[0]), "{seen:?}");
    assert_eq!(seen[0]["content"][0]["text"], "hi");
}

#[tokio::test(start_paused = true)]
async fn a_long_status_is_cut_between_characters() {
    // V2-LIFE-7: unescaped, and at most a kilobyte.
    let chatty = Tool::new("chatty", "says much", |_, cx| async move {
        cx.status(&"ä<b>".repeat(1_000));
        std::future::pending().await
    });
    let chatty = chatty
        .task(TaskSupport::Optional)
        .task_policy(TaskPolicy::Always);
    let mut client = serving(Tools::new().with(chatty)).await;
    let task = client.task("chatty").await;
    let mut message = String::new();
    let has_message = async || {
        let status = client.status(&task).await;
        message = status["statusMessage"].as_str().unwrap_or_default().into();
        !message.is_empty()
    };
    eventually("the status has a message", has_message).await;
    assert!(message.len() <= 1 << 10 && message.len() > 1_000);
    assert!("ä<b>".repeat(1_000).starts_with(&message));
}

#[tokio::test(start_paused = true)]
async fn structured_content_may_be_any_json() {
    // V2-TLS-3.
    let list = Tool::new("list", "returns a list", |_, _| async {
        let mut result = text("[1,2]");
        result["structuredContent"] = json!([1, 2]);
        Ok(result)
    });
    let list = list.output(json!({ "type": "array", "items": { "type": "integer" } }));
    let mut client = serving(Tools::new().with(list)).await;
    let listed = client.call("tools/list", json!({})).await;
    assert_eq!(
        listed["result"]["tools"][0]["outputSchema"]["type"],
        "array"
    );
    assert_eq!(
        listed["result"]["tools"][0]["inputSchema"]["type"],
        "object"
    );
    let result = client.tool("list").await["result"].clone();
    assert_eq!(result["structuredContent"], json!([1, 2]), "{result}");
}

#[tokio::test(start_paused = true)]
async fn the_switch_of_tasks_decides_for_modern_clients() {
    // S2-9.
    let tool = || {
        let tool = Tool::new("slow", "is slow", |_, _| async { Ok(text("here")) });
        tool.task(TaskSupport::Optional)
            .task_policy(TaskPolicy::Always)
    };
    for on in [true, false] {
        let server = Server::builder("test", "1").tool(tool()).tasks(on).build();
        let running = server.start().await.unwrap();
        let mut client = StdioClient::connect(running.mcp().clone());
        let found = client.call("server/discover", json!({})).await;
        let extensions = found["result"]["capabilities"].get("extensions");
        assert_eq!(extensions.is_some(), on, "{found}");
        let called = client.call("tools/call", json!({ "name": "slow" })).await;
        let expected = if on { "task" } else { "complete" };
        assert_eq!(called["result"]["resultType"], expected, "{called}");
    }
}
