//! `tasks/get`, `tasks/update` and `tasks/cancel`.

use std::collections::BTreeSet;
use std::time::Duration;

use outlast_testkit::wait_for;
use serde_json::{Value, json};

use crate::harness::{Harness, name_response};
use crate::stdio_client::{StdioClient, no_tasks};

const UNKNOWN: &str = "7zzzzzzzzzzzzzzzzzzzzzzzzz";

#[tokio::test(start_paused = true)]
async fn a_tool_error_completes_and_an_rpc_error_fails() {
    // V2-LIFE-2 to V2-LIFE-5, V2-GET-3, V2-GET-5, V2-RT-3.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let task = client.task("fails").await;
    let done = client.until(&task, "completed").await;
    assert_eq!(done["resultType"], "complete");
    assert_eq!(done["result"]["isError"], true);
    assert_eq!(done["result"]["content"][0]["text"], "it failed");
    let task = client.task("broken").await;
    let failed = client.until(&task, "failed").await;
    assert_eq!(failed["resultType"], "complete");
    assert_eq!(
        failed["error"],
        json!({ "code": -32099, "message": "it broke" })
    );
    assert_eq!(failed["statusMessage"], "it broke");
    assert_eq!(failed.get("result"), None);
    // V2-LIFE-6.
    assert_eq!(client.status(&task).await, failed);
}

#[tokio::test(start_paused = true)]
async fn callers_without_the_extension_are_rejected_before_any_lookup() {
    // V2-CAP-12, V2-ERR-4, A2-5.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let own = client.task("gated").await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for id in [UNKNOWN, &own] {
            let params = json!({ "taskId": id, "inputResponses": {} });
            let rejected = client.call_with(method, params, no_tasks()).await;
            assert_eq!(rejected["error"]["code"], -32021, "{method}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_tasks_are_invalid_params_for_every_method() {
    // V2-GET-13, V2-UPD-14, V2-CANCEL-3, V2-ERR-1, V2-ERR-2.
    let mut client = StdioClient::connect(Harness::new().await.server);
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for id in [UNKNOWN, "no id of ours", "ü"] {
            let params = json!({ "taskId": id, "inputResponses": {} });
            let rejected = client.call(method, params).await;
            assert_eq!(rejected["error"]["code"], -32602, "{method} {id}");
        }
        let nameless = client.call(method, json!({})).await;
        assert_eq!(nameless["error"]["code"], -32602, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_partial_update_leaves_the_other_requests_open() {
    // V2-GET-2, V2-UPD-9 to V2-UPD-13, A2-16: the key with a response is gone on the next poll.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let task = client.task("two").await;
    let asks = both(&mut client, &task).await;
    let (one, other) = (&asks[0], &asks[1]);
    let update = |responses: Value| json!({ "taskId": task, "inputResponses": responses });
    let responses = json!({ one: name_response("Ada"), "never asked": 7 });
    let ack = client.call("tasks/update", update(responses)).await["result"].clone();
    assert_eq!(ack["resultType"], "complete");
    assert_eq!(ack.as_object().unwrap().len(), 1, "{ack}");
    let now = client.status(&task).await;
    assert_eq!(now["status"], "input_required");
    let left: Vec<_> = now["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(left, [other]);
    // The first response to a key counts, another one does not.
    client
        .call("tasks/update", update(json!({ one: name_response("Eve") })))
        .await;
    client
        .call(
            "tasks/update",
            update(json!({ other: name_response("Bob") })),
        )
        .await;
    let done = client.until(&task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "\"Ada\" \"Bob\"");
    // A2-4.
    let late = client
        .call("tasks/update", update(json!({ one: name_response("Eve") })))
        .await;
    assert_eq!(late["result"]["resultType"], "complete");
}

#[tokio::test(start_paused = true)]
async fn a_malformed_input_response_rejects_all() {
    // V2-UPD-18.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let task = client.task("two").await;
    let asks = both(&mut client, &task).await;
    for bad in [
        json!(7),
        json!({}),
        json!({ "action": "perhaps" }),
        json!(null),
    ] {
        let responses = json!({ &asks[0]: name_response("Ada"), &asks[1]: bad });
        let params = json!({ "taskId": task, "inputResponses": responses });
        let rejected = client.call("tasks/update", params).await;
        assert_eq!(rejected["error"]["code"], -32602);
        assert_eq!(both(&mut client, &task).await, asks);
    }
    for bad in [json!(null), json!([]), json!("x")] {
        let params = json!({ "taskId": task, "inputResponses": bad });
        let rejected = client.call("tasks/update", params).await;
        assert_eq!(rejected["error"]["code"], -32602);
    }
    let missing = client.call("tasks/update", json!({ "taskId": task })).await;
    assert_eq!(missing["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn input_keys_are_never_reused() {
    // V2-UPD-5, V2-UPD-6.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let task = client.task("again").await;
    let mut seen = BTreeSet::new();
    for _ in 0..2 {
        let asks = client.until(&task, "input_required").await;
        let requests = asks["inputRequests"].as_object().unwrap();
        assert_eq!(requests.len(), 1);
        let key = requests.keys().next().unwrap().clone();
        let responses = json!({ &key: { "action": "decline" } });
        assert!(seen.insert(key));
        let params = json!({ "taskId": task, "inputResponses": responses });
        client.call("tasks/update", params).await;
    }
    client.until(&task, "completed").await;
}

#[tokio::test(start_paused = true)]
async fn decline_and_cancel_are_input_responses() {
    // V2-ELIC-4, A2-20.
    let mut client = StdioClient::connect(Harness::new().await.server);
    for action in ["decline", "cancel"] {
        let task = client.task("ask").await;
        let asks = client.until(&task, "input_required").await;
        let key = asks["inputRequests"]
            .as_object()
            .unwrap()
            .keys()
            .next()
            .unwrap();
        let responses = json!({ key: { "action": action } });
        let params = json!({ "taskId": task, "inputResponses": responses });
        client.call("tasks/update", params).await;
        client.until(&task, "completed").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_is_acknowledged_at_once() {
    // V2-CANCEL-2, V2-CANCEL-4, V2-CANCEL-5, V2-GET-4.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let task = client.task("gated").await;
    let ack = client.call("tasks/cancel", json!({ "taskId": task })).await["result"].clone();
    assert_eq!(ack["resultType"], "complete");
    assert_eq!(ack.as_object().unwrap().len(), 1, "{ack}");
    client.until(&task, "cancelled").await;
    // A tool that observes the cancellation may end otherwise.
    let task = client.task("tidy").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    client.call("tasks/cancel", json!({ "taskId": task })).await;
    let done = client.until(&task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "tidied up");
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_does_not_change_an_ended_task() {
    // V2-CANCEL-7, V2-CANCEL-8.
    let mut client = StdioClient::connect(Harness::new().await.server);
    let task = client.task("fails").await;
    let before = client.until(&task, "completed").await;
    for _ in 0..2 {
        let ack = client.call("tasks/cancel", json!({ "taskId": task })).await;
        assert_eq!(ack["result"]["resultType"], "complete");
    }
    assert_eq!(client.status(&task).await, before);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_racing_the_end_leaves_one_outcome() {
    // V2-CANCEL-4, V2-LIFE-6.
    let harness = Harness::new().await;
    let mut client = StdioClient::connect(harness.server.clone());
    for _ in 0..20 {
        let task = client.task("gated").await;
        let cancel = client.send("tasks/cancel", json!({ "taskId": task })).await;
        harness.open_gate();
        client.response_to(cancel).await;
        let end = wait_for("the task ends", async || {
            let now = client.status(&task).await;
            (now["status"] != "working").then_some(now)
        });
        let end = end.await;
        assert!(
            end["status"] == "completed" || end["status"] == "cancelled",
            "{end}"
        );
        assert_eq!(end["status"] == "completed", end.get("result").is_some());
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(client.status(&task).await, end);
        // Takes back the permit that the gate still has.
        let _ = harness.gate.try_acquire().map(|permit| permit.forget());
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_gets_no_response_and_its_task_continues() {
    // V2-CANC-3, A2-42, V2-CANCEL-1: on stdio by notification; a task is not a request.
    let harness = Harness::new().await;
    let mut client = StdioClient::connect(harness.server.clone());
    let call = client
        .send_with("tools/call", json!({ "name": "gated" }), no_tasks())
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    client
        .notify("notifications/cancelled", json!({ "requestId": call }))
        .await;
    harness.until_idle().await;
    let created = client.send("tools/call", json!({ "name": "gated" })).await;
    let task = client.response_to(created.clone()).await["result"]["taskId"].clone();
    client
        .notify("notifications/cancelled", json!({ "requestId": created }))
        .await;
    client.silence().await;
    assert_eq!(
        client.status(task.as_str().unwrap()).await["status"],
        "working"
    );
}

/// The keys of two open input requests.
async fn both(client: &mut StdioClient, task: &str) -> Vec<String> {
    loop {
        let now = client.until(task, "input_required").await;
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
