//! What counts against the limits of an upstream, and how long a caller waits for one.

use std::sync::Arc;
use std::time::Duration;

use outlast::Outlast;
use outlast::engine::Engine;
use outlast::gateway::{Isolate, Upstream};
use outlast::server::McpServer;
use outlast::store::{MemoryStore, Store};
use outlast::transport::http::{self, HttpOptions};
use outlast_testkit::mcp::caller::{CallEnd, ClientKind};
use outlast_testkit::{FaultyStore, WriteFault};
use serde_json::{Value, json};

use crate::caller::connect;
use crate::cell::ServerKind;
use crate::events::task_in;
use crate::harness::{self, Harness, gateway, quick, started, until_attached};
use crate::outside_calls;
use crate::rules::{discovered, modern, modern_call};
use crate::scripted::{self, capabilities, task};

fn why(answer: &Value) -> &str {
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    answer["error"]["message"].as_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_hanging_server_start_does_not_delay_the_task() {
    // BR-CREATE-2: "answer by itself if that takes longer than a few seconds", whatever takes
    // longer.
    let (target, mut servers) = scripted::target();
    let settings = quick().with_isolate(Isolate::Call);
    let (_, mcp_server) = gateway(Upstream::new("played", target, settings)).await;
    let calling = tokio::spawn(async move {
        let mut caller = connect(ClientKind::V1, &mcp_server).await;
        let answer = caller.begin(json!({ "name": "slow" })).await;
        (caller, answer)
    });
    let mut shared = servers.next().await;
    shared.welcome("2025-11-25", capabilities()).await;
    shared.list(&[("slow", "optional")]).await;
    // The server for the call does not respond.
    let mut silent = servers.next().await;
    silent.expect_request("initialize").await;
    let answered = tokio::time::timeout(Duration::from_secs(5), calling).await;
    let (mut caller, answer) = answered.unwrap().unwrap();
    assert_eq!(answer["result"]["task"]["status"], "working", "{answer}");
    let mut server = servers.next().await;
    server.welcome("2025-11-25", capabilities()).await;
    server.list(&[("slow", "optional")]).await;
    let call = server.expect_request("tools/call").await;
    let made = json!({ "task": task("completed", 1_000) });
    server.reply(&call, made).await;
    let fetch = server.expect_request("tasks/result").await;
    server.reply(&fetch, scripted::text("done")).await;
    let ended = caller.finish(json!({}), answer).await;
    assert!(matches!(ended, CallEnd::Result(_)), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_opens_after_the_probe() {
    let (target, mut servers) = scripted::target();
    let upstreams = vec![Upstream::new("played", target, quick())];
    let mut gateway = Outlast::builder().build().gateway(upstreams).await.unwrap();
    gateway.started().await.unwrap();
    let (upstream, mcp_server) = {
        let served = &gateway.endpoints()[0];
        (served.upstream.clone(), served.server.clone())
    };
    let again = upstream.clone();
    let probing = tokio::spawn(async move { upstream.probe().await });
    let mut probe = servers.next().await;
    let connecting = tokio::spawn(async move { connect(ClientKind::V1, &mcp_server).await });
    let early = tokio::time::timeout(Duration::from_secs(1), servers.next());
    assert!(early.await.is_err(), "there are two connections at once");
    probe.welcome("2025-11-25", capabilities()).await;
    let mut server = servers.next().await;
    server.welcome("2025-11-25", capabilities()).await;
    connecting.await.unwrap();
    probing.await.unwrap().unwrap();
    // An open connection shows that the server can be reached.
    again.probe().await.unwrap();
    let another = tokio::time::timeout(Duration::from_secs(1), servers.next());
    assert!(another.await.is_err(), "there is another connection");
}

#[tokio::test(start_paused = true)]
async fn a_slow_start_is_not_aborted_with_its_caller() {
    let (target, mut servers) = scripted::target();
    let (_, mcp_server) = gateway(Upstream::new("played", target, quick())).await;
    let hasty = {
        let mcp_server = mcp_server.clone();
        tokio::spawn(async move { connect(ClientKind::V2, &mcp_server).await })
    };
    let mut server = servers.next().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    hasty.abort();
    tokio::time::sleep(Duration::from_secs(1)).await;
    // A second start would connect to another server.
    server.welcome("2025-11-25", json!({ "tools": {} })).await;
    let mut caller = connect(ClientKind::V2, &mcp_server).await;
    let sent = caller.send("example/odd", json!({})).await;
    let request = server.expect_request("example/odd").await;
    server.reply(&request, json!({})).await;
    assert!(caller.response_to(sent).await["result"].is_object());
}

#[tokio::test(start_paused = true)]
async fn unrecorded_responses_are_not_sent() {
    // S2-58: responses that were sent must not be sent again after a restart.
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let faults = store.faults();
    let (target, mut servers) = scripted::target();
    let outlast = Outlast::builder().store(Arc::new(store)).build();
    let upstream = Upstream::new("played", target, modern());
    let (_, mcp_server) = started(outlast.upstream(upstream)).await;
    let connecting = tokio::spawn(async move { connect(ClientKind::V1, &mcp_server).await });
    let mut server = servers.next().await;
    discovered(&mut server).await;
    let mut caller = connecting.await.unwrap();
    caller.leaves_input_open = true;
    let form = json!({ "mode": "form", "message": "Who?", "requestedSchema": { "type": "object", "properties": {} } });
    let asks = json!({ "k": { "method": "elicitation/create", "params": form } });
    let request =
        json!({ "resultType": "input_required", "inputRequests": asks, "requestState": "s" });
    let asking = async {
        let call = modern_call(&mut server).await;
        server.reply(&call, request).await;
    };
    let (begun, ()) = tokio::join!(caller.begin(json!({ "name": "slow" })), asking);
    let input_request = caller.wait_for_notification("elicitation/create").await;
    // The response itself is stored.
    faults.fail_writes_after(1, 1, WriteFault::BeforeCommit);
    let accept = json!({ "action": "accept", "content": {} });
    let answer = json!({ "jsonrpc": "2.0", "id": input_request["id"], "result": accept });
    caller.write(answer).await;
    let ended = caller.finish(json!({}), begun).await;
    let CallEnd::Error(-32603, why) = ended else {
        panic!("{ended:?}");
    };
    assert!(
        why.contains("not sent to played") && why.contains("call the tool again"),
        "{why}"
    );
    server.silence(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn connections_of_isolated_calls_count() {
    let (target, mut servers) = scripted::target();
    let settings = quick()
        .with_isolate(Isolate::Call)
        // One for other requests, and one for the call.
        .with_max_connections_per_owner(2);
    let outlast = Outlast::builder().policy(outlast::gateway::policy());
    let upstream = Upstream::new("played", target, settings);
    let running = outlast.build().gateway(vec![upstream]).await.unwrap();
    let served = running.endpoints()[0].clone();
    let mcp_server = served.server.clone();
    let connecting =
        tokio::spawn(async move { connect(ClientKind::PlainLegacy, &mcp_server).await });
    let mut shared = servers.next().await;
    shared.welcome("2025-11-25", json!({ "tools": {} })).await;
    let mut caller = connecting.await.unwrap();
    for _ in 0..2 {
        assert_eq!(served.upstream.connections(), 1);
        let first = caller.send("tools/call", json!({ "name": "who" })).await;
        if !shared.has_received("tools/list") {
            shared.list(&[("who", "forbidden")]).await;
        }
        let mut server = servers.next().await;
        server.welcome("2025-11-25", json!({ "tools": {} })).await;
        let call = server.expect_request("tools/call").await;
        assert_eq!(served.upstream.connections(), 2);
        let other = caller
            .request(
                "tools/call",
                json!({ "name": "who", "arguments": { "n": 2 } }),
            )
            .await;
        let why = why(&other);
        assert!(why.contains("connectionsPerOwner"), "{why}");
        server.reply(&call, scripted::text("done")).await;
        let answer = caller.response_to(first).await;
        assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
        server.until_closed().await;
    }
}

/// A gateway on `store` in front of the server at `url`, with one open call at most.
async fn gateway_at(url: &str, store: &Arc<dyn Store>) -> (Engine, Arc<McpServer>) {
    let settings = quick()
        .with_era(ServerKind::V1.era())
        .with_max_open_calls(1);
    harness::gateway_on_store(url, settings, store).await
}

#[tokio::test]
async fn a_recovered_task_counts_as_an_open_call() {
    let harness = Harness::new(ServerKind::V1).await;
    let behind = http::serve(harness.direct.clone(), HttpOptions::default());
    let behind = behind.await.unwrap();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (engine, mcp_server) = gateway_at(&behind.url(), &store).await;
    let mut caller = connect(ClientKind::V1, &mcp_server).await;
    let begun = caller.begin(json!({ "name": "gated" })).await;
    let waiting = harness.until_waiting(1);
    let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
    waited.unwrap();
    until_attached(&store, task_in(&begun)).await;
    engine.shutdown(Duration::ZERO).await.unwrap();
    drop((caller, mcp_server));
    let (engine, mcp_server) = gateway_at(&behind.url(), &store).await;
    let mut caller = connect(ClientKind::V1, &mcp_server).await;
    let echo = json!({ "name": "echo", "arguments": { "say": "x" } });
    let refused = caller.request("tools/call", echo.clone()).await;
    let why = why(&refused);
    assert!(why.contains("openCalls"), "{why}");
    harness.gate.add_permits(1);
    let ended = caller.finish(json!({ "name": "gated" }), begun);
    let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
    assert!(matches!(ended.unwrap(), CallEnd::Result(_)));
    let answer = caller.request("tools/call", echo).await;
    assert_eq!(answer["result"]["content"][0]["text"], "x", "{answer}");
    engine.shutdown(Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn a_too_large_result_fails_and_names_the_setting() {
    // The response to a call without a task, and the result of a V1 task.
    for (support, declared) in [
        ("forbidden", json!({ "tools": {} })),
        ("optional", capabilities()),
    ] {
        let (mut caller, mut server) = outside_calls::connected(ClientKind::V1, declared).await;
        let calling = tokio::spawn(async move { caller.call("slow", json!({})).await });
        server.list(&[("slow", support)]).await;
        let mut request = server.expect_request("tools/call").await;
        if support == "optional" {
            let made = json!({ "task": task("completed", 1_000) });
            server.reply(&request, made).await;
            request = server.expect_request("tasks/result").await;
        }
        let text = "x".repeat(17 << 20);
        server.reply(&request, scripted::text(&text)).await;
        let ended = tokio::time::timeout(Duration::from_secs(60), calling).await;
        let ended = ended.unwrap().unwrap();
        let CallEnd::Error(-32603, why) = &ended else {
            panic!("{support}: {ended:?}");
        };
        assert!(why.contains("`payloadBytes`"), "{support}: {why}");
        assert!(why.contains("178258"), "{support}: {why}");
    }
}
