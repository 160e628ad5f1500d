//! Session preferences after a restart of the gateway.

use std::sync::Arc;
use std::time::Duration;

use outlast::Outlast;
use outlast::gateway::Upstream;
use outlast::store::{MemoryStore, Store};
use outlast::transport::http::{self, HttpOptions};
use outlast_testkit::mcp::caller::{Caller, ClientKind};
use outlast_testkit::mcp::endpoint::ServerEndpoint;
use serde_json::json;

use crate::harness::{quick, started};
use crate::scripted;

#[tokio::test]
async fn session_preferences_are_restored_after_a_gateway_restart() {
    // `resources/subscribe` and `logging/setLevel`.
    let (target, mut servers) = scripted::target();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let open = || {
        let outlast = Outlast::builder().store(store.clone()).build();
        let upstream = Upstream::new("played", target.clone(), quick());
        started(outlast.upstream(upstream))
    };
    let can = json!({ "resources": { "subscribe": true }, "logging": {} });
    let (engine, mcp_server) = open().await;
    let server = http::serve(mcp_server, HttpOptions::default())
        .await
        .unwrap();
    let address = server.local_addr();
    let endpoint = ServerEndpoint::Http {
        authority: address.to_string(),
        token: None,
    };
    let entering = tokio::spawn(async move { Caller::connect(ClientKind::V1, &endpoint).await });
    let mut scripted_gateway = servers.next().await;
    scripted_gateway.welcome("2025-11-25", can.clone()).await;
    let mut caller = entering.await.unwrap();
    let said = [
        ("logging/setLevel", "level", "error"),
        ("resources/subscribe", "uri", "a:b"),
    ];
    for (method, name, value) in said {
        let id = caller.send(method, json!({ name: value })).await;
        let request = scripted_gateway.expect_request(method).await;
        scripted_gateway.reply(&request, json!({})).await;
        caller.response_to(id).await;
    }
    server.shutdown().await;
    drop(scripted_gateway);
    engine.shutdown(Duration::ZERO).await.unwrap();

    let (engine, mcp_server) = open().await;
    let options = HttpOptions::default().with_bind(address);
    let server = http::serve(mcp_server, options).await.unwrap();
    // A request with the session id restores the session.
    caller.request("ping", json!({})).await;
    let mut scripted_gateway = servers.next().await;
    scripted_gateway.welcome("2025-11-25", can).await;
    for (method, name, value) in said {
        let request = scripted_gateway.expect_request(method).await;
        assert_eq!(request["params"][name], value);
        scripted_gateway.reply(&request, json!({})).await;
    }
    server.shutdown().await;
    engine.shutdown(Duration::ZERO).await.unwrap();
}
