//! A server's input requests and their responses.

use outlast::client::{Client, ClientHandler, InboxEvent, Removal, ServerInputRequest, accept};
use outlast::task::{InputKind, InputKinds, InputResponse};
use outlast_testkit::within;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

use crate::harness::{
    Synchronize, capabilities, connected_with, next_event, options, raw, result_text, target, task,
    text, until_removed, with_inbox,
};

fn form() -> Value {
    json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": {} } })
}

#[tokio::test(start_paused = true)]
async fn an_input_request_names_server_and_task() {
    // S1-9, V1-INPUT-9, V1-META-2, S4-25, V1-ELIC-9.
    let (inbox, options) = with_inbox();
    let options = options.with_server_name("my server");
    let (client, mut server) = connected_with(options, capabilities()).await;
    let call = client.call_tool("slow", ());
    let call = tokio::spawn(async move { call.await.unwrap() });
    server.make_task("working", 100).await;
    let poll = server.expect_request("tasks/get").await;
    server.reply(&poll, task("input_required", 60_000)).await;
    let fetch = server.expect_request("tasks/result").await;
    let mut params = form();
    let related_task = json!({ "io.modelcontextprotocol/related-task": { "taskId": "t1" } });
    params["_meta"] = related_task.clone();
    server.ask("q1", "elicitation/create", params.clone()).await;
    let item = inbox.first().await;
    assert_eq!(&*item.request.server, "my server");
    assert_eq!(item.request.task.as_deref(), Some("t1"));
    assert_eq!(item.request.kind, InputKind::ElicitForm);
    assert_eq!(item.request.params, Some(raw(params)));
    inbox
        .respond(
            item.id,
            raw(json!({ "action": "accept", "content": { "name": "x" } })),
        )
        .unwrap();
    let answer = server.response_to_id("q1").await;
    assert_eq!(
        answer["result"],
        json!({ "action": "accept", "content": { "name": "x" }, "_meta": related_task })
    );
    server.reply(&fetch, text("done")).await;
    assert_eq!(
        result_text(&call.await.unwrap().outcome().await.unwrap()),
        "done"
    );
}

/// A handler that refuses every input request and does not declare what it accepts.
struct RefusingHandler;

#[async_trait::async_trait]
impl ClientHandler for RefusingHandler {
    async fn handle(&self, _: ServerInputRequest) -> InputResponse {
        outlast::client::decline(InputKind::ElicitForm)
    }
}

#[tokio::test(start_paused = true)]
async fn sampling_and_forms_are_on_for_every_handler_by_default() {
    // S1-4, S1-5. Without a handler, nothing is declared (S1-23).
    let given = options().with_handler(Arc::new(RefusingHandler));
    for (options, declared) in [
        (
            given,
            json!({ "elicitation": { "form": {} }, "sampling": {} }),
        ),
        (options(), json!({})),
    ] {
        let (target, mut servers) = target();
        let connecting = tokio::spawn(Client::connect(target, options));
        let mut server = servers.next().await;
        let hello = server.welcome("2025-11-25", json!({})).await;
        connecting.await.unwrap().unwrap();
        assert_eq!(hello["params"]["capabilities"], declared);
    }
}

#[tokio::test(start_paused = true)]
async fn every_decision_of_the_user_is_a_response() {
    // V1-ELIC-7, V1-SAMP-4, S1-7, S1-85.
    let (inbox, options) = with_inbox();
    let (_client, mut server) = connected_with(options, json!({})).await;
    let message = json!({ "role": "user", "content": { "type": "text", "text": "Hi" } });
    let sample = json!({ "messages": [message], "maxTokens": 10 });
    server.ask("1", "elicitation/create", form()).await;
    inbox.decline(inbox.first().await.id).unwrap();
    assert_eq!(
        server.response_to_id("1").await["result"],
        json!({ "action": "decline" })
    );
    server.ask("2", "elicitation/create", form()).await;
    inbox.cancel(inbox.first().await.id).unwrap();
    assert_eq!(
        server.response_to_id("2").await["result"],
        json!({ "action": "cancel" })
    );
    server
        .ask("3", "sampling/createMessage", sample.clone())
        .await;
    inbox.decline(inbox.first().await.id).unwrap();
    assert_eq!(server.response_to_id("3").await["error"]["code"], -1);
    server.ask("4", "sampling/createMessage", sample).await;
    let said =
        json!({ "role": "assistant", "content": { "type": "text", "text": "Ho" }, "model": "m" });
    inbox
        .respond(inbox.first().await.id, raw(said.clone()))
        .unwrap();
    assert_eq!(server.response_to_id("4").await["result"], said);
    server.ask("5", "roots/list", json!({})).await;
    assert_eq!(
        server.response_to_id("5").await["result"],
        json!({ "roots": [] })
    );
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_or_interrupted_input_request_is_dismissed() {
    // V1-CANC-3, S1-11.
    let (inbox, options) = with_inbox();
    let (_client, mut server) = connected_with(options, json!({})).await;
    server.ask("1", "elicitation/create", form()).await;
    let item = inbox.first().await;
    let mut events = inbox.events();
    server
        .notify("notifications/cancelled", json!({ "requestId": "1" }))
        .await;
    assert_eq!(next_event(&mut events).await, InboxEvent::Removed(item.id));
    let why = |id| inbox.departure(id).map(|left| left.removal);
    assert_eq!(why(item.id), Some(Removal::Withdrawn));
    server.silence(Duration::from_secs(10)).await;
    server.ask("2", "elicitation/create", form()).await;
    let item = inbox.first().await;
    drop(server);
    until_removed(&mut events, item.id).await;
    assert_eq!(why(item.id), Some(Removal::Disconnected));
    assert!(inbox.items().is_empty());
}

#[tokio::test(start_paused = true)]
async fn undeclared_requests_are_rejected_and_pings_answered() {
    // V1-ELIC-4, V1-ROOT-3, V1-PING-1, S1-26.
    let inbox =
        outlast::client::Inbox::new([InputKind::ElicitForm].into_iter().collect::<InputKinds>());
    let options = options().with_handler(Arc::new(inbox.clone()));
    let (_client, mut server) = connected_with(options, json!({})).await;
    let url = json!({ "mode": "url", "message": "?", "url": "https://x", "elicitationId": "1" });
    for (id, method, params, code) in [
        ("1", "elicitation/create", url, -32602),
        ("2", "roots/list", json!({}), -32601),
        (
            "3",
            "sampling/createMessage",
            json!({ "messages": [], "maxTokens": 1 }),
            -32601,
        ),
        ("4", "tools/call", json!({}), -32601),
        // Receiver tasks are off.
        ("5", "tasks/get", json!({ "taskId": "x" }), -32601),
    ] {
        server.ask(id, method, params).await;
        assert_eq!(
            server.response_to_id(id).await["error"]["code"],
            code,
            "{method}"
        );
    }
    server.ask("6", "ping", json!({})).await;
    assert_eq!(server.response_to_id("6").await["result"], json!({}));
    // `task` is ignored.
    let mut params = form();
    params["task"] = json!("nonsense");
    server.ask("7", "elicitation/create", params).await;
    inbox.decline(inbox.first().await.id).unwrap();
    assert_eq!(
        server.response_to_id("7").await["result"],
        json!({ "action": "decline" })
    );
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_input_requests_is_limited() {
    // V1-ELIC-23.
    let (inbox, options) = with_inbox();
    let (_client, mut server) = connected_with(options, json!({})).await;
    for id in 0..300 {
        server
            .ask(&format!("q{id}"), "elicitation/create", form())
            .await;
    }
    let refused = server.response_to_id("q299").await;
    assert_eq!(refused["error"]["code"], -32603);
    assert!(inbox.items().len() <= 256);
    inbox.decline(inbox.first().await.id).unwrap();
    server.response_to_id("q0").await;
    server.ask("again", "elicitation/create", form()).await;
    inbox.until_items(256).await;
}

#[tokio::test(start_paused = true)]
async fn changed_roots_are_announced() {
    // V1-ROOT-1, S1-6, S1-12.
    let (inbox, options) = with_inbox();
    let (client, mut server) = connected_with(options, json!({})).await;
    inbox.share([("file:///work".into(), None)]);
    client.roots_changed().await.unwrap();
    server
        .next_message("notifications/roots/list_changed")
        .await;
    server.ask("1", "roots/list", json!({})).await;
    let roots = json!({ "roots": [{ "uri": "file:///work" }] });
    assert_eq!(server.response_to_id("1").await["result"], roots);
    // A removed root is not listed.
    inbox.share([]);
    server.ask("2", "roots/list", json!({})).await;
    assert_eq!(
        server.response_to_id("2").await["result"],
        json!({ "roots": [] })
    );
}

/// Records completed url elicitations.
struct CompletionRecorder(tokio::sync::mpsc::UnboundedSender<String>);

#[async_trait::async_trait]
impl ClientHandler for CompletionRecorder {
    fn accepts(&self) -> InputKinds {
        [InputKind::ElicitUrl].into_iter().collect()
    }

    async fn handle(&self, _: ServerInputRequest) -> InputResponse {
        accept(None)
    }

    fn elicitation_complete(&self, server: &str, elicitation: &str) {
        self.0.send(format!("{server} {elicitation}")).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn completed_url_elicitations_are_reported_and_unknown_ones_ignored() {
    // V1-ELIC-13, V1-ELIC-14, V1-ELIC-7: a url is accepted without content.
    let (tell, mut notification) = tokio::sync::mpsc::unbounded_channel();
    let options = options()
        .with_handler(Arc::new(CompletionRecorder(tell)))
        .with_server_name("shop");
    let (client, mut server) = connected_with(options, json!({})).await;
    let url = json!({ "mode": "url", "message": "?", "url": "https://x", "elicitationId": "e1" });
    server.ask("1", "elicitation/create", url).await;
    assert_eq!(
        server.response_to_id("1").await["result"],
        json!({ "action": "accept" })
    );
    let complete = "notifications/elicitation/complete";
    for params in [json!({}), json!({ "elicitationId": 7 }), json!([])] {
        server.notify(complete, params).await;
    }
    server
        .notify(complete, json!({ "elicitationId": "e1" }))
        .await;
    let completed = within("a completed elicitation", notification.recv()).await;
    assert_eq!(completed.as_deref(), Some("shop e1"));
    client.synchronize(&mut server).await;
    // An inbox has no pending url elicitations.
    let (inbox, options) = with_inbox();
    let (client, mut server) = connected_with(options, json!({})).await;
    server
        .notify(complete, json!({ "elicitationId": "unknown" }))
        .await;
    client.synchronize(&mut server).await;
    assert!(inbox.items().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_repeated_request_gets_one_response() {
    // A server that resumes a broken stream sends open requests again.
    let (inbox, options) = with_inbox();
    let (_client, mut server) = connected_with(options, json!({})).await;
    server.ask("q1", "elicitation/create", form()).await;
    let item = inbox.first().await;
    server.ask("q1", "elicitation/create", form()).await;
    server.ask("p1", "ping", json!({})).await;
    // The second request was processed before the response to the ping.
    server.response_to_id("p1").await;
    assert_eq!(inbox.items().len(), 1);
    let answer = json!({ "action": "accept", "content": {} });
    inbox.respond(item.id, raw(answer.clone())).unwrap();
    assert_eq!(server.response_to_id("q1").await["result"], answer);
    server.silence(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn tasks_result_is_repeated_after_the_end_of_the_task() {
    let (_inbox, options) = with_inbox();
    let (client, mut server) = connected_with(options, capabilities()).await;
    let call = client.call_tool("slow", ());
    let call = tokio::spawn(async move { call.await.unwrap() });
    server.make_task("working", 100).await;
    let poll = server.expect_request("tasks/get").await;
    server.reply(&poll, task("input_required", 100)).await;
    let lost = server.expect_request("tasks/result").await;
    let poll = server.expect_request("tasks/get").await;
    server.reply(&poll, task("completed", 100)).await;
    let cancelled = server.next_message("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], lost["id"]);
    let again = server.expect_request("tasks/result").await;
    server.reply(&again, text("done")).await;
    assert_eq!(
        result_text(&call.await.unwrap().outcome().await.unwrap()),
        "done"
    );
}
