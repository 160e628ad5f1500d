//! HTTP on both sides of the gateway: closing a stream, and task ids in headers of each hop.

use std::time::Duration;

use outlast::client::{Client, ClientOptions, Era, Execution, Target, TaskPreference};
use outlast::gateway::Upstream;
use outlast::transport::http::{self, HttpOptions, HttpServer};
use outlast::transport::http_client::HttpClientOptions;
use outlast::wire::OnMissingName;
use outlast_testkit::mcp::caller::ClientKind;
use serde_json::json;

use crate::caller::connect;
use crate::cell::ServerKind;
use crate::harness::{Harness, gateway, quick};
use crate::scripted::result_text;

/// Requires the correct task id in the header.
fn strict() -> HttpOptions {
    HttpOptions::default().with_on_missing_task_name(OnMissingName::Refuse)
}

/// A modern client, the gateway and a server, all over HTTP.
async fn over_http(server: ServerKind) -> (Client, Harness, [HttpServer; 2]) {
    let harness = Harness::new(server).await;
    let behind = http::serve(harness.direct.clone(), strict()).await.unwrap();
    let mut settings = quick();
    settings.era = server.era();
    let target = Target::http(HttpClientOptions::new(behind.url()));
    let (_, mcp_server) = gateway(Upstream::new("behind", target, settings)).await;
    let before = http::serve(mcp_server.clone(), strict()).await.unwrap();
    let harness = Harness {
        mcp_server,
        ..harness
    };
    let options = ClientOptions::default().with_era(Era::Modern);
    let target = Target::http(HttpClientOptions::new(before.url()));
    let client = Client::connect(target, options).await.unwrap();
    (client, harness, [before, behind])
}

async fn call(client: &Client, tool: &str, preference: TaskPreference) -> Execution {
    client.call_tool(tool, ()).task(preference).await.unwrap()
}

#[tokio::test]
async fn closing_a_modern_stream_cancels_a_call_without_task() {
    // BR-CAN-7.
    for (server, tool) in [
        (ServerKind::PlainLegacy, "gated"),
        (ServerKind::PlainModern, "gated"),
        // The gateway drives the task for a caller without tasks.
        (ServerKind::V1, "keeps"),
        (ServerKind::V2, "keeps"),
    ] {
        let (client, harness, _listening) = over_http(server).await;
        let plain = call(&client, tool, TaskPreference::Forbid).await;
        harness.until_waiting(1).await;
        if tool == "keeps" {
            // The gateway knows the task when it polls it.
            harness.gate.until_polled(1).await;
        }
        drop(plain);
        harness.until_waiting(0).await;
        let task = call(&client, tool, TaskPreference::Require).await;
        assert!(task.task().await.is_some());
        harness.until_waiting(1).await;
        drop((task, client));
        tokio::time::sleep(Duration::from_millis(500)).await;
        harness.until_waiting(1).await;
        harness.gate.add_permits(1);
        harness.until_waiting(0).await;
    }
}

#[tokio::test]
async fn a_header_contains_the_task_id_of_its_hop() {
    // BR-ID-2, BR-ID-1: both hops reject a missing or wrong id.
    let (client, harness, _listening) = over_http(ServerKind::V2).await;
    let task = call(&client, "gated", TaskPreference::Require).await;
    let id = task.task().await.unwrap();
    harness.until_waiting(1).await;
    harness.gate.until_polled(2).await;
    harness.gate.add_permits(1);
    let settled = tokio::time::timeout(Duration::from_secs(60), task.outcome()).await;
    assert_eq!(result_text(&settled.unwrap().unwrap()), "through");
    let mut direct = connect(ClientKind::V2, &harness.direct).await;
    let unknown = direct.request("tasks/get", json!({ "taskId": id })).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

#[tokio::test]
async fn a_stopping_gateway_cancels_calls_without_a_task() {
    // BD-20: a call that the gateway drives for its caller has no stored task.
    for server in [ServerKind::V1, ServerKind::V2] {
        let harness = Harness::new(server).await;
        let behind = http::serve(harness.direct.clone(), HttpOptions::default());
        let behind = behind.await.unwrap();
        let mut settings = quick();
        settings.era = server.era();
        settings.tool_defaults.grace = Some(Duration::from_secs(3_600));
        let target = Target::http(HttpClientOptions::new(behind.url()));
        let outlast = outlast::Outlast::builder().policy(outlast::gateway::policy());
        let upstream = Upstream::new("behind", target, settings);
        let running = outlast.build().gateway(vec![upstream]).await.unwrap();
        let mcp_server = running.endpoints()[0].server.clone();
        let mut caller = connect(ClientKind::PlainLegacy, &mcp_server).await;
        caller.send("tools/call", json!({ "name": "keeps" })).await;
        harness.until_waiting(1).await;
        // The gateway knows the task when it polls it.
        harness.gate.until_polled(1).await;
        running
            .engine()
            .clone()
            .shutdown(Duration::ZERO)
            .await
            .unwrap();
        harness.until_waiting(0).await;
    }
}
