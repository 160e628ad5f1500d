//! Requests whose response is an input request first (V2-MRTR).

use std::time::Duration;

use outlast::client::{self, ClientOptions, OutcomeError, TaskPreference};
use outlast::task::Outcome;
use serde_json::{Value, json};

use super::{connected, created, filled_in, form, rejects_subscriptions, task_result};
use crate::harness::{raw, result_text, text, with_inbox};

fn input_required(input_requests: Value, state: Option<&str>) -> Value {
    let mut result = json!({ "resultType": "input_required" });
    if input_requests.is_object() {
        result["inputRequests"] = input_requests;
    }
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    result
}

#[tokio::test(start_paused = true)]
async fn a_call_is_repeated_with_responses_and_unchanged_state() {
    // V2-MRTR-7, V2-MRTR-8, V2-MRTR-9, V2-BASE-2.
    let (inbox, options) = with_inbox();
    let (client, mut server) = connected(options).await;
    let arguments = json!({ "n": 1 });
    let call = client.call_tool("ask", Some(raw(arguments.clone())));
    let call = call.task(TaskPreference::Forbid).await.unwrap();
    let first = server.expect_request("tools/call").await;
    let state = "sealed \u{1}\"ü ==";
    let input_requests = json!({ "a": form("A?"), "b": form("B?") });
    server
        .reply(&first, input_required(input_requests, Some(state)))
        .await;
    inbox.until_items(2).await;
    for item in inbox.items() {
        assert_eq!(item.request.task, None);
        inbox.respond(item.id, raw(filled_in("x"))).unwrap();
    }
    let mut second = server.expect_request("tools/call").await;
    assert_ne!(second["id"], first["id"]);
    assert_eq!(second["params"]["requestState"], state);
    assert_eq!(
        second["params"]["inputResponses"],
        json!({ "a": filled_in("x"), "b": filled_in("x") })
    );
    // All other members are the same.
    let params = second["params"].as_object_mut().unwrap();
    params.remove("requestState");
    params.remove("inputResponses");
    assert_eq!(second["params"], first["params"]);
    // State and responses of a retry are not in any other call, nor in the next retry.
    let other = client.call_tool("ask", ()).await.unwrap();
    let parallel = server.expect_request("tools/call").await;
    assert!(parallel["params"].get("requestState").is_none());
    assert!(parallel["params"].get("inputResponses").is_none());
    drop(other);
    server
        .reply(&second, input_required(json!({ "c": form("C?") }), None))
        .await;
    let item = inbox.first().await;
    inbox.respond(item.id, raw(filled_in("y"))).unwrap();
    let third = server.expect_request("tools/call").await;
    assert!(third["params"].get("requestState").is_none());
    assert_eq!(
        third["params"]["inputResponses"],
        json!({ "c": filled_in("y") })
    );
    server.reply(&third, text("done")).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
}

#[tokio::test(start_paused = true)]
async fn a_call_can_become_a_task_after_input_rounds() {
    // V2-CREATE-7, V2-UPD-17.
    let (inbox, options) = with_inbox();
    let (client, mut server) = connected(options).await;
    let call = client.call_tool("ask", ()).await.unwrap();
    let first = server.expect_request("tools/call").await;
    server
        .reply(
            &first,
            input_required(json!({ "k": form("A?") }), Some("s")),
        )
        .await;
    let item = inbox.first().await;
    inbox.respond(item.id, raw(filled_in("x"))).unwrap();
    let second = server.expect_request("tools/call").await;
    server.reply(&second, created("working", 100)).await;
    rejects_subscriptions(&mut server).await;
    let look = server.expect_request("tasks/get").await;
    // The same key in the task is another input request.
    let brings = json!({ "inputRequests": { "k": form("B?") } });
    server
        .reply(&look, task_result("input_required", 100, brings))
        .await;
    let item = inbox.first().await;
    assert_eq!(item.request.task.as_deref(), Some("t1"));
    inbox.respond(item.id, raw(filled_in("y"))).unwrap();
    let update = server.expect_request("tasks/update").await;
    server
        .reply(&update, json!({ "resultType": "complete" }))
        .await;
    let look = server.expect_request("tasks/get").await;
    let ended = task_result("completed", 100, json!({ "result": text("done") }));
    server.reply(&look, ended).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
}

#[tokio::test(start_paused = true)]
async fn the_number_of_input_rounds_is_limited() {
    // V2-MRTR-12, V2-MRTR-7.
    for input_requests in [json!({ "k": form("A?") }), json!(null)] {
        let (inbox, options) = with_inbox();
        let (client, mut server) = connected(options).await;
        let call = client.call_tool("ask", ()).await.unwrap();
        let playing = tokio::spawn(async move {
            loop {
                let request = server.expect_request("tools/call").await;
                server
                    .reply(&request, input_required(input_requests.clone(), Some("s")))
                    .await;
            }
        });
        let answering = tokio::spawn(async move {
            loop {
                let item = inbox.first().await;
                inbox.respond(item.id, raw(filled_in("x"))).unwrap();
            }
        });
        let settled = call.outcome().await;
        assert!(
            matches!(
                settled,
                Err(OutcomeError::Request(client::Error::Malformed(_)))
            ),
            "{settled:?}"
        );
        playing.abort();
        answering.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejection_without_a_response_form_fails_the_call() {
    // V2-MRTR-11, A2-19.
    let (inbox, options) = with_inbox();
    let (client, mut server) = connected(options).await;
    let call = client.call_tool("ask", ()).await.unwrap();
    let first = server.expect_request("tools/call").await;
    let messages = json!({ "messages": [], "maxTokens": 1 });
    let sample = json!({ "method": "sampling/createMessage", "params": messages });
    let input_requests = json!({ "a": sample, "b": form("B?") });
    server
        .reply(&first, input_required(input_requests, None))
        .await;
    inbox.until_items(2).await;
    let items = inbox.items();
    let sampling =
        |item: &&client::InboxItem| item.request.kind == outlast::task::InputKind::Sample;
    inbox
        .decline(items.iter().find(sampling).unwrap().id)
        .unwrap();
    let settled = call.outcome().await;
    assert!(
        matches!(&settled, Ok(Outcome::Error(_, code, _)) if code.0 == -1),
        "{settled:?}"
    );
    // The other input requests are dropped, and nothing is sent.
    inbox.until_items(0).await;
    server.silence(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn undeclared_input_requests_are_not_handled() {
    // V2-MRTR-3, V2-MRTR-4, V2-SAMP-2.
    let used = json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "1" }] });
    let sample = json!({ "messages": [used], "maxTokens": 1, "tools": [] });
    let sample = json!({ "method": "sampling/createMessage", "params": sample });
    let other = json!({ "method": "tools/list" });
    for (has_host, input_request, code) in [
        (false, form("A?"), -32601),
        // A tool use without its result, and an unknown input request.
        (true, sample, -32602),
        (true, other, -32601),
    ] {
        let (inbox, options) = with_inbox();
        let options = if has_host {
            options
        } else {
            ClientOptions::default()
        };
        let (client, mut server) = connected(options).await;
        let call = client.call_tool("ask", ()).await.unwrap();
        let first = server.expect_request("tools/call").await;
        let input_requests = json!({ "k": input_request, "fine": form("B?") });
        server
            .reply(&first, input_required(input_requests, None))
            .await;
        let settled = call.outcome().await;
        assert!(
            matches!(&settled, Ok(Outcome::Error(_, said, _)) if said.0 == code),
            "{settled:?}"
        );
        assert!(inbox.items().is_empty());
        server.silence(Duration::from_secs(60)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_can_be_dropped_during_an_input_round() {
    let (inbox, options) = with_inbox();
    let (client, mut server) = connected(options).await;
    let call = client.call_tool("ask", ()).await.unwrap();
    let first = server.expect_request("tools/call").await;
    server
        .reply(&first, input_required(json!({ "k": form("A?") }), None))
        .await;
    inbox.first().await;
    assert_eq!(call.cancel().await, Ok(()));
    assert_eq!(call.outcome().await, Ok(Outcome::Cancelled));
    inbox.until_items(0).await;
    // V2-CANC-1: no request is in flight that could be cancelled.
    server.silence(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn other_requests_with_input_rounds_are_repeated() {
    // V2-MRTR-1, V2-MRTR-13.
    let (inbox, options) = with_inbox();
    let (client, mut server) = connected(options).await;
    for method in ["prompts/get", "resources/read"] {
        let asking = tokio::spawn({
            let client = client.clone();
            let params = raw(json!({ "name": "p", "uri": "u:1" }));
            async move { client.request(method, Some(&params)).await }
        });
        let first = server.expect_request(method).await;
        server
            .reply(
                &first,
                input_required(json!({ "k": form("A?") }), Some("s")),
            )
            .await;
        let item = inbox.first().await;
        inbox.respond(item.id, raw(filled_in("x"))).unwrap();
        let second = server.expect_request(method).await;
        assert_eq!(second["params"]["requestState"], "s");
        assert_eq!(second["params"]["name"], "p");
        server.reply(&second, json!({ "contents": [] })).await;
        let result = asking.await.unwrap().unwrap();
        assert_eq!(result.as_str(), r#"{"contents":[]}"#);
    }
    // Other methods must not do that.
    let asking = tokio::spawn({
        let client = client.clone();
        async move { client.request("tools/list", None).await }
    });
    let first = server.expect_request("tools/list").await;
    server
        .reply(&first, input_required(json!(null), Some("s")))
        .await;
    let failed = asking.await.unwrap();
    assert!(
        matches!(failed, Err(client::Error::Malformed(_))),
        "{failed:?}"
    );
}
