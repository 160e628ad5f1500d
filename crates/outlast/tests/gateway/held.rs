//! What clients said once for their session, after the gateway was gone.

use std::sync::Arc;
use std::time::Duration;

use outlast::Outlast;
use outlast::engine::{MemoryStore, Store};
use outlast::gateway::Upstream;
use outlast::transport::http::{self, HttpOptions};
use outlast_testkit::mcp::caller::{Caller, Kind};
use outlast_testkit::mcp::entrance::Entrance;
use serde_json::json;

use crate::scripted;
use crate::upstream::quick;

#[tokio::test]
async fn the_next_life_of_the_gateway_tells_the_server_what_its_sessions_want() {
    // Bridge §14.1: `resources/subscribe`, `logging/setLevel`.
    let (target, mut servers) = scripted::target();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let open = || {
        let outlast = Outlast::builder().store(store.clone()).build();
        outlast
            .upstream(Upstream::new("played", target.clone(), quick()))
            .open()
    };
    let can = json!({ "resources": { "subscribe": true }, "logging": {} });
    let (engine, front) = open().await.unwrap();
    let server = http::serve(front, HttpOptions::default()).await.unwrap();
    let address = server.local_addr();
    let entrance = Entrance::Http {
        authority: address.to_string(),
        token: None,
    };
    let entering = tokio::spawn(async move { Caller::enter(Kind::V1, &entrance).await });
    let mut played = servers.next().await;
    played.welcome("2025-11-25", can.clone()).await;
    let mut caller = entering.await.unwrap();
    let said = [
        ("logging/setLevel", "level", "error"),
        ("resources/subscribe", "uri", "a:b"),
    ];
    for (method, name, value) in said {
        let id = caller.send(method, json!({ name: value })).await;
        let asked = played.asked(method).await;
        played.reply(&asked, json!({})).await;
        caller.answer_to(id).await;
    }
    server.shutdown().await;
    drop(played);
    engine.shutdown(Duration::ZERO).await.unwrap();

    let (engine, front) = open().await.unwrap();
    let options = HttpOptions {
        bind: address,
        ..HttpOptions::default()
    };
    let server = http::serve(front, options).await.unwrap();
    // Whoever names the session takes it up.
    caller.request("ping", json!({})).await;
    let mut played = servers.next().await;
    played.welcome("2025-11-25", can).await;
    for (method, name, value) in said {
        let asked = played.asked(method).await;
        assert_eq!(asked["params"][name], value);
        played.reply(&asked, json!({})).await;
    }
    server.shutdown().await;
    engine.shutdown(Duration::ZERO).await.unwrap();
}
