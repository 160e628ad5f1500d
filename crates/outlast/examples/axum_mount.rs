//! A server inside an axum application: `cargo run --example axum_mount -- [ADDRESS [HOST]]`.
//!
//! HOST is the domain of the application. Without it, requests to another name than `localhost` get
//! 403, so that a web page cannot reach the endpoint under a name of its own.
//!
//! The application has its own page, its own log layer and its own authentication. The endpoint is
//! at `/mcp`; a request needs the header `Authorization: Bearer user:NAME`, and `guest` may only
//! read.

use async_trait::async_trait;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use outlast::prelude::*;
use outlast::server::{HttpParts, Identity, Scopes};
use outlast::transport::http::{Authenticate, HttpOptions, Unauthenticated};

/// Reads the user from the token. A real program verifies it.
struct Users;

#[async_trait]
impl Authenticate for Users {
    async fn authenticate(&self, request: &HttpParts) -> Result<Identity, Unauthenticated> {
        let token = request.headers.get("authorization");
        let user = token.and_then(|token| token.to_str().ok()?.strip_prefix("Bearer user:"));
        match user.ok_or_else(Unauthenticated::missing)? {
            "guest" => Ok(Identity::principal("guest").with_scopes(Scopes::READ)),
            user => Ok(Identity::principal(user)),
        }
    }
}

async fn log(request: Request, next: Next) -> Response {
    eprintln!("{} {}", request.method(), request.uri().path());
    next.run(request).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or_else(|| "127.0.0.1:8050".into());
    let hello = Tool::new("hello", "Says hello", |_, _| async { Ok(text("Hello!")) });
    let server = Server::builder("mounted", "1.0.0")
        .tool(hello.task(TaskSupport::Optional))
        .authenticate(Users)
        .http(HttpOptions::default().with_allowed_hosts(std::env::args().skip(2).collect()))
        .build()
        .start()
        .await?;
    let endpoint = server.http_service();
    let app = Router::new()
        .route("/", get(|| async { "The MCP endpoint is at /mcp.\n" }))
        .nest_service("/mcp", endpoint.clone())
        .layer(from_fn(log));

    let listener = tokio::net::TcpListener::bind(&address).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let stop = async move {
        let _ = tokio::signal::ctrl_c().await;
        // Open streams end, so that axum does not wait for them.
        endpoint.close();
    };
    axum::serve(listener, app)
        .with_graceful_shutdown(stop)
        .await?;
    server.shutdown().await?;
    Ok(())
}
