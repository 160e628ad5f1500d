//! The handshake, and reconnection.

use std::time::Duration;

use outlast::client::{self, Client, Generation, OutcomeError, ReconnectPolicy};
use outlast::task::Outcome;
use outlast::transport::link::TransportError;
use serde_json::json;

use crate::harness::{
    Synchronize, capabilities, connected, connected_with, result_text, target, task, text,
    with_inbox,
};

#[tokio::test(start_paused = true)]
async fn the_client_declares_exactly_what_its_handler_accepts() {
    // V1-INIT-1, V1-INIT-2, V1-INIT-5, V1-CAP-4, S4-14, S4-34.
    let (_, options) = with_inbox();
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target, options));
    let mut server = servers.next().await;
    let hello = server.welcome("2025-11-25", capabilities()).await;
    let client = connecting.await.unwrap().unwrap();
    assert_eq!(hello["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(hello["params"]["clientInfo"]["name"], "outlast");
    assert_eq!(
        hello["params"]["capabilities"],
        json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": { "listChanged": true } })
    );
    let known = client.server().await.unwrap();
    assert_eq!(&*known.name, "scripted");
    assert!(known.generation.supports_tool_tasks());
    let (target, mut servers) = crate::harness::target();
    let connecting = tokio::spawn(Client::connect(target, crate::harness::options()));
    let mut server = servers.next().await;
    let hello = server.welcome("2025-11-25", json!({})).await;
    connecting.await.unwrap().unwrap();
    assert_eq!(hello["params"]["capabilities"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn an_unsupported_version_ends_the_handshake() {
    // V1-INIT-4.
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target, crate::harness::options()));
    let mut server = servers.next().await;
    let hello = server.expect_request("initialize").await;
    let result = json!({ "protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": {} });
    server.reply(&hello, result).await;
    let refused = connecting.await.unwrap().err().unwrap();
    assert!(
        matches!(&refused, client::Error::Unsupported(what) if what.contains("1999-01-01")),
        "{refused}"
    );
    assert!(!server.has_received("notifications/initialized"));
}

#[tokio::test(start_paused = true)]
async fn below_2025_11_25_there_are_no_tasks() {
    // V1-CAP-13.
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target, crate::harness::options()));
    let mut server = servers.next().await;
    server.welcome("2025-06-18", capabilities()).await;
    let client = connecting.await.unwrap().unwrap();
    assert_eq!(client.server().await.unwrap().generation, Generation::None);
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_causes_timeouts() {
    // V1-INIT-6, V1-INIT-8, V1-INIT-9.
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target, crate::harness::options()));
    let mut server = servers.next().await;
    server.expect_request("initialize").await;
    assert!(matches!(
        connecting.await.unwrap(),
        Err(client::Error::TimedOut(_))
    ));
    // Nothing else was sent, and the handshake was not cancelled.
    assert_eq!(server.log().len(), 1);
    assert!(server.until_closed().await.is_empty());

    let (client, mut server) = connected().await;
    assert!(matches!(
        client.ping().await,
        Err(client::Error::TimedOut(_))
    ));
    let ping = server.expect_request("ping").await;
    let notification = server.next_message("notifications/cancelled").await;
    assert_eq!(notification["params"]["requestId"], ping["id"]);
    let call = tokio::spawn({
        let call = client.call_tool("slow", ());
        async move { call.await.unwrap().outcome().await }
    });
    server.list(&[("slow", "optional")]).await;
    server.expect_request("tools/call").await;
    assert!(matches!(
        call.await.unwrap(),
        Err(OutcomeError::Request(client::Error::TimedOut(_)))
    ));
    let (client, mut server) = connected_with(crate::harness::options(), json!({})).await;
    let call = client.call_tool("slow", ()).await.unwrap();
    assert!(matches!(
        call.outcome().await,
        Err(OutcomeError::Request(client::Error::TimedOut(_)))
    ));
    server.expect_request("tools/call").await;
    server.next_message("notifications/cancelled").await;
}

#[tokio::test(start_paused = true)]
async fn progress_extends_a_plain_call_up_to_a_limit() {
    // V1-INIT-9.
    let options = crate::harness::options()
        .with_idle_timeout(Duration::from_secs(60))
        .with_call_timeout(Duration::from_secs(600));
    let (client, mut server) = connected_with(options, json!({})).await;
    let call = client.call_tool("slow", ()).await.unwrap();
    let request = server.expect_request("tools/call").await;
    let token = request["params"]["_meta"]["progressToken"].clone();
    let began = tokio::time::Instant::now();
    let mut progress = 0;
    while call.status().ended.is_none() {
        progress += 1;
        server
            .notify(
                "notifications/progress",
                json!({ "progressToken": token, "progress": progress }),
            )
            .await;
        tokio::time::sleep(Duration::from_secs(50)).await;
    }
    assert!(matches!(
        call.outcome().await,
        Err(OutcomeError::Request(client::Error::TimedOut(_)))
    ));
    assert!((began.elapsed().as_secs()) >= 600);
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_fails_open_requests_with_the_reason() {
    let (client, mut server) = connected().await;
    let call = client.call_tool("slow", ());
    let call = tokio::spawn(async move { call.await.unwrap() });
    server.make_task("working", 100).await;
    let call = call.await.unwrap();
    call.task().await;
    drop(server);
    assert!(matches!(
        call.outcome().await,
        Err(OutcomeError::Lost {
            why: client::Error::Transport(TransportError::Broken(_)),
            ..
        })
    ));
    assert!(matches!(
        client.ping().await,
        Err(client::Error::Transport(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn a_task_continues_after_a_reconnection() {
    let options = crate::harness::options().with_reconnect(ReconnectPolicy::default());
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target, options));
    let mut server = servers.next().await;
    server.welcome("2025-11-25", capabilities()).await;
    let client = connecting.await.unwrap().unwrap();
    let call = client.call_tool("slow", ());
    let call = tokio::spawn(async move { call.await.unwrap() });
    server.make_task("working", 100).await;
    let call = call.await.unwrap();
    call.task().await;
    let look = server.expect_request("tasks/get").await;
    server.reply(&look, task("input_required", 100)).await;
    server.expect_request("tasks/result").await;
    let used: Vec<_> = server
        .log()
        .iter()
        .map(|(_, sent)| sent["id"].clone())
        .collect();
    drop(server);
    // The first attempt fails.
    drop(servers.next().await);
    let mut server = servers.next().await;
    server.welcome("2025-11-25", capabilities()).await;
    let look = server.expect_request("tasks/get").await;
    server.reply(&look, task("completed", 100)).await;
    let fetch = server.expect_request("tasks/result").await;
    server.reply(&fetch, text("done")).await;
    assert_eq!(result_text(&call.outcome().await.unwrap()), "done");
    // V1-BASE-2: ids are not used twice.
    assert!(!used.contains(&fetch["id"]), "{used:?}");
    // V1-CANC-1: a call without a task that was in flight is not repeated; its outcome is unknown.
    let call = client.call_tool("plain", ());
    let call = tokio::spawn(async move { call.await.unwrap() });
    server.list(&[("plain", "forbidden")]).await;
    let call = call.await.unwrap();
    server.expect_request("tools/call").await;
    drop(server);
    let settled = call.outcome().await;
    assert!(
        matches!(&settled, Err(OutcomeError::Request(fault)) if !fault.server_has_not_acted()),
        "{settled:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn malformed_bytes_from_the_server_are_tolerated() {
    let (client, mut server) = connected().await;
    for line in [
        &b"not json"[..],
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\",\"params\":{\"taskId\":5}}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unknown\"}",
        b"",
    ] {
        server.write_raw(line).await;
    }
    client.synchronize(&mut server).await;
    // A malformed response fails its request.
    let pinging = {
        let client = client.clone();
        tokio::spawn(async move { client.ping().await })
    };
    let ping = server.expect_request("ping").await;
    let broken = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":7}}", ping["id"]);
    server.write_raw(broken.as_bytes()).await;
    assert!(matches!(
        pinging.await.unwrap(),
        Err(client::Error::Malformed(_))
    ));
    client.synchronize(&mut server).await;
}

#[tokio::test(start_paused = true)]
async fn closing_fails_all_open_requests() {
    let (client, mut server) = connected_with(crate::harness::options(), json!({})).await;
    let call = client.call_tool("slow", ()).await.unwrap();
    client.close().await;
    server.until_closed().await;
    assert!(matches!(
        client.ping().await,
        Err(client::Error::Transport(_))
    ));
    assert!(!matches!(call.outcome().await, Ok(Outcome::Result(_))));
}
