//! `subscriptions/listen`, on a pipe and over HTTP.

use outlast::server::ListChange;
use outlast_testkit::eventually;
use serde_json::{Value, json};

use crate::harness::{Stage, named};
use crate::http_client::{Http, next, served};
use crate::stdio_client::{Pipe, no_tasks};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What a notification of a task says, without what every one says.
fn task_of(told: &Value, id: &Value) -> Value {
    assert_eq!(told["method"], "notifications/tasks");
    let mut params = told["params"].clone();
    let meta = params.as_object_mut().unwrap().remove("_meta").unwrap();
    assert_eq!(meta[SUBSCRIPTION], *id);
    params
}

/// What `tasks/get` says, as a notification would.
async fn looked_at(pipe: &mut Pipe, task: &str) -> Value {
    let mut status = pipe.status(task).await;
    let members = status.as_object_mut().unwrap();
    members.remove("_meta");
    members.remove("resultType");
    status
}

#[tokio::test(start_paused = true)]
async fn a_listener_hears_how_a_task_stands_and_every_change() {
    // V2-NOTIF-2, V2-NOTIF-3, V2-NOTIF-5, V2-NOTIF-6, V2-NOTIF-11, V2-SUB-2, V2-SUB-3, A2-13.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let task = pipe.task("ask").await;
    let wish = json!({ "notifications": { "taskIds": [task, "unknown", task] } });
    let listen = pipe.send("subscriptions/listen", wish).await;
    let ack = pipe.told("notifications/subscriptions/acknowledged").await;
    assert_eq!(ack["params"]["_meta"][SUBSCRIPTION], listen);
    assert_eq!(ack["params"]["notifications"], json!({ "taskIds": [task] }));
    let first = pipe.told("notifications/tasks").await;
    let first = task_of(&first, &listen);
    assert_eq!(first, looked_at(&mut pipe, &task).await);
    assert_eq!(first["status"], "input_required");
    let key = first["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap();
    let params = json!({ "taskId": task, "inputResponses": { key: named("Ada") } });
    pipe.call("tasks/update", params).await;
    let mut words = Vec::new();
    let last = loop {
        let told = pipe.told("notifications/tasks").await;
        let told = task_of(&told, &listen);
        words.push(told["status"].as_str().unwrap().to_owned());
        if told["status"] == "completed" {
            break told;
        }
    };
    assert!(words.contains(&"working".to_owned()), "{words:?}");
    // The whole task, outcome included: nobody has to ask.
    assert_eq!(last["result"]["content"][0]["text"], "Hello, \"Ada\"!");
    assert_eq!(last, looked_at(&mut pipe, &task).await);
    pipe.silence().await;
}

#[tokio::test(start_paused = true)]
async fn only_what_was_asked_for_is_heard() {
    // V2-NOTIF-7, V2-NOTIF-9, V2-SUB-1, V2-SUB-9: neither other tasks nor progress nor log messages.
    let stage = Stage::new().await;
    let mut pipe = Pipe::connect(stage.front.clone());
    let mut created = json!({ "name": "steps", "_meta": { "progressToken": 1 } });
    created["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    let task = pipe.call("tools/call", created).await["result"]["taskId"].clone();
    let other = pipe.task("gated").await;
    let wish = json!({ "notifications": { "taskIds": [task] } });
    let listen = pipe.send("subscriptions/listen", wish).await;
    pipe.told("notifications/subscriptions/acknowledged").await;
    assert_eq!(
        task_of(&pipe.told("notifications/tasks").await, &listen)["taskId"],
        task
    );
    stage.gate.add_permits(5);
    pipe.until(&other, "completed").await;
    loop {
        let told = pipe.told("notifications/tasks").await;
        let told = task_of(&told, &listen);
        assert_eq!(told["taskId"], task);
        if told["status"] == "completed" {
            break;
        }
    }
    pipe.silence().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_ended_is_told_of_and_the_stream_stays() {
    // A2-14.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let task = pipe.task("broken").await;
    pipe.until(&task, "failed").await;
    let wish = json!({ "notifications": { "taskIds": [task] } });
    let listen = pipe.send("subscriptions/listen", wish).await;
    let told = pipe.told("notifications/tasks").await;
    assert_eq!(task_of(&told, &listen)["error"]["message"], "it broke");
    pipe.told("notifications/subscriptions/acknowledged").await;
    pipe.silence().await;
    pipe.notify("notifications/cancelled", json!({ "requestId": listen }))
        .await;
    // V2-CANC-3.
    pipe.silence().await;
}

#[tokio::test(start_paused = true)]
async fn tasks_are_heard_of_only_with_the_extension() {
    // V2-NOTIF-4.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let wish = json!({ "notifications": { "taskIds": [] } });
    let refused = pipe
        .call_with("subscriptions/listen", wish, no_tasks())
        .await;
    assert_eq!(refused["error"]["code"], -32021);
    for odd in [json!({}), json!({ "notifications": { "taskIds": "x" } })] {
        let refused = pipe.call("subscriptions/listen", odd).await;
        assert_eq!(refused["error"]["code"], -32602);
    }
    // A2-12: none of them is known.
    let wish = json!({ "notifications": { "taskIds": ["unknown"] } });
    pipe.send("subscriptions/listen", wish).await;
    let ack = pipe.told("notifications/subscriptions/acknowledged").await;
    assert_eq!(ack["params"]["notifications"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn several_listeners_hear_the_same_each_under_its_own_name() {
    // V2-SUB-4, V2-SUB-6.
    let stage = Stage::new().await;
    let mut pipe = Pipe::connect(stage.front.clone());
    let task = pipe.task("gated").await;
    let mut listeners = Vec::new();
    for _ in 0..3 {
        let wish = json!({ "notifications": { "taskIds": [task] } });
        listeners.push(pipe.send("subscriptions/listen", wish).await);
        pipe.told("notifications/subscriptions/acknowledged").await;
        pipe.told("notifications/tasks").await;
    }
    stage.open_gate();
    let mut heard = Vec::new();
    for _ in 0..3 {
        let told = pipe.told("notifications/tasks").await;
        assert_eq!(told["params"]["status"], "completed");
        heard.push(told["params"]["_meta"][SUBSCRIPTION].clone());
    }
    heard.sort_by_key(Value::to_string);
    assert_eq!(heard, listeners);
}

#[tokio::test(start_paused = true)]
async fn a_listener_on_a_pipe_is_told_when_it_is_over() {
    // V2-SUB-7, V2-SUB-10, V2-STDIO-4, A2-15.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let task = pipe.task("gated").await;
    let wish = json!({ "notifications": { "taskIds": [task] } });
    let listen = pipe.send("subscriptions/listen", wish).await;
    pipe.told("notifications/tasks").await;
    pipe.told("notifications/subscriptions/acknowledged").await;
    let rest = pipe.close().await;
    assert_eq!(rest.len(), 2, "{rest:?}");
    assert_eq!(rest[0]["method"], "notifications/cancelled");
    assert_eq!(rest[0]["params"]["requestId"], listen);
    assert_eq!(rest[0]["params"]["_meta"][SUBSCRIPTION], listen);
    assert_eq!(rest[1]["id"], listen);
    assert_eq!(rest[1]["result"]["_meta"][SUBSCRIPTION], listen);
}

#[tokio::test]
async fn changes_of_lists_are_heard_by_those_who_want_them() {
    // V2-SUB-1: what the server does not offer is not granted.
    let stage = Stage::new().await;
    let server = served(&stage.front).await;
    let http = Http::of(&server);
    let all = json!({ "notifications": {
        "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["a:b"],
    } });
    let mut stream = http.ask("subscriptions/listen", all).await;
    let ack = next(&mut stream, "subscriptions/listen").await;
    assert_eq!(
        ack["params"]["notifications"],
        json!({ "toolsListChanged": true })
    );
    let mut deaf = http
        .ask("subscriptions/listen", json!({ "notifications": {} }))
        .await;
    next(&mut deaf, "subscriptions/listen").await;
    stage.front.announce(ListChange::Prompts);
    stage.front.announce(ListChange::Tools);
    let told = next(&mut stream, "subscriptions/listen").await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(told["params"]["_meta"][SUBSCRIPTION], "h");
    server.shutdown().await;
    // V2-SUB-7: the answer ends the stream.
    for stream in [&mut stream, &mut deaf] {
        let last = next(stream, "subscriptions/listen").await;
        assert_eq!(last["result"]["_meta"][SUBSCRIPTION], "h");
        assert_eq!(stream.event().await, None);
    }
}

#[tokio::test]
async fn a_listener_over_http_hears_the_life_of_a_task() {
    let stage = Stage::new().await;
    let server = served(&stage.front).await;
    let http = Http::of(&server);
    let task = http.task("gated").await;
    let wish = json!({ "notifications": { "taskIds": [task] } });
    let mut stream = http.ask("subscriptions/listen", wish).await;
    assert!(stream.is_stream());
    let ack = next(&mut stream, "subscriptions/listen").await;
    assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
    let first = next(&mut stream, "subscriptions/listen").await;
    assert_eq!(task_of(&first, &json!("h"))["status"], "working");
    stage.open_gate();
    loop {
        let told = next(&mut stream, "subscriptions/listen").await;
        let told = task_of(&told, &json!("h"));
        if told["status"] == "completed" {
            assert_eq!(told["result"]["content"][0]["text"], "through");
            break;
        }
    }
    drop(stream);
    // Whoever listens no more leaves nothing behind.
    eventually("nothing listens", async || stage.engine.listeners() == 0).await;
}
