//! One receiver with two connections: each sees only its own tasks.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::store::Snapshot;
use outlast_engine::{InputKind, InputKinds, InputResponse, Scope};
use outlast_wire::{Raw, RawRef, Timestamp, codes};
use serde_json::{Value, json};

use super::{Receiver, ReceiverOptions, owner_of};
use crate::client::handler::ServerInputRequest;
use crate::client::inbox::Inbox;
use crate::client::request_ids::RequestIds;
use crate::client::rpc::RpcChannel;
use crate::client::rpc_handler::{HandlerReply, HandlerReplyFuture, PeerRequest, RpcHandler};
use crate::transport::duplex;

/// The server side of the connection. It sends nothing.
struct Silent;

impl RpcHandler for Silent {
    fn notified(&self, _: &str, _: Option<RawRef<'_>>) {}

    fn requested(self: Arc<Self>, _: &Arc<RpcChannel>, _: PeerRequest) -> HandlerReplyFuture {
        Box::pin(async { HandlerReply::error(&codes::internal("not used")) })
    }

    fn closed(&self, _: &Arc<RpcChannel>) {}
}

/// The connection of a client that has already sent this many requests.
fn connection(sent: usize) -> Arc<RpcChannel> {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    // The server's end stays open.
    std::mem::forget(theirs);
    let (read, write) = tokio::io::split(ours);
    let link = duplex::over(read, write);
    let ids = Arc::new(RequestIds::default());
    for _ in 0..sent {
        ids.fresh();
    }
    RpcChannel::start(link, ids, Arc::new(Silent), None)
}

async fn receiver() -> Arc<Receiver> {
    receiver_and_inbox().await.0
}

async fn receiver_and_inbox() -> (Arc<Receiver>, Inbox) {
    let inbox = Inbox::new(InputKinds::all());
    let opened = Receiver::open(ReceiverOptions::default(), Arc::new(inbox.clone())).await;
    (Arc::new(opened.expect("a receiver in memory opens")), inbox)
}

fn sampling() -> ServerInputRequest {
    let params = json!({ "messages": [], "maxTokens": 9, "task": { "ttl": 5_000 } });
    ServerInputRequest {
        hosted_task: None,
        kind: InputKind::Sample,
        server: "s".into(),
        request: None,
        call: None,
        key: None,
        task: None,
        params: Some(Raw::from(&params)),
    }
}

fn opened(answer: &InputResponse) -> Value {
    match answer {
        InputResponse::Result(raw) | InputResponse::Error(raw) => raw.open().expect("it is JSON"),
    }
}

/// Creates a task for `connection` and returns its id.
async fn create_task(receiver: &Arc<Receiver>, connection: &Arc<RpcChannel>) -> String {
    let taken = receiver.create_task(connection, sampling()).await;
    let Ok(reply) = taken else {
        panic!("the request asks for a task");
    };
    let id = opened(reply.response.as_ref().unwrap())["task"]["taskId"].clone();
    id.as_str().expect("a task has an id").to_owned()
}

async fn served(
    receiver: &Receiver,
    connection: &RpcChannel,
    method: &str,
    params: Value,
) -> Value {
    let params = Raw::from(&params);
    let answer = receiver.serve(connection, method, Some(params.borrow()));
    opened(&answer.await.expect("it is a task method"))
}

#[tokio::test]
async fn no_connection_reaches_the_tasks_of_another() {
    // S0-19, S0-41, S0-99: one receiver and one store, two servers.
    let (receiver, inbox) = receiver_and_inbox().await;
    let (one, two) = (connection(1), connection(2));
    let task = json!({ "taskId": create_task(&receiver, &one).await });
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let refused = served(&receiver, &two, method, task.clone()).await;
        assert_eq!(refused["message"], "Task not found", "{method}");
    }
    let listed = |connection: Arc<RpcChannel>| {
        let receiver = receiver.clone();
        async move { served(&receiver, &connection, "tasks/list", json!({})).await["tasks"].clone() }
    };
    assert_eq!(listed(two.clone()).await, json!([]));
    assert_eq!(listed(one.clone()).await[0]["taskId"], task["taskId"]);
    // The end of one connection does not affect another.
    receiver.end_tasks(&two).await;
    let kept = served(&receiver, &one, "tasks/get", task.clone()).await;
    assert_ne!(kept["status"], "cancelled");
    // S0-41: a stored result reaches only the connection of its task.
    let item = tokio::time::timeout(Duration::from_secs(60), inbox.first()).await;
    let reply = json!({ "role": "assistant", "content": [], "model": "secret" });
    let item = item.expect("the request arrives").id;
    inbox.respond(item, Raw::from(&reply)).expect("it is open");
    let result = served(&receiver, &one, "tasks/result", task.clone()).await;
    assert_eq!(result["model"], "secret");
    let refused = served(&receiver, &two, "tasks/result", task).await;
    assert_eq!(refused["message"], "Task not found");
}

#[tokio::test]
async fn a_managed_task_keeps_its_method_and_request() {
    // S0-43.
    let receiver = receiver().await;
    let connection = connection(1);
    let id = create_task(&receiver, &connection).await;
    let scope = Scope::OwnedBy(owner_of(&connection));
    let id = id.parse().expect("the id is valid");
    let Ok(Snapshot::Open(task)) = receiver.engine.get(&scope, id).await else {
        panic!("the task is open");
    };
    assert_eq!(&*task.origin.method, "sampling/createMessage");
    let request: Value = task
        .origin
        .params
        .as_ref()
        .expect("it has params")
        .open()
        .expect("JSON");
    assert_eq!(request, json!({ "messages": [], "maxTokens": 9 }));
    assert_eq!(task.lifetime.ttl_ms, 5_000);
    assert!(task.updated >= task.created);
}

#[tokio::test]
async fn the_end_of_a_connection_deletes_its_records() {
    // S1-27, S1-58, S1-67, S1-89: nothing with a deadline stays, whether it had ended or not.
    let receiver = receiver().await;
    let (one, two) = (connection(1), connection(2));
    let waiting = create_task(&receiver, &one).await;
    let cancelled = json!({ "taskId": create_task(&receiver, &one).await });
    served(&receiver, &one, "tasks/cancel", cancelled).await;
    let kept = create_task(&receiver, &two).await;
    let waiter = tokio::spawn({
        let (receiver, one) = (receiver.clone(), one.clone());
        async move {
            served(
                &receiver,
                &one,
                "tasks/result",
                json!({ "taskId": waiting }),
            )
            .await
        }
    });
    until_waited_for(&receiver).await;
    receiver.end_tasks(&one).await;
    // The waiter is settled, not left.
    let settled = tokio::time::timeout(Duration::from_secs(60), waiter).await;
    let settled = settled.expect("it ends").expect("it does not panic");
    assert!(settled["code"].is_i64(), "{settled}");
    let listed = served(&receiver, &one, "tasks/list", json!({})).await;
    assert_eq!(listed["tasks"], json!([]));
    let due = receiver.engine.store().due(Timestamp(u64::MAX - 1), 10);
    let due = due.await.expect("the store works").tasks;
    let due: Vec<_> = due.iter().map(|(id, _)| id.to_string()).collect();
    assert_eq!(due, [kept]);
}

/// Resolves when a request waits for the result of a task.
async fn until_waited_for(receiver: &Receiver) {
    let wait = async {
        while receiver.engine.subscribers() == 0 {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), wait).await;
    waited.expect("a request waits");
}
