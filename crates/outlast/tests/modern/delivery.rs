//! Which calls become tasks, and when.

use std::sync::Arc;
use std::time::Duration;

use outlast::engine::{MemoryStore, Policy, Quota};
use outlast_testkit::{FaultyStore, Strike};
use serde_json::json;

use crate::harness::{Stage, named};
use crate::stdio_client::{Pipe, no_tasks};

#[tokio::test(start_paused = true)]
async fn a_quick_call_is_answered_inline_and_leaves_no_trace() {
    // V2-CREATE-10, V2-CREATE-9: `task` of the other generation is neither an error nor a wish.
    let stage = Stage::new().await;
    let mut pipe = Pipe::connect(stage.front.clone());
    let params = json!({ "name": "echo", "arguments": { "say": "hi" }, "task": { "ttl": 1 } });
    let said = pipe.call("tools/call", params).await;
    assert_eq!(said["result"]["resultType"], "complete");
    assert_eq!(said["result"]["content"][0]["text"], "hi");
    stage.open_gate();
    let through = pipe.tool("gated").await;
    assert_eq!(through["result"]["resultType"], "complete");
    let usage = stage
        .engine
        .usage(&outlast::server::local_owner())
        .await
        .unwrap();
    assert_eq!(usage.retained, 0);
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_becomes_a_task_when_its_grace_is_over() {
    // V2-CAP-4, V2-CREATE-2, V2-CREATE-3, V2-TTL-1: flat, without payload, with the names of this generation.
    let stage = Stage::new().await;
    let mut pipe = Pipe::connect(stage.front.clone());
    let begun = tokio::time::Instant::now();
    let created = pipe.tool("gated").await["result"].clone();
    assert_eq!(begun.elapsed().as_millis() / 10, 70);
    assert_eq!(created["resultType"], "task");
    assert_eq!(created["status"], "working");
    assert!(created["ttlMs"].as_u64() > Some(0) && created["pollIntervalMs"].as_u64() > Some(0));
    for absent in [
        "task",
        "result",
        "error",
        "inputRequests",
        "requestState",
        "ttl",
    ] {
        assert_eq!(created.get(absent), None, "{absent}");
    }
    // V2-CREATE-5: with no delay, also on another pipe.
    let mut other = Pipe::connect(stage.front.clone());
    let id = created["taskId"].as_str().unwrap();
    assert_eq!(other.status(id).await["status"], "working");
    stage.open_gate();
    let done = other.until(id, "completed").await;
    // A2-1, V2-GET-6, V2-GET-7.
    assert_eq!(done["result"]["resultType"], "complete");
    assert_eq!(done["result"]["content"][0]["text"], "through");
    assert_eq!(stage.begun(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_the_extension_on_the_request_there_is_never_a_task() {
    // V2-CAP-6, V2-CAP-11, V2-CAP-14: whatever earlier requests declared.
    let stage = Stage::new().await;
    let mut pipe = Pipe::connect(stage.front.clone());
    pipe.task("gated").await;
    for can in [
        no_tasks(),
        json!({ "tasks": { "requests": { "tools": { "call": {} } } } }),
        json!({ "extensions": { "io.modelcontextprotocol/tasks": true } }),
    ] {
        let plain = pipe
            .send_with("tools/call", json!({ "name": "gated" }), can)
            .await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        stage.gate.add_permits(2);
        let plain = pipe.answer_to(plain).await;
        assert_eq!(plain["result"]["resultType"], "complete");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_must_be_a_task_is_refused_without_the_extension() {
    // V2-CAP-9, V2-ERR-4.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let params = json!({ "name": "must" });
    let refused = pipe.call_with("tools/call", params, no_tasks()).await;
    assert_eq!(refused["error"]["code"], -32021);
    let required = &refused["error"]["data"]["requiredCapabilities"];
    assert_eq!(
        required["extensions"]["io.modelcontextprotocol/tasks"],
        json!({})
    );
    pipe.task("must").await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_needs_an_answer_is_refused_to_one_who_cannot_give_it() {
    // V2-META-5.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let params = json!({ "name": "model" });
    let can = json!({ "elicitation": {} });
    let refused = pipe.call_with("tools/call", params, can).await;
    assert_eq!(refused["error"]["code"], -32021);
    let required = &refused["error"]["data"]["requiredCapabilities"];
    assert_eq!(*required, json!({ "sampling": {} }));
}

#[tokio::test(start_paused = true)]
async fn unknown_tools_are_errors_and_bad_arguments_results() {
    // V2-TLS-6.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    assert_eq!(pipe.tool("nobody").await["error"]["code"], -32602);
    let nameless = pipe.call("tools/call", json!({})).await;
    assert_eq!(nameless["error"]["code"], -32602);
    assert_eq!(pipe.tool("echo").await["result"]["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_asks_inside_its_grace_becomes_a_task_that_asks() {
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let begun = tokio::time::Instant::now();
    let task = pipe.task("ask").await;
    assert!(begun.elapsed() < Duration::from_millis(100));
    let asks = pipe.status(&task).await;
    assert_eq!(asks["status"], "input_required");
    let requests = asks["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create");
    let responses = json!({ key: named("Ada") });
    pipe.call(
        "tasks/update",
        json!({ "taskId": task, "inputResponses": responses }),
    )
    .await;
    let done = pipe.until(&task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Hello, \"Ada\"!");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_stored_goes_on_and_is_answered_inline() {
    let policy = Policy {
        quota: Quota {
            owner_open: 1,
            ..Policy::default().quota
        },
        ..Policy::default()
    };
    let stage = Stage::with(policy).await;
    let mut pipe = Pipe::connect(stage.front.clone());
    pipe.task("gated").await;
    // The quota is used up.
    let second = pipe.send("tools/call", json!({ "name": "gated" })).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    stage.gate.add_permits(2);
    let second = pipe.answer_to(second).await;
    assert_eq!(second["result"]["resultType"], "complete");
    assert_eq!(stage.begun(), 2);
    // One that is always a task says why it is none.
    let blocked = pipe.task("gated").await;
    let refused = pipe.tool("tidy").await;
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    pipe.call("tasks/cancel", json!({ "taskId": blocked }))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_stored_and_asks_is_answered_by_its_question() {
    let policy = Policy {
        quota: Quota {
            owner_open: 0,
            ..Policy::default().quota
        },
        ..Policy::default()
    };
    let mut pipe = Pipe::connect(Stage::with(policy).await.front);
    let asked = pipe.tool("ask").await["result"].clone();
    assert_eq!(asked["resultType"], "input_required");
    let key = asked["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap();
    let retry = json!({
        "name": "ask", "requestState": asked["requestState"],
        "inputResponses": { key: named("Ada") },
    });
    let said = pipe.call("tools/call", retry).await;
    assert_eq!(said["result"]["content"][0]["text"], "Hello, \"Ada\"!");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_does_not_stop_a_call() {
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let faults = store.faults();
    let stage = Stage::on(Arc::new(store), Policy::default()).await;
    let mut pipe = Pipe::connect(stage.front.clone());
    faults.fail_writes(u64::MAX, Strike::BeforeCommit);
    let call = pipe.send("tools/call", json!({ "name": "gated" })).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    stage.open_gate();
    let answer = pipe.answer_to(call).await;
    assert_eq!(answer["result"]["content"][0]["text"], "through");
}
