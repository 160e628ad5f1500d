//! Tools of an rmcp server: listed, called without and with tasks.

use serde_json::{Value, json};

use crate::harness::{Harness, RmcpTestClient, text};

const RELATED: &str = "io.modelcontextprotocol/related-task";

#[tokio::test(start_paused = true)]
async fn the_server_info_is_the_handlers_and_tasks_are_ours() {
    // V1-CAP-1, V1-CAP-3, S2-28.
    let mut harness = Harness::new().await;
    let mut client = RmcpTestClient::connect(harness.mcp_server.clone());
    let answer = client.initialize_legacy(json!({})).await;
    let about = &answer["result"];
    assert_eq!(about["protocolVersion"], "2025-11-25");
    assert_eq!(about["instructions"], "A lab.");
    let capabilities = &about["capabilities"];
    assert_eq!(
        capabilities["tasks"],
        json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } })
    );
    assert!(capabilities["prompts"].is_object() && capabilities["completions"].is_object());
    assert_eq!(capabilities["resources"]["subscribe"], true);
    // rmcp's own task capability is not forwarded.
    assert_eq!(capabilities.get("extensions"), None);
    harness.wait_for_report("initialized").await;
}

#[tokio::test(start_paused = true)]
async fn tools_are_listed_with_their_declared_or_configured_support() {
    // V1-TOOL-7, V1-TOOL-8.
    let harness = Harness::new().await;
    let mut client = harness.client().await;
    let mut support = Vec::new();
    let mut params = json!({});
    loop {
        let page = client.call("tools/list", params).await["result"].clone();
        for tool in page["tools"].as_array().unwrap() {
            let word = tool["execution"]["taskSupport"].as_str().map(str::to_owned);
            support.push((tool["name"].as_str().unwrap().to_owned(), word));
        }
        match page.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    let expected = [
        ("echo", None),
        ("gated", Some("optional")),
        ("boom", Some("optional")),
        ("declared", Some("required")),
    ];
    let expected = expected.map(|(name, word)| (name.to_owned(), word.map(str::to_owned)));
    assert_eq!(support, expected);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_is_refused_before_a_task_exists() {
    // V1-CREATE-10.
    let harness = Harness::new().await;
    let mut client = harness.client().await;
    for params in [
        json!({ "name": "none", "task": {} }),
        json!({ "name": "none" }),
        json!({ "name": "gated", "arguments": [], "task": {} }),
    ] {
        let refused = client.call("tools/call", params).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let listed = client.call("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"], json!([]), "{listed}");
}

#[tokio::test(start_paused = true)]
async fn task_support_is_checked_before_a_call_runs() {
    // V1-TOOL-3, V1-TOOL-6: also for a tool on the second page.
    let harness = Harness::new().await;
    let mut client = harness.client().await;
    for params in [
        json!({ "name": "echo", "task": {} }),
        json!({ "name": "declared" }),
    ] {
        let refused = client.call("tools/call", params).await;
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
    }
    let task = client.task("declared").await;
    assert_eq!(text(&client.result(&task).await), "done");
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_task_returns_its_result() {
    let harness = Harness::new().await;
    let mut client = harness.client().await;
    let params = json!({ "name": "echo", "arguments": { "say": "hi" } });
    let answer = client.call("tools/call", params).await;
    assert_eq!(text(&answer), r#"{"say":"hi"}"#);
    // V1-TLS-2: the handler rejects unknown tools.
    let unknown = client
        .call("tools/call", json!({ "name": "unknown" }))
        .await;
    assert_eq!(unknown["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn the_result_of_a_call_names_its_task() {
    // V1-CREATE-1, V1-RES-5.
    let mut harness = Harness::new().await;
    let mut client = harness.client().await;
    let task = client.task("gated").await;
    harness.wait_for_report("at the gate").await;
    assert_eq!(client.status(&task).await, "working");
    harness.control.gate.add_permits(1);
    let answer = client.result(&task).await;
    assert_eq!(text(&answer), "through");
    assert_eq!(answer["result"]["_meta"][RELATED]["taskId"], task.as_str());
    assert_eq!(client.status(&task).await, "completed");
}

#[tokio::test(start_paused = true)]
async fn a_tool_error_fails_the_task_and_is_its_result() {
    // V1-LIFE-8, A1-2.
    let harness = Harness::new().await;
    let mut client = harness.client().await;
    let task = client.task("flagged").await;
    let answer = client.result(&task).await;
    assert_eq!(answer["result"]["isError"], true);
    let now = client.call("tasks/get", json!({ "taskId": task })).await;
    assert_eq!(now["result"]["status"], "failed");
    assert_eq!(now["result"]["statusMessage"], "it broke");
}

#[tokio::test(start_paused = true)]
async fn progress_has_the_token_of_the_request() {
    // V1-PROG-1, V1-PROG-2.
    let harness = Harness::new().await;
    let mut client = harness.client().await;
    let params = json!({ "name": "steps", "_meta": { "progressToken": 77 } });
    let answer = client.call("tools/call", params).await;
    assert_eq!(text(&answer), "arrived");
    for step in 1..=3 {
        let seen = client.next_message("notifications/progress").await;
        assert_eq!(seen["params"]["progressToken"], 77);
        assert_eq!(seen["params"]["progress"].as_f64(), Some(f64::from(step)));
        assert_eq!(seen["params"].get("_meta"), None);
    }
    let task = client.task("steps").await;
    client.result(&task).await;
    let seen = client.next_message("notifications/progress").await;
    assert_eq!(seen["params"]["progressToken"], "p");
    assert_eq!(seen["params"]["_meta"][RELATED]["taskId"], task.as_str());
    assert_eq!(client.tool("steps").await, "no token");
}

#[tokio::test(start_paused = true)]
async fn the_handler_gets_client_capabilities_without_tasks() {
    let harness = Harness::new().await;
    let mut client = harness.client().await;
    let seen: Value = serde_json::from_str(&client.tool("caller").await).unwrap();
    assert_eq!(seen["name"], "by-hand");
    assert_eq!(seen["version"], "2025-11-25");
    assert_eq!(
        seen["capabilities"],
        json!({ "elicitation": {}, "sampling": {}, "roots": {} })
    );
    assert_eq!(seen["host"], false);
}
