//! Input requests of V2 tasks.

use std::time::Duration;

use outlast::client::{
    self, Client, ClientOptions, Execution, InboxEvent, OutcomeError, TaskReference,
};
use outlast::task::{InputKind, Outcome};
use outlast::wire::codes;
use serde_json::{Value, json};

use super::{connected, created, filled_in, form, rejects_subscriptions, task_result};
use crate::harness::{TestServer, raw, result_text, text, with_inbox};

async fn start_task(client: &Client, server: &mut TestServer) -> Execution {
    let call = client.call_tool("slow", ()).await.unwrap();
    let request = server.expect_request("tools/call").await;
    server.reply(&request, created("working", 100)).await;
    rejects_subscriptions(server).await;
    call
}

/// Responds to the next poll with these input requests.
async fn send_input_requests(server: &mut TestServer, input_requests: Value) {
    let look = server.expect_request("tasks/get").await;
    let brings = json!({ "inputRequests": input_requests });
    server
        .reply(&look, task_result("input_required", 100, brings))
        .await;
}

/// Receives and acknowledges the next input responses.
async fn receive_input_responses(server: &mut TestServer) -> Value {
    let update = server.expect_request("tasks/update").await;
    assert_eq!(update["params"]["taskId"], "t1");
    server
        .reply(&update, json!({ "resultType": "complete" }))
        .await;
    update["params"]["inputResponses"].clone()
}

async fn end_task(server: &mut TestServer, call: &Execution) {
    let look = server.expect_request("tasks/get").await;
    let ended = task_result("completed", 100, json!({ "result": text("done") }));
    server.reply(&look, ended).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
}

#[tokio::test(start_paused = true)]
async fn an_input_request_gets_one_handler_and_one_response() {
    // V2-UPD-1, V2-UPD-2, V2-UPD-3, V2-UPD-4, V2-UPD-7, V2-UPD-8, V2-UPD-10, V2-UPD-15, A2-18.
    let (inbox, options) = with_inbox();
    let (client, mut server) = connected(options).await;
    let call = start_task(&client, &mut server).await;
    let mut events = inbox.events();
    for _ in 0..3 {
        send_input_requests(&mut server, json!({ "k": form("Who?") })).await;
    }
    let item = inbox.first().await;
    assert_eq!(item.request.kind, InputKind::ElicitForm);
    assert_eq!(item.request.task.as_deref(), Some("t1"));
    assert_eq!(&*item.request.server, "test");
    let params = item.request.params.as_ref().unwrap();
    assert_eq!(params.open::<Value>().unwrap(), form("Who?")["params"]);
    inbox.respond(item.id, raw(filled_in("Ann"))).unwrap();
    assert_eq!(
        receive_input_responses(&mut server).await,
        json!({ "k": filled_in("Ann") })
    );
    // The server still lists the request.
    send_input_requests(&mut server, json!({ "k": form("Who?") })).await;
    end_task(&mut server, &call).await;
    assert_eq!(server.times("tasks/update").len(), 1);
    assert_eq!(
        events.try_recv(),
        Ok(InboxEvent::NewPendingElicitation(item.id))
    );
    assert_eq!(events.try_recv(), Ok(InboxEvent::Removed(item.id)));
    assert!(events.try_recv().is_err(), "it arrived once");
}

#[tokio::test(start_paused = true)]
async fn responses_are_sent_as_they_become_ready() {
    // V2-GET-2, V2-UPD-13, A2-17.
    let (inbox, options) = with_inbox();
    let (client, mut server) = connected(options).await;
    let call = start_task(&client, &mut server).await;
    send_input_requests(&mut server, json!({ "a": form("A?"), "b": form("B?") })).await;
    inbox.first().await;
    inbox.until_items(2).await;
    let of = |message: &str| {
        let items = inbox.items();
        let found = items.iter().find(|item| {
            let params: Value = item.request.params.as_ref().unwrap().open().unwrap();
            params["message"] == message
        });
        found.unwrap().id
    };
    inbox.respond(of("B?"), raw(filled_in("2"))).unwrap();
    assert_eq!(
        receive_input_responses(&mut server).await,
        json!({ "b": filled_in("2") })
    );
    send_input_requests(&mut server, json!({ "a": form("A?"), "c": form("C?") })).await;
    inbox.until_items(2).await;
    inbox.respond(of("A?"), raw(filled_in("1"))).unwrap();
    assert_eq!(
        receive_input_responses(&mut server).await,
        json!({ "a": filled_in("1") })
    );
    inbox.respond(of("C?"), raw(filled_in("3"))).unwrap();
    assert_eq!(
        receive_input_responses(&mut server).await,
        json!({ "c": filled_in("3") })
    );
    end_task(&mut server, &call).await;
}

#[tokio::test(start_paused = true)]
async fn a_reused_key_is_an_error() {
    // V2-UPD-5, V2-UPD-6, A2-21.
    let (_inbox, options) = with_inbox();
    let (client, mut server) = connected(options).await;
    let call = start_task(&client, &mut server).await;
    send_input_requests(&mut server, json!({ "k": form("Who?") })).await;
    // The order of members does not matter.
    let text = form("Who?").to_string();
    let mut turned = String::new();
    let schema = form("Who?")["params"]["requestedSchema"].to_string();
    turned.push_str(r#"{"params":{"requestedSchema":"#);
    turned.push_str(&schema);
    turned.push_str(r#","message":"Who?","mode":"form"},"method":"elicitation/create"}"#);
    assert_ne!(text, turned);
    let look = server.expect_request("tasks/get").await;
    let mut shown = task_result("input_required", 100, json!({}));
    shown["inputRequests"] = json!({ "k": "HERE" });
    let answer = json!({ "jsonrpc": "2.0", "id": look["id"], "result": shown }).to_string();
    let answer = answer.replace("\"HERE\"", &turned);
    server.write_raw(answer.as_bytes()).await;
    send_input_requests(&mut server, json!({ "k": form("Why?") })).await;
    let settled = call.outcome().await;
    assert!(
        matches!(&settled, Err(OutcomeError::Lost { why: client::Error::Malformed(why), .. }) if why.contains("`k`")),
        "{settled:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn too_many_input_requests_are_rejected() {
    // V2-SEC-3.
    let (inbox, options) = with_inbox();
    let (client, mut server) = connected(options).await;
    let call = start_task(&client, &mut server).await;
    let many = (0..1_000).map(|n| (format!("k{n}"), form("Who?")));
    send_input_requests(&mut server, Value::Object(many.collect())).await;
    let settled = call.outcome().await;
    assert!(
        matches!(
            &settled,
            Err(OutcomeError::Lost {
                why: client::Error::Malformed(_),
                ..
            })
        ),
        "{settled:?}"
    );
    assert!(inbox.items().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_input_request_that_disappears_is_dismissed() {
    // A2-23, V2-UPD-8.
    let (inbox, options) = with_inbox();
    let (client, mut server) = connected(options).await;
    let call = start_task(&client, &mut server).await;
    send_input_requests(&mut server, json!({ "a": form("A?"), "b": form("B?") })).await;
    inbox.until_items(2).await;
    send_input_requests(&mut server, json!({ "b": form("B?") })).await;
    inbox.until_items(1).await;
    let look = server.expect_request("tasks/get").await;
    server
        .reply(&look, task_result("working", 100, json!({})))
        .await;
    inbox.until_items(0).await;
    end_task(&mut server, &call).await;
    assert!(!server.has_received("tasks/update"));
}

#[tokio::test(start_paused = true)]
async fn lost_responses_are_sent_again() {
    // V2-UPD-10, A2-4.
    let (inbox, options) = with_inbox();
    let (client, mut server) = connected(options).await;
    let call = start_task(&client, &mut server).await;
    send_input_requests(&mut server, json!({ "k": form("Who?") })).await;
    inbox
        .respond(inbox.first().await.id, raw(filled_in("Ann")))
        .unwrap();
    let update = server.expect_request("tasks/update").await;
    server.refuse(&update, -32603, "store is down").await;
    send_input_requests(&mut server, json!({ "k": form("Who?") })).await;
    assert_eq!(
        receive_input_responses(&mut server).await,
        json!({ "k": filled_in("Ann") })
    );
    end_task(&mut server, &call).await;
    // An ended task rejects responses, which is not an error.
    let call = client.call_tool("slow", ()).await.unwrap();
    let request = server.expect_request("tools/call").await;
    server.reply(&request, created("working", 100)).await;
    send_input_requests(&mut server, json!({ "k": form("Who?") })).await;
    inbox
        .respond(inbox.first().await.id, raw(filled_in("Ann")))
        .unwrap();
    let update = server.expect_request("tasks/update").await;
    server.refuse(&update, -32602, "it is over").await;
    end_task(&mut server, &call).await;
    // A task that keeps rejecting them ends.
    let call = client.call_tool("slow", ()).await.unwrap();
    let request = server.expect_request("tools/call").await;
    server.reply(&request, created("working", 100)).await;
    let playing = tokio::spawn(async move {
        loop {
            send_input_requests(&mut server, json!({ "k": form("Who?") })).await;
            let update = server.expect_request("tasks/update").await;
            server.refuse(&update, -32602, "malformed").await;
        }
    });
    inbox
        .respond(inbox.first().await.id, raw(filled_in("Ann")))
        .unwrap();
    let settled = call.outcome().await;
    assert!(
        matches!(&settled, Err(OutcomeError::Lost { why, .. }) if why.code() == Some(-32602)),
        "{settled:?}"
    );
    playing.abort();
}

#[tokio::test(start_paused = true)]
async fn every_action_of_the_user_is_a_response() {
    // V2-ELIC-4, V2-MRTR-11, A2-19, A2-20.
    let (inbox, options) = with_inbox();
    let (client, mut server) = connected(options).await;
    for action in ["accept", "decline", "cancel", "error"] {
        let call = client.call_tool("slow", ()).await.unwrap();
        let request = server.expect_request("tools/call").await;
        server.reply(&request, created("working", 100)).await;
        send_input_requests(&mut server, json!({ "k": form("Who?") })).await;
        let item = inbox.first().await.id;
        match action {
            "accept" => inbox.respond(item, raw(filled_in("Ann"))).unwrap(),
            "decline" => inbox.decline(item).unwrap(),
            "cancel" => inbox.cancel(item).unwrap(),
            _ => inbox.reject(item, &codes::internal("no")).unwrap(),
        }
        let expected = match action {
            "accept" => filled_in("Ann"),
            "decline" => json!({ "action": "decline" }),
            _ => json!({ "action": "cancel" }),
        };
        assert_eq!(
            receive_input_responses(&mut server).await,
            json!({ "k": expected })
        );
        end_task(&mut server, &call).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejection_without_a_response_form_cancels_the_task() {
    // V2-MRTR-11, V2-CANCEL-6, A2-19, BR-IN-6.
    let (inbox, options) = with_inbox();
    let (client, mut server) = connected(options).await;
    let call = start_task(&client, &mut server).await;
    let messages = json!({ "messages": [], "maxTokens": 1 });
    let sample = json!({ "method": "sampling/createMessage", "params": messages });
    send_input_requests(&mut server, json!({ "k": sample })).await;
    let item = inbox.first().await;
    let failed = codes::internal("no model");
    inbox.reject(item.id, &failed).unwrap();
    let cancel = server.expect_request("tasks/cancel").await;
    server
        .reply(&cancel, json!({ "resultType": "complete" }))
        .await;
    assert_eq!(call.outcome().await, Ok(Outcome::Cancelled));
    assert!(!server.has_received("tasks/update"));
    server.silence(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn undeclared_input_requests_are_not_handled() {
    // V2-UPD-16, V2-SEC-3, A2-22.
    let (client, mut server) = connected(ClientOptions::default()).await;
    let call = start_task(&client, &mut server).await;
    send_input_requests(&mut server, json!({ "k": form("Who?") })).await;
    let cancel = server.expect_request("tasks/cancel").await;
    server
        .reply(&cancel, json!({ "resultType": "complete" }))
        .await;
    let Ok(Outcome::Error(_, _, Some(why))) = call.outcome().await else {
        panic!("the call ends with the reason");
    };
    assert!(why.contains("did not declare `elicitation`"), "{why}");
    // A task of another client is only polled; its creator can respond.
    let reference = TaskReference::known_by_id("test", "t1");
    let call = client.resume(reference).unwrap();
    for _ in 0..3 {
        send_input_requests(&mut server, json!({ "k": form("Who?") })).await;
    }
    end_task(&mut server, &call).await;
    assert_eq!(server.times("tasks/cancel").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_url_elicitation_needs_no_id() {
    // V2-ELIC-3.
    let (inbox, options) = with_inbox();
    let (client, mut server) = connected(options).await;
    let call = start_task(&client, &mut server).await;
    let params = json!({ "mode": "url", "message": "Pay", "url": "https://x.example" });
    send_input_requests(
        &mut server,
        json!({ "k": { "method": "elicitation/create", "params": params } }),
    )
    .await;
    let item = inbox.first().await;
    assert_eq!(item.request.kind, InputKind::ElicitUrl);
    inbox
        .respond(item.id, raw(json!({ "action": "accept" })))
        .unwrap();
    assert_eq!(
        receive_input_responses(&mut server).await,
        json!({ "k": { "action": "accept" } })
    );
    end_task(&mut server, &call).await;
}
