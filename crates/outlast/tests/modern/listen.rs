//! `subscriptions/listen`, on stdio and over HTTP.

use outlast::server::ListChange;
use outlast_testkit::eventually;
use serde_json::{Value, json};

use crate::harness::{Harness, name_response};
use crate::http_client::{ModernHttpClient, next, serve_http};
use crate::stdio_client::{StdioClient, no_tasks};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The task in a notification, without `_meta`.
fn task_of(notification: &Value, id: &Value) -> Value {
    assert_eq!(notification["method"], "notifications/tasks");
    let mut params = notification["params"].clone();
    let meta = params.as_object_mut().unwrap().remove("_meta").unwrap();
    assert_eq!(meta[SUBSCRIPTION], *id);
    params
}

/// The result of `tasks/get` in the form of a notification.
async fn polled(client: &mut StdioClient, task: &str) -> Value {
    let mut status = client.status(task).await;
    let members = status.as_object_mut().unwrap();
    members.remove("_meta");
    members.remove("resultType");
    status
}

#[tokio::test(start_paused = true)]
async fn a_listener_gets_the_status_and_every_change() {
    // V2-NOTIF-2, V2-NOTIF-3, V2-NOTIF-5, V2-NOTIF-6, V2-NOTIF-11, V2-SUB-2, V2-SUB-3, A2-13.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let task = client.task("ask").await;
    let filter = json!({ "notifications": { "taskIds": [task, "unknown", task] } });
    let listen = client.send("subscriptions/listen", filter).await;
    let ack = client
        .next_message("notifications/subscriptions/acknowledged")
        .await;
    assert_eq!(ack["params"]["_meta"][SUBSCRIPTION], listen);
    assert_eq!(ack["params"]["notifications"], json!({ "taskIds": [task] }));
    let first = client.next_message("notifications/tasks").await;
    let first = task_of(&first, &listen);
    assert_eq!(first, polled(&mut client, &task).await);
    assert_eq!(first["status"], "input_required");
    let key = first["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap();
    let params = json!({ "taskId": task, "inputResponses": { key: name_response("Ada") } });
    client.call("tasks/update", params).await;
    let mut words = Vec::new();
    let last = loop {
        let notification = client.next_message("notifications/tasks").await;
        let notification = task_of(&notification, &listen);
        words.push(notification["status"].as_str().unwrap().to_owned());
        if notification["status"] == "completed" {
            break notification;
        }
    };
    assert!(words.contains(&"working".to_owned()), "{words:?}");
    // The notification has the whole task with its outcome.
    assert_eq!(last["result"]["content"][0]["text"], "Hello, \"Ada\"!");
    assert_eq!(last, polled(&mut client, &task).await);
    client.silence().await;
}

#[tokio::test(start_paused = true)]
async fn a_listener_gets_only_its_subscriptions() {
    // V2-NOTIF-7, V2-NOTIF-9, V2-SUB-1, V2-SUB-9: neither other tasks nor progress nor log
    // messages.
    let harness = Harness::new().await;
    let mut client = StdioClient::connect(harness.server.clone());
    let mut created = json!({ "name": "steps", "_meta": { "progressToken": 1 } });
    created["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    let task = client.call("tools/call", created).await["result"]["taskId"].clone();
    let other = client.task("gated").await;
    let filter = json!({ "notifications": { "taskIds": [task] } });
    let listen = client.send("subscriptions/listen", filter).await;
    client
        .next_message("notifications/subscriptions/acknowledged")
        .await;
    assert_eq!(
        task_of(&client.next_message("notifications/tasks").await, &listen)["taskId"],
        task
    );
    harness.gate.add_permits(5);
    client.until(&other, "completed").await;
    loop {
        let notification = client.next_message("notifications/tasks").await;
        let notification = task_of(&notification, &listen);
        assert_eq!(notification["taskId"], task);
        if notification["status"] == "completed" {
            break;
        }
    }
    client.silence().await;
}

#[tokio::test(start_paused = true)]
async fn an_ended_task_is_sent_and_the_subscription_stays() {
    // A2-14.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let task = client.task("broken").await;
    client.until(&task, "failed").await;
    let filter = json!({ "notifications": { "taskIds": [task] } });
    let listen = client.send("subscriptions/listen", filter).await;
    let notification = client.next_message("notifications/tasks").await;
    assert_eq!(
        task_of(&notification, &listen)["error"]["message"],
        "it broke"
    );
    client
        .next_message("notifications/subscriptions/acknowledged")
        .await;
    client.silence().await;
    client
        .notify("notifications/cancelled", json!({ "requestId": listen }))
        .await;
    // V2-CANC-3.
    client.silence().await;
}

#[tokio::test(start_paused = true)]
async fn task_subscriptions_require_the_extension() {
    // V2-NOTIF-4.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let filter = json!({ "notifications": { "taskIds": [] } });
    let rejected = client
        .call_with("subscriptions/listen", filter, no_tasks())
        .await;
    assert_eq!(rejected["error"]["code"], -32021);
    for odd in [json!({}), json!({ "notifications": { "taskIds": "x" } })] {
        let rejected = client.call("subscriptions/listen", odd).await;
        assert_eq!(rejected["error"]["code"], -32602);
    }
    // A2-12: all ids are unknown.
    let filter = json!({ "notifications": { "taskIds": ["unknown"] } });
    client.send("subscriptions/listen", filter).await;
    let ack = client
        .next_message("notifications/subscriptions/acknowledged")
        .await;
    assert_eq!(ack["params"]["notifications"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn each_listener_gets_its_own_subscription_id() {
    // V2-SUB-4, V2-SUB-6.
    let harness = Harness::new().await;
    let mut client = StdioClient::connect(harness.server.clone());
    let task = client.task("gated").await;
    let mut listeners = Vec::new();
    for _ in 0..3 {
        let filter = json!({ "notifications": { "taskIds": [task] } });
        listeners.push(client.send("subscriptions/listen", filter).await);
        client
            .next_message("notifications/subscriptions/acknowledged")
            .await;
        client.next_message("notifications/tasks").await;
    }
    harness.open_gate();
    let mut notified = Vec::new();
    for _ in 0..3 {
        let notification = client.next_message("notifications/tasks").await;
        assert_eq!(notification["params"]["status"], "completed");
        notified.push(notification["params"]["_meta"][SUBSCRIPTION].clone());
    }
    notified.sort_by_key(Value::to_string);
    assert_eq!(notified, listeners);
}

#[tokio::test(start_paused = true)]
async fn a_listener_on_stdio_gets_the_end() {
    // V2-SUB-7, V2-SUB-10, V2-STDIO-4, A2-15.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let task = client.task("gated").await;
    let filter = json!({ "notifications": { "taskIds": [task] } });
    let listen = client.send("subscriptions/listen", filter).await;
    client.next_message("notifications/tasks").await;
    client
        .next_message("notifications/subscriptions/acknowledged")
        .await;
    let rest = client.close().await;
    assert_eq!(rest.len(), 2, "{rest:?}");
    assert_eq!(rest[0]["method"], "notifications/cancelled");
    assert_eq!(rest[0]["params"]["requestId"], listen);
    assert_eq!(rest[0]["params"]["_meta"][SUBSCRIPTION], listen);
    assert_eq!(rest[1]["id"], listen);
    assert_eq!(rest[1]["result"]["_meta"][SUBSCRIPTION], listen);
}

#[tokio::test]
async fn list_changes_reach_their_subscribers_only() {
    // V2-SUB-1: a subscription that the server does not offer is not granted.
    let harness = Harness::new().await;
    let server = serve_http(&harness.server).await;
    let http = ModernHttpClient::of(&server);
    let all = json!({ "notifications": {
        "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["a:b"],
    } });
    let mut stream = http.request("subscriptions/listen", all).await;
    let ack = next(&mut stream, "subscriptions/listen").await;
    assert_eq!(
        ack["params"]["notifications"],
        json!({ "toolsListChanged": true })
    );
    let mut deaf = http
        .request("subscriptions/listen", json!({ "notifications": {} }))
        .await;
    next(&mut deaf, "subscriptions/listen").await;
    harness.server.announce(ListChange::Prompts);
    harness.server.announce(ListChange::Tools);
    let notification = next(&mut stream, "subscriptions/listen").await;
    assert_eq!(notification["method"], "notifications/tools/list_changed");
    assert_eq!(notification["params"]["_meta"][SUBSCRIPTION], "h");
    server.shutdown().await;
    // V2-SUB-7: the response ends the stream.
    for stream in [&mut stream, &mut deaf] {
        let last = next(stream, "subscriptions/listen").await;
        assert_eq!(last["result"]["_meta"][SUBSCRIPTION], "h");
        assert_eq!(stream.event().await, None);
    }
}

#[tokio::test]
async fn a_listener_over_http_gets_all_statuses_of_a_task() {
    let harness = Harness::new().await;
    let server = serve_http(&harness.server).await;
    let http = ModernHttpClient::of(&server);
    let task = http.task("gated").await;
    let filter = json!({ "notifications": { "taskIds": [task] } });
    let mut stream = http.request("subscriptions/listen", filter).await;
    assert!(stream.is_stream());
    let ack = next(&mut stream, "subscriptions/listen").await;
    assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
    let first = next(&mut stream, "subscriptions/listen").await;
    assert_eq!(task_of(&first, &json!("h"))["status"], "working");
    harness.open_gate();
    loop {
        let notification = next(&mut stream, "subscriptions/listen").await;
        let notification = task_of(&notification, &json!("h"));
        if notification["status"] == "completed" {
            assert_eq!(notification["result"]["content"][0]["text"], "through");
            break;
        }
    }
    drop(stream);
    // A closed subscription leaves nothing behind.
    eventually("nothing listens", async || {
        harness.engine.subscribers() == 0
    })
    .await;
}
