//! Behaviour of real servers that the specification does not describe (`docs/interpretations.md`,
//! A1).

use outlast::client::{OutcomeError, TaskPreference};
use outlast::task::Outcome;
use serde_json::json;

use crate::harness::{calling, connected, result_text, task, text};

#[tokio::test(start_paused = true)]
async fn an_early_result_error_leads_back_to_polling() {
    // A1-3: FastMCP.
    let (_client, mut server, call) = calling().await;
    server.make_task("working", 100).await;
    for status in [
        "input_required",
        "input_required",
        "working",
        "working",
        "completed",
    ] {
        let look = server.expect_request("tasks/get").await;
        server.reply(&look, task(status, 100)).await;
        if status == "input_required" {
            let fetch = server.expect_request("tasks/result").await;
            server
                .refuse(&fetch, -32602, "Task not completed yet")
                .await;
        }
    }
    let fetch = server.expect_request("tasks/result").await;
    server.reply(&fetch, text("done")).await;
    assert_eq!(
        result_text(&call.await.unwrap().outcome().await.unwrap()),
        "done"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stale_result_error_is_not_the_outcome() {
    // A1-3: FastMCP over HTTP, where notifications and responses arrive on different streams.
    let (_client, mut server, call) = calling().await;
    server.make_task("input_required", 60_000).await;
    let fetch = server.expect_request("tasks/result").await;
    server
        .notify("notifications/tasks/status", task("completed", 60_000))
        .await;
    server
        .refuse(&fetch, -32602, "Task not completed yet")
        .await;
    let fetch = server.expect_request("tasks/result").await;
    server.reply(&fetch, text("done")).await;
    assert_eq!(
        result_text(&call.await.unwrap().outcome().await.unwrap()),
        "done"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_that_a_notification_confirms_first_is_confirmed() {
    // FastMCP over HTTP.
    let (_client, mut server, call) = calling().await;
    server.make_task("working", 60_000).await;
    let call = call.await.unwrap();
    let cancelling = tokio::spawn(async move { (call.cancel().await, call.outcome().await) });
    server.expect_request("tasks/cancel").await;
    server
        .notify("notifications/tasks/status", task("cancelled", 60_000))
        .await;
    assert_eq!(cancelling.await.unwrap(), (Ok(()), Ok(Outcome::Cancelled)));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_ends_at_creation_is_fetched_at_once() {
    let (_client, mut server, call) = calling().await;
    server.make_task("completed", 60_000).await;
    let fetch = server.expect_request("tasks/result").await;
    server.reply(&fetch, text("done")).await;
    assert_eq!(
        result_text(&call.await.unwrap().outcome().await.unwrap()),
        "done"
    );
    assert!(!server.has_received("tasks/get"));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_requires_a_task_gets_one() {
    // A1-5: the TypeScript SDK says so in a result.
    let (client, mut server) = connected().await;
    let call = client.call_tool("slow", ()).task(TaskPreference::Allow);
    let call = tokio::spawn(async move { call.await.unwrap() });
    server.list(&[("slow", "optional")]).await;
    let request = server.expect_request("tools/call").await;
    assert!(request["params"].get("task").is_none());
    let mut refused = text(
        "MCP error -32601: MCP error -32601: Tool slow requires task augmentation (taskSupport: 'required')",
    );
    refused["isError"] = json!(true);
    server.reply(&request, refused).await;
    let request = server.expect_request("tools/call").await;
    assert_eq!(request["params"]["task"], json!({}));
    server.reply(&request, text("done")).await;
    assert_eq!(
        result_text(&call.await.unwrap().outcome().await.unwrap()),
        "done"
    );
}

#[tokio::test(start_paused = true)]
async fn an_empty_result_of_a_cancelled_task_is_a_cancellation() {
    // A1-1: the Python SDK.
    let (_client, mut server, call) = calling().await;
    server.make_task("input_required", 100).await;
    let fetch = server.expect_request("tasks/result").await;
    server.reply(&fetch, json!({ "_meta": {} })).await;
    let look = server.expect_request("tasks/get").await;
    server.reply(&look, task("cancelled", 100)).await;
    assert_eq!(call.await.unwrap().outcome().await, Ok(Outcome::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn an_empty_result_of_a_failed_task_is_an_error() {
    // A1-1: the Python SDK, when a tool raises.
    let (_client, mut server, call) = calling().await;
    server.make_task("working", 100).await;
    let look = server.expect_request("tasks/get").await;
    let mut failed = task("failed", 100);
    failed["statusMessage"] = json!("it crashed");
    server.reply(&look, failed).await;
    let fetch = server.expect_request("tasks/result").await;
    server.reply(&fetch, json!({ "_meta": {} })).await;
    let settled = call.await.unwrap().outcome().await;
    let Ok(Outcome::Error(_, code, Some(why))) = settled else {
        panic!("{settled:?}");
    };
    assert_eq!((code.0, &*why), (-32603, "it crashed"));
}

#[tokio::test(start_paused = true)]
async fn an_endless_tasks_result_times_out_and_polling_continues() {
    // V1-INIT-9, A1-26.
    let (_client, mut server, call) = calling().await;
    server.make_task("input_required", 3_600_000).await;
    let fetch = server.expect_request("tasks/result").await;
    let notification = server.next_message("notifications/cancelled").await;
    assert_eq!(notification["params"]["requestId"], fetch["id"]);
    let look = server.expect_request("tasks/get").await;
    server.reply(&look, task("completed", 100)).await;
    let fetch = server.expect_request("tasks/result").await;
    server.reply(&fetch, text("done")).await;
    assert_eq!(
        result_text(&call.await.unwrap().outcome().await.unwrap()),
        "done"
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_loses_the_task_after_its_ttl() {
    let (_client, mut server, call) = calling().await;
    let made = tokio::time::Instant::now();
    server.make_task("working", 100).await;
    let call = call.await.unwrap();
    let settled = call.outcome().await;
    assert!(
        matches!(settled, Err(OutcomeError::Lost { .. })),
        "{settled:?}"
    );
    assert!(made.elapsed().as_secs() >= 60, "{:?}", made.elapsed());
    server.expect_request("tasks/get").await;
}

#[tokio::test(start_paused = true)]
async fn a_transient_error_does_not_lose_the_task() {
    // A1-15, A2-29: only -32602 says that the server does not know the task.
    let (_client, mut server, call) = calling().await;
    server.make_task("working", 100).await;
    let call = call.await.unwrap();
    for code in [-32603, -32000, -32603, -32000, -32603, -32000] {
        let look = server.expect_request("tasks/get").await;
        server.refuse(&look, code, "not now").await;
    }
    let look = server.expect_request("tasks/get").await;
    server.reply(&look, task("completed", 100)).await;
    let fetch = server.expect_request("tasks/result").await;
    server.reply(&fetch, text("done")).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
}

#[tokio::test(start_paused = true)]
async fn malformed_responses_are_errors_and_no_panic() {
    let (client, mut server, call) = calling().await;
    server.list(&[("slow", "optional")]).await;
    let request = server.expect_request("tools/call").await;
    server
        .reply(&request, json!({ "task": { "status": "working" } }))
        .await;
    let settled = call.await.unwrap().outcome().await;
    assert!(
        matches!(settled, Err(OutcomeError::Request(_))),
        "{settled:?}"
    );
    let call = client.call_tool("slow", ()).await.unwrap();
    let request = server.expect_request("tools/call").await;
    server
        .reply(&request, json!({ "task": task("working", 100) }))
        .await;
    for strange in [
        json!({}),
        json!({ "taskId": "t1", "status": "paused" }),
        json!({ "taskId": 1 }),
        json!([]),
    ] {
        let look = server.expect_request("tasks/get").await;
        server.reply(&look, strange).await;
    }
    assert!(matches!(
        call.outcome().await,
        Err(OutcomeError::Lost { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn a_flooding_server_does_not_stall_its_call() {
    let (_client, mut server, call) = calling().await;
    server.list(&[("slow", "forbidden")]).await;
    let request = server.expect_request("tools/call").await;
    // More responses than pipe and queue can hold, and none of them is read.
    for id in 0..5_000 {
        let id = format!("{id}-{}", "x".repeat(64));
        server.ask(&id, "roots/list", json!({})).await;
    }
    server.reply(&request, text("done")).await;
    let settled = async { call.await.unwrap().outcome().await };
    let settled = tokio::time::timeout(std::time::Duration::from_secs(30), settled).await;
    assert_eq!(result_text(&settled.expect("it ends").unwrap()), "done");
}

#[tokio::test(start_paused = true)]
async fn a_result_that_breaks_its_schema_has_a_warning() {
    // V1-TLS-6.
    for (content, fits) in [(json!({ "n": 1 }), true), (json!({ "n": "one" }), false)] {
        let (_client, mut server, call) = calling().await;
        let list = server.expect_request("tools/list").await;
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        let tool =
            json!({ "name": "slow", "inputSchema": { "type": "object" }, "outputSchema": schema });
        server.reply(&list, json!({ "tools": [tool] })).await;
        let request = server.expect_request("tools/call").await;
        let mut result = text("done");
        result["structuredContent"] = content;
        server.reply(&request, result).await;
        let call = call.await.unwrap();
        assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
        let why = call.status().output_mismatch;
        assert_eq!(why.is_none(), fits, "{why:?}");
    }
}
