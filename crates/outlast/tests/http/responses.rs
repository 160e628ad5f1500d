//! Which form an answer has: JSON, a stream, or none.

use std::time::Duration;

use outlast::transport::http::HttpOptions;
use outlast_testkit::eventually;
use serde_json::json;

use crate::harness::Stage;

#[tokio::test]
async fn what_can_be_said_at_once_is_json() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    let answer = client.tool("echo", json!({ "say": "hi" })).await;
    assert!(!answer.is_stream());
    assert_eq!(answer.json().await["result"]["content"][0]["text"], "hi");
    assert_eq!(client.call("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn a_tool_that_reports_progress_is_answered_by_a_stream() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    stage.gate.add_permits(4);
    let mut answer = client.tool("steps", json!({})).await;
    assert!(answer.is_stream());
    assert_eq!(answer.header("cache-control"), Some("no-cache"));
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
    // V1-SSE-1: an id to come back with, before there is anything to say.
    let first = answer.event().await.unwrap();
    assert!(first.id.is_some() && first.message.is_none(), "{first:?}");
    let rest = answer.rest().await;
    let steps: Vec<_> = rest
        .iter()
        .map(|said| &said["params"]["progress"])
        .collect();
    assert_eq!(steps[..3], [1, 2, 3]);
    assert_eq!(rest[3]["result"]["content"][0]["text"], "arrived");
}

#[tokio::test]
async fn a_tool_that_takes_long_without_a_word_is_answered_by_a_stream_that_shows_life() {
    let stage = Stage::with(HttpOptions {
        hold: Duration::from_millis(20),
        keep_alive: Duration::from_millis(20),
        ..HttpOptions::default()
    })
    .await;
    let client = stage.client().await;
    let mut answer = client.tool("gated", json!({})).await;
    assert!(answer.is_stream());
    assert_eq!(answer.event().await.unwrap().message, None);
    answer.comment().await;
    answer.comment().await;
    stage.gate.add_permits(1);
    let (_, last) = answer.message().await.unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "through");
    assert_eq!(answer.event().await, None);
}

#[tokio::test]
async fn the_caller_says_which_forms_it_takes() {
    let stage = Stage::with(HttpOptions {
        hold: Duration::from_millis(20),
        ..HttpOptions::default()
    })
    .await;
    let client = stage.client().await;
    let call = |id, tool| {
        let params = json!({ "name": tool, "arguments": { "say": "hi" } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let echo = call(1, "echo").to_string();
    for any in ["", "*/*", "application/*"] {
        let answer = client
            .send("POST", &[("accept", any)], echo.as_bytes())
            .await;
        assert_eq!(answer.json().await["id"], 1);
    }
    let accept = [("accept", "text/event-stream")];
    let mut answer = client.send("POST", &accept, echo.as_bytes()).await;
    assert!(answer.is_stream());
    assert_eq!(answer.rest().await[0]["id"], 1);
    // Progress is lost on one who takes no streams; the result is not.
    stage.gate.add_permits(4);
    let accept = [("accept", "application/json")];
    let steps = call(2, "steps").to_string();
    let answer = client.send("POST", &accept, steps.as_bytes()).await;
    assert_eq!(answer.json().await["id"], 2);
    let accept = [("accept", "image/png")];
    assert_eq!(
        client.send("POST", &accept, echo.as_bytes()).await.status,
        406
    );
    assert_eq!(client.send("GET", &accept, b"").await.status, 406);
}

#[tokio::test]
async fn a_look_at_a_task_is_json_and_so_is_a_result_that_is_there() {
    // A1-31.
    let stage = Stage::new().await;
    let client = stage.client().await;
    let task = client.task("gated", json!({})).await;
    assert_eq!(client.status(&task).await["result"]["status"], "working");
    let mut waiting = client.result(&task).await;
    assert!(waiting.is_stream());
    stage.gate.add_permits(1);
    let rest = waiting.rest().await;
    let last = rest.last().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "through");
    assert_eq!(client.status(&task).await["result"]["status"], "completed");
    let again = client.result(&task).await;
    assert!(!again.is_stream());
    assert_eq!(again.json().await["result"], last["result"]);
}

#[tokio::test]
async fn a_call_that_is_cancelled_is_not_answered() {
    // V1-CANC-3.
    let stage = Stage::new().await;
    let client = stage.client().await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.tool("gated", json!({})).await.status }
    });
    eventually("the call runs", async || stage.engine.running() > 0).await;
    let cancelled = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 },
    });
    assert_eq!(client.post(&cancelled).await.status, 202);
    assert_eq!(waiting.await.unwrap(), 202);
}

#[tokio::test]
async fn a_broken_connection_does_not_cancel() {
    // V1-SSE-6.
    let stage = Stage::new().await;
    let client = stage.client().await;
    let task = client.task("gated", json!({})).await;
    drop(client.result(&task).await);
    stage.gate.add_permits(1);
    client.until(&task, "completed").await;
}

#[tokio::test]
async fn older_versions_have_no_tasks_and_no_events_without_data() {
    let stage = Stage::new().await;
    for version in ["2025-06-18", "2025-03-26"] {
        let mut client = stage.stranger();
        let met = client.introduce(version).await;
        assert_eq!(met["protocolVersion"], version);
        assert_eq!(met["capabilities"].get("tasks"), None);
        let told = client.status("00000000000000000000000000").await;
        assert_eq!(told["error"]["code"], -32601);
        stage.gate.add_permits(4);
        let mut answer = client.tool("steps", json!({})).await;
        let first = answer.event().await.unwrap();
        assert!(first.message.is_some(), "{first:?}");
        let body = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let stated = [("mcp-protocol-version", version)];
        assert_eq!(client.send("POST", &stated, body).await.status, 200);
    }
}

#[tokio::test]
async fn two_clients_at_once_do_not_meet() {
    let stage = Stage::new().await;
    let (one, two) = tokio::join!(stage.client(), stage.client());
    assert_ne!(one.session, two.session);
    let (mine, theirs) = tokio::join!(one.task("ask", json!({})), two.task("ask", json!({})));
    let (mut of_one, mut of_two) = tokio::join!(one.listen(None), two.listen(None));
    let (_, first) = of_one.told("elicitation/create").await;
    let (_, second) = of_two.told("elicitation/create").await;
    let related = |said: &serde_json::Value| {
        said["params"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"].clone()
    };
    assert_eq!(related(&first), mine);
    assert_eq!(related(&second), theirs);
    assert_eq!(
        one.status(&theirs).await["error"]["message"],
        "Task not found"
    );
}
