//! Subscriptions (V2-NOTIF, V2-SUB).

use std::sync::Arc;
use std::time::Duration;

use outlast::client::{Client, ClientOptions, ReconnectPolicy};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    CAPABILITIES, EXTENSION, SUBSCRIPTION, capabilities, connected, connected_with, created,
    discovered, task, task_result,
};
use crate::harness::{TestServer, collector, result_text, target, text};

/// Receives and acknowledges the next `subscriptions/listen`.
async fn accept_subscription(server: &mut TestServer) -> Value {
    let listen = server.expect_request("subscriptions/listen").await;
    acknowledge(server, &listen).await;
    listen
}

async fn acknowledge(server: &mut TestServer, listen: &Value) {
    let params = json!({
        "_meta": { SUBSCRIPTION: listen["id"] },
        "notifications": listen["params"]["notifications"],
    });
    let method = "notifications/subscriptions/acknowledged";
    server.notify(method, params).await;
}

/// Sends the status of a task.
async fn notify(server: &mut TestServer, listen: &Value, mut task: Value) {
    task["_meta"] = json!({ SUBSCRIPTION: listen["id"] });
    server.notify("notifications/tasks", task).await;
}

async fn start_task(
    client: &Client,
    server: &mut TestServer,
    id: &str,
) -> outlast::client::Execution {
    let call = client.call_tool("slow", ()).await.unwrap();
    let request = server.expect_request("tools/call").await;
    let mut seed = created("working", 60_000);
    seed["taskId"] = json!(id);
    server.reply(&request, seed).await;
    call
}

#[tokio::test(start_paused = true)]
async fn notifications_take_effect_at_once() {
    // V2-NOTIF-2, V2-NOTIF-3, V2-NOTIF-5, V2-NOTIF-8, V2-CAP-1.
    let (client, mut server) = connected(ClientOptions::default()).await;
    let call = start_task(&client, &mut server, "t1").await;
    let listen = accept_subscription(&mut server).await;
    assert_eq!(
        listen["params"]["notifications"],
        json!({ "taskIds": ["t1"] })
    );
    assert!(listen["params"]["_meta"][CAPABILITIES]["extensions"][EXTENSION].is_object());
    let began = Instant::now();
    let mut updates = call.updates();
    let mut working = task("working", 60_000);
    working["statusMessage"] = json!("half way");
    notify(&mut server, &listen, working).await;
    while call.status().task.unwrap().message.as_deref() != Some("half way") {
        updates.next().await.unwrap();
    }
    let mut ended = task("completed", 60_000);
    ended["result"] = text("done");
    notify(&mut server, &listen, ended).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
    assert!(began.elapsed() < Duration::from_secs(1));
    assert!(!server.has_received("tasks/get"));
    // V2-CANC-1: the subscription is cancelled.
    let notification = server.next_message("notifications/cancelled").await;
    assert_eq!(notification["params"]["requestId"], listen["id"]);
}

#[tokio::test(start_paused = true)]
async fn polling_continues_next_to_notifications() {
    // V2-NOTIF-8, V2-SUB-5, A2-11.
    for granted in [json!({ "taskIds": ["t1"] }), json!({})] {
        let (client, mut server) = connected(ClientOptions::default()).await;
        let call = start_task(&client, &mut server, "t1").await;
        let listen = server.expect_request("subscriptions/listen").await;
        let params = json!({ "_meta": { SUBSCRIPTION: listen["id"] }, "notifications": granted });
        let method = "notifications/subscriptions/acknowledged";
        server.notify(method, params).await;
        let look = server.expect_request("tasks/get").await;
        let ended = task_result("completed", 100, json!({ "result": text("done") }));
        server.reply(&look, ended).await;
        assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_without_tasks_is_closed() {
    // V2-SUB-5, A2-11.
    let (client, mut server) = connected(ClientOptions::default()).await;
    let mut calls = Vec::new();
    for n in 0..5 {
        calls.push(start_task(&client, &mut server, &format!("t{n}")).await);
        if n < 3 {
            let listen = server.expect_request("subscriptions/listen").await;
            let meta = json!({ SUBSCRIPTION: listen["id"] });
            let params = json!({ "_meta": meta, "notifications": {} });
            let method = "notifications/subscriptions/acknowledged";
            server.notify(method, params).await;
            let notification = server.next_message("notifications/cancelled").await;
            assert_eq!(notification["params"]["requestId"], listen["id"]);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let look = server.expect_request("tasks/get").await;
    assert_eq!(look["params"]["taskId"], "t0");
    assert_eq!(server.times("subscriptions/listen").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_subscriptions_is_asked_once() {
    // A2-11.
    let (client, mut server) = connected(ClientOptions::default()).await;
    let first = start_task(&client, &mut server, "t1").await;
    super::rejects_subscriptions(&mut server).await;
    let second = start_task(&client, &mut server, "t2").await;
    for (id, call) in [("t1", first), ("t2", second)] {
        let look = server.expect_request("tasks/get").await;
        assert_eq!(look["params"]["taskId"], id);
        let mut ended = task_result("completed", 100, json!({ "result": text("done") }));
        ended["taskId"] = json!(id);
        server.reply(&look, ended).await;
        assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
    }
    assert_eq!(server.times("subscriptions/listen").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_is_opened_again() {
    // V2-SUB-7, V2-SUB-10, A2-15.
    let (client, mut server) = connected(ClientOptions::default()).await;
    let call = start_task(&client, &mut server, "t1").await;
    let mut listen = accept_subscription(&mut server).await;
    for way in ["result", "cancelled", "both", "error"] {
        if way != "result" && way != "error" {
            let params = json!({ "requestId": listen["id"] });
            server.notify("notifications/cancelled", params).await;
        }
        if way == "result" || way == "both" {
            let meta = json!({ SUBSCRIPTION: listen["id"] });
            let result = json!({ "resultType": "complete", "_meta": meta });
            server.reply(&listen, result).await;
        }
        if way == "error" {
            server.refuse(&listen, -32603, "restarting").await;
        }
        let again = accept_subscription(&mut server).await;
        assert_ne!(again["id"], listen["id"], "{way}");
        listen = again;
    }
    let mut ended = task("completed", 60_000);
    ended["result"] = text("done");
    notify(&mut server, &listen, ended).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
}

#[tokio::test(start_paused = true)]
async fn a_new_connection_gets_the_subscriptions_again() {
    // V2-SUB-8, V2-STDIO-5.
    let (target, mut servers) = target();
    let options = ClientOptions::default().with_reconnect(ReconnectPolicy::default());
    let connecting = tokio::spawn(Client::connect(target, options));
    let mut server = servers.next().await;
    let request = server.expect_request("server/discover").await;
    server.reply(&request, discovered(capabilities())).await;
    let client = connecting.await.unwrap().unwrap();
    let call = start_task(&client, &mut server, "t1").await;
    accept_subscription(&mut server).await;
    drop(server);
    let mut server = servers.next().await;
    let request = server.expect_request("server/discover").await;
    server.reply(&request, discovered(capabilities())).await;
    let listen = accept_subscription(&mut server).await;
    let mut ended = task("completed", 60_000);
    ended["result"] = text("done");
    notify(&mut server, &listen, ended).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
}

#[tokio::test(start_paused = true)]
async fn tasks_share_a_subscription() {
    // V2-SUB-4, V2-SUB-6, V2-NOTIF-9.
    let (client, mut server) = connected(ClientOptions::default()).await;
    let first = start_task(&client, &mut server, "t1").await;
    let old = accept_subscription(&mut server).await;
    let second = start_task(&client, &mut server, "t2").await;
    let both = server.expect_request("subscriptions/listen").await;
    assert_eq!(
        both["params"]["notifications"],
        json!({ "taskIds": ["t1", "t2"] })
    );
    // The old subscription ends only after the new one is acknowledged.
    assert!(!server.has_received("notifications/cancelled"));
    acknowledge(&mut server, &both).await;
    let notification = server.next_message("notifications/cancelled").await;
    assert_eq!(notification["params"]["requestId"], old["id"]);
    let mut ended = task("completed", 60_000);
    ended["result"] = text("second");
    ended["taskId"] = json!("t2");
    notify(&mut server, &both, ended.clone()).await;
    assert_eq!(result_text(&second.outcome().await.unwrap()), "second");
    assert!(first.status().ended.is_none());
    // Notifications of unknown tasks are ignored.
    ended["taskId"] = json!("t9");
    notify(&mut server, &both, ended.clone()).await;
    ended["taskId"] = json!("t1");
    ended["result"] = text("first");
    notify(&mut server, &both, ended).await;
    assert_eq!(result_text(&first.outcome().await.unwrap()), "first");
}

#[tokio::test(start_paused = true)]
async fn list_and_resource_changes_reach_the_handler() {
    // V2-SUB-1, V2-CACHE-4.
    let (received, collect) = collector();
    let options =
        ClientOptions::default().with_on_notification(Arc::new(move |method, _| collect(method)));
    let declared = json!({ "tools": { "listChanged": true }, "prompts": {}, "resources": { "listChanged": true, "subscribe": true } });
    let (client, mut server) = connected_with(options, declared).await;
    let listen = accept_subscription(&mut server).await;
    assert_eq!(
        listen["params"]["notifications"],
        json!({ "toolsListChanged": true, "resourcesListChanged": true })
    );
    // V2-NOTIF-4: this needs no task capability.
    let meta = &listen["params"]["_meta"][CAPABILITIES];
    assert_eq!(*meta, json!({}));
    let notification = json!({ "_meta": { SUBSCRIPTION: listen["id"] } });
    server
        .notify("notifications/tools/list_changed", notification)
        .await;
    client.subscribe("file:///a").await.unwrap();
    let listen = accept_subscription(&mut server).await;
    assert_eq!(
        listen["params"]["notifications"]["resourceSubscriptions"],
        json!(["file:///a"])
    );
    let notification = json!({ "_meta": { SUBSCRIPTION: listen["id"] }, "uri": "file:///a" });
    server
        .notify("notifications/resources/updated", notification)
        .await;
    while received.lock().unwrap().len() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(
        *received.lock().unwrap(),
        [
            "notifications/tools/list_changed",
            "notifications/resources/updated"
        ]
    );
    assert!(!server.has_received("resources/subscribe"));
}
