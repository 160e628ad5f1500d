//! What the gateway knows of a server, and answers, without a request to it.

use std::sync::Arc;
use std::time::Duration;

use outlast::Outlast;
use outlast::gateway::{Settings, TaskMode, Upstream};
use outlast::server::McpServer;
use outlast::store::{MemoryStore, Store};
use outlast::transport::stdio;
use outlast_testkit::mcp::Line;
use outlast_testkit::mcp::caller::ClientKind;
use serde_json::{Value, json};

use crate::caller::connect;
use crate::harness::{gateway, quick, started};
use crate::scripted;

#[tokio::test(start_paused = true)]
async fn task_support_follows_the_last_handshake() {
    // V2-CAP-13, BR-NEG-4.
    let (target, mut servers) = scripted::target();
    let (_, mcp_server) = gateway(Upstream::new("played", target, quick())).await;
    let connecting = tokio::spawn(async move { connect(ClientKind::V2, &mcp_server).await });
    let mut server = servers.next().await;
    server.welcome("2025-11-25", json!({ "prompts": {} })).await;
    let mut caller = connecting.await.unwrap();
    let unknown = json!({ "taskId": "0123456789abcdef0123456789abcdef" });
    for method in ["tasks/get", "tasks/cancel", "tasks/get"] {
        let answer = caller.request(method, unknown.clone()).await;
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
    server.silence(Duration::from_secs(1)).await;
    // It restarts, with tools.
    drop(server);
    let mut server = servers.next().await;
    server.welcome("2025-11-25", json!({ "tools": {} })).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let answer = caller.request("tasks/get", unknown).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

/// A poll of a task by a client that has sent nothing before.
async fn poll(mcp_server: &Arc<McpServer>, task: &Value) -> Value {
    let mcp_server = mcp_server.clone();
    let mut line = Line::served_by(|read, write| stdio::serve_on(mcp_server, read, write));
    let can = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": can,
    });
    let params = json!({ "taskId": task, "_meta": meta });
    let id = json!(1);
    line.request(&id, "tasks/get", params).await;
    line.response_to(&id).await
}

#[tokio::test(start_paused = true)]
async fn a_task_is_readable_while_its_server_starts() {
    // BR-GEN-2, BR-SEC-3: the stored data is sufficient.
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let opened = |store: Arc<dyn Store>| async move {
        let (target, servers) = scripted::target();
        let mut settings: Settings = quick();
        settings.tool_defaults.task = Some(TaskMode::Always);
        let outlast = Outlast::builder().store(store).build();
        let upstream = Upstream::new("played", target, settings);
        let (engine, mcp_server) = started(outlast.upstream(upstream)).await;
        (engine, mcp_server, servers)
    };
    let (engine, mcp_server, mut servers) = opened(store.clone()).await;
    let connecting = {
        let mcp_server = mcp_server.clone();
        tokio::spawn(async move { connect(ClientKind::V2, &mcp_server).await })
    };
    let mut server = servers.next().await;
    server.welcome("2025-11-25", json!({ "tools": {} })).await;
    let mut caller = connecting.await.unwrap();
    let listing = server.list(&[("slow", "forbidden")]);
    let (begun, ()) = tokio::join!(caller.begin(json!({ "name": "slow" })), listing);
    let task = begun["result"]["taskId"].clone();
    assert!(task.is_string(), "{begun}");
    engine.shutdown(Duration::ZERO).await.unwrap();
    drop((caller, mcp_server, server));

    let (_engine, mcp_server, mut servers) = opened(store).await;
    let got = poll(&mcp_server, &task).await;
    assert_eq!(got["result"]["taskId"], task, "{got}");
    // It has received the handshake and does not respond.
    servers.next().await.expect_request("initialize").await;
}
