//! Tasks that the client hosts for a server (seeds 000 and 001).

use std::sync::Arc;
use std::time::Duration;

use outlast::client::{Client, Inbox, OnDecline, ReceiverOptions, ReceiverTtl, WaitingStatus};
use outlast::task::{InputKind, InputKinds};
use serde_json::{Value, json};

use crate::harness::{
    TestInbox, TestServer, connected_with, raw, target, until_removed, with_inbox,
};

const STATUS: &str = "notifications/tasks/status";

async fn client_with_inbox(receiver: ReceiverOptions) -> (Client, TestServer, TestInbox) {
    let (inbox, options) = with_inbox();
    let options = options.with_receiver_tasks(receiver);
    let (client, server) = connected_with(options, json!({})).await;
    (client, server, inbox)
}

fn sample(task: Value) -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": "Hi" } });
    json!({ "messages": [message], "maxTokens": 100, "task": task })
}

fn form(task: Value) -> Value {
    json!({ "message": "Who?", "requestedSchema": {}, "task": task })
}

/// Creates a task and returns the create result.
async fn create_task(server: &mut TestServer, method: &str, params: Value) -> Value {
    server.ask("make", method, params).await;
    let answer = server.response_to_id("make").await;
    let task = answer["result"]["task"].clone();
    // S0-12, V1-LIFE-1, V1-CREATE-5.
    assert_eq!(task["status"], "working", "{answer}");
    assert_eq!(answer["result"].as_object().unwrap().len(), 1);
    task
}

async fn call(server: &mut TestServer, method: &str, params: Value) -> Value {
    server.ask("call", method, params).await;
    server.response_to_id("call").await
}

fn task_id_params(task: &Value) -> Value {
    json!({ "taskId": task["taskId"] })
}

#[tokio::test]
async fn only_accepted_kinds_are_declared_for_tasks() {
    // S0-25, S0-26, S0-84, S0-85, S1-23, S1-24, S1-46.
    for (kinds, requests) in [
        (
            InputKinds::all(),
            json!({ "sampling": { "createMessage": {} }, "elicitation": { "create": {} } }),
        ),
        (
            [InputKind::ElicitUrl].into_iter().collect(),
            json!({ "elicitation": { "create": {} } }),
        ),
    ] {
        let options = crate::harness::options()
            .with_handler(Arc::new(Inbox::new(kinds)))
            .with_receiver_tasks(ReceiverOptions::default());
        let (target, mut servers) = target();
        let connecting = tokio::spawn(Client::connect(target, options));
        let mut server = servers.next().await;
        let hello = server.welcome("2025-11-25", json!({})).await;
        connecting.await.unwrap().unwrap();
        let declared = &hello["params"]["capabilities"]["tasks"];
        assert_eq!(
            *declared,
            json!({ "list": {}, "cancel": {}, "requests": requests })
        );
    }
}

#[tokio::test]
async fn a_sampling_task_ends_with_the_users_response() {
    // S0-4, S0-7 to S0-11, S0-24, S0-29 to S0-33, S0-72, S1-14 to S1-18, S1-20, S1-75 to S1-78,
    // S0-92 to S0-94.
    let (_client, mut server, inbox) = client_with_inbox(ReceiverOptions::default()).await;
    let task = create_task(
        &mut server,
        "sampling/createMessage",
        sample(json!({ "ttl": 8_000 })),
    )
    .await;
    // S0-45, S0-46, S0-68.
    assert_eq!(
        (&task["ttl"], &task["pollInterval"]),
        (&json!(8_000), &json!(2_000))
    );
    let notification = server.next_message(STATUS).await;
    assert_eq!(notification["params"]["status"], "input_required");
    assert_eq!(
        notification["params"]["statusMessage"],
        "Awaiting user approval"
    );
    assert_eq!(notification["params"]["taskId"], task["taskId"]);
    let looked = call(&mut server, "tasks/get", task_id_params(&task)).await;
    assert_eq!(looked["result"]["status"], "input_required");
    // S1-16: the same inbox, and no task data in the request.
    let item = inbox.first().await;
    assert_eq!(item.request.kind, InputKind::Sample);
    assert!(
        !item
            .request
            .params
            .as_ref()
            .unwrap()
            .as_str()
            .contains("\"task\"")
    );
    server
        .ask("wait", "tasks/result", task_id_params(&task))
        .await;
    let said = json!({ "role": "assistant", "content": { "type": "text", "text": "Ho" }, "model": "m", "stopReason": "endTurn", "_meta": { "k": 1 } });
    inbox.respond(item.id, raw(said.clone())).unwrap();
    let waited = server.response_to_id("wait").await;
    // S0-37, S0-81: merged, not replaced.
    let mut expected = said;
    expected["_meta"]["io.modelcontextprotocol/related-task"] = task_id_params(&task);
    assert_eq!(waited["result"], expected);
    loop {
        let notification = server.next_message(STATUS).await;
        if notification["params"]["status"] == "completed" {
            // S0-52: the message of an earlier status is gone.
            assert_eq!(notification["params"].get("statusMessage"), None);
            break;
        }
    }
    // V1-RES-10.
    assert_eq!(
        call(&mut server, "tasks/result", task_id_params(&task)).await["result"],
        expected
    );
}

#[tokio::test]
async fn a_declined_request_ends_the_task_by_its_kind() {
    // S0-17, S1-60, S1-79, S0-75.
    for on_decline in [OnDecline::Completes, OnDecline::Fails] {
        let options = ReceiverOptions::default().with_on_decline(on_decline);
        let (_client, mut server, inbox) = client_with_inbox(options).await;
        let task = create_task(&mut server, "elicitation/create", form(json!({}))).await;
        inbox.decline(inbox.first().await.id).unwrap();
        let result = call(&mut server, "tasks/result", task_id_params(&task)).await;
        let looked = call(&mut server, "tasks/get", task_id_params(&task)).await;
        if on_decline == OnDecline::Completes {
            assert_eq!(result["result"]["action"], "decline");
            assert_eq!(looked["result"]["status"], "completed");
        } else {
            assert_eq!(result["error"]["code"], -1);
            assert_eq!(looked["result"]["status"], "failed");
        }
        let task = create_task(&mut server, "sampling/createMessage", sample(json!({}))).await;
        inbox.decline(inbox.first().await.id).unwrap();
        let result = call(&mut server, "tasks/result", task_id_params(&task)).await;
        // V1-RES-13, S0-53.
        assert_eq!(
            result["error"],
            json!({ "code": -1, "message": "User declined sampling request" })
        );
        let looked = call(&mut server, "tasks/get", task_id_params(&task)).await;
        assert_eq!(looked["result"]["status"], "failed");
        assert_eq!(
            looked["result"]["statusMessage"],
            "User declined sampling request"
        );
    }
}

#[tokio::test]
async fn a_cancelled_task_dismisses_its_request_and_stays_cancelled() {
    // S0-35, S0-39, S0-59 to S0-64, S0-89, S0-90, S0-95, S1-45.
    let (_client, mut server, inbox) = client_with_inbox(ReceiverOptions::default()).await;
    let task = create_task(&mut server, "elicitation/create", form(json!({}))).await;
    let item = inbox.first().await;
    let mut events = inbox.events();
    server
        .ask("wait", "tasks/result", task_id_params(&task))
        .await;
    let cancelled = call(&mut server, "tasks/cancel", task_id_params(&task)).await;
    assert_eq!(cancelled["result"]["status"], "cancelled");
    assert_eq!(
        cancelled["result"]["statusMessage"],
        "Task cancelled by server"
    );
    assert_eq!(server.response_to_id("wait").await["error"]["code"], -32603);
    until_removed(&mut events, item.id).await;
    let left = inbox.departure(item.id).map(|left| left.removal);
    assert_eq!(left, Some(outlast::client::Removal::TaskCancelled));
    // S1-49: a late response changes nothing.
    assert!(inbox.decline(item.id).is_err());
    assert_eq!(
        call(&mut server, "tasks/cancel", task_id_params(&task)).await["error"]["code"],
        -32602
    );
    loop {
        if server.next_message(STATUS).await["params"]["status"] == "cancelled" {
            break;
        }
    }
}

#[tokio::test]
async fn an_unknown_task_is_not_found() {
    // S0-54, S0-55, S1-54, V1-ERR-1, V1-ERR-2, V1-META-3.
    let (_client, mut server, _inbox) = client_with_inbox(ReceiverOptions::default()).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        for params in [json!({ "taskId": "x" }), json!({ "taskId": 7 }), json!({})] {
            assert_eq!(
                call(&mut server, method, params).await["error"]["code"],
                -32602,
                "{method}"
            );
        }
    }
    assert_eq!(
        call(&mut server, "tasks/list", json!({ "cursor": "x" })).await["error"]["code"],
        -32602
    );
    let odd = call(&mut server, "elicitation/create", form(json!("soon"))).await;
    assert_eq!(odd["error"]["code"], -32602);
}

#[tokio::test]
async fn tasks_are_listed_on_pages_with_unique_ids() {
    // S0-28, S0-34, S0-86, S0-82, V1-LIST-2, V1-RM-1.
    let options = ReceiverOptions::default().with_max_open_tasks(1_000);
    let (_client, mut server, _inbox) = client_with_inbox(options).await;
    let mut made_ids = std::collections::BTreeSet::new();
    for _ in 0..1_000 {
        let task = create_task(&mut server, "elicitation/create", form(json!({}))).await;
        made_ids.insert(task["taskId"].as_str().unwrap().to_owned());
    }
    assert_eq!(made_ids.len(), 1_000);
    let one_more = call(&mut server, "elicitation/create", form(json!({}))).await;
    assert_eq!(one_more["error"]["code"], -32603);
    let mut listed = std::collections::BTreeSet::new();
    server
        .write(json!({ "jsonrpc": "2.0", "id": "list", "method": "tasks/list" }))
        .await;
    let mut page = server.response_to_id("list").await;
    loop {
        for task in page["result"]["tasks"].as_array().unwrap() {
            listed.insert(task["taskId"].as_str().unwrap().to_owned());
        }
        let Some(cursor) = page["result"].get("nextCursor").cloned() else {
            break;
        };
        page = call(&mut server, "tasks/list", json!({ "cursor": cursor })).await;
    }
    assert_eq!(listed, made_ids);
}

#[tokio::test]
async fn an_expired_task_is_gone_and_waiting_requests_fail() {
    // S0-38, S0-66, S0-91, S1-19, S1-25, S1-67, S1-87, A1-23.
    let chosen = ReceiverTtl::Chosen(Arc::new(|| Duration::from_millis(150)));
    let options = ReceiverOptions::default().with_ttl(chosen);
    let (_client, mut server, inbox) = client_with_inbox(options).await;
    let task = create_task(
        &mut server,
        "elicitation/create",
        form(json!({ "ttl": null })),
    )
    .await;
    assert_eq!(task["ttl"], 150);
    let item = inbox.first().await;
    let mut events = inbox.events();
    server
        .ask("wait", "tasks/result", task_id_params(&task))
        .await;
    assert_eq!(server.response_to_id("wait").await["error"]["code"], -32602);
    until_removed(&mut events, item.id).await;
    let left = inbox.departure(item.id).map(|left| left.removal);
    assert_eq!(left, Some(outlast::client::Removal::TaskExpired));
    assert_eq!(
        call(&mut server, "tasks/get", task_id_params(&task)).await["error"]["code"],
        -32602
    );
    // S1-44: a cancelled task expires, too.
    let task = create_task(&mut server, "elicitation/create", form(json!({}))).await;
    call(&mut server, "tasks/cancel", task_id_params(&task)).await;
    let expires = async {
        while call(&mut server, "tasks/get", task_id_params(&task)).await["error"]["code"] != -32602
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), expires)
        .await
        .unwrap();
    // S0-47: a requested TTL is granted up to the limit.
    let task = create_task(
        &mut server,
        "elicitation/create",
        form(json!({ "ttl": 1e15 })),
    )
    .await;
    assert_eq!(task["ttl"], 3_600_000);
}

#[tokio::test]
async fn tasks_belong_to_their_connection() {
    // S0-19, S0-41, S1-11, S1-27, S1-58.
    let (_one, mut first, inbox) = client_with_inbox(ReceiverOptions::default()).await;
    let (_two, mut second, _) = client_with_inbox(ReceiverOptions::default()).await;
    let task = create_task(&mut first, "elicitation/create", form(json!({}))).await;
    let item = inbox.first().await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        assert_eq!(
            call(&mut second, method, task_id_params(&task)).await["error"]["code"],
            -32602
        );
    }
    assert_eq!(
        call(&mut second, "tasks/list", json!({})).await["result"]["tasks"],
        json!([])
    );
    let mut events = inbox.events();
    drop(first);
    until_removed(&mut events, item.id).await;
    let left = inbox.departure(item.id).map(|left| left.removal);
    assert_eq!(left, Some(outlast::client::Removal::Disconnected));
}

#[tokio::test]
async fn a_task_can_stay_working_during_an_elicitation() {
    // S0-13, A1-13.
    let options = ReceiverOptions::default().with_status_while_waiting(WaitingStatus::Working);
    let (_client, mut server, inbox) = client_with_inbox(options).await;
    let task = create_task(&mut server, "sampling/createMessage", sample(json!({}))).await;
    let notification = server.next_message(STATUS).await;
    assert_eq!(notification["params"]["status"], "working");
    assert_eq!(
        notification["params"]["statusMessage"],
        "Awaiting user approval"
    );
    inbox.cancel(inbox.first().await.id).unwrap();
    assert_eq!(
        call(&mut server, "tasks/result", task_id_params(&task)).await["error"]["code"],
        -1
    );
}

#[tokio::test]
async fn a_request_without_a_task_is_handled_as_before() {
    // S1-13, S0-21, S0-22.
    let (_client, mut server, inbox) = client_with_inbox(ReceiverOptions::default()).await;
    server
        .ask("q", "elicitation/create", form(Value::Null))
        .await;
    inbox.decline(inbox.first().await.id).unwrap();
    assert_eq!(
        server.response_to_id("q").await["result"],
        json!({ "action": "decline" })
    );
    assert_eq!(
        call(&mut server, "tasks/list", json!({})).await["result"]["tasks"],
        json!([])
    );
}
