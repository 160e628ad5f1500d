//! Who shares a connection with whom, and whose question it is.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast::client::{
    Client, ClientHandler, ClientOptions, Era, ServerInputRequest, Target, accept,
};
use outlast::engine::{InputKinds, InputResponse};
use outlast::gateway::{Isolate, Settings, Upstream};
use outlast::transport::http::{self, HttpOptions, Token};
use outlast::transport::http_client::HttpClientOptions;
use outlast_testkit::mcp::caller::{Caller, Ending, Kind};
use serde_json::{Value, json};

use crate::caller::connect;
use crate::cell::Server as Behind;
use crate::scripted::{self, Server, said};
use crate::upstream::{Stage, gateway, quick};

/// Answers every question with its own name.
struct Named(&'static str);

#[async_trait]
impl ClientHandler for Named {
    fn accepts(&self) -> InputKinds {
        InputKinds::all()
    }

    async fn handle(&self, _: ServerInputRequest) -> InputResponse {
        accept(Some(json!({ "name": self.0 })))
    }
}

/// Plays a server whose only tool asks who its caller is.
async fn ask_and_tell(mut server: Server) -> Server {
    server.welcome("2025-11-25", json!({ "tools": {} })).await;
    // Listed for the client, and for the gateway.
    server.list(&[("who", "forbidden")]).await;
    server.list(&[("who", "forbidden")]).await;
    let call = server.asked("tools/call").await;
    server.ask("q", "elicitation/create", form()).await;
    let answer = server.answer("q").await;
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
async fn two_owners_who_are_asked_at_once_have_a_connection_each() {
    // BR-NEG-5, BR-SEC-1.
    let (target, mut servers) = scripted::target();
    let (engine, front) = gateway(Upstream::new("played", target, quick())).await;
    let listening = http::serve(front, HttpOptions::default()).await.unwrap();
    let playing = tokio::spawn(async move {
        let one = tokio::spawn(ask_and_tell(servers.next().await));
        let other = tokio::spawn(ask_and_tell(servers.next().await));
        (one.await.unwrap(), other.await.unwrap())
    });
    let url = listening.url();
    let calling = ["Ada", "Bob"].map(|name| {
        let target = Target::http(HttpClientOptions::new(&url));
        tokio::spawn(async move {
            let options = ClientOptions {
                // Each has a session of its own.
                era: Era::Legacy,
                handler: Arc::new(Named(name)),
                ..ClientOptions::default()
            };
            let client = Client::connect(target, options).await.unwrap();
            let call = client.call_tool("who", None).await.unwrap();
            let outcome = call.outcome().await.unwrap();
            assert_eq!(said(&outcome), name);
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
async fn a_question_that_could_be_of_two_calls_is_refused() {
    // BR-IN-14.
    let (target, mut servers) = scripted::target();
    let (_, front) = gateway(Upstream::new("played", target, quick())).await;
    let connecting = tokio::spawn(async move {
        let mut caller = connect(Kind::V1, &front).await;
        let ids = [call(&mut caller).await, call(&mut caller).await];
        (caller, ids)
    });
    let mut server = servers.next().await;
    server.welcome("2025-11-25", json!({ "tools": {} })).await;
    server.list(&[("who", "forbidden")]).await;
    let calls = [
        server.asked("tools/call").await,
        server.asked("tools/call").await,
    ];
    server.ask("q", "elicitation/create", form()).await;
    let refused = server.answer("q").await;
    assert_eq!(refused["error"]["code"], -32602);
    let why = refused["error"]["message"].as_str().unwrap();
    assert!(why.contains("isolate"), "{why}");
    for call in &calls {
        server.reply(call, scripted::text("done")).await;
    }
    let (mut caller, ids) = connecting.await.unwrap();
    for id in ids {
        caller.answer_to(id).await;
    }
}

async fn call(caller: &mut Caller) -> i64 {
    caller.send("tools/call", json!({ "name": "who" })).await
}

#[tokio::test(start_paused = true)]
async fn isolated_calls_have_a_connection_each_and_ask_at_once() {
    // BR-IN-14.
    let (target, mut servers) = scripted::target();
    let settings = Settings {
        isolate: Isolate::Call,
        ..quick()
    };
    let (_, front) = gateway(Upstream::new("played", target, settings)).await;
    let connecting = tokio::spawn(async move {
        let mut caller = connect(Kind::PlainLegacy, &front).await;
        let ids = [call(&mut caller).await, call(&mut caller).await];
        for id in ids {
            let answer = caller.answer_to(id).await;
            let ended = caller.finish(Value::Null, answer).await;
            let Ending::Result(result) = ended else {
                panic!("{ended:?}");
            };
            assert_eq!(result["content"][0]["text"], "Ada/Who?");
        }
    });
    // One for whatever is no call.
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
            let call = server.asked("tools/call").await;
            server.ask("q", "elicitation/create", form()).await;
            let answer = server.answer("q").await;
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
async fn a_connection_that_nobody_needs_is_closed_and_another_made_when_it_is_needed() {
    let (target, mut servers) = scripted::target();
    let (_, front) = gateway(Upstream::new("played", target, quick())).await;
    let connecting = {
        let front = front.clone();
        tokio::spawn(async move { connect(Kind::V2, &front).await })
    };
    let mut server = servers.next().await;
    server.welcome("2025-11-25", json!({ "tools": {} })).await;
    let mut caller = connecting.await.unwrap();
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    let id = caller.send("example/odd", json!({})).await;
    let mut server = servers.next().await;
    server.welcome("2025-11-25", json!({ "tools": {} })).await;
    let asked = server.asked("example/odd").await;
    server.reply(&asked, json!({})).await;
    assert!(caller.answer_to(id).await["result"].is_object());
}

#[tokio::test]
async fn credentials_of_a_client_end_at_the_gateway_and_those_of_the_gateway_begin_there() {
    // BR-SEC-2, BR-SEC-1.
    let stage = Stage::new(Behind::PlainLegacy).await;
    let guarded = HttpOptions {
        tokens: vec![Token::new("gateway", "of-the-gateway")],
        ..HttpOptions::default()
    };
    let behind = http::serve(stage.direct.clone(), guarded).await.unwrap();
    let mut with_token = HttpClientOptions::new(behind.url());
    with_token.bearer = Some("of-the-gateway".into());
    for (options, lets_in) in [
        (with_token, true),
        (HttpClientOptions::new(behind.url()), false),
    ] {
        let upstream = Upstream::new("behind", Target::http(options), quick());
        let (_, front) = gateway(upstream).await;
        let of_clients = HttpOptions {
            tokens: vec![Token::new("ada", "of-the-client")],
            ..HttpOptions::default()
        };
        let listening = http::serve(front, of_clients).await.unwrap();
        let mut options = HttpClientOptions::new(listening.url());
        options.bearer = Some("of-the-client".into());
        let connecting = Client::connect(Target::http(options), ClientOptions::default());
        let connected = tokio::time::timeout(Duration::from_secs(30), connecting)
            .await
            .unwrap();
        match (connected, lets_in) {
            (Ok(client), true) => {
                let call = client.call_tool("reads", None).await.unwrap();
                assert_eq!(said(&call.outcome().await.unwrap()), "read");
            }
            // The server wants credentials: what to do is told.
            (Err(fault), false) => {
                let why = fault.to_string();
                assert!(why.contains("401") && why.contains("--header"), "{why}");
            }
            (connected, _) => panic!("{lets_in}: {:?}", connected.err()),
        }
    }
}
