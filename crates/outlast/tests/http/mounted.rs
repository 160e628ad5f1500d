//! The endpoint as a tower service in another router, and another service next to the endpoint.

use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use outlast::client::{Client, ClientOptions, Target};
use outlast::server::{HttpParts, Identity, Scopes};
use outlast::transport::http::{
    Authenticate, BearerTokens, Fallback, HttpOptions, Token, Unauthenticated,
};
use outlast::transport::http_client::HttpClientOptions;
use outlast::{Server, Tool, text};
use outlast_testkit::mcp::HttpClient;
use outlast_testkit::mcp::http::{self, HttpResponse};
use outlast_testkit::{ServerProcess, within};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::harness::Harness;

/// Takes the user from a header, as behind a proxy.
struct ProxyUser;

#[async_trait]
impl Authenticate for ProxyUser {
    async fn authenticate(&self, request: &HttpParts) -> Result<Identity, Unauthenticated> {
        let user = request.headers.get("authorization");
        let user = user.and_then(|user| user.to_str().ok()?.strip_prefix("Bearer user:"));
        user.map(identity_of).ok_or_else(Unauthenticated::missing)
    }
}

/// The identity of a user. A guest may only read.
fn identity_of(user: &str) -> Identity {
    let identity = Identity::principal(user);
    match user {
        "guest" => identity.with_scopes(Scopes::READ),
        _ => identity,
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

async fn connect_user(address: SocketAddr, token: &'static str) -> HttpClient {
    let mut client = HttpClient {
        token: Some(token),
        ..HttpClient::without_session(address)
    };
    client.introduce("2025-11-25").await;
    client
}

async fn call(client: &HttpClient) -> Value {
    let params = json!({ "name": "echo", "arguments": { "say": "hi" } });
    client.request("tools/call", params).await.json().await
}

#[tokio::test]
async fn the_endpoint_works_in_an_axum_router() {
    within("a call in an axum router", async {
        let address = mounted().await;
        let ada = connect_user(address, "user:ada").await;
        let answer = call(&ada).await;
        assert_eq!(answer["result"]["content"][0]["text"], "hi", "{answer}");
        let stranger = HttpClient::without_session(address);
        assert_eq!(stranger.request("initialize", json!({})).await.status, 401);
    })
    .await;
}

#[tokio::test]
async fn the_axum_example_has_its_own_page_and_authentication() {
    within("the requests to the example", async {
        let server = ServerProcess::example("axum_mount", &["127.0.0.1:0"]);
        let address = server.address();
        let ada = connect_user(address, "user:ada").await;
        let params = json!({ "name": "hello", "task": {} });
        let created = ada.request("tools/call", params).await.json().await;
        let id = json!({ "taskId": created["result"]["task"]["taskId"] });
        let result = ada.request("tasks/result", id).await.json().await;
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
        assert_eq!(stranger.request("initialize", json!({})).await.status, 401);
    })
    .await;
}

#[tokio::test]
async fn own_authentication_decides_the_scopes() {
    within("a call of a guest", async {
        let address = mounted().await;
        let guest = connect_user(address, "user:guest").await;
        let params = json!({ "name": "echo", "arguments": { "say": "hi" } });
        let denied = guest.request("tools/call", params).await;
        assert_eq!(denied.status, 403);
        let challenge = denied.header("www-authenticate").unwrap();
        assert!(challenge.contains("insufficient_scope"), "{challenge}");
        assert!(challenge.contains("scope=\"call\""), "{challenge}");
        assert_eq!(guest.request("tools/list", json!({})).await.status, 200);
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
        let full = connect_user(harness.server.local_addr(), "full").await;
        let task = full.task("gated", json!({})).await;
        let reader = HttpClient {
            token: Some("read"),
            ..full.clone()
        };
        let id = json!({ "taskId": task });
        assert_eq!(reader.request("tasks/get", id.clone()).await.status, 200);
        let denied = reader.request("tasks/cancel", id.clone()).await;
        assert_eq!(denied.status, 403);
        let denied = denied.json().await;
        let message = denied["error"]["message"].as_str().unwrap();
        assert!(message.contains("missing scope: cancel"), "{message}");
        let call = json!({ "name": "echo", "arguments": { "say": "hi" } });
        assert_eq!(reader.request("tools/call", call).await.status, 403);
        assert_eq!(reader.delete_session().await.status, 403);
        assert_eq!(full.request("tasks/cancel", id).await.status, 200);
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
        assert_eq!(stranger.request("initialize", json!({})).await.status, 401);
    })
    .await;
}

/// The user that a layer of the application found.
#[derive(Clone)]
struct SignedIn(String);

/// Takes the user from the layer.
struct LayerUser;

#[async_trait]
impl Authenticate for LayerUser {
    async fn authenticate(&self, request: &HttpParts) -> Result<Identity, Unauthenticated> {
        let user = request.extensions.get::<SignedIn>();
        let user = user.ok_or_else(Unauthenticated::missing)?;
        Ok(identity_of(&user.0))
    }
}

/// Sets [`SignedIn`] for a request with a cookie, as the sign-in of an application does.
async fn sign_in(mut request: Request, next: Next) -> Response {
    let cookie = request.headers().get("cookie");
    let user = cookie.and_then(|cookie| cookie.to_str().ok()?.strip_prefix("user="));
    if let Some(user) = user.map(str::to_owned) {
        request.extensions_mut().insert(SignedIn(user));
    }
    next.run(request).await
}

/// An application behind its own domain and sign-in.
async fn application() -> Router {
    let hello = Tool::new("hello", "says hello", |_, _| async { Ok(text("Hello!")) });
    let server = Server::builder("mounted", "1")
        .tool(hello)
        .authenticate(LayerUser)
        .http(HttpOptions::default().with_allowed_hosts(vec!["mcp.example.com".into()]))
        .build();
    let endpoint = server.start().await.unwrap().http_service();
    Router::new()
        .nest_service("/mcp", endpoint)
        .layer(from_fn(sign_in))
}

/// A modern call of `hello`, which needs no session.
async fn call_hello(address: SocketAddr, host: &str, headers: &str) -> HttpResponse {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "hello", "arguments": {}, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let body = body.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: hello\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    http::send(address, request.as_bytes()).await
}

#[tokio::test]
async fn a_mounted_endpoint_has_domain_and_sign_in() {
    within("calls through the layers", async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = application().await;
        tokio::spawn(async move { axum::serve(listener, app).await });
        let ada = call_hello(address, "mcp.example.com", "cookie: user=ada\r\n").await;
        assert_eq!(ada.status, 200);
        let ada = ada.json().await;
        assert_eq!(ada["result"]["content"][0]["text"], "Hello!", "{ada}");
        let guest = call_hello(address, "mcp.example.com", "cookie: user=guest\r\n").await;
        assert_eq!(guest.status, 403);
        let stranger = call_hello(address, "mcp.example.com", "").await;
        assert_eq!(stranger.status, 401);
        // DNS rebinding: a name that was not allowed.
        let foreign = call_hello(address, "evil.example.com", "cookie: user=ada\r\n").await;
        assert_eq!(foreign.status, 403);
    })
    .await;
}

/// A listener with TLS, as an application has its own.
struct TlsListener {
    listener: tokio::net::TcpListener,
    acceptor: TlsAcceptor,
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<tokio::net::TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let Ok((stream, from)) = self.listener.accept().await else {
                continue;
            };
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, from);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

fn tls() -> TlsAcceptor {
    let certificates = CertificateDer::pem_slice_iter(include_bytes!("../client/tls/server.pem"));
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("../client/tls/server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates.map(Result::unwrap).collect(), key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

#[tokio::test]
async fn a_mounted_endpoint_works_behind_the_tls_of_the_application() {
    let call = Box::pin(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (app, acceptor) = (application().await, tls());
        tokio::spawn(async move { axum::serve(TlsListener { listener, acceptor }, app).await });
        let options = HttpClientOptions::new(format!("https://localhost:{port}/mcp"))
            .with_trusted_certificates(include_bytes!("../client/tls/authority.pem").to_vec())
            .with_headers(vec![("cookie".into(), "user=ada".into())]);
        let client = Client::connect(Target::http(options), ClientOptions::default());
        let client = client.await.unwrap();
        let call = client.call_tool("hello", ()).await.unwrap();
        assert_eq!(call.result().await.unwrap().text(), "Hello!");
    });
    within("a call over https", call).await;
}

/// The response to a GET for `path` with that Host header.
async fn page(address: SocketAddr, path: &str, host: &str) -> HttpResponse {
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    http::send(address, request.as_bytes()).await
}
