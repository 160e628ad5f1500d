//! HTTP on both sides of the gateway: what closing a stream means, and whose names travel on which hop.

use std::time::Duration;

use outlast::client::{Client, ClientOptions, Era, Execution, Target, TaskPreference};
use outlast::gateway::Upstream;
use outlast::transport::http::{self, HttpOptions, HttpServer};
use outlast::transport::http_client::HttpClientOptions;
use outlast::wire::headers::OnMissingName;
use outlast_testkit::mcp::caller::Kind;
use serde_json::json;

use crate::caller::connect;
use crate::cell::Server;
use crate::scripted::said;
use crate::upstream::{Stage, gateway, quick};

/// Insists that the name of a task is repeated in a header, and is the right one.
fn strict() -> HttpOptions {
    HttpOptions {
        task_names: OnMissingName::Refuse,
        ..HttpOptions::default()
    }
}

/// A client of the modern era, before the gateway, before a server; all over HTTP.
async fn over_http(server: Server) -> (Client, Stage, [HttpServer; 2]) {
    let stage = Stage::new(server).await;
    let behind = http::serve(stage.direct.clone(), strict()).await.unwrap();
    let mut settings = quick();
    settings.era = server.era();
    let target = Target::http(HttpClientOptions::new(behind.url()));
    let (_, front) = gateway(Upstream::new("behind", target, settings)).await;
    let before = http::serve(front.clone(), strict()).await.unwrap();
    let stage = Stage { front, ..stage };
    let options = ClientOptions {
        era: Era::Modern,
        ..ClientOptions::default()
    };
    let target = Target::http(HttpClientOptions::new(before.url()));
    let client = Client::connect(target, options).await.unwrap();
    (client, stage, [before, behind])
}

async fn call(client: &Client, tool: &str, preference: TaskPreference) -> Execution {
    client.call_tool(tool, None).task(preference).await.unwrap()
}

/// Waits until so many calls wait at the gate, and not for ever.
async fn until_waiting(stage: &Stage, calls: usize) {
    let waiting = stage.until_waiting(calls);
    let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
    waited.unwrap();
}

#[tokio::test]
async fn a_modern_caller_that_closes_its_stream_stops_the_work_unless_it_is_a_task() {
    // BR-CAN-7.
    for (server, tool) in [
        (Server::PlainLegacy, "gated"),
        (Server::PlainModern, "gated"),
        // Driven for a caller without tasks.
        (Server::V1, "keeps"),
        (Server::V2, "keeps"),
    ] {
        let (client, stage, _listening) = over_http(server).await;
        let plain = call(&client, tool, TaskPreference::Forbid).await;
        until_waiting(&stage, 1).await;
        // Long enough to be driven as a task.
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(plain);
        until_waiting(&stage, 0).await;
        let task = call(&client, tool, TaskPreference::Require).await;
        assert!(task.task().await.is_some());
        until_waiting(&stage, 1).await;
        drop((task, client));
        tokio::time::sleep(Duration::from_millis(500)).await;
        until_waiting(&stage, 1).await;
        stage.gate.add_permits(1);
        until_waiting(&stage, 0).await;
    }
}

#[tokio::test]
async fn the_name_of_a_task_in_a_header_is_that_of_its_hop() {
    // BR-ID-2, BR-ID-1: both hops refuse a name that is missing or not that of the body.
    let (client, stage, _listening) = over_http(Server::V2).await;
    let task = call(&client, "gated", TaskPreference::Require).await;
    let id = task.task().await.unwrap();
    until_waiting(&stage, 1).await;
    // Long enough for a look or two on each hop.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    stage.gate.add_permits(1);
    let settled = tokio::time::timeout(Duration::from_secs(60), task.outcome()).await;
    assert_eq!(said(&settled.unwrap().unwrap()), "through");
    let mut direct = connect(Kind::V2, &stage.direct).await;
    let unknown = direct.request("tasks/get", json!({ "taskId": id })).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

#[tokio::test]
async fn a_call_that_is_no_task_ends_with_the_gateway_and_at_its_server() {
    // BD-20: the one that is driven has no record.
    for server in [Server::V1, Server::V2] {
        let stage = Stage::new(server).await;
        let behind = http::serve(stage.direct.clone(), HttpOptions::default());
        let behind = behind.await.unwrap();
        let mut settings = quick();
        settings.era = server.era();
        settings.every_tool.grace = Some(Duration::from_secs(3_600));
        let target = Target::http(HttpClientOptions::new(behind.url()));
        let outlast = outlast::Outlast::builder().policy(outlast::gateway::policy());
        let upstream = Upstream::new("behind", target, settings);
        let running = outlast.build().gateway(vec![upstream]).await.unwrap();
        let front = running.served()[0].front.clone();
        let mut caller = connect(Kind::PlainLegacy, &front).await;
        caller.send("tools/call", json!({ "name": "keeps" })).await;
        until_waiting(&stage, 1).await;
        // Until the gateway knows of the task.
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        running
            .engine()
            .clone()
            .shutdown(Duration::ZERO)
            .await
            .unwrap();
        until_waiting(&stage, 0).await;
    }
}
