//! The `_meta` of requests, and the types of responses.

use std::time::Duration;

use outlast::client::{self, ClientOptions, OutcomeError, TaskPreference};
use outlast::task::Outcome;
use serde_json::{Value, json};

use super::{
    CAPABILITIES, EXTENSION, INFO, VERSION, capabilities, connected, connected_with, created,
};
use crate::harness::{collector, result_text, text, with_inbox};

#[tokio::test(start_paused = true)]
async fn every_request_has_client_info_and_capabilities() {
    // V2-META-1, V2-META-2, V2-CAP-1, V2-ELIC-1, V2-SAMP-1, V2-ROOT-1, V2-EXT-1.
    let (_inbox, options) = with_inbox();
    let (client, mut server) = connected(options).await;
    let can = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": {} });
    let mut with_tasks = can.clone();
    with_tasks["extensions"] = json!({ EXTENSION: {} });
    for (preference, declared) in [
        (TaskPreference::Prefer, &with_tasks),
        (TaskPreference::Allow, &with_tasks),
        (TaskPreference::Require, &with_tasks),
        (TaskPreference::Forbid, &can),
    ] {
        let call = client.call_tool("x", ()).task(preference);
        let call = tokio::spawn(async move { call.await.unwrap() });
        let request = server.next_request().await;
        assert_eq!(request["method"], "tools/call");
        // V2-CREATE-9: no V1 members.
        assert!(request["params"].get("task").is_none());
        let meta = &request["params"]["_meta"];
        assert_eq!(meta[VERSION], "2026-07-28");
        assert_eq!(meta[INFO]["name"], "outlast");
        assert_eq!(meta[CAPABILITIES], *declared, "{preference:?}");
        server.reply(&request, text("done")).await;
        assert_eq!(
            result_text(&call.await.unwrap().outcome().await.unwrap()),
            "done"
        );
    }
    let listing = tokio::spawn({
        let client = client.clone();
        async move { client.tools().await }
    });
    let list = server.next_request().await;
    assert_eq!(list["method"], "tools/list");
    // Servers may list other tools for a client without tasks.
    assert_eq!(list["params"]["_meta"][CAPABILITIES], with_tasks);
    server.reply(&list, json!({ "tools": [] })).await;
    assert!(listing.await.unwrap().unwrap().is_empty());
    for (method, declared) in [("prompts/list", &can), ("tasks/get", &with_tasks)] {
        let asking = tokio::spawn({
            let client = client.clone();
            async move { client.request(method, None).await }
        });
        let request = server.next_request().await;
        assert_eq!(request["method"], method);
        assert_eq!(request["params"]["_meta"][CAPABILITIES], *declared);
        let answer = json!({ "resultType": "complete", "x": 1 });
        server.reply(&request, answer).await;
        // BR-RES-2: the same as from a legacy server.
        assert_eq!(asking.await.unwrap().unwrap().as_str(), r#"{"x":1}"#);
    }
}

#[tokio::test(start_paused = true)]
async fn meta_of_the_caller_is_kept() {
    // V2-META-8, V2-META-9.
    let (client, mut server) = connected(ClientOptions::default()).await;
    let own = json!({
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate": "a=b",
        "baggage": "c=d",
        "io.modelcontextprotocol/logLevel": "info",
        "com.example/mine": { "x": 1 },
    });
    let params = crate::harness::raw(json!({ "_meta": own, "extra": 1 }));
    let call = client.call_tool("x", ()).params(params).await.unwrap();
    let request = server.expect_request("tools/call").await;
    assert_eq!(request["params"]["extra"], 1);
    for (key, value) in own.as_object().unwrap() {
        assert_eq!(request["params"]["_meta"][key], *value);
    }
    assert_eq!(request["params"]["_meta"][VERSION], "2026-07-28");
    server.reply(&request, text("done")).await;
    call.outcome().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_error_is_the_outcome_whatever_its_code() {
    // V2-CODE-1, V2-CODE-5.
    let (client, mut server) = connected(ClientOptions::default()).await;
    for code in [
        -32000, -32002, -32007, -32019, -32020, -32021, -32602, -1, 7,
    ] {
        let call = client.call_tool("x", ()).await.unwrap();
        let request = server.expect_request("tools/call").await;
        server.refuse(&request, code, "no").await;
        let settled = call.outcome().await;
        assert!(
            matches!(&settled, Ok(Outcome::Error(_, said, _)) if said.0 == code),
            "{settled:?}"
        );
    }
    server.silence(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn removed_methods_are_not_sent() {
    // V2-ROOT-1, V2-ERA-9.
    let (client, mut server) = connected(ClientOptions::default()).await;
    client.roots_changed().await.unwrap();
    let pinging = tokio::spawn({
        let client = client.clone();
        async move { client.ping().await }
    });
    let request = server.next_request().await;
    assert_eq!(request["method"], "server/discover");
    server.reply(&request, super::discovered(json!({}))).await;
    pinging.await.unwrap().unwrap();
    assert_eq!(
        client.list_tasks().await.err(),
        Some(client::Error::Unsupported("listing tasks".into()))
    );
    server.silence(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn a_response_of_unknown_type_is_an_error() {
    // V2-RT-5, V2-RT-6, V2-CAP-8, A3-6.
    let (client, mut server) = connected(ClientOptions::default()).await;
    for (preference, answer, valid) in [
        (TaskPreference::Prefer, json!({ "content": [] }), true),
        (
            TaskPreference::Prefer,
            json!({ "content": [], "resultType": "complete" }),
            true,
        ),
        (
            TaskPreference::Prefer,
            json!({ "content": [], "resultType": "later" }),
            false,
        ),
        (TaskPreference::Forbid, created("working", 100), false),
        (
            TaskPreference::Prefer,
            json!({ "resultType": "task", "taskId": 7 }),
            false,
        ),
        (
            TaskPreference::Prefer,
            json!({ "resultType": "input_required" }),
            false,
        ),
    ] {
        let call = client.call_tool("x", ()).task(preference);
        let call = tokio::spawn(async move { call.await.unwrap() });
        let request = server.expect_request("tools/call").await;
        server.reply(&request, answer.clone()).await;
        let settled = call.await.unwrap().outcome().await;
        if valid {
            assert_eq!(
                settled,
                Ok(Outcome::Result(crate::harness::raw(
                    json!({ "content": [] })
                )))
            );
        } else {
            assert!(
                matches!(
                    settled,
                    Err(OutcomeError::Request(client::Error::Malformed(_)))
                ),
                "{answer}: {settled:?}"
            );
        }
    }
    for answer in [created("working", 100), json!({ "resultType": "later" })] {
        let asking = tokio::spawn({
            let client = client.clone();
            async move { client.request("prompts/get", None).await }
        });
        let request = server.expect_request("prompts/get").await;
        server.reply(&request, answer).await;
        let failed = asking.await.unwrap();
        assert!(
            matches!(failed, Err(client::Error::Malformed(_))),
            "{failed:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_no_longer_supported_is_reported() {
    // V2-VER-2.
    let (client, mut server) = connected(ClientOptions::default()).await;
    let call = client.call_tool("x", ());
    let call = tokio::spawn(async move { call.await.unwrap() });
    let request = server.expect_request("tools/call").await;
    let data = json!({ "supported": ["2099-01-01"], "requested": "2026-07-28" });
    let error = json!({ "code": -32022, "message": "no", "data": data });
    let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "error": error });
    server.write(answer).await;
    let settled = call.await.unwrap().outcome().await;
    assert!(
        matches!(&settled, Err(OutcomeError::Request(client::Error::Unsupported(why))) if why.contains("2099-01-01")),
        "{settled:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_of_the_server_is_not_answered() {
    // V2-BASE-3, V2-STDIO-3.
    let (_inbox, options) = with_inbox();
    let (_client, mut server) = connected(options).await;
    server.ask("q", "roots/list", json!({})).await;
    server.ask("p", "ping", json!({})).await;
    server.silence(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_cancelled_on_a_pipe() {
    // V2-CANC-1, V2-CANC-4.
    let (client, mut server) = connected(ClientOptions::default()).await;
    for preference in [TaskPreference::Forbid, TaskPreference::Prefer] {
        let call = client.call_tool("x", ()).task(preference).await.unwrap();
        let request = server.expect_request("tools/call").await;
        assert_eq!(call.cancel().await, Ok(()));
        assert_eq!(call.outcome().await, Ok(Outcome::Cancelled));
        let notification = server.next_message("notifications/cancelled").await;
        assert_eq!(notification["params"]["requestId"], request["id"]);
        let call = client.call_tool("x", ()).task(preference).await.unwrap();
        let request = server.expect_request("tools/call").await;
        drop(call);
        let notification = server.next_message("notifications/cancelled").await;
        assert_eq!(notification["params"]["requestId"], request["id"]);
    }
    // A timeout has the same effect.
    let options = ClientOptions::default().with_idle_timeout(Duration::from_secs(3));
    let (client, mut server) = connected(options).await;
    let call = client.call_tool("x", ()).await.unwrap();
    let request = server.expect_request("tools/call").await;
    let settled = call.outcome().await;
    assert!(matches!(
        settled,
        Err(OutcomeError::Request(client::Error::TimedOut(_)))
    ));
    let notification = server.next_message("notifications/cancelled").await;
    assert_eq!(notification["params"]["requestId"], request["id"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_created_after_its_call_was_dropped_is_cancelled() {
    // V2-CANCEL-1, A1-25.
    let (client, mut server) = connected(ClientOptions::default()).await;
    let call = client.call_tool("x", ()).await.unwrap();
    let request = server.expect_request("tools/call").await;
    drop(call);
    server.next_message("notifications/cancelled").await;
    server.reply(&request, created("working", 100)).await;
    let cancel = server.expect_request("tasks/cancel").await;
    assert_eq!(cancel["params"]["taskId"], "t1");
    assert!(cancel["params"]["_meta"][CAPABILITIES]["extensions"][EXTENSION].is_object());
    server
        .reply(&cancel, json!({ "resultType": "complete" }))
        .await;
}

#[tokio::test(start_paused = true)]
async fn progress_and_logs_of_a_call_arrive() {
    // V2-PRG-1, A2-31.
    let (received, collect) = collector();
    let options = ClientOptions::default()
        .with_on_notification(std::sync::Arc::new(move |method, _| collect(method)));
    let (client, mut server) = connected(options).await;
    let call = client.call_tool("x", ()).await.unwrap();
    let mut updates = call.updates();
    let request = server.expect_request("tools/call").await;
    let token = &request["params"]["_meta"]["progressToken"];
    let progress = json!({ "progressToken": token, "progress": 1, "total": 2 });
    server.notify("notifications/progress", progress).await;
    let log = json!({ "level": "info", "data": "x" });
    server.notify("notifications/message", log).await;
    let view = updates.next().await.unwrap();
    assert_eq!(view.progress.unwrap().total, Some(2.0));
    server.reply(&request, text("done")).await;
    call.outcome().await.unwrap();
    assert_eq!(*received.lock().unwrap(), ["notifications/message"]);
}

#[tokio::test(start_paused = true)]
async fn the_tool_list_is_cached_while_the_server_allows() {
    // V2-CACHE-2, V2-CACHE-4, V2-PAGE-1.
    let mut declared = capabilities();
    declared["tools"] = json!({ "listChanged": true });
    let (_received, collect) = collector();
    let options = ClientOptions::default()
        .with_on_notification(std::sync::Arc::new(move |method, _| collect(method)));
    let (client, mut server) = connected_with(options, declared).await;
    let listed = async |server: &mut crate::harness::TestServer, ttl: Value| {
        let listing = tokio::spawn({
            let client = client.clone();
            async move { client.tools().await.unwrap().len() }
        });
        // V2-PAGE-1: only the absence of a cursor ends a list.
        let page = server.expect_request("tools/list").await;
        let tools = json!([{ "name": "a", "inputSchema": {} }]);
        let first = json!({ "tools": tools, "nextCursor": "", "ttlMs": ttl });
        server.reply(&page, first).await;
        let page = server.expect_request("tools/list").await;
        assert_eq!(page["params"]["cursor"], "");
        let last = json!({ "tools": [{ "name": "b", "inputSchema": {} }], "ttlMs": ttl });
        server.reply(&page, last).await;
        assert_eq!(listing.await.unwrap(), 2);
    };
    // Absent and negative mean stale.
    listed(&mut server, json!(null)).await;
    listed(&mut server, json!(-5)).await;
    listed(&mut server, json!(10_000)).await;
    assert_eq!(client.tools().await.unwrap().len(), 2);
    tokio::time::advance(Duration::from_secs(11)).await;
    listed(&mut server, json!(60_000)).await;
    server
        .notify("notifications/tools/list_changed", json!({}))
        .await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    listed(&mut server, json!(0)).await;
    listed(&mut server, json!(60_000)).await;
    assert_eq!(client.tools().await.unwrap().len(), 2);
    let (other, mut server) = connected(ClientOptions::default()).await;
    let listing = tokio::spawn(async move { other.tools().await.unwrap().len() });
    let page = server.expect_request("tools/list").await;
    server.reply(&page, json!({ "tools": [] })).await;
    assert_eq!(listing.await.unwrap(), 0);
}
