//! How a conversation begins, and how it begins again.

use std::time::Duration;

use outlast::client::{self, Client, ClientOptions, Generation, OutcomeError, ReconnectPolicy};
use outlast::engine::Outcome;
use outlast::transport::link::LinkError;
use serde_json::json;

use crate::stage::{
    Settles, capabilities, connected, connected_with, said, target, task, text, with_inbox,
};

#[tokio::test(start_paused = true)]
async fn we_introduce_ourselves_with_what_the_host_accepts_and_nothing_else() {
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
    let (target, mut servers) = crate::stage::target();
    let connecting = tokio::spawn(Client::connect(target, crate::stage::options()));
    let mut server = servers.next().await;
    let hello = server.welcome("2025-11-25", json!({})).await;
    connecting.await.unwrap().unwrap();
    assert_eq!(hello["params"]["capabilities"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_we_do_not_speak_ends_it() {
    // V1-INIT-4.
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target, crate::stage::options()));
    let mut server = servers.next().await;
    let hello = server.asked("initialize").await;
    let result = json!({ "protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": {} });
    server.reply(&hello, result).await;
    let refused = connecting.await.unwrap().err().unwrap();
    assert!(
        matches!(&refused, client::Error::Unsupported(what) if what.contains("1999-01-01")),
        "{refused}"
    );
    assert!(!server.heard("notifications/initialized"));
}

#[tokio::test(start_paused = true)]
async fn below_2025_11_25_there_are_no_tasks() {
    // V1-CAP-13.
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target, crate::stage::options()));
    let mut server = servers.next().await;
    server.welcome("2025-06-18", capabilities()).await;
    let client = connecting.await.unwrap().unwrap();
    assert_eq!(client.server().await.unwrap().generation, Generation::None);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_hangs_nobody() {
    // V1-INIT-6, V1-INIT-8, V1-INIT-9.
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target, crate::stage::options()));
    let mut server = servers.next().await;
    server.asked("initialize").await;
    assert!(matches!(
        connecting.await.unwrap(),
        Err(client::Error::TimedOut(_))
    ));
    // Nothing else was said, and the handshake was not cancelled.
    assert_eq!(server.log().len(), 1);
    assert!(server.gone().await.is_empty());

    let (client, mut server) = connected().await;
    assert!(matches!(
        client.ping().await,
        Err(client::Error::TimedOut(_))
    ));
    let ping = server.asked("ping").await;
    let told = server.told("notifications/cancelled").await;
    assert_eq!(told["params"]["requestId"], ping["id"]);
    let call = tokio::spawn({
        let call = client.call_tool("slow", None);
        async move { call.await.unwrap().outcome().await }
    });
    server.list(&[("slow", "optional")]).await;
    server.asked("tools/call").await;
    assert!(matches!(
        call.await.unwrap(),
        Err(OutcomeError::Request(client::Error::TimedOut(_)))
    ));
    let (client, mut server) = connected_with(crate::stage::options(), json!({})).await;
    let call = client.call_tool("slow", None).await.unwrap();
    assert!(matches!(
        call.outcome().await,
        Err(OutcomeError::Request(client::Error::TimedOut(_)))
    ));
    server.asked("tools/call").await;
    server.told("notifications/cancelled").await;
}

#[tokio::test(start_paused = true)]
async fn progress_keeps_a_plain_call_alive_up_to_a_limit() {
    // V1-INIT-9.
    let options = ClientOptions {
        idle_timeout: Duration::from_secs(60),
        call_timeout: Duration::from_secs(600),
        ..crate::stage::options()
    };
    let (client, mut server) = connected_with(options, json!({})).await;
    let call = client.call_tool("slow", None).await.unwrap();
    let asked = server.asked("tools/call").await;
    let token = asked["params"]["_meta"]["progressToken"].clone();
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
async fn a_connection_that_is_lost_ends_what_is_under_way_and_says_why() {
    let (client, mut server) = connected().await;
    let call = client.call_tool("slow", None);
    let call = tokio::spawn(async move { call.await.unwrap() });
    server.make_task("working", 100).await;
    let call = call.await.unwrap();
    call.task().await;
    drop(server);
    assert!(matches!(
        call.outcome().await,
        Err(OutcomeError::Lost {
            why: client::Error::Transport(LinkError::Broken(_)),
            ..
        })
    ));
    assert!(matches!(
        client.ping().await,
        Err(client::Error::Transport(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn a_task_goes_on_over_a_connection_that_is_made_again() {
    let options = ClientOptions {
        reconnect: Some(ReconnectPolicy::default()),
        ..crate::stage::options()
    };
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target, options));
    let mut server = servers.next().await;
    server.welcome("2025-11-25", capabilities()).await;
    let client = connecting.await.unwrap().unwrap();
    let call = client.call_tool("slow", None);
    let call = tokio::spawn(async move { call.await.unwrap() });
    server.make_task("working", 100).await;
    let call = call.await.unwrap();
    call.task().await;
    let look = server.asked("tasks/get").await;
    server.reply(&look, task("input_required", 100)).await;
    server.asked("tasks/result").await;
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
    let look = server.asked("tasks/get").await;
    server.reply(&look, task("completed", 100)).await;
    let fetch = server.asked("tasks/result").await;
    server.reply(&fetch, text("done")).await;
    assert_eq!(said(&call.outcome().await.unwrap()), "done");
    // V1-BASE-2: ids are not used twice.
    assert!(!used.contains(&fetch["id"]), "{used:?}");
    // V1-CANC-1: a plain call that was in flight is not repeated, its outcome is unknown.
    let call = client.call_tool("plain", None);
    let call = tokio::spawn(async move { call.await.unwrap() });
    server.list(&[("plain", "forbidden")]).await;
    let call = call.await.unwrap();
    server.asked("tools/call").await;
    drop(server);
    let settled = call.outcome().await;
    assert!(
        matches!(&settled, Err(OutcomeError::Request(fault)) if !fault.nothing_happened()),
        "{settled:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn strange_bytes_from_the_server_harm_nobody() {
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
    client.ping_answered_by(&mut server).await;
    // An answer that is none fails the request it names.
    let pinging = {
        let client = client.clone();
        tokio::spawn(async move { client.ping().await })
    };
    let ping = server.asked("ping").await;
    let broken = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":7}}", ping["id"]);
    server.write_raw(broken.as_bytes()).await;
    assert!(matches!(
        pinging.await.unwrap(),
        Err(client::Error::Malformed(_))
    ));
    client.ping_answered_by(&mut server).await;
}

#[tokio::test(start_paused = true)]
async fn closing_ends_the_conversation_for_everybody() {
    let (client, mut server) = connected_with(crate::stage::options(), json!({})).await;
    let call = client.call_tool("slow", None).await.unwrap();
    client.close().await;
    server.gone().await;
    assert!(matches!(
        client.ping().await,
        Err(client::Error::Transport(_))
    ));
    assert!(!matches!(call.outcome().await, Ok(Outcome::Result(_))));
}
