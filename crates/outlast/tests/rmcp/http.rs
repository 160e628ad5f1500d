//! The same server over HTTP: sessions apart, the head of the request at hand, sessions taken up after a restart.

use outlast::Outlast;
use outlast::store::open_store;
use serde_json::{Value, json};

use crate::client::{lab, text};
use crate::lab::Equipment;
use crate::post::Caller;

#[tokio::test]
async fn two_sessions_have_a_handler_each_and_do_not_see_each_others_tasks() {
    // V1-SEC-1.
    let (equipment, _told) = Equipment::new();
    let server = lab(&Outlast::builder().build(), &equipment);
    let running = server.http("127.0.0.1:0").await.unwrap();
    let one = Caller::meet(running.local_addr()).await;
    let two = Caller::meet(running.local_addr()).await;
    let task = one.task("gated").await;
    let foreign = two.call("tasks/get", json!({ "taskId": task })).await;
    assert_eq!(foreign["error"]["code"], -32602);
    equipment.gate.add_permits(1);
    let answer = one.call("tasks/result", json!({ "taskId": task })).await;
    assert_eq!(text(&answer), "through");
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn the_handler_sees_the_head_of_the_request() {
    let (equipment, _told) = Equipment::new();
    let server = lab(&Outlast::builder().build(), &equipment);
    let running = server.http("127.0.0.1:0").await.unwrap();
    let caller = Caller::meet(running.local_addr()).await;
    let answer = caller.call("tools/call", json!({ "name": "caller" })).await;
    let told: Value = serde_json::from_str(&text(&answer)).unwrap();
    assert_eq!(told["host"], true);
    let task = caller.task("caller").await;
    let answer = caller.call("tasks/result", json!({ "taskId": task })).await;
    let told: Value = serde_json::from_str(&text(&answer)).unwrap();
    assert_eq!(told["host"], true);
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_session_goes_on_after_a_restart_with_a_new_handler() {
    // V1-SESS-1: the client does not introduce itself again.
    let folder = tempfile::tempdir().unwrap();
    let url = folder.path().join("tasks.db");
    let url = url.to_str().unwrap().parse().unwrap();
    let (equipment, _told) = Equipment::new();
    let serve = async || {
        let store = open_store(&url, Default::default()).await.unwrap();
        let outlast = Outlast::builder().store(store).build();
        lab(&outlast, &equipment).http("127.0.0.1:0").await.unwrap()
    };
    let running = serve().await;
    let mut caller = Caller::meet(running.local_addr()).await;
    equipment.gate.add_permits(1);
    let task = caller.task("gated").await;
    caller.call("tasks/result", json!({ "taskId": task })).await;
    running.shutdown().await.unwrap();

    let running = serve().await;
    caller.address = running.local_addr();
    let answer = caller.call("tasks/result", json!({ "taskId": task })).await;
    assert_eq!(text(&answer), "through");
    let answer = caller.call("tools/call", json!({ "name": "caller" })).await;
    let told: Value = serde_json::from_str(&text(&answer)).unwrap();
    assert_eq!(told["name"], "by-hand");
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_with_an_example() {
    let (equipment, _told) = Equipment::new();
    let server = lab(&Outlast::builder().build(), &equipment);
    let refused = server.http("localhost").await.map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("127.0.0.1:8040"), "{refused}");
}
