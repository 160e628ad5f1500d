//! What a server gets of a task that the client hosts: fields, texts and end (seeds 000 and 001).

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast::client::{
    Client, ClientHandler, ClientOptions, Inbox, InboxEvent, ReceiverOptions, ReceiverTtl,
    ServerInputRequest,
};
use outlast::task::{InputKinds, InputResponse};
use outlast::wire::ErrorObject;
use serde_json::{Value, json};

use crate::harness::{TestInbox, TestServer, connected_with, options, raw, with_inbox};

const STATUS: &str = "notifications/tasks/status";
const SAMPLING: &str = "sampling/createMessage";
const ELICITATION: &str = "elicitation/create";

/// Limits the time of a step.
async fn within_a_minute<T>(what: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(Duration::from_secs(60), what).await;
    done.expect("it happens within a minute")
}

async fn client_with_inbox(receiver: ReceiverOptions) -> (Client, TestServer, TestInbox) {
    let (inbox, options) = with_inbox();
    let (client, server) =
        client_with_handler(Arc::new(Inbox::clone(&inbox)), receiver, options).await;
    (client, server, inbox)
}

async fn client_with_handler(
    host: Arc<dyn ClientHandler>,
    receiver: ReceiverOptions,
    options: ClientOptions,
) -> (Client, TestServer) {
    let options = options.with_handler(host).with_receiver_tasks(receiver);
    connected_with(options, json!({})).await
}

fn sample() -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": "Hi" } });
    json!({ "messages": [message], "maxTokens": 100, "task": {} })
}

fn form() -> Value {
    json!({ "message": "Who?", "requestedSchema": {}, "task": {} })
}

async fn call(server: &mut TestServer, method: &str, params: Value) -> Value {
    server.ask("call", method, params).await;
    within_a_minute(server.response_to_id("call")).await
}

/// Creates a task and returns the create result.
async fn create_task(server: &mut TestServer, method: &str, params: Value) -> Value {
    let answer = call(server, method, params).await;
    answer["result"]["task"].clone()
}

fn task_id_params(task: &Value) -> Value {
    json!({ "taskId": task["taskId"] })
}

fn time<'a>(task: &'a Value, member: &str) -> &'a str {
    let time = task[member].as_str();
    time.unwrap_or_else(|| panic!("{task} has no {member}"))
}

#[tokio::test]
async fn a_hosted_task_has_id_status_ttl_and_times() {
    // S1-14, S1-66, S0-43, S0-51.
    let (_client, mut server, inbox) = client_with_inbox(ReceiverOptions::default()).await;
    let task = create_task(&mut server, SAMPLING, sample()).await;
    assert!(task["taskId"].as_str().unwrap().len() >= 22);
    assert_eq!(
        (&task["status"], &task["ttl"], &task["pollInterval"]),
        (&json!("working"), &json!(60_000), &json!(2_000))
    );
    let created = time(&task, "createdAt");
    assert!(
        created.starts_with("20") && created.ends_with('Z'),
        "{task}"
    );
    assert_eq!(time(&task, "lastUpdatedAt"), created);
    let asking = within_a_minute(server.next_message(STATUS)).await["params"].clone();
    assert_eq!(asking["status"], "input_required");
    assert_eq!(asking["statusMessage"], "Awaiting user approval");
    // The times differ only if the clock advances.
    tokio::time::sleep(Duration::from_millis(20)).await;
    let item = within_a_minute(inbox.first()).await;
    let reply =
        json!({ "role": "assistant", "content": { "type": "text", "text": "Ho" }, "model": "m" });
    inbox.respond(item.id, raw(reply)).unwrap();
    let ended = within_a_minute(server.next_message(STATUS)).await["params"].clone();
    assert_eq!(ended["status"], "completed");
    assert_eq!(time(&ended, "createdAt"), created);
    assert!(time(&asking, "lastUpdatedAt") >= created);
    assert!(time(&ended, "lastUpdatedAt") > created, "{ended}");
    // The notification reports the stored status.
    assert_eq!(
        call(&mut server, "tasks/get", task_id_params(&task)).await["result"],
        ended
    );
}

#[tokio::test]
async fn a_request_with_a_task_reaches_the_same_handler() {
    // S1-16.
    let (_client, mut server, inbox) = client_with_inbox(ReceiverOptions::default()).await;
    let mut events = inbox.events();
    let plain = json!({ "message": "Who?", "requestedSchema": {} });
    server.ask("plain", ELICITATION, plain).await;
    let first = within_a_minute(inbox.first()).await;
    assert_eq!(
        within_a_minute(events.recv()).await,
        Ok(InboxEvent::NewPendingElicitation(first.id))
    );
    inbox.decline(first.id).unwrap();
    assert_eq!(
        within_a_minute(events.recv()).await,
        Ok(InboxEvent::Removed(first.id))
    );
    let elicitation: fn(_) -> _ = InboxEvent::NewPendingElicitation;
    let sampling: fn(_) -> _ = InboxEvent::NewPendingSample;
    for (method, params, arrived) in [
        (ELICITATION, form(), elicitation),
        (SAMPLING, sample(), sampling),
    ] {
        create_task(&mut server, method, params).await;
        let item = within_a_minute(inbox.first()).await;
        assert_eq!(within_a_minute(events.recv()).await, Ok(arrived(item.id)));
        assert_eq!(inbox.items().len(), 1);
        inbox.decline(item.id).unwrap();
        assert_eq!(
            within_a_minute(events.recv()).await,
            Ok(InboxEvent::Removed(item.id))
        );
    }
}

#[tokio::test]
async fn ids_of_hosted_tasks_are_random_in_every_character() {
    // S0-28, S0-40, S0-44, S1-29: with a counter or a clock some characters would be constant.
    let options = ReceiverOptions::default().with_max_open_tasks(500);
    let (_client, mut server, _inbox) = client_with_inbox(options).await;
    let mut ids = Vec::new();
    for _ in 0..500 {
        let task = create_task(&mut server, ELICITATION, form()).await;
        ids.push(task["taskId"].as_str().unwrap().to_owned());
    }
    let mut sorted = ids.clone();
    sorted.sort();
    assert_ne!(sorted, ids, "ids grow");
    sorted.dedup();
    assert_eq!(sorted.len(), 500);
    for at in 0..ids[0].len() {
        let seen: BTreeSet<u8> = ids.iter().map(|id| id.as_bytes()[at]).collect();
        // The first character has three bits, all others five.
        let expected = if at == 0 { 8 } else { 32 };
        assert_eq!(seen.len(), expected, "character {at}: {seen:?}");
    }
}

#[tokio::test]
async fn the_list_of_hosted_tasks_has_full_pages() {
    // S0-34, S0-58, S1-37, S1-53.
    let options = ReceiverOptions::default().with_max_open_tasks(250);
    let (_client, mut server, _inbox) = client_with_inbox(options).await;
    for _ in 0..250 {
        create_task(&mut server, ELICITATION, form()).await;
    }
    let (mut sizes, mut ids, mut params) = (Vec::new(), BTreeSet::new(), json!({}));
    loop {
        let page = call(&mut server, "tasks/list", params).await["result"].clone();
        let tasks = page["tasks"].as_array().unwrap();
        sizes.push(tasks.len());
        ids.extend(tasks.iter().map(|task| task["taskId"].to_string()));
        let Some(cursor) = page.get("nextCursor") else {
            break;
        };
        params = json!({ "cursor": cursor });
    }
    assert_eq!(sizes, [100, 100, 50]);
    assert_eq!(ids.len(), 250);
    let bad = call(&mut server, "tasks/list", json!({ "cursor": "x" })).await;
    assert_eq!(bad["error"]["code"], -32602);
}

#[tokio::test]
async fn errors_about_hosted_tasks_have_the_texts_of_the_seeds() {
    // S0-54, S0-60, S0-61, S0-63, S1-38.
    let (_client, mut server, inbox) = client_with_inbox(ReceiverOptions::default()).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let unknown = call(&mut server, method, json!({ "taskId": "x" })).await;
        let error = json!({ "code": -32602, "message": "Task not found" });
        assert_eq!(unknown["error"], error, "{method}");
    }
    let task = create_task(&mut server, ELICITATION, form()).await;
    server
        .ask("wait", "tasks/result", task_id_params(&task))
        .await;
    let cancelled = call(&mut server, "tasks/cancel", task_id_params(&task)).await;
    assert_eq!(
        cancelled["result"]["statusMessage"],
        "Task cancelled by server"
    );
    let waited = within_a_minute(server.response_to_id("wait")).await;
    assert_eq!(
        (&waited["error"]["code"], &waited["error"]["message"]),
        (&json!(-32603), &json!("Task cancelled"))
    );
    refuses_cancel(&mut server, &task, "cancelled").await;
    let task = create_task(&mut server, ELICITATION, form()).await;
    inbox
        .decline(within_a_minute(inbox.first()).await.id)
        .unwrap();
    call(&mut server, "tasks/result", task_id_params(&task)).await;
    refuses_cancel(&mut server, &task, "completed").await;
    let task = create_task(&mut server, SAMPLING, sample()).await;
    inbox
        .decline(within_a_minute(inbox.first()).await.id)
        .unwrap();
    let refused = call(&mut server, "tasks/result", task_id_params(&task)).await;
    let error = json!({ "code": -1, "message": "User declined sampling request" });
    assert_eq!(refused["error"], error);
    refuses_cancel(&mut server, &task, "failed").await;
}

async fn refuses_cancel(server: &mut TestServer, task: &Value, status: &str) {
    let again = call(server, "tasks/cancel", task_id_params(task)).await;
    let message = format!("Cannot cancel task: already in terminal status '{status}'");
    assert_eq!(
        again["error"],
        json!({ "code": -32602, "message": message })
    );
}

#[tokio::test]
async fn a_cancelled_hosted_task_expires() {
    // S1-44.
    let options = ReceiverOptions::default().with_ttl(ReceiverTtl::Fixed(Duration::from_secs(3)));
    let (_client, mut server, _inbox) = client_with_inbox(options).await;
    let task = create_task(&mut server, ELICITATION, form()).await;
    let cancelled = call(&mut server, "tasks/cancel", task_id_params(&task)).await;
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    within_a_minute(async {
        while call(&mut server, "tasks/get", task_id_params(&task)).await["error"]["code"] != -32602
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

/// A handler that panics.
struct PanickingHandler;

#[async_trait]
impl ClientHandler for PanickingHandler {
    fn accepts(&self) -> InputKinds {
        InputKinds::all()
    }

    async fn handle(&self, _: ServerInputRequest) -> InputResponse {
        panic!("the host broke")
    }
}

#[tokio::test]
async fn a_handler_that_panics_fails_the_task() {
    // S0-79.
    let options = options();
    let (_client, mut server) = client_with_handler(
        Arc::new(PanickingHandler),
        ReceiverOptions::default(),
        options,
    )
    .await;
    for (method, params) in [(SAMPLING, sample()), (ELICITATION, form())] {
        let task = create_task(&mut server, method, params).await;
        let result = call(&mut server, "tasks/result", task_id_params(&task)).await;
        assert_eq!(result["error"]["code"], -32603, "{result}");
        let looked = call(&mut server, "tasks/get", task_id_params(&task)).await;
        assert_eq!(looked["result"]["status"], "failed");
    }
}

/// A handler without an active context, which it reports with these words.
struct UnavailableHandler(&'static str);

#[async_trait]
impl ClientHandler for UnavailableHandler {
    fn accepts(&self) -> InputKinds {
        InputKinds::all()
    }

    fn unavailable(&self, _: &ServerInputRequest) -> Option<ErrorObject> {
        Some(ErrorObject::new(-32603, self.0))
    }

    async fn handle(&self, _: ServerInputRequest) -> InputResponse {
        panic!("it cannot be asked")
    }
}

#[tokio::test]
async fn an_unavailable_handler_rejects_before_a_task_exists() {
    // S0-70, S0-71.
    for words in ["No active provider", "No active task"] {
        let (_client, mut server) = client_with_handler(
            Arc::new(UnavailableHandler(words)),
            ReceiverOptions::default(),
            options(),
        )
        .await;
        for (method, with_task) in [(SAMPLING, sample()), (ELICITATION, form())] {
            let mut plain = with_task.clone();
            plain.as_object_mut().unwrap().remove("task");
            for params in [with_task, plain] {
                let refused = call(&mut server, method, params).await;
                let error = json!({ "code": -32603, "message": words });
                assert_eq!(refused["error"], error, "{method}");
            }
        }
        let listed = call(&mut server, "tasks/list", json!({})).await;
        assert_eq!(listed["result"]["tasks"], json!([]));
    }
}

#[tokio::test]
async fn without_receiver_tasks_there_is_no_ttl() {
    // S1-89, S1-23, S1-26: without receiver options there is no TTL, and `task` is ignored.
    let (inbox, options) = with_inbox();
    let (_client, mut server) = connected_with(options, json!({})).await;
    server.ask("plain", ELICITATION, form()).await;
    inbox
        .decline(within_a_minute(inbox.first()).await.id)
        .unwrap();
    let answer = within_a_minute(server.response_to_id("plain")).await;
    assert_eq!(answer["result"], json!({ "action": "decline" }));
    let listed = call(&mut server, "tasks/list", json!({})).await;
    assert_eq!(listed["error"]["code"], -32601);
}

/// A handler that never responds and reports why its requests were aborted.
struct SilentHandler(tokio::sync::mpsc::UnboundedSender<(ServerInputRequest, String)>);

#[async_trait]
impl ClientHandler for SilentHandler {
    fn accepts(&self) -> InputKinds {
        InputKinds::all()
    }

    async fn handle(&self, _: ServerInputRequest) -> InputResponse {
        std::future::pending().await
    }

    fn task_aborted(&self, request: &ServerInputRequest, reason: &str) {
        self.0.send((request.clone(), reason.to_owned())).unwrap();
    }
}

#[tokio::test]
async fn the_handler_gets_the_reason_of_an_abort() {
    // S0-62.
    let (report, mut aborted) = tokio::sync::mpsc::unbounded_channel();
    let options = options();
    let host = Arc::new(SilentHandler(report));
    let (client, mut server) = client_with_handler(host, ReceiverOptions::default(), options).await;
    let task = create_task(&mut server, SAMPLING, sample()).await;
    let asking = within_a_minute(server.next_message(STATUS)).await;
    assert_eq!(asking["params"]["status"], "input_required");
    let cancelled = call(&mut server, "tasks/cancel", task_id_params(&task)).await;
    assert_eq!(cancelled["result"]["status"], "cancelled");
    let (request, reason) = within_a_minute(aborted.recv()).await.unwrap();
    assert_eq!(request.kind.method(), SAMPLING);
    assert_eq!(reason, "Cancelled");
    let mut short = form();
    short["task"] = json!({ "ttl": 1 });
    create_task(&mut server, ELICITATION, short).await;
    let (request, reason) = within_a_minute(aborted.recv()).await.unwrap();
    assert_eq!(request.kind.method(), ELICITATION);
    assert_eq!(reason, "Expired");
    create_task(&mut server, SAMPLING, sample()).await;
    while within_a_minute(server.next_message(STATUS)).await["params"]["status"] != "input_required"
    {
    }
    client.close().await;
    let (_, reason) = within_a_minute(aborted.recv()).await.unwrap();
    assert_eq!(reason, "Connection ended");
}

#[tokio::test]
async fn poll_interval_and_status_message_are_options() {
    // S1-31.
    let options = ReceiverOptions::default()
        .with_poll_interval(Duration::from_millis(700))
        .with_waiting_message("Waiting for Ada");
    let (_client, mut server, _inbox) = client_with_inbox(options).await;
    let task = create_task(&mut server, SAMPLING, sample()).await;
    assert_eq!(task["pollInterval"], 700);
    let asking = within_a_minute(server.next_message(STATUS)).await["params"].clone();
    assert_eq!(asking["statusMessage"], "Waiting for Ada");
    let got = call(&mut server, "tasks/get", task_id_params(&task)).await;
    assert_eq!(got["result"]["statusMessage"], "Waiting for Ada");
    assert_eq!(got["result"]["pollInterval"], 700);
}

#[tokio::test]
async fn the_host_lists_inspects_and_cancels_hosted_tasks() {
    // S1-3, S1-36, S1-80.
    let (client, mut server, inbox) = client_with_inbox(ReceiverOptions::default()).await;
    let hosted = client.hosted_tasks().await.unwrap();
    let hosted = hosted.expect("receiver tasks are on");
    assert_eq!(hosted.list(None).await.unwrap().tasks, []);
    create_task(&mut server, SAMPLING, sample()).await;
    let item = within_a_minute(inbox.first()).await;
    let mut events = inbox.events();
    let listed = hosted.list(None).await.unwrap().tasks;
    let [task] = &listed[..] else {
        panic!("one task is hosted: {listed:?}");
    };
    assert_eq!(hosted.task(&task.id).await.unwrap().id, task.id);
    assert_eq!(item.request.hosted_task.as_deref(), Some(&*task.id));
    let cancelled = hosted.cancel(&task.id).await.unwrap();
    assert_eq!(cancelled.status.to_string(), "cancelled");
    assert_eq!(
        within_a_minute(events.recv()).await,
        Ok(InboxEvent::Removed(item.id))
    );
    assert_eq!(hosted.result(&task.id).await.unwrap_err().code, -32603);
    assert_eq!(hosted.cancel(&task.id).await.unwrap_err().code, -32602);
    // S1-23: off, there are no hosted tasks.
    let (client, _server) = connected_with(options(), json!({})).await;
    assert!(client.hosted_tasks().await.unwrap().is_none());
}
