//! The client in the modern era, with scripted servers, our own server, and an rmcp server.

mod era;
mod http_wire;
mod input_rounds;
mod own_server;
mod requests;
mod rmcp_server;
mod subscriptions;
mod task_inputs;
mod tasks;

use outlast::client::{Client, ClientOptions, Era};
use serde_json::{Value, json};

use crate::harness::{TestServer, target};

/// The `_meta` keys of every request.
pub(crate) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const INFO: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A client connected to a modern server with tasks.
pub(crate) async fn connected(options: ClientOptions) -> (Client, TestServer) {
    connected_with(options, capabilities()).await
}

/// A client connected to a modern server with these capabilities.
pub(crate) async fn connected_with(
    options: ClientOptions,
    capabilities: Value,
) -> (Client, TestServer) {
    let (target, mut servers) = target();
    let options = options.with_era(Era::Auto);
    let connecting = tokio::spawn(Client::connect(target, options));
    let mut server = servers.next().await;
    let request = server.next_request().await;
    assert_eq!(request["method"], "server/discover");
    server.reply(&request, discovered(capabilities)).await;
    (connecting.await.unwrap().unwrap(), server)
}

/// The capabilities of a server with tasks.
pub(crate) fn capabilities() -> Value {
    json!({ "tools": {}, "extensions": { EXTENSION: {} } })
}

/// The `server/discover` result of a modern server.
pub(crate) fn discovered(capabilities: Value) -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": capabilities,
        "instructions": "Be kind.",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "scripted", "version": "1" } },
    })
}

/// A `tasks/get` result, with the payload of its status.
pub(crate) fn task_result(status: &str, interval: u64, brings: Value) -> Value {
    let mut task = task(status, interval);
    task["resultType"] = json!("complete");
    for (name, value) in brings.as_object().unwrap() {
        task[name] = value.clone();
    }
    task
}

/// A create result.
pub(crate) fn created(status: &str, interval: u64) -> Value {
    let mut task = task(status, interval);
    task["resultType"] = json!("task");
    task
}

/// The task itself.
pub(crate) fn task(status: &str, interval: u64) -> Value {
    json!({
        "taskId": "t1",
        "status": status,
        "createdAt": "2026-08-10T08:00:00Z",
        "lastUpdatedAt": "2026-08-10T08:00:00Z",
        "ttlMs": 600_000,
        "pollIntervalMs": interval,
    })
}

/// A form elicitation.
pub(crate) fn form(message: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { "x": { "type": "string" } } });
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": message, "requestedSchema": schema } })
}

/// A response to it.
pub(crate) fn filled_in(x: &str) -> Value {
    json!({ "action": "accept", "content": { "x": x } })
}

/// Rejects `subscriptions/listen`, as a server without it does.
pub(crate) async fn rejects_subscriptions(server: &mut TestServer) {
    let listen = server.expect_request("subscriptions/listen").await;
    server.refuse(&listen, -32601, "no such method").await;
}
