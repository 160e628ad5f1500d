//! Answers over HTTP that take a while: what is said meanwhile, and what a closed stream means.

use outlast_testkit::eventually;
use serde_json::json;

use crate::harness::Stage;
use crate::http_client::{Http, next, served};
use crate::stdio_client::no_tasks;

#[tokio::test]
async fn progress_travels_before_the_answer_and_on_its_stream() {
    // V2-HTTP-5, V2-PRG-1, V2-LOG-1, V2-HTTP-9.
    let stage = Stage::new().await;
    let server = served(&stage.front).await;
    let mut http = Http::of(&server);
    http.can = no_tasks();
    for wants_logs in [false, true] {
        let mut params = json!({ "name": "steps", "_meta": { "progressToken": 7 } });
        if wants_logs {
            params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
        }
        stage.open_gate();
        let mut answer = http.ask("tools/call", params).await;
        assert!(answer.is_stream());
        assert_eq!(answer.header("x-accel-buffering"), Some("no"));
        for step in 1..=3 {
            let told = next(&mut answer, "tools/call").await;
            assert_eq!(told["method"], "notifications/progress");
            assert_eq!(told["params"]["progressToken"], 7);
            assert_eq!(told["params"]["progress"], step);
            if wants_logs {
                let told = next(&mut answer, "tools/call").await;
                assert_eq!(told["method"], "notifications/message");
            }
            stage.open_gate();
        }
        let last = next(&mut answer, "tools/call").await;
        assert_eq!(last["id"], "h");
        assert_eq!(last["result"]["content"][0]["text"], "arrived");
        assert_eq!(answer.event().await, None);
    }
}

#[tokio::test]
async fn a_closed_stream_stops_a_plain_call() {
    // V2-HTTP-6, V2-CANC-1.
    let stage = Stage::new().await;
    let server = served(&stage.front).await;
    let mut http = Http::of(&server);
    http.can = no_tasks();
    let mut params = json!({ "name": "steps", "_meta": { "progressToken": 7 } });
    params["_meta"]["progressToken"] = json!("p");
    stage.open_gate();
    let mut answer = http.ask("tools/call", params).await;
    next(&mut answer, "tools/call").await;
    assert_eq!(stage.engine.running(), 1);
    drop(answer);
    stage.until_idle().await;
}

#[tokio::test]
async fn a_connection_that_closes_before_any_answer_stops_the_call() {
    // V2-CREATE-12: nothing was stored yet, and nothing is left.
    let stage = Stage::new().await;
    let server = served(&stage.front).await;
    let mut http = Http::of(&server);
    http.can = no_tasks();
    let call = tokio::spawn({
        let http = http.clone();
        async move {
            http.ask("tools/call", json!({ "name": "gated" }))
                .await
                .status
        }
    });
    eventually("the call runs", async || stage.begun() > 0).await;
    call.abort();
    stage.until_idle().await;
}

#[tokio::test]
async fn a_closed_connection_never_touches_a_task() {
    // V2-STATE-2: and the task is found on another connection.
    let stage = Stage::new().await;
    let server = served(&stage.front).await;
    let http = Http::of(&server);
    let created = http.ask("tools/call", json!({ "name": "gated" })).await;
    let created = created.json().await;
    let task = created["result"]["taskId"].as_str().unwrap();
    assert_eq!(http.status(task).await["status"], "working");
    assert_eq!(stage.engine.running(), 1);
    stage.open_gate();
    http.until(task, "completed").await;
}

#[tokio::test]
async fn one_who_takes_only_one_form_gets_it() {
    let stage = Stage::new().await;
    let server = served(&stage.front).await;
    let http = Http::of(&server);
    let events = [("accept", "text/event-stream")];
    let mut answer = http.ask_with("tools/list", json!({}), &events).await;
    assert!(answer.is_stream());
    assert_eq!(next(&mut answer, "tools/list").await["id"], "h");
    let json_only = [("accept", "application/json")];
    stage.gate.add_permits(4);
    let params = json!({ "name": "steps", "_meta": { "progressToken": 7 } });
    let answer = http.ask_with("tools/call", params, &json_only).await;
    let answer = answer.json().await;
    assert_eq!(answer["result"]["content"][0]["text"], "arrived");
}
