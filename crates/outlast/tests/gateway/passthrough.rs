//! Messages that do not concern tasks pass the gateway: requests, notifications, list pages,
//! subscriptions, unknown members.

use std::sync::Arc;

use outlast::gateway::Upstream;
use outlast::server::McpServer;
use outlast_testkit::mcp::caller::{CLIENT_KINDS, Caller, ClientKind};
use serde_json::{Value, json};

use crate::caller::connect;
use crate::cell::ServerKind;
use crate::harness::{Harness, gateway, quick};
use crate::scripted::{self, TestServer};

/// A gateway in front of a scripted server, and an initialized client.
async fn scripted_gateway(
    kind: ClientKind,
    capabilities: Value,
) -> (Caller, TestServer, Arc<McpServer>) {
    let (target, mut servers) = scripted::target();
    let (_, mcp_server) = gateway(Upstream::new("played", target, quick())).await;
    let connecting = {
        let mcp_server = mcp_server.clone();
        tokio::spawn(async move { connect(kind, &mcp_server).await })
    };
    let mut server = servers.next().await;
    server.welcome("2025-11-25", capabilities).await;
    (connecting.await.unwrap(), server, mcp_server)
}

#[tokio::test(start_paused = true)]
async fn prompts_and_resources_come_from_the_server() {
    // BR-LIST-5, BR-LIST-6.
    let harness = Harness::new(ServerKind::PlainLegacy).await;
    let requests = [
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "greet" })),
        ("resources/list", json!({})),
        ("resources/read", json!({ "uri": "note:one" })),
        ("resources/templates/list", json!({})),
    ];
    for (method, params) in requests {
        for kind in CLIENT_KINDS {
            let mut direct = connect(kind, &harness.direct).await;
            let mut through = connect(kind, &harness.mcp_server).await;
            let mut expected = direct.request(method, params.clone()).await["result"].clone();
            let mut answer = through.request(method, params.clone()).await["result"].clone();
            for result in [&mut expected, &mut answer] {
                assert!(result.is_object(), "{kind:?}: {method}");
                // Each hop has its own server info.
                let members = result.as_object_mut().unwrap();
                members.remove("_meta");
            }
            assert_eq!(answer, expected, "{kind:?}: {method}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_method_passes_with_every_member() {
    for kind in CLIENT_KINDS {
        let (mut caller, mut server, _front) = scripted_gateway(kind, json!({ "tools": {} })).await;
        let params = json!({ "odd": [1, { "x": null }], "_meta": { "traceparent": "00-1-2-01" } });
        let id = caller.send("example/odd", params).await;
        let request = server.expect_request("example/odd").await;
        assert_eq!(request["params"]["odd"], json!([1, { "x": null }]));
        assert_eq!(request["params"]["_meta"]["traceparent"], "00-1-2-01");
        // BR-GEN-1: no members of the other hop.
        let meta = request["params"]["_meta"].as_object().unwrap();
        assert!(
            !meta
                .keys()
                .any(|key| key.starts_with("io.modelcontextprotocol/")),
            "{meta:?}"
        );
        server
            .reply(&request, json!({ "strange": 1.5, "_meta": { "k": 1 } }))
            .await;
        let answer = caller.response_to(id).await["result"].clone();
        assert_eq!(answer["strange"], 1.5, "{kind:?}");
        assert_eq!(answer["_meta"]["k"], 1, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn null_params_pass_as_no_params() {
    let (mut caller, mut server, _front) =
        scripted_gateway(ClientKind::V1, json!({ "tools": {} })).await;
    let id = caller.send("example/odd", Value::Null).await;
    let request = server.expect_request("example/odd").await;
    let params = request.get("params");
    assert!(params.is_none_or(Value::is_object), "{request}");
    server.reply(&request, json!({})).await;
    assert_eq!(caller.response_to(id).await["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_server_reaches_the_client() {
    let (mut caller, mut server, _front) =
        scripted_gateway(ClientKind::V1, json!({ "prompts": {} })).await;
    let id = caller.send("prompts/get", json!({ "name": "x" })).await;
    let request = server.expect_request("prompts/get").await;
    server.refuse(&request, -32602, "no prompt x").await;
    let error = caller.response_to(id).await["error"].clone();
    assert_eq!(
        (error["code"].clone(), error["message"].clone()),
        (json!(-32602), json!("no prompt x"))
    );
}

#[tokio::test(start_paused = true)]
async fn cursors_of_list_pages_are_wrapped() {
    // BR-LIST-10: an empty cursor, too.
    for (list, member) in [("tools/list", "tools"), ("prompts/list", "prompts")] {
        for theirs in ["next", ""] {
            let (mut caller, mut server, _front) =
                scripted_gateway(ClientKind::V1, json!({ "tools": {}, "prompts": {} })).await;
            let id = caller.send(list, json!({})).await;
            let request = server.expect_request(list).await;
            server
                .reply(&request, json!({ member: [], "nextCursor": theirs }))
                .await;
            let page = caller.response_to(id).await["result"].clone();
            let cursor = page["nextCursor"].as_str().unwrap().to_owned();
            assert!(!cursor.is_empty() && cursor != theirs);
            let id = caller.send(list, json!({ "cursor": cursor })).await;
            let request = server.expect_request(list).await;
            assert_eq!(request["params"]["cursor"], theirs);
            server.reply(&request, json!({ member: [] })).await;
            assert_eq!(
                caller.response_to(id).await["result"].get("nextCursor"),
                None
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn change_notifications_reach_the_subscribed_clients() {
    // BR-LIST-9, and `resources/subscribe`.
    let can = json!({ "tools": { "listChanged": true }, "resources": { "subscribe": true } });
    let (mut caller, mut server, mcp_server) = scripted_gateway(ClientKind::V1, can).await;
    let mut other = connect(ClientKind::V1, &mcp_server).await;
    let id = caller
        .send("resources/subscribe", json!({ "uri": "a:b" }))
        .await;
    let request = server.expect_request("resources/subscribe").await;
    server.reply(&request, json!({})).await;
    caller.response_to(id).await;
    server
        .notify("notifications/resources/updated", json!({ "uri": "a:b" }))
        .await;
    server
        .notify("notifications/tools/list_changed", json!({}))
        .await;
    let notification = caller
        .wait_for_notification("notifications/resources/updated")
        .await;
    assert_eq!(notification["params"]["uri"], "a:b");
    caller
        .wait_for_notification("notifications/tools/list_changed")
        .await;
    other
        .wait_for_notification("notifications/tools/list_changed")
        .await;
    let unasked =
        |notification: &Value| notification["method"] == "notifications/resources/updated";
    assert!(!other.notifications.iter().any(unasked));
    // Both share a connection: the server gets the first subscription and the last unsubscription.
    let address = json!({ "uri": "a:b" });
    other.request("resources/subscribe", address.clone()).await;
    caller
        .request("resources/unsubscribe", address.clone())
        .await;
    assert!(!server.has_received("resources/unsubscribe"));
    let id = other.send("resources/unsubscribe", address).await;
    let request = server.expect_request("resources/unsubscribe").await;
    server.reply(&request, json!({})).await;
    other.response_to(id).await;
}

#[tokio::test(start_paused = true)]
async fn log_messages_reach_the_call_or_the_session() {
    // BR-LG-1.
    let (mut caller, mut server, _front) =
        scripted_gateway(ClientKind::V1, json!({ "tools": {}, "logging": {} })).await;
    server
        .notify(
            "notifications/message",
            json!({ "level": "error", "data": "in general" }),
        )
        .await;
    let notification = caller.wait_for_notification("notifications/message").await;
    assert_eq!(notification["params"]["data"], "in general");
    let id = caller
        .send("logging/setLevel", json!({ "level": "debug" }))
        .await;
    let request = server.expect_request("logging/setLevel").await;
    assert_eq!(request["params"]["level"], "debug");
    server.reply(&request, json!({})).await;
    caller.response_to(id).await;
    let id = caller.send("tools/call", json!({ "name": "x" })).await;
    server.list(&[("x", "forbidden")]).await;
    let request = server.expect_request("tools/call").await;
    server
        .notify(
            "notifications/message",
            json!({ "level": "debug", "data": "of the call" }),
        )
        .await;
    let notification = caller.wait_for_notification("notifications/message").await;
    assert_eq!(notification["params"]["data"], "of the call");
    caller
        .notify("notifications/roots/list_changed", json!({}))
        .await;
    server
        .next_message("notifications/roots/list_changed")
        .await;
    server.reply(&request, scripted::text("done")).await;
    caller.response_to(id).await;
}

#[tokio::test(start_paused = true)]
async fn the_server_gets_the_client_info_of_the_gateway() {
    // BR-NEG-6, BR-NEG-9.
    let (target, mut servers) = scripted::target();
    let (_, mcp_server) = gateway(Upstream::new("played", target, quick())).await;
    let connecting = tokio::spawn(async move { connect(ClientKind::V2, &mcp_server).await });
    let mut server = servers.next().await;
    let hello = server.welcome("2025-11-25", json!({ "tools": {} })).await;
    assert_eq!(hello["params"]["clientInfo"]["name"], "outlast");
    let can = &hello["params"]["capabilities"];
    assert!(
        can["elicitation"].is_object() && can["sampling"].is_object(),
        "{can}"
    );
    assert!(can["tasks"]["requests"]["sampling"].is_object(), "{can}");
    connecting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_client_gets_the_server_info_unchanged() {
    // BR-NEG-10: name, version and other members are unchanged.
    let info = json!({
        "name": "their-server",
        "title": "Their server",
        "version": "2.0.0",
        "icons": [{ "src": "https://example.com/i.png", "sizes": ["48x48"] }],
        "x-own": true,
    });
    for kind in [ClientKind::PlainLegacy, ClientKind::V1, ClientKind::V2] {
        let (target, mut servers) = scripted::target();
        let (_, mcp_server) = gateway(Upstream::new("played-2", target, quick())).await;
        let connecting = tokio::spawn(async move { connect(kind, &mcp_server).await });
        let mut server = servers.next().await;
        let hello = server.expect_request("initialize").await;
        let introduction = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {} },
            "serverInfo": info,
            "instructions": "Be kind.",
        });
        server.reply(&hello, introduction).await;
        let about = connecting.await.unwrap().server_info;
        let shown = match kind {
            ClientKind::V2 => &about["_meta"]["io.modelcontextprotocol/serverInfo"],
            _ => &about["serverInfo"],
        };
        assert_eq!(*shown, info, "{kind:?}");
        assert_eq!(about["instructions"], "Be kind.", "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_listener_without_a_session_gets_its_resource_updates() {
    // BR-LIST-9, and `subscriptions/listen`.
    let can = json!({ "tools": { "listChanged": true }, "resources": { "subscribe": true } });
    let (mut caller, mut server, _front) = scripted_gateway(ClientKind::V2, can).await;
    let wanted = json!({ "toolsListChanged": true, "resourceSubscriptions": ["a:b"] });
    let id = caller
        .send("subscriptions/listen", json!({ "notifications": wanted }))
        .await;
    let request = server.expect_request("resources/subscribe").await;
    assert_eq!(request["params"]["uri"], "a:b");
    server.reply(&request, json!({})).await;
    caller
        .wait_for_notification("notifications/subscriptions/acknowledged")
        .await;
    server
        .notify("notifications/resources/updated", json!({ "uri": "a:b" }))
        .await;
    let notification = caller
        .wait_for_notification("notifications/resources/updated")
        .await;
    assert_eq!(notification["params"]["uri"], "a:b");
    server
        .notify("notifications/tools/list_changed", json!({}))
        .await;
    caller
        .wait_for_notification("notifications/tools/list_changed")
        .await;
    caller
        .notify("notifications/cancelled", json!({ "requestId": id }))
        .await;
    let request = server.expect_request("resources/unsubscribe").await;
    assert_eq!(request["params"]["uri"], "a:b");
}

#[tokio::test(start_paused = true)]
async fn session_preferences_work_with_a_server_without_sessions() {
    // BR-LG-1, and `resources/subscribe`.
    let harness = Harness::new(ServerKind::PlainModern).await;
    let mut caller = connect(ClientKind::V1, &harness.mcp_server).await;
    let answer = caller
        .request("logging/setLevel", json!({ "level": "debug" }))
        .await;
    assert_eq!(answer["result"], json!({}));
    let answer = caller
        .request("resources/subscribe", json!({ "uri": "note:one" }))
        .await;
    assert_eq!(answer["result"], json!({}));
    // The gateway opens its subscription shortly afterwards.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    harness.resources.updated("note:one");
    let notification = caller
        .wait_for_notification("notifications/resources/updated")
        .await;
    assert_eq!(notification["params"]["uri"], "note:one");
}

#[tokio::test(start_paused = true)]
async fn session_preferences_are_restored_after_a_server_restart() {
    let can = json!({ "resources": { "subscribe": true }, "logging": {} });
    let (target, mut servers) = scripted::target();
    let (_, mcp_server) = gateway(Upstream::new("played", target, quick())).await;
    let connecting = tokio::spawn(async move { connect(ClientKind::V1, &mcp_server).await });
    let mut server = servers.next().await;
    server.welcome("2025-11-25", can.clone()).await;
    let mut caller = connecting.await.unwrap();
    let said = [
        ("resources/subscribe", json!({ "uri": "a:b" })),
        ("logging/setLevel", json!({ "level": "debug" })),
    ];
    for (method, params) in said.clone() {
        let id = caller.send(method, params).await;
        let request = server.expect_request(method).await;
        server.reply(&request, json!({})).await;
        caller.response_to(id).await;
    }
    drop(server);
    let mut server = servers.next().await;
    server.welcome("2025-11-25", can).await;
    for (method, params) in said {
        let request = server.expect_request(method).await;
        assert_eq!(request["params"], params);
        server.reply(&request, json!({})).await;
    }
}
