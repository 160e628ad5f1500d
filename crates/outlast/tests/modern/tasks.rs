//! `tasks/get`, `tasks/update` and `tasks/cancel`.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Stage, named};
use crate::stdio_client::{Pipe, no_tasks};

const UNKNOWN: &str = "7zzzzzzzzzzzzzzzzzzzzzzzzz";

#[tokio::test(start_paused = true)]
async fn a_flagged_result_completes_and_an_error_fails_with_words() {
    // V2-LIFE-2 to V2-LIFE-5, V2-GET-3, V2-GET-5, V2-RT-3.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let task = pipe.task("fails").await;
    let done = pipe.until(&task, "completed").await;
    assert_eq!(done["resultType"], "complete");
    assert_eq!(done["result"]["isError"], true);
    assert_eq!(done["result"]["content"][0]["text"], "it failed");
    let task = pipe.task("broken").await;
    let failed = pipe.until(&task, "failed").await;
    assert_eq!(failed["resultType"], "complete");
    assert_eq!(
        failed["error"],
        json!({ "code": -32099, "message": "it broke" })
    );
    assert_eq!(failed["statusMessage"], "it broke");
    assert_eq!(failed.get("result"), None);
    // V2-LIFE-6.
    assert_eq!(pipe.status(&task).await, failed);
}

#[tokio::test(start_paused = true)]
async fn callers_without_the_extension_are_refused_before_any_lookup() {
    // V2-CAP-12, V2-ERR-4, A2-5.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let own = pipe.task("gated").await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for id in [UNKNOWN, &own] {
            let params = json!({ "taskId": id, "inputResponses": {} });
            let refused = pipe.call_with(method, params, no_tasks()).await;
            assert_eq!(refused["error"]["code"], -32021, "{method}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_tasks_are_invalid_params_for_every_method() {
    // V2-GET-13, V2-UPD-14, V2-CANCEL-3, V2-ERR-1, V2-ERR-2.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for id in [UNKNOWN, "no id of ours", "ü"] {
            let params = json!({ "taskId": id, "inputResponses": {} });
            let refused = pipe.call(method, params).await;
            assert_eq!(refused["error"]["code"], -32602, "{method} {id}");
        }
        let nameless = pipe.call(method, json!({})).await;
        assert_eq!(nameless["error"]["code"], -32602, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn part_of_the_answers_leaves_the_rest_open() {
    // V2-GET-2, V2-UPD-9 to V2-UPD-13, A2-16: the answered key is gone on the very next look.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let task = pipe.task("two").await;
    let asks = both(&mut pipe, &task).await;
    let (one, other) = (&asks[0], &asks[1]);
    let update = |responses: Value| json!({ "taskId": task, "inputResponses": responses });
    let answers = json!({ one: named("Ada"), "never asked": 7 });
    let ack = pipe.call("tasks/update", update(answers)).await["result"].clone();
    assert_eq!(ack["resultType"], "complete");
    assert_eq!(ack.as_object().unwrap().len(), 1, "{ack}");
    let now = pipe.status(&task).await;
    assert_eq!(now["status"], "input_required");
    let left: Vec<_> = now["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(left, [other]);
    // An answer that came before counts; another one for the same key does not.
    pipe.call("tasks/update", update(json!({ one: named("Eve") })))
        .await;
    pipe.call("tasks/update", update(json!({ other: named("Bob") })))
        .await;
    let done = pipe.until(&task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "\"Ada\" \"Bob\"");
    // A2-4.
    let late = pipe
        .call("tasks/update", update(json!({ one: named("Eve") })))
        .await;
    assert_eq!(late["result"]["resultType"], "complete");
}

#[tokio::test(start_paused = true)]
async fn a_malformed_answer_refuses_all_of_them() {
    // V2-UPD-18.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let task = pipe.task("two").await;
    let asks = both(&mut pipe, &task).await;
    for bad in [
        json!(7),
        json!({}),
        json!({ "action": "perhaps" }),
        json!(null),
    ] {
        let responses = json!({ &asks[0]: named("Ada"), &asks[1]: bad });
        let params = json!({ "taskId": task, "inputResponses": responses });
        let refused = pipe.call("tasks/update", params).await;
        assert_eq!(refused["error"]["code"], -32602);
        assert_eq!(both(&mut pipe, &task).await, asks);
    }
    for bad in [json!(null), json!([]), json!("x")] {
        let params = json!({ "taskId": task, "inputResponses": bad });
        let refused = pipe.call("tasks/update", params).await;
        assert_eq!(refused["error"]["code"], -32602);
    }
    let missing = pipe.call("tasks/update", json!({ "taskId": task })).await;
    assert_eq!(missing["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn keys_are_never_used_twice() {
    // V2-UPD-5, V2-UPD-6.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let task = pipe.task("again").await;
    let mut seen = BTreeSet::new();
    for _ in 0..2 {
        let asks = pipe.until(&task, "input_required").await;
        let requests = asks["inputRequests"].as_object().unwrap();
        assert_eq!(requests.len(), 1);
        let key = requests.keys().next().unwrap().clone();
        let responses = json!({ &key: { "action": "decline" } });
        assert!(seen.insert(key));
        let params = json!({ "taskId": task, "inputResponses": responses });
        pipe.call("tasks/update", params).await;
    }
    pipe.until(&task, "completed").await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_an_answer() {
    // V2-ELIC-4, A2-20.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    for action in ["decline", "cancel"] {
        let task = pipe.task("ask").await;
        let asks = pipe.until(&task, "input_required").await;
        let key = asks["inputRequests"]
            .as_object()
            .unwrap()
            .keys()
            .next()
            .unwrap();
        let responses = json!({ key: { "action": action } });
        let params = json!({ "taskId": task, "inputResponses": responses });
        pipe.call("tasks/update", params).await;
        pipe.until(&task, "completed").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_is_acknowledged_at_once_and_obeyed_in_time() {
    // V2-CANCEL-2, V2-CANCEL-4, V2-CANCEL-5, V2-GET-4.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let task = pipe.task("gated").await;
    let ack = pipe.call("tasks/cancel", json!({ "taskId": task })).await["result"].clone();
    assert_eq!(ack["resultType"], "complete");
    assert_eq!(ack.as_object().unwrap().len(), 1, "{ack}");
    pipe.until(&task, "cancelled").await;
    // One that looks after it may end otherwise.
    let task = pipe.task("tidy").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    pipe.call("tasks/cancel", json!({ "taskId": task })).await;
    let done = pipe.until(&task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "tidied up");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_ended_is_not_changed_by_a_cancellation() {
    // V2-CANCEL-7, V2-CANCEL-8.
    let mut pipe = Pipe::connect(Stage::new().await.front);
    let task = pipe.task("fails").await;
    let before = pipe.until(&task, "completed").await;
    for _ in 0..2 {
        let ack = pipe.call("tasks/cancel", json!({ "taskId": task })).await;
        assert_eq!(ack["result"]["resultType"], "complete");
    }
    assert_eq!(pipe.status(&task).await, before);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_that_races_the_end_leaves_one_end() {
    // V2-CANCEL-4, V2-LIFE-6.
    let stage = Stage::new().await;
    let mut pipe = Pipe::connect(stage.front.clone());
    for _ in 0..20 {
        let task = pipe.task("gated").await;
        let cancel = pipe.send("tasks/cancel", json!({ "taskId": task })).await;
        stage.open_gate();
        pipe.answer_to(cancel).await;
        let end = loop {
            let now = pipe.status(&task).await;
            if now["status"] != "working" {
                break now;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        assert!(
            end["status"] == "completed" || end["status"] == "cancelled",
            "{end}"
        );
        assert_eq!(end["status"] == "completed", end.get("result").is_some());
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(pipe.status(&task).await, end);
        // What the gate has left over is taken back.
        let _ = stage.gate.try_acquire().map(|permit| permit.forget());
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_is_not_spoken_of_again_and_its_task_goes_on() {
    // V2-CANC-3, A2-42, V2-CANCEL-1: on a pipe by notification; a task is not a request.
    let stage = Stage::new().await;
    let mut pipe = Pipe::connect(stage.front.clone());
    let call = pipe
        .send_with("tools/call", json!({ "name": "gated" }), no_tasks())
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    pipe.notify("notifications/cancelled", json!({ "requestId": call }))
        .await;
    stage.until_idle().await;
    let created = pipe.send("tools/call", json!({ "name": "gated" })).await;
    let task = pipe.answer_to(created.clone()).await["result"]["taskId"].clone();
    pipe.notify("notifications/cancelled", json!({ "requestId": created }))
        .await;
    pipe.silence().await;
    assert_eq!(
        pipe.status(task.as_str().unwrap()).await["status"],
        "working"
    );
}

/// The keys of two open questions.
async fn both(pipe: &mut Pipe, task: &str) -> Vec<String> {
    loop {
        let now = pipe.until(task, "input_required").await;
        let keys: Vec<_> = now["inputRequests"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        if keys.len() == 2 {
            return keys;
        }
    }
}
