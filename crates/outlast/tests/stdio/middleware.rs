//! Middleware around requests, as a user would write it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use outlast::server::{IncomingRequest, Middleware, Next, Reply};
use outlast::store::MemoryStore;
use outlast::wire::{Raw, codes};
use serde_json::{Value, json};

use crate::harness::{StdioClient, samples};

/// Implements a custom method.
struct CustomMethod;

#[async_trait]
impl Middleware for CustomMethod {
    async fn request(&self, request: IncomingRequest, next: Next<'_>) -> Reply {
        match request.method.as_str() {
            "acme/whoami" => {
                let response = json!({ "_meta": { "acme/owner": request.owner.to_string() } });
                Reply::Result(Raw::encode(&response).unwrap())
            }
            _ => next.run(request).await,
        }
    }
}

/// Records requests, hides a tool, and rejects cancellations.
#[derive(Default)]
struct Strict {
    seen: Mutex<Vec<String>>,
    notified: AtomicUsize,
}

#[async_trait]
impl Middleware for Strict {
    async fn request(&self, request: IncomingRequest, next: Next<'_>) -> Reply {
        self.seen.lock().unwrap().push(request.method.clone());
        let method = request.method.clone();
        if method == "tasks/cancel" {
            return Reply::from(codes::invalid_params("cancellation is disabled"));
        }
        let reply = next.run(request).await;
        match (method.as_str(), &reply) {
            ("tools/list", Reply::Result(list)) => {
                let mut list: Value = list.open().unwrap();
                list["tools"]
                    .as_array_mut()
                    .unwrap()
                    .retain(|tool| tool["name"] != "echo");
                Reply::Result(Raw::encode(&list).unwrap())
            }
            _ => reply,
        }
    }

    fn notification(&self, _: &str, _: Option<&str>) {
        self.notified.fetch_add(1, Ordering::SeqCst);
    }
}

async fn with_middleware(middleware: Vec<Arc<dyn Middleware>>) -> StdioClient {
    let mut client =
        StdioClient::with_middleware(Arc::new(MemoryStore::new()), samples(), middleware).await;
    client
        .introduce("2025-11-25", json!({ "elicitation": {} }))
        .await;
    client
}

#[tokio::test(start_paused = true)]
async fn middleware_implements_a_custom_method() {
    let mut client = with_middleware(vec![Arc::new(CustomMethod)]).await;
    let response = client.call("acme/whoami", json!({})).await;
    assert_eq!(response["result"]["_meta"]["acme/owner"], "local");
    assert_eq!(
        client.call("acme/other", json!({})).await["error"]["code"],
        -32601
    );
}

#[tokio::test(start_paused = true)]
async fn middleware_wraps_tools_list_and_every_task_method() {
    let strict = Arc::new(Strict::default());
    let mut client = with_middleware(vec![strict.clone(), Arc::new(CustomMethod)]).await;
    let list = client.call("tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().all(|tool| tool["name"] != "echo"));
    let created = client
        .call("tools/call", json!({ "name": "slow", "task": {} }))
        .await;
    let id = created["result"]["task"]["taskId"].clone();
    client.call("tasks/get", json!({ "taskId": id })).await;
    client.call("tasks/list", json!({})).await;
    let rejected = client.call("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(rejected["error"]["message"], "cancellation is disabled");
    let result = client.call("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(result["result"]["content"][0]["text"], "done");
    let seen = strict.seen.lock().unwrap().clone();
    let expected = [
        "initialize",
        "tools/list",
        "tools/call",
        "tasks/get",
        "tasks/list",
        "tasks/cancel",
        "tasks/result",
    ];
    assert_eq!(seen, expected);
    assert_eq!(strict.notified.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_right_after_its_request_is_applied() {
    let mut client = with_middleware(Vec::new()).await;
    for _ in 0..50 {
        let id = client
            .send("tools/call", json!({ "name": "endless" }))
            .await;
        client
            .notify("notifications/cancelled", json!({ "requestId": id }))
            .await;
    }
    client.silence().await;
    assert_eq!(client.engine.running(), 0);
}
