//! Calls whose server or whose gateway stops while they run.

use std::sync::Arc;
use std::time::Duration;

use outlast::Outlast;
use outlast::client::Target;
use outlast::engine::Engine;
use outlast::gateway::Upstream;
use outlast::server::McpServer;
use outlast::store::{MemoryStore, Store};
use outlast::transport::http::{self, HttpOptions};
use outlast_testkit::mcp::caller::{CLIENT_KINDS, CallEnd, Caller, ClientKind};
use serde_json::{Value, json};

use crate::caller::connect;
use crate::cell::ServerKind;
use crate::events::task_in;
use crate::harness::{self, Harness, gateway, quick, started, until_attached};
use crate::rules;
use crate::scripted;

/// Lists one tool with a `readOnlyHint`.
async fn list(server: &mut scripted::TestServer, read_only: bool) {
    let list = server.expect_request("tools/list").await;
    let tool = json!({
        "name": "x", "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": read_only },
    });
    server.reply(&list, json!({ "tools": [tool] })).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_server_ended_has_an_unknown_outcome() {
    // BR-GEN-7: the upstream crashes.
    for kind in CLIENT_KINDS {
        let (target, mut servers) = scripted::target();
        let (_, mcp_server) = gateway(Upstream::new("played", target, quick())).await;
        let calling = tokio::spawn(async move {
            let mut caller = connect(kind, &mcp_server).await;
            caller.call("x", json!({})).await
        });
        let mut server = servers.next().await;
        server.welcome("2025-11-25", json!({ "tools": {} })).await;
        list(&mut server, false).await;
        server.expect_request("tools/call").await;
        drop(server);
        let ended = calling.await.unwrap();
        let CallEnd::Error(-32603, why) = ended else {
            panic!("{kind:?}: {ended:?}");
        };
        assert!(why.contains("unknown"), "{kind:?}: {why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_only_call_is_repeated_when_its_server_returns() {
    for kind in CLIENT_KINDS {
        let (target, mut servers) = scripted::target();
        let (_, mcp_server) = gateway(Upstream::new("played", target, quick())).await;
        let calling = tokio::spawn(async move {
            let mut caller = connect(kind, &mcp_server).await;
            caller.call("x", json!({})).await
        });
        let mut server = servers.next().await;
        server.welcome("2025-11-25", json!({ "tools": {} })).await;
        list(&mut server, true).await;
        server.expect_request("tools/call").await;
        drop(server);
        let mut server = servers.next().await;
        server.welcome("2025-11-25", json!({ "tools": {} })).await;
        let call = server.expect_request("tools/call").await;
        server.reply(&call, scripted::text("read")).await;
        let CallEnd::Result(result) = calling.await.unwrap() else {
            panic!("{kind:?}");
        };
        assert_eq!(result["content"][0]["text"], "read");
    }
}

#[tokio::test(start_paused = true)]
async fn hints_of_an_untrusted_server_repeat_no_call() {
    // V1-TLS-4.
    let (target, mut servers) = scripted::target();
    let settings = quick().with_trust_annotations(false);
    let (_, mcp_server) = gateway(Upstream::new("played", target, settings)).await;
    let calling = tokio::spawn(async move {
        let mut caller = connect(ClientKind::V1, &mcp_server).await;
        caller.call("x", json!({})).await
    });
    let mut server = servers.next().await;
    server.welcome("2025-11-25", json!({ "tools": {} })).await;
    list(&mut server, true).await;
    server.expect_request("tools/call").await;
    drop(server);
    let ended = calling.await.unwrap();
    let CallEnd::Error(-32603, why) = ended else {
        panic!("{ended:?}");
    };
    assert!(why.contains("unknown"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_failing_server_is_not_started_for_every_request() {
    let tries = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = tries.clone();
    let target = Target::other("nowhere", move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Err(outlast::transport::link::TransportError::Unreachable(
            "no such program".into(),
        ))
    });
    let (_, mcp_server) = gateway(Upstream::new("nowhere", target, quick())).await;
    let mut caller = connect(ClientKind::V2, &mcp_server).await;
    for _ in 0..5 {
        let answer = caller.request("tools/list", json!({})).await;
        assert_eq!(answer["error"]["code"], -32603);
        let why = answer["error"]["message"].as_str().unwrap();
        assert!(why.contains("nowhere cannot be reached") && why.contains("no such program"));
    }
    assert_eq!(tries.load(std::sync::atomic::Ordering::SeqCst), 1);
    tokio::time::sleep(Duration::from_secs(60)).await;
    caller.request("tools/list", json!({})).await;
    assert_eq!(tries.load(std::sync::atomic::Ordering::SeqCst), 2);
}

/// A gateway on `store` in front of the server at `url`.
async fn gateway_at(
    url: &str,
    server: ServerKind,
    store: &Arc<dyn Store>,
) -> (Engine, Arc<McpServer>) {
    let settings = quick().with_era(server.era());
    harness::gateway_on_store(url, settings, store).await
}

#[tokio::test]
async fn a_task_at_a_url_resumes_after_gateway_restart() {
    // BR-SEC-3, BR-GEN-2: the gateway restarts.
    let cells = [ServerKind::V1, ServerKind::V2]
        .map(|server| [(ClientKind::V1, server), (ClientKind::V2, server)]);
    for (kind, server) in cells.into_iter().flatten() {
        let harness = Harness::new(server).await;
        let listening = http::serve(harness.direct.clone(), HttpOptions::default())
            .await
            .unwrap();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (engine, mcp_server) = gateway_at(&listening.url(), server, &store).await;
        let mut caller = connect(kind, &mcp_server).await;
        let begun = caller.begin(json!({ "name": "gated" })).await;
        harness.until_waiting(1).await;
        until_attached(&store, task_in(&begun)).await;
        engine.shutdown(Duration::ZERO).await.unwrap();
        drop((caller, mcp_server));
        let (engine, mcp_server) = gateway_at(&listening.url(), server, &store).await;
        harness.gate.add_permits(1);
        let mut caller = connect(kind, &mcp_server).await;
        let ended = caller.finish(json!({ "name": "gated" }), begun);
        let ended = tokio::time::timeout(Duration::from_secs(60), ended)
            .await
            .unwrap();
        let CallEnd::Result(result) = ended else {
            panic!("{kind:?} → {server:?}: {ended:?}");
        };
        assert_eq!(result["content"][0]["text"], "through");
        engine.shutdown(Duration::ZERO).await.unwrap();
    }
}

/// The input requests of a task, once it has some.
async fn open_input_requests(caller: &mut Caller, task: &Value) -> Value {
    let asks = |now: &Value| now["status"] == "input_required";
    caller.until(task, asks).await["inputRequests"].clone()
}

#[tokio::test]
async fn an_open_input_request_survives_a_gateway_restart() {
    // BR-SEC-3, BR-IN-1, BD-17: the gateway restarts.
    for server in [ServerKind::V1, ServerKind::V2] {
        let harness = Harness::new(server).await;
        let listening = http::serve(harness.direct.clone(), HttpOptions::default())
            .await
            .unwrap();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (engine, mcp_server) = gateway_at(&listening.url(), server, &store).await;
        let mut caller = connect(ClientKind::V2, &mcp_server).await;
        let begun = caller.begin(json!({ "name": "ask" })).await;
        let task = json!({ "taskId": begun["result"]["taskId"] });
        let requests = open_input_requests(&mut caller, &task).await;
        until_attached(&store, task_in(&begun)).await;
        engine.shutdown(Duration::ZERO).await.unwrap();
        drop((caller, mcp_server));
        let (engine, mcp_server) = gateway_at(&listening.url(), server, &store).await;
        let mut caller = connect(ClientKind::V2, &mcp_server).await;
        // Long enough for the gateway to reconnect and for the server to send the request again.
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let still = open_input_requests(&mut caller, &task).await;
        assert_eq!(still, requests, "{server:?}");
        assert_eq!(requests.as_object().unwrap().len(), 1, "{server:?}");
        let ended = caller.finish(json!({ "name": "ask" }), begun);
        let ended = tokio::time::timeout(Duration::from_secs(60), ended)
            .await
            .unwrap();
        let CallEnd::Result(result) = ended else {
            panic!("{server:?}: {ended:?}");
        };
        let said = result["content"][0]["text"].as_str().unwrap();
        assert!(said.contains("Ada/Who?"), "{server:?}: {said}");
        engine.shutdown(Duration::ZERO).await.unwrap();
    }
}

#[tokio::test]
async fn an_input_response_during_an_outage_is_not_requested_again() {
    // BR-SEC-3: the stored data is sufficient.
    let server = ServerKind::V2;
    let harness = Harness::new(server).await;
    let listening = http::serve(harness.direct.clone(), HttpOptions::default())
        .await
        .unwrap();
    let url = listening.url();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (engine, mcp_server) = gateway_at(&url, server, &store).await;
    let mut caller = connect(ClientKind::V2, &mcp_server).await;
    let begun = caller.begin(json!({ "name": "ask" })).await;
    let task = json!({ "taskId": begun["result"]["taskId"] });
    let requests = open_input_requests(&mut caller, &task).await;
    until_attached(&store, task_in(&begun)).await;
    engine.shutdown(Duration::ZERO).await.unwrap();
    drop((caller, mcp_server));
    let address = listening.local_addr();
    listening.shutdown().await;
    let (engine, mcp_server) = gateway_at(&url, server, &store).await;
    let mut caller = connect(ClientKind::V2, &mcp_server).await;
    let key = requests.as_object().unwrap().keys().next().unwrap().clone();
    let accept = json!({ "action": "accept", "content": { "name": "Ada" } });
    let update = json!({ "taskId": task["taskId"], "inputResponses": { key: accept } });
    let taken = caller.request("tasks/update", update).await;
    assert!(taken.get("error").is_none(), "{taken}");
    let options = HttpOptions::default().with_bind(address);
    let _again = http::serve(harness.direct.clone(), options).await.unwrap();
    caller.responder = |method, _| panic!("{method} was answered before");
    let ended = caller.finish(json!({ "name": "ask" }), begun);
    let ended = tokio::time::timeout(Duration::from_secs(60), ended)
        .await
        .unwrap();
    let CallEnd::Result(result) = ended else {
        panic!("{ended:?}");
    };
    let said = result["content"][0]["text"].as_str().unwrap();
    assert!(said.contains("Ada"), "{said}");
    engine.shutdown(Duration::ZERO).await.unwrap();
}

/// A gateway on `store` in front of a scripted modern server.
async fn gateway_on_store_with_scripted_server(
    store: &Arc<dyn Store>,
) -> (Engine, Arc<McpServer>, scripted::Servers) {
    let (target, servers) = scripted::target();
    let outlast = Outlast::builder().store(store.clone()).build();
    let upstream = Upstream::new("played", target, rules::modern());
    let (engine, mcp_server) = started(outlast.upstream(upstream)).await;
    (engine, mcp_server, servers)
}

/// A V1 client of the gateway, and the server that the gateway has connected to.
async fn caller_of(
    mcp_server: &Arc<McpServer>,
    servers: &mut scripted::Servers,
) -> (Caller, scripted::TestServer) {
    let calling = mcp_server.clone();
    let connecting = tokio::spawn(async move { connect(ClientKind::V1, &calling).await });
    let mut server = servers.next().await;
    rules::discovered(&mut server).await;
    (connecting.await.unwrap(), server)
}

#[tokio::test(start_paused = true)]
async fn input_rounds_survive_the_gateway_and_responses_are_sent_once() {
    // P4: pending input requests are resumed, also on a pipe; responses are not sent
    // twice.
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (engine, mcp_server, mut servers) = gateway_on_store_with_scripted_server(&store).await;
    let (mut caller, mut server) = caller_of(&mcp_server, &mut servers).await;
    caller.leaves_input_open = true;
    let asking = async {
        let call = rules::modern_call(&mut server).await;
        let form = json!({ "mode": "form", "message": "Who?", "requestedSchema": { "type": "object", "properties": {} } });
        let asks = json!({ "k": { "method": "elicitation/create", "params": form } });
        let input_required =
            json!({ "resultType": "input_required", "inputRequests": asks, "requestState": "s" });
        server.reply(&call, input_required).await;
    };
    let (begun, ()) = tokio::join!(caller.begin(json!({ "name": "slow" })), asking);
    let first = caller.wait_for_notification("elicitation/create").await;
    engine.shutdown(Duration::ZERO).await.unwrap();
    drop((caller, server, mcp_server));

    let (engine, mcp_server, mut servers) = gateway_on_store_with_scripted_server(&store).await;
    // The gateway connects without a client to resume the call.
    let mut going_on = servers.next().await;
    rules::discovered(&mut going_on).await;
    // The client of the same owner shares the connection.
    let mut caller = connect(ClientKind::V1, &mcp_server).await;
    caller.leaves_input_open = true;
    let again = caller.wait_for_notification("elicitation/create").await;
    assert_eq!(again["id"], first["id"], "it is the same input request");
    let accept = json!({ "action": "accept", "content": { "name": "Ada" } });
    let answer = json!({ "jsonrpc": "2.0", "id": again["id"], "result": accept });
    caller.write(answer).await;
    let retry = going_on.expect_request("tools/call").await;
    assert_eq!(retry["params"]["requestState"], "s");
    let said = &retry["params"]["inputResponses"]["k"]["content"]["name"];
    assert_eq!(said, "Ada", "{retry}");
    engine.shutdown(Duration::ZERO).await.unwrap();
    drop((caller, going_on, mcp_server));

    // The call may have been executed.
    let (_, mcp_server, mut servers) = gateway_on_store_with_scripted_server(&store).await;
    let (mut caller, mut server) = caller_of(&mcp_server, &mut servers).await;
    let ended = caller.finish(json!({}), begun).await;
    let CallEnd::Error(-32603, why) = ended else {
        panic!("{ended:?}");
    };
    assert!(why.contains("unknown"), "{why}");
    server.silence(Duration::from_secs(60)).await;
}

#[tokio::test]
async fn after_a_restart_the_retry_class_decides_without_upstream_tasks() {
    // Promise 4: the outcome is unknown unless the tool is read-only.
    let server = ServerKind::PlainLegacy;
    let harness = Harness::new(server).await;
    let listening = http::serve(harness.direct.clone(), HttpOptions::default())
        .await
        .unwrap();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (engine, mcp_server) = gateway_at(&listening.url(), server, &store).await;
    let mut caller = connect(ClientKind::V1, &mcp_server).await;
    let begun = caller.begin(json!({ "name": "gated" })).await;
    harness.until_waiting(1).await;
    engine.shutdown(Duration::ZERO).await.unwrap();
    drop((caller, mcp_server));
    let (_, mcp_server) = gateway_at(&listening.url(), server, &store).await;
    let mut caller = connect(ClientKind::V1, &mcp_server).await;
    let ended = caller.finish(json!({}), begun).await;
    let CallEnd::Error(-32603, why) = ended else {
        panic!("{ended:?}");
    };
    assert!(why.contains("unknown"), "{why}");
}
