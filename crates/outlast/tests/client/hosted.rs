//! What a server sees of a task that we host: its fields, its words, and its end (seeds 000 and 001).

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast::client::{
    Client, ClientHandler, ClientOptions, Inbox, InboxEvent, ReceiverOptions, ReceiverTtl,
    ServerInputRequest,
};
use outlast::engine::{InputKinds, InputResponse};
use outlast::wire::envelope::ErrorObject;
use serde_json::{Value, json};

use crate::stage::{Server, connected_with, raw, with_inbox};

const STATUS: &str = "notifications/tasks/status";
const SAMPLING: &str = "sampling/createMessage";
const ELICITATION: &str = "elicitation/create";

/// How long anything here may take.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(Duration::from_secs(60), what).await;
    done.expect("it happens within a minute")
}

async fn hosting(receiver: ReceiverOptions) -> (Client, Server, Inbox) {
    let (inbox, options) = with_inbox();
    let (client, server) = hosting_by(Arc::new(inbox.clone()), receiver, options).await;
    (client, server, inbox)
}

async fn hosting_by(
    host: Arc<dyn ClientHandler>,
    receiver: ReceiverOptions,
    options: ClientOptions,
) -> (Client, Server) {
    let options = ClientOptions {
        handler: host,
        receiver_tasks: Some(receiver),
        ..options
    };
    connected_with(options, json!({})).await
}

fn sample() -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": "Hi" } });
    json!({ "messages": [message], "maxTokens": 100, "task": {} })
}

fn form() -> Value {
    json!({ "message": "Who?", "requestedSchema": {}, "task": {} })
}

async fn call(server: &mut Server, method: &str, params: Value) -> Value {
    server.ask("call", method, params).await;
    soon(server.answer("call")).await
}

/// Asks for a task and returns it as it was made.
async fn made(server: &mut Server, method: &str, params: Value) -> Value {
    let answer = call(server, method, params).await;
    answer["result"]["task"].clone()
}

fn named(task: &Value) -> Value {
    json!({ "taskId": task["taskId"] })
}

fn time<'a>(task: &'a Value, member: &str) -> &'a str {
    let time = task[member].as_str();
    time.unwrap_or_else(|| panic!("{task} has no {member}"))
}

#[tokio::test]
async fn a_hosted_task_has_id_status_ttl_and_times() {
    // S1-14, S1-66, S0-43, S0-51.
    let (_client, mut server, inbox) = hosting(ReceiverOptions::default()).await;
    let task = made(&mut server, SAMPLING, sample()).await;
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
    let asking = soon(server.told(STATUS)).await["params"].clone();
    assert_eq!(asking["status"], "input_required");
    assert_eq!(asking["statusMessage"], "Awaiting user approval");
    // The times differ only if the clock goes on.
    tokio::time::sleep(Duration::from_millis(20)).await;
    let item = soon(inbox.first()).await;
    let reply =
        json!({ "role": "assistant", "content": { "type": "text", "text": "Ho" }, "model": "m" });
    inbox.respond(item.id, raw(reply)).unwrap();
    let ended = soon(server.told(STATUS)).await["params"].clone();
    assert_eq!(ended["status"], "completed");
    assert_eq!(time(&ended, "createdAt"), created);
    assert!(time(&asking, "lastUpdatedAt") >= created);
    assert!(time(&ended, "lastUpdatedAt") > created, "{ended}");
    // What is announced is what was stored before.
    assert_eq!(
        call(&mut server, "tasks/get", named(&task)).await["result"],
        ended
    );
}

#[tokio::test]
async fn an_augmented_request_raises_the_event_of_every_request() {
    // S1-16.
    let (_client, mut server, inbox) = hosting(ReceiverOptions::default()).await;
    let mut news = inbox.events();
    let plain = json!({ "message": "Who?", "requestedSchema": {} });
    server.ask("plain", ELICITATION, plain).await;
    let first = soon(inbox.first()).await;
    assert_eq!(soon(news.recv()).await, Ok(InboxEvent::Arrived(first.id)));
    inbox.decline(first.id).unwrap();
    assert_eq!(soon(news.recv()).await, Ok(InboxEvent::Removed(first.id)));
    for (method, params) in [(ELICITATION, form()), (SAMPLING, sample())] {
        made(&mut server, method, params).await;
        let item = soon(inbox.first()).await;
        assert_eq!(soon(news.recv()).await, Ok(InboxEvent::Arrived(item.id)));
        assert_eq!(inbox.items().len(), 1);
        inbox.decline(item.id).unwrap();
        assert_eq!(soon(news.recv()).await, Ok(InboxEvent::Removed(item.id)));
    }
}

#[tokio::test]
async fn ids_of_hosted_tasks_are_random_in_every_character() {
    // S0-28, S0-40, S0-44, S1-29: a counter or a clock leaves characters that do not change.
    let options = ReceiverOptions {
        max_open_tasks: 500,
        ..ReceiverOptions::default()
    };
    let (_client, mut server, _inbox) = hosting(options).await;
    let mut ids = Vec::new();
    for _ in 0..500 {
        let task = made(&mut server, ELICITATION, form()).await;
        ids.push(task["taskId"].as_str().unwrap().to_owned());
    }
    let mut sorted = ids.clone();
    sorted.sort();
    assert_ne!(sorted, ids, "ids grow");
    sorted.dedup();
    assert_eq!(sorted.len(), 500);
    for at in 0..ids[0].len() {
        let seen: BTreeSet<u8> = ids.iter().map(|id| id.as_bytes()[at]).collect();
        // The first character has three bits, all others have five.
        let expected = if at == 0 { 8 } else { 32 };
        assert_eq!(seen.len(), expected, "character {at}: {seen:?}");
    }
}

#[tokio::test]
async fn the_list_of_hosted_tasks_has_full_pages() {
    // S0-34, S0-58, S1-37, S1-53.
    let options = ReceiverOptions {
        max_open_tasks: 250,
        ..ReceiverOptions::default()
    };
    let (_client, mut server, _inbox) = hosting(options).await;
    for _ in 0..250 {
        made(&mut server, ELICITATION, form()).await;
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
async fn errors_about_hosted_tasks_have_the_words_of_the_seeds() {
    // S0-54, S0-60, S0-61, S0-63, S1-38.
    let (_client, mut server, inbox) = hosting(ReceiverOptions::default()).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let unknown = call(&mut server, method, json!({ "taskId": "x" })).await;
        let error = json!({ "code": -32602, "message": "Task not found" });
        assert_eq!(unknown["error"], error, "{method}");
    }
    let task = made(&mut server, ELICITATION, form()).await;
    server.ask("wait", "tasks/result", named(&task)).await;
    let cancelled = call(&mut server, "tasks/cancel", named(&task)).await;
    assert_eq!(
        cancelled["result"]["statusMessage"],
        "Task cancelled by server"
    );
    let waited = soon(server.answer("wait")).await;
    assert_eq!(
        (&waited["error"]["code"], &waited["error"]["message"]),
        (&json!(-32603), &json!("Task cancelled"))
    );
    refuses_cancel(&mut server, &task, "cancelled").await;
    let task = made(&mut server, ELICITATION, form()).await;
    inbox.decline(soon(inbox.first()).await.id).unwrap();
    call(&mut server, "tasks/result", named(&task)).await;
    refuses_cancel(&mut server, &task, "completed").await;
    let task = made(&mut server, SAMPLING, sample()).await;
    inbox.decline(soon(inbox.first()).await.id).unwrap();
    let refused = call(&mut server, "tasks/result", named(&task)).await;
    let error = json!({ "code": -1, "message": "User declined sampling request" });
    assert_eq!(refused["error"], error);
    refuses_cancel(&mut server, &task, "failed").await;
}

async fn refuses_cancel(server: &mut Server, task: &Value, status: &str) {
    let again = call(server, "tasks/cancel", named(task)).await;
    let message = format!("Cannot cancel task: already in terminal status '{status}'");
    assert_eq!(
        again["error"],
        json!({ "code": -32602, "message": message })
    );
}

#[tokio::test]
async fn a_cancelled_hosted_task_expires_as_well() {
    // S1-44.
    let options = ReceiverOptions {
        ttl: ReceiverTtl::Fixed(3_000),
        ..ReceiverOptions::default()
    };
    let (_client, mut server, _inbox) = hosting(options).await;
    let task = made(&mut server, ELICITATION, form()).await;
    let cancelled = call(&mut server, "tasks/cancel", named(&task)).await;
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    soon(async {
        while call(&mut server, "tasks/get", named(&task)).await["error"]["code"] != -32602 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

/// A host that fails in a way it did not foresee.
struct Panics;

#[async_trait]
impl ClientHandler for Panics {
    fn accepts(&self) -> InputKinds {
        InputKinds::all()
    }

    async fn handle(&self, _: ServerInputRequest) -> InputResponse {
        panic!("the host broke")
    }
}

#[tokio::test]
async fn a_host_that_panics_fails_the_task() {
    // S0-79.
    let options = crate::stage::options();
    let (_client, mut server) =
        hosting_by(Arc::new(Panics), ReceiverOptions::default(), options).await;
    for (method, params) in [(SAMPLING, sample()), (ELICITATION, form())] {
        let task = made(&mut server, method, params).await;
        let result = call(&mut server, "tasks/result", named(&task)).await;
        assert_eq!(result["error"]["code"], -32603, "{result}");
        let looked = call(&mut server, "tasks/get", named(&task)).await;
        assert_eq!(looked["result"]["status"], "failed");
    }
}

/// A host whose application has nothing open in which it could ask.
struct NoContext;

#[async_trait]
impl ClientHandler for NoContext {
    fn accepts(&self) -> InputKinds {
        InputKinds::all()
    }

    fn unavailable(&self, _: &ServerInputRequest) -> Option<ErrorObject> {
        Some(ErrorObject::new(-32603, "No active provider"))
    }

    async fn handle(&self, _: ServerInputRequest) -> InputResponse {
        panic!("it cannot be asked")
    }
}

#[tokio::test]
async fn a_host_without_an_active_context_refuses_before_there_is_a_task() {
    // S0-70, S0-71.
    let options = crate::stage::options();
    let (_client, mut server) =
        hosting_by(Arc::new(NoContext), ReceiverOptions::default(), options).await;
    let mut plain = sample();
    plain.as_object_mut().unwrap().remove("task");
    for params in [sample(), plain] {
        let refused = call(&mut server, SAMPLING, params).await;
        let error = json!({ "code": -32603, "message": "No active provider" });
        assert_eq!(refused["error"], error);
    }
    let listed = call(&mut server, "tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"], json!([]));
}

#[tokio::test]
async fn a_ttl_for_receivers_means_nothing_where_none_is_hosted() {
    // S1-89, S1-23, S1-26: there is no TTL without the options of a receiver, and `task` is not looked at.
    let (inbox, options) = with_inbox();
    let (_client, mut server) = connected_with(options, json!({})).await;
    server.ask("plain", ELICITATION, form()).await;
    inbox.decline(soon(inbox.first()).await.id).unwrap();
    let answer = soon(server.answer("plain")).await;
    assert_eq!(answer["result"], json!({ "action": "decline" }));
    let listed = call(&mut server, "tasks/list", json!({})).await;
    assert_eq!(listed["error"]["code"], -32601);
}

/// A host that never answers and reports why its requests were aborted.
struct Unanswering(tokio::sync::mpsc::UnboundedSender<(ServerInputRequest, String)>);

#[async_trait]
impl ClientHandler for Unanswering {
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
async fn the_host_learns_why_the_request_of_a_task_is_aborted() {
    // S0-62.
    let (report, mut aborted) = tokio::sync::mpsc::unbounded_channel();
    let options = crate::stage::options();
    let host = Arc::new(Unanswering(report));
    let (client, mut server) = hosting_by(host, ReceiverOptions::default(), options).await;
    let task = made(&mut server, SAMPLING, sample()).await;
    let asking = soon(server.told(STATUS)).await;
    assert_eq!(asking["params"]["status"], "input_required");
    let cancelled = call(&mut server, "tasks/cancel", named(&task)).await;
    assert_eq!(cancelled["result"]["status"], "cancelled");
    let (request, reason) = soon(aborted.recv()).await.unwrap();
    assert_eq!(request.kind.method(), SAMPLING);
    assert_eq!(reason, "Cancelled");
    let mut short = form();
    short["task"] = json!({ "ttl": 1 });
    made(&mut server, ELICITATION, short).await;
    let (request, reason) = soon(aborted.recv()).await.unwrap();
    assert_eq!(request.kind.method(), ELICITATION);
    assert_eq!(reason, "Expired");
    made(&mut server, SAMPLING, sample()).await;
    while soon(server.told(STATUS)).await["params"]["status"] != "input_required" {}
    client.close().await;
    let (_, reason) = soon(aborted.recv()).await.unwrap();
    assert_eq!(reason, "Connection ended");
}

#[tokio::test]
async fn poll_interval_and_status_message_are_options() {
    // S1-31.
    let options = ReceiverOptions {
        poll_interval_ms: 700,
        waiting_message: "Waiting for Ada".into(),
        ..ReceiverOptions::default()
    };
    let (_client, mut server, _inbox) = hosting(options).await;
    let task = made(&mut server, SAMPLING, sample()).await;
    assert_eq!(task["pollInterval"], 700);
    let asking = soon(server.told(STATUS)).await["params"].clone();
    assert_eq!(asking["statusMessage"], "Waiting for Ada");
    let got = call(&mut server, "tasks/get", named(&task)).await;
    assert_eq!(got["result"]["statusMessage"], "Waiting for Ada");
    assert_eq!(got["result"]["pollInterval"], 700);
}
