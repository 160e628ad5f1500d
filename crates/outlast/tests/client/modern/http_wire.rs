//! Modern requests over HTTP, byte by byte (V2-HH, V2-PARAM, V2-HTTP).

use outlast::client::{
    self, Client, ClientOptions, Execution, OutcomeError, Target, TaskPreference,
};
use outlast::task::Outcome;
use outlast::transport::http_client::HttpClientOptions;
use outlast_testkit::mcp::ScriptedHttpServer;
use serde_json::{Value, json};

use super::{VERSION, capabilities, created, discovered, task_result};
use crate::harness::{raw, result_text, text};

async fn connected() -> (Client, ScriptedHttpServer) {
    let mut wire = ScriptedHttpServer::listen().await;
    let target = Target::http(HttpClientOptions::new(&wire.url));
    let connecting = tokio::spawn(Client::connect(target, ClientOptions::default()));
    let request = wire.next("POST", "server/discover").await;
    request.reply(discovered(capabilities())).await;
    (connecting.await.unwrap().unwrap(), wire)
}

/// Responds to `tools/list` with tools of these names and schemas.
async fn list(wire: &mut ScriptedHttpServer, tools: &[(&str, Value)]) {
    let list = wire.next("POST", "tools/list").await;
    let tool = |(name, properties): &(&str, Value)| {
        let schema = json!({ "type": "object", "properties": properties });
        json!({ "name": name, "inputSchema": schema })
    };
    let tools: Vec<_> = tools.iter().map(tool).collect();
    list.reply(json!({ "tools": tools, "ttlMs": 60_000 })).await;
}

fn calling(client: &Client, tool: &str, arguments: Value) -> tokio::task::JoinHandle<Execution> {
    let call = client.call_tool(tool, Some(raw(arguments)));
    tokio::spawn(async move { call.await.unwrap() })
}

#[tokio::test]
async fn headers_repeat_the_body() {
    // V2-HH-1, V2-HH-3, V2-HH-5, V2-HDR-1, V2-HDR-5, V2-HTTP-3, V2-HTTP-7, A2-33.
    let (client, mut wire) = connected().await;
    let call = calling(&client, "größe", json!({}));
    list(&mut wire, &[]).await;
    let request = wire.next("POST", "tools/call").await;
    assert_eq!(request.header("mcp-protocol-version"), "2026-07-28");
    assert_eq!(request.body["params"]["_meta"][VERSION], "2026-07-28");
    assert_eq!(request.header("mcp-method"), "tools/call");
    assert_eq!(request.header("mcp-name"), "=?base64?Z3LDtsOfZQ==?=");
    assert_eq!(
        request.header("accept"),
        "application/json, text/event-stream"
    );
    assert!(!request.headers.contains_key("mcp-session-id"));
    let mut seed = created("working", 100);
    seed["taskId"] = json!(" odd");
    request.reply(seed).await;
    let call = call.await.unwrap();
    let look = wire.next("POST", "tasks/get").await;
    assert_eq!(look.header("mcp-method"), "tasks/get");
    assert_eq!(look.header("mcp-name"), "=?base64?IG9kZA==?=");
    let mut ended = task_result("completed", 100, json!({ "result": text("done") }));
    ended["taskId"] = json!(" odd");
    look.reply(ended).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
    for (method, params, name) in [
        ("prompts/get", json!({ "name": "p" }), "p"),
        ("resources/read", json!({ "uri": "file:///a" }), "file:///a"),
        ("tasks/cancel", json!({ "taskId": "t" }), "t"),
        ("prompts/list", json!({}), ""),
    ] {
        let asking = tokio::spawn({
            let client = client.clone();
            async move { client.request(method, Some(&raw(params))).await }
        });
        let request = wire.next("POST", method).await;
        assert_eq!(request.header("mcp-method"), method);
        assert_eq!(request.header("mcp-name"), name);
        request.reply(json!({})).await;
        asking.await.unwrap().unwrap();
    }
    client.close().await;
}

#[tokio::test]
async fn annotated_arguments_are_sent_as_headers() {
    // V2-PARAM-1, V2-PARAM-3, V2-PARAM-4.
    let (client, mut wire) = connected().await;
    let marked = json!({
        "region": { "type": "string", "x-mcp-header": "Region" },
        "count": { "type": "integer", "x-mcp-header": "Count" },
        "dry": { "type": "boolean", "x-mcp-header": "Dry" },
        "none": { "type": "string", "x-mcp-header": "None" },
        "rest": { "type": "string" },
    });
    let bad = json!({ "x": { "type": "number", "x-mcp-header": "X" } });
    let arguments = json!({ "region": "öst", "count": -7, "dry": true, "none": null, "rest": "r" });
    let call = calling(&client, "good", arguments);
    list(&mut wire, &[("good", marked), ("bad", bad)]).await;
    let request = wire.next("POST", "tools/call").await;
    assert_eq!(request.header("mcp-param-region"), "=?base64?w7ZzdA==?=");
    assert_eq!(request.header("mcp-param-count"), "-7");
    assert_eq!(request.header("mcp-param-dry"), "true");
    assert!(!request.headers.contains_key("mcp-param-none"));
    assert!(!request.headers.contains_key("mcp-param-rest"));
    request.reply(text("done")).await;
    call.await.unwrap().outcome().await.unwrap();
    // A tool with invalid annotations is not listed; the others are.
    let tools = client.tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["good"]);
}

#[tokio::test]
async fn headers_follow_a_changed_list() {
    // V2-PARAM-6.
    let (client, mut wire) = connected().await;
    let call = calling(&client, "x", json!({ "region": "west" }));
    list(
        &mut wire,
        &[("x", json!({ "region": { "type": "string" } }))],
    )
    .await;
    let request = wire.next("POST", "tools/call").await;
    assert!(!request.headers.contains_key("mcp-param-region"));
    let error = json!({ "code": -32020, "message": "header is missing" });
    let error = json!({ "jsonrpc": "2.0", "id": request.body["id"], "error": error });
    request.json(400, "", &error.to_string()).await;
    let marked = json!({ "region": { "type": "string", "x-mcp-header": "Region" } });
    list(&mut wire, &[("x", marked)]).await;
    let request = wire.next("POST", "tools/call").await;
    assert_eq!(request.header("mcp-param-region"), "west");
    request.reply(text("done")).await;
    assert_eq!(
        result_text(&call.await.unwrap().outcome().await.unwrap()),
        "done"
    );
}

#[tokio::test]
async fn an_external_schema_reference_is_not_followed() {
    // V2-TLS-4, V2-TLS-5.
    let (client, mut wire) = connected().await;
    let deep = (0..60).fold(
        json!({}),
        |inner, _| json!({ "properties": { "x": inner } }),
    );
    let there = json!({ "there": { "$ref": wire.url }, "deep": deep });
    let call = calling(&client, "x", json!({ "there": 1 }));
    list(&mut wire, &[("x", there)]).await;
    let request = wire.any().await;
    assert_eq!(request.body["method"], "tools/call");
    request.reply(text("done")).await;
    assert_eq!(
        result_text(&call.await.unwrap().outcome().await.unwrap()),
        "done"
    );
}

#[tokio::test]
async fn a_stream_has_notifications_and_the_response_and_closing_cancels() {
    // V2-HTTP-10, V2-CANC-1, V2-PRG-1.
    let (client, mut wire) = connected().await;
    let call = calling(&client, "x", json!({}));
    list(&mut wire, &[]).await;
    let request = wire.next("POST", "tools/call").await;
    let token = request.body["params"]["_meta"]["progressToken"].clone();
    let answer = request.response(text("done"));
    let mut stream = request.stream().await;
    let call = call.await.unwrap();
    let mut updates = call.updates();
    let params = json!({ "progressToken": token, "progress": 1 });
    let progress =
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
    stream
        .send(&format!(": alive\n\ndata: {progress}\n\n: alive\n\n"))
        .await;
    assert!(updates.next().await.unwrap().progress.is_some());
    stream.send(&format!("data: {answer}\n\n")).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
    for preference in [TaskPreference::Forbid, TaskPreference::Prefer] {
        let call = client.call_tool("x", ()).task(preference);
        let call = tokio::spawn(async move { call.await.unwrap() });
        let request = wire.next("POST", "tools/call").await;
        let mut stream = request.stream().await;
        let call = call.await.unwrap();
        assert_eq!(call.cancel().await, Ok(()));
        assert_eq!(call.outcome().await, Ok(Outcome::Cancelled));
        // The other end is closed, which a later write shows.
        let closed = async { while stream.try_send(": alive\n\n").await {} };
        tokio::time::timeout(std::time::Duration::from_secs(10), closed)
            .await
            .unwrap();
    }
    // No cancellation was sent.
    let asking = tokio::spawn({
        let client = client.clone();
        async move { client.request("prompts/list", None).await }
    });
    let next = wire.any().await;
    assert_eq!(next.body["method"], "prompts/list");
    next.reply(json!({})).await;
    asking.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_broken_stream_loses_a_call_and_no_poll() {
    // V2-HTTP-7, V2-HTTP-8.
    let (client, mut wire) = connected().await;
    let call = calling(&client, "x", json!({}));
    list(&mut wire, &[]).await;
    let request = wire.next("POST", "tools/call").await;
    let mut stream = request.stream().await;
    stream.send("id: 7\ndata:\n\n").await;
    drop(stream);
    let settled = call.await.unwrap().outcome().await;
    assert!(
        matches!(
            settled,
            Err(OutcomeError::Request(client::Error::Transport(_)))
        ),
        "{settled:?}"
    );
    let call = calling(&client, "x", json!({}));
    // The stream was not resumed, and the call not repeated.
    let request = wire.any().await;
    assert_eq!(request.body["method"], "tools/call");
    request.reply(created("working", 100)).await;
    let call = call.await.unwrap();
    let look = wire.next("POST", "tasks/get").await;
    let first = look.body["id"].clone();
    drop(look.stream().await);
    let look = wire.next("POST", "tasks/get").await;
    assert_ne!(look.body["id"], first);
    assert!(!look.headers.contains_key("last-event-id"));
    let ended = task_result("completed", 100, json!({ "result": text("done") }));
    look.reply(ended).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
}

#[tokio::test]
async fn retry_after_delays_requests() {
    // V2-GET-9, A2-29, A2-30.
    let (client, mut wire) = connected().await;
    let call = calling(&client, "x", json!({}));
    list(&mut wire, &[]).await;
    let request = wire.next("POST", "tools/call").await;
    request.reply(created("working", 100)).await;
    let call = call.await.unwrap();
    wire.next("POST", "tasks/get").await.plain(429).await;
    let look = wire.next("POST", "tasks/get").await;
    let began = std::time::Instant::now();
    look.raw("HTTP/1.1 429 X\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n")
        .await;
    let look = wire.next("POST", "tasks/get").await;
    assert!(began.elapsed() >= std::time::Duration::from_secs(1));
    let ended = task_result("completed", 100, json!({ "result": text("done") }));
    let body = look.response(ended);
    // The body counts, whatever the status.
    look.json(400, "", &body).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
}
