//! Which owners share a connection, and to which call an input request belongs.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast::client::{
    Client, ClientHandler, ClientOptions, Era, ServerInputRequest, Target, accept,
};
use outlast::gateway::{Isolate, Upstream};
use outlast::task::{InputKinds, InputResponse};
use outlast::transport::http::{self, BearerTokens, HttpOptions, Token};
use outlast::transport::http_client::HttpClientOptions;
use outlast_testkit::mcp::caller::{CallEnd, Caller, ClientKind};
use serde_json::{Value, json};

use crate::caller::connect;
use crate::cell::ServerKind;
use crate::harness::{Harness, gateway, quick};
use crate::scripted::{self, TestServer, result_text};

/// Responds to every input request with its own name.
struct NamedHandler(&'static str);

#[async_trait]
impl ClientHandler for NamedHandler {
    fn accepts(&self) -> InputKinds {
        InputKinds::all()
    }

    async fn handle(&self, _: ServerInputRequest) -> InputResponse {
        accept(Some(json!({ "name": self.0 })))
    }
}

/// A scripted server whose only tool asks for the name of its caller.
async fn serve_name_elicitation(mut server: TestServer) -> TestServer {
    server.welcome("2025-11-25", json!({ "tools": {} })).await;
    // Once for the client, once for the gateway.
    server.list(&[("who", "forbidden")]).await;
    server.list(&[("who", "forbidden")]).await;
    let call = server.expect_request("tools/call").await;
    server.ask("q", "elicitation/create", form()).await;
    let answer = server.response_to_id("q").await;
    let name = answer["result"]["content"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    server.reply(&call, scripted::text(&name)).await;
    server
}

fn form() -> Value {
    json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": {} } })
}

#[tokio::test]
async fn two_owners_have_separate_connections() {
    // BR-NEG-5, BR-SEC-1.
    let (target, mut servers) = scripted::target();
    let (engine, mcp_server) = gateway(Upstream::new("played", target, quick())).await;
    let listening = http::serve(mcp_server, HttpOptions::default())
        .await
        .unwrap();
    let playing = tokio::spawn(async move {
        let one = tokio::spawn(serve_name_elicitation(servers.next().await));
        let other = tokio::spawn(serve_name_elicitation(servers.next().await));
        (one.await.unwrap(), other.await.unwrap())
    });
    let url = listening.url();
    let calling = ["Ada", "Bob"].map(|name| {
        let target = Target::http(HttpClientOptions::new(&url));
        tokio::spawn(async move {
            let options = ClientOptions::default()
                // Each has its own session.
                .with_era(Era::Legacy)
                .with_handler(Arc::new(NamedHandler(name)));
            let client = Client::connect(target, options).await.unwrap();
            let call = client.call_tool("who", ()).await.unwrap();
            let outcome = call.outcome().await.unwrap();
            assert_eq!(result_text(&outcome), name);
        })
    });
    for call in calling {
        tokio::time::timeout(Duration::from_secs(30), call)
            .await
            .unwrap()
            .unwrap();
    }
    tokio::time::timeout(Duration::from_secs(30), playing)
        .await
        .unwrap()
        .unwrap();
    drop(listening);
    engine.shutdown(Duration::ZERO).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_ambiguous_input_request_is_rejected() {
    // BR-IN-14.
    let (target, mut servers) = scripted::target();
    let (_, mcp_server) = gateway(Upstream::new("played", target, quick())).await;
    let connecting = tokio::spawn(async move {
        let mut caller = connect(ClientKind::V1, &mcp_server).await;
        let ids = [call(&mut caller).await, call(&mut caller).await];
        (caller, ids)
    });
    let mut server = servers.next().await;
    server.welcome("2025-11-25", json!({ "tools": {} })).await;
    server.list(&[("who", "forbidden")]).await;
    let calls = [
        server.expect_request("tools/call").await,
        server.expect_request("tools/call").await,
    ];
    server.ask("q", "elicitation/create", form()).await;
    let refused = server.response_to_id("q").await;
    assert_eq!(refused["error"]["code"], -32602);
    let why = refused["error"]["message"].as_str().unwrap();
    assert!(why.contains("isolate"), "{why}");
    for call in &calls {
        server.reply(call, scripted::text("done")).await;
    }
    let (mut caller, ids) = connecting.await.unwrap();
    for id in ids {
        caller.response_to(id).await;
    }
}

async fn call(caller: &mut Caller) -> i64 {
    caller.send("tools/call", json!({ "name": "who" })).await
}

#[tokio::test(start_paused = true)]
async fn isolated_calls_have_separate_connections() {
    // BR-IN-14.
    let (target, mut servers) = scripted::target();
    let settings = quick().with_isolate(Isolate::Call);
    let (_, mcp_server) = gateway(Upstream::new("played", target, settings)).await;
    let connecting = tokio::spawn(async move {
        let mut caller = connect(ClientKind::PlainLegacy, &mcp_server).await;
        let ids = [call(&mut caller).await, call(&mut caller).await];
        for id in ids {
            let answer = caller.response_to(id).await;
            let ended = caller.finish(Value::Null, answer).await;
            let CallEnd::Result(result) = ended else {
                panic!("{ended:?}");
            };
            assert_eq!(result["content"][0]["text"], "Ada/Who?");
        }
    });
    // One for requests other than calls.
    let mut first = servers.next().await;
    first.welcome("2025-11-25", json!({ "tools": {} })).await;
    let listing = tokio::spawn(async move {
        first.list(&[("who", "forbidden")]).await;
        first
    });
    let mut players = Vec::new();
    for _ in 0..2 {
        let mut server = servers.next().await;
        players.push(tokio::spawn(async move {
            server.welcome("2025-11-25", json!({ "tools": {} })).await;
            let call = server.expect_request("tools/call").await;
            server.ask("q", "elicitation/create", form()).await;
            let answer = server.response_to_id("q").await;
            let name = answer["result"]["content"]["name"]
                .as_str()
                .unwrap()
                .to_owned();
            server.reply(&call, scripted::text(&name)).await;
            server
        }));
    }
    connecting.await.unwrap();
    listing.await.unwrap();
    for player in players {
        player.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_and_reopened_on_demand() {
    let (target, mut servers) = scripted::target();
    let (_, mcp_server) = gateway(Upstream::new("played", target, quick())).await;
    let connecting = {
        let mcp_server = mcp_server.clone();
        tokio::spawn(async move { connect(ClientKind::V2, &mcp_server).await })
    };
    let mut server = servers.next().await;
    server.welcome("2025-11-25", json!({ "tools": {} })).await;
    let mut caller = connecting.await.unwrap();
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    let id = caller.send("example/odd", json!({})).await;
    let mut server = servers.next().await;
    server.welcome("2025-11-25", json!({ "tools": {} })).await;
    let request = server.expect_request("example/odd").await;
    server.reply(&request, json!({})).await;
    assert!(caller.response_to(id).await["result"].is_object());
}

#[tokio::test]
async fn client_credentials_are_not_forwarded() {
    // BR-SEC-2, BR-SEC-1.
    let harness = Harness::new(ServerKind::PlainLegacy).await;
    let guarded = HttpOptions::default().with_authenticate(BearerTokens::shared(vec![Token::new(
        "gateway",
        "of-the-gateway",
    )]));
    let behind = http::serve(harness.direct.clone(), guarded).await.unwrap();
    let mut with_token = HttpClientOptions::new(behind.url());
    with_token.bearer = Some("of-the-gateway".into());
    for (options, lets_in) in [
        (with_token, true),
        (HttpClientOptions::new(behind.url()), false),
    ] {
        let upstream = Upstream::new("behind", Target::http(options), quick());
        let (_, mcp_server) = gateway(upstream).await;
        let of_clients =
            HttpOptions::default().with_authenticate(BearerTokens::shared(vec![Token::new(
                "ada",
                "of-the-client",
            )]));
        let listening = http::serve(mcp_server, of_clients).await.unwrap();
        let mut options = HttpClientOptions::new(listening.url());
        options.bearer = Some("of-the-client".into());
        let connecting = Client::connect(Target::http(options), ClientOptions::default());
        let connected = tokio::time::timeout(Duration::from_secs(30), connecting)
            .await
            .unwrap();
        match (connected, lets_in) {
            (Ok(client), true) => {
                let call = client.call_tool("reads", ()).await.unwrap();
                assert_eq!(result_text(&call.outcome().await.unwrap()), "read");
            }
            // The server requires credentials: the error has a next step.
            (Err(fault), false) => {
                let why = fault.to_string();
                assert!(why.contains("401") && why.contains("--header"), "{why}");
            }
            (connected, _) => panic!("{lets_in}: {:?}", connected.err()),
        }
    }
}
