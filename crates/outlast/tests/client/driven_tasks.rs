//! What a client knows of the tasks that it drives (seed 004).

use std::sync::Arc;
use std::time::Duration;

use outlast::client::{CallError, Client, ReferenceStore, Target, TaskPreference};
use outlast::store::MemoryStore;
use outlast::transport::http_client::HttpClientOptions;
use outlast::wire::{Status, Timestamp};
use serde_json::json;
use tokio::time::Instant;

use crate::harness::{calling, capabilities, connected, connected_with, result_text, task, text};

#[tokio::test(start_paused = true)]
async fn a_task_is_read_by_its_id() {
    // S4-52.
    let (client, mut server) = connected().await;
    let looking = tokio::spawn(async move { client.get_task("t1").await });
    let look = server.expect_request("tasks/get").await;
    assert_eq!(look["params"], json!({ "taskId": "t1" }));
    let mut shown = task("input_required", 700);
    shown["statusMessage"] = json!("Which one?");
    server.reply(&look, shown).await;
    let found = looking.await.unwrap().unwrap();
    assert_eq!(
        (found.id.as_str(), found.status),
        ("t1", Status::InputRequired)
    );
    assert_eq!(found.message.as_deref(), Some("Which one?"));
    assert_eq!(
        (found.ttl_ms, found.poll_interval_ms),
        (Some(60_000), Some(700))
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_without_execution_has_no_task_support() {
    // S4-46, S4-47.
    for (preference, called) in [
        (TaskPreference::Require, false),
        (TaskPreference::Prefer, true),
    ] {
        let (client, mut server) = connected().await;
        let call = client.call_tool("bare", ()).task(preference);
        let call = tokio::spawn(async move { call.await });
        let list = server.expect_request("tools/list").await;
        let tool = json!({ "name": "bare", "inputSchema": { "type": "object" } });
        server.reply(&list, json!({ "tools": [tool] })).await;
        if called {
            let request = server.expect_request("tools/call").await;
            assert_eq!(request["params"].get("task"), None);
            server.reply(&request, text("done")).await;
            let settled = call.await.unwrap().unwrap().outcome().await;
            assert_eq!(result_text(&settled.unwrap()), "done");
        } else {
            let refused = call.await.unwrap().unwrap_err();
            assert!(matches!(&refused, CallError::ToolWithoutTasks(_)));
            let words = "tool bare does not support task execution";
            assert_eq!(refused.to_string(), words);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_error_names_a_server_without_tasks() {
    // S4-45.
    let options = crate::harness::options();
    let (client, _server) = connected_with(options, json!({ "tools": {} })).await;
    let call = client.call_tool("slow", ()).task(TaskPreference::Require);
    let refused = call.await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "server test does not support task-augmented tool calls"
    );
}

#[tokio::test]
async fn the_error_names_an_unreachable_server() {
    // S4-44.
    for origin in ["http://127.0.0.1:9", "https://127.0.0.1:9"] {
        let url = format!("{origin}/mcp/secret?key=secret");
        let target = Target::http(HttpClientOptions::new(url));
        let failed = Client::connect(target, crate::harness::options()).await;
        let words = failed.err().unwrap().to_string();
        assert!(words.contains(origin), "{words}");
        assert!(!words.contains("secret"), "{words}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_input_required_notification_triggers_tasks_result() {
    // S4-24.
    let (_client, mut server, call) = calling().await;
    server.make_task("working", 60_000).await;
    let call = call.await.unwrap();
    call.task().await;
    let made = Instant::now();
    server
        .notify("notifications/tasks/status", task("input_required", 60_000))
        .await;
    let fetch = server.expect_request("tasks/result").await;
    assert_eq!(fetch["params"], json!({ "taskId": "t1" }));
    assert_eq!(Instant::now() - made, Duration::ZERO);
    server.reply(&fetch, text("done")).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_driven_task() {
    // S4-31.
    let (_client, mut server, call) = calling().await;
    server.list(&[("slow", "required")]).await;
    let request = server.expect_request("tools/call").await;
    let token = request["params"]["_meta"]["progressToken"].clone();
    let mut shown = task("working", 60_000);
    shown["statusMessage"] = json!("warming up");
    shown["lastUpdatedAt"] = json!("2026-01-10T08:00:05Z");
    server.reply(&request, json!({ "task": shown })).await;
    let call = call.await.unwrap();
    call.task().await;
    let mut updates = call.updates();
    let progress = json!({ "progressToken": token, "progress": 1, "total": 4 });
    server.notify("notifications/progress", progress).await;
    while call.status().progress.is_none() {
        updates.next().await.unwrap();
    }
    let view = call.status();
    assert_eq!((&*view.server, &*view.tool), ("test", "slow"));
    let known = view.task.unwrap();
    assert_eq!((known.id.as_str(), known.status), ("t1", Status::Working));
    assert_eq!(known.message.as_deref(), Some("warming up"));
    let created = "2026-01-10T08:00:00Z".parse::<Timestamp>().unwrap();
    assert_eq!(known.created, Some(created));
    assert_eq!(known.updated, Some(created.plus(5_000)));
    assert_eq!(
        (known.ttl_ms, known.poll_interval_ms),
        (Some(60_000), Some(60_000))
    );
    let progress = view.progress.unwrap();
    assert_eq!((progress.progress, progress.total), (1.0, Some(4.0)));
}

#[tokio::test(start_paused = true)]
async fn an_ended_task_leaves_memory_and_store() {
    // S4-28.
    let references = ReferenceStore::new(Arc::new(MemoryStore::new()));
    let options = crate::harness::options().with_references(references.clone());
    let (client, mut server) = connected_with(options, capabilities()).await;
    let call = client.call_tool("slow", ());
    let call = tokio::spawn(async move { call.await.unwrap() });
    server.make_task("working", 100).await;
    let call = call.await.unwrap();
    call.task().await;
    let stored = references.all(None).await.unwrap().remove(0);
    // A followed task cannot be followed twice.
    assert!(client.resume(stored.clone()).is_err());
    let look = server.expect_request("tasks/get").await;
    server.reply(&look, task("completed", 100)).await;
    let fetch = server.expect_request("tasks/result").await;
    server.reply(&fetch, text("done")).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
    assert!(references.all(None).await.unwrap().is_empty());
    assert!(client.resume(stored).is_ok(), "it is still followed");
}
