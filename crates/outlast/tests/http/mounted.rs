//! The endpoint as a tower service in another router, and another service next to the endpoint.

use std::net::SocketAddr;

use async_trait::async_trait;
use axum::Router;
use axum::routing::get;
use outlast::server::{HttpParts, Identity, Scopes};
use outlast::transport::http::{
    Authenticate, BearerTokens, Fallback, HttpOptions, Token, Unauthenticated,
};
use outlast::{Server, Tool, text};
use outlast_testkit::mcp::HttpClient;
use outlast_testkit::mcp::http::{self, Answer};
use outlast_testkit::{ServerProcess, within};
use serde_json::{Value, json};

use crate::harness::Harness;

/// Takes the user from a header, as behind a proxy.
struct ProxyUser;

#[async_trait]
impl Authenticate for ProxyUser {
    async fn authenticate(&self, request: &HttpParts) -> Result<Identity, Unauthenticated> {
        let user = request.headers.get("authorization");
        let user = user.and_then(|user| user.to_str().ok()?.strip_prefix("Bearer user:"));
        let user = user.ok_or_else(Unauthenticated::missing)?;
        let identity = Identity::principal(user);
        Ok(match user {
            "guest" => identity.with_scopes(Scopes::READ),
            _ => identity,
        })
    }
}

/// A server that is mounted at `/mcp` of an axum router.
async fn mounted() -> SocketAddr {
    let tool = Tool::new("echo", "says it again", |args, _| async move {
        Ok(text(args.text("say")?))
    });
    let server = Server::builder("mounted", "1")
        .tool(tool)
        .authenticate(ProxyUser)
        .build();
    let mcp = server.start().await.unwrap().http_service();
    let app = Router::new()
        .route("/hello", get(|| async { "hello" }))
        .nest_service("/mcp", mcp);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

async fn meet(address: SocketAddr, token: &'static str) -> HttpClient {
    let mut client = HttpClient {
        token: Some(token),
        ..HttpClient::without_session(address)
    };
    client.introduce("2025-11-25").await;
    client
}

async fn call(client: &HttpClient) -> Value {
    let params = json!({ "name": "echo", "arguments": { "say": "hi" } });
    client.ask("tools/call", params).await.json().await
}

#[tokio::test]
async fn the_endpoint_works_in_an_axum_router() {
    within("a call in an axum router", async {
        let address = mounted().await;
        let ada = meet(address, "user:ada").await;
        let answer = call(&ada).await;
        assert_eq!(answer["result"]["content"][0]["text"], "hi", "{answer}");
        let stranger = HttpClient::without_session(address);
        assert_eq!(stranger.ask("initialize", json!({})).await.status, 401);
    })
    .await;
}

#[tokio::test]
async fn the_axum_example_has_its_own_page_and_authentication() {
    within("the requests to the example", async {
        let server = ServerProcess::example("axum_mount", &["127.0.0.1:0"]);
        let address = server.address();
        let ada = meet(address, "user:ada").await;
        let params = json!({ "name": "hello", "task": {} });
        let created = ada.ask("tools/call", params).await.json().await;
        let id = json!({ "taskId": created["result"]["task"]["taskId"] });
        let result = ada.ask("tasks/result", id).await.json().await;
        assert_eq!(result["result"]["content"][0]["text"], "Hello!", "{result}");
        let root_page = page(address, "/", "localhost").await;
        assert!(
            root_page
                .body()
                .await
                .unwrap()
                .starts_with(b"The MCP endpoint")
        );
        let stranger = HttpClient::without_session(address);
        assert_eq!(stranger.ask("initialize", json!({})).await.status, 401);
    })
    .await;
}

#[tokio::test]
async fn own_authentication_decides_the_scopes() {
    within("a call of a guest", async {
        let address = mounted().await;
        let guest = meet(address, "user:guest").await;
        let params = json!({ "name": "echo", "arguments": { "say": "hi" } });
        let denied = guest.ask("tools/call", params).await;
        assert_eq!(denied.status, 403);
        let challenge = denied.header("www-authenticate").unwrap();
        assert!(challenge.contains("insufficient_scope"), "{challenge}");
        assert!(challenge.contains("scope=\"call\""), "{challenge}");
        assert_eq!(guest.ask("tools/list", json!({})).await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn a_read_only_token_reads_and_changes_nothing() {
    within("the requests of a reader", async {
        let harness = Harness::with(HttpOptions::default().with_authenticate(
            BearerTokens::shared([
                Token::new("ada", "full"),
                Token::new("ada", "read").with_scopes(Scopes::READ),
            ]),
        ))
        .await;
        let full = meet(harness.server.local_addr(), "full").await;
        let task = full.task("gated", json!({})).await;
        let reader = HttpClient {
            token: Some("read"),
            ..full.clone()
        };
        let id = json!({ "taskId": task });
        assert_eq!(reader.ask("tasks/get", id.clone()).await.status, 200);
        let denied = reader.ask("tasks/cancel", id.clone()).await;
        assert_eq!(denied.status, 403);
        let denied = denied.json().await;
        let message = denied["error"]["message"].as_str().unwrap();
        assert!(message.contains("missing scope: cancel"), "{message}");
        let call = json!({ "name": "echo", "arguments": { "say": "hi" } });
        assert_eq!(reader.ask("tools/call", call).await.status, 403);
        assert_eq!(reader.leave().await.status, 403);
        assert_eq!(full.ask("tasks/cancel", id).await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn another_service_is_served_next_to_the_endpoint() {
    within("the pages of a console", async {
        let console = Router::new().route("/console", get(|| async { "the console" }));
        let harness = Harness::with(
            HttpOptions::default()
                .with_authenticate(BearerTokens::shared([Token::new("ada", "a")]))
                .with_fallback(Fallback::new(console)),
        )
        .await;
        let address = harness.server.local_addr();
        let console = page(address, "/console", "localhost").await;
        assert_eq!(console.status, 200);
        assert_eq!(console.body().await.unwrap(), b"the console");
        let health = page(address, "/healthz", "localhost").await;
        assert_eq!(health.body().await.unwrap(), b"ok\n");
        let foreign = page(address, "/console", "evil.com").await;
        assert_eq!(foreign.status, 403);
        let stranger = HttpClient::without_session(address);
        assert_eq!(stranger.ask("initialize", json!({})).await.status, 401);
    })
    .await;
}

/// The response to a GET for `path` with that Host header.
async fn page(address: SocketAddr, path: &str, host: &str) -> Answer {
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    http::send(address, request.as_bytes()).await
}
