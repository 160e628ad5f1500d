//! Every way to use the library from another crate: typed tools, a client, an rmcp server, an axum
//! router with its own authentication, a filter, and work that ends elsewhere.

mod rmcp_server;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use outlast::detached::CompletionHandle;
use outlast::prelude::*;
use outlast::schemars::{self, JsonSchema};
use outlast::server::{FilteredRequest, HttpParts, Identity, Middleware, RequestError, ToolList};
use outlast::task::Outcome;
use outlast::transport::http::{Authenticate, Unauthenticated};
use outlast::transport::http_client::HttpClientOptions;
use outlast::wire::Raw;
use serde::{Deserialize, Serialize};
use serde_json::json;

type Failure = Box<dyn std::error::Error>;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Render {
    /// How many pages to draw.
    pages: u32,
}

#[derive(Serialize, Deserialize, JsonSchema, Debug, PartialEq)]
struct Sum {
    total: u32,
}

/// Two typed tools: one returns text, one returns a struct.
fn tools() -> [Tool; 2] {
    let render = Tool::typed("render", "Draws pages", |args: Render, cx| async move {
        cx.progress(args.pages.into(), args.pages.into());
        Ok(text(format!("{} pages", args.pages)))
    });
    let count = Tool::typed("count", "Counts pages", |args: Render, _| async move {
        Ok(Json(Sum { total: args.pages }))
    });
    [render, count].map(|tool| tool.task(TaskSupport::Optional).hints(Hints::READ_ONLY))
}

/// Takes the user from the token.
struct Users;

#[async_trait]
impl Authenticate for Users {
    async fn authenticate(&self, head: &HttpParts) -> Result<Identity, Unauthenticated> {
        let token = head.headers.get("authorization").and_then(|token| token.to_str().ok());
        let user = token.and_then(|token| token.strip_prefix("Bearer user:"));
        Ok(Identity::principal(user.ok_or_else(Unauthenticated::missing)?))
    }
}

/// Hides a tool from the list.
struct HideCount;

#[async_trait]
impl Middleware for HideCount {
    async fn list_tools(
        &self,
        request: FilteredRequest<'_, ToolList>,
    ) -> Result<ToolList, RequestError> {
        let mut tools = request.run().await?;
        tools.retain_mut(|tool| tool.name() != "count");
        Ok(tools)
    }
}

async fn typed_tools_and_a_client() -> Result<(), Failure> {
    let store = outlast::store::open("memory:").await?;
    let server = Server::builder("reports", "1.0").store(store).tools(tools()).build();
    let server = server.serve_http("127.0.0.1:0").await?;
    let client = Client::connect(Target::url(server.url()), ClientOptions::default()).await?;

    let call = client.call_tool("render", Render { pages: 3 }).await?;
    assert_eq!(call.result().await?.text(), "3 pages");
    let call = client.call_tool("count", json!({ "pages": 3 })).await?;
    assert_eq!(call.result().await?.structured::<Sum>()?, Sum { total: 3 });
    let refused = client.call_tool("count", json!({})).await?.result().await;
    assert!(refused.unwrap_err().to_string().contains("missing field `pages`"));

    client.close().await;
    Ok(server.shutdown().await?)
}

async fn an_rmcp_server() -> Result<(), Failure> {
    let server = Server::rmcp(rmcp_server::Reports::new)
        .task("render", TaskSupport::Optional)
        .build()
        .serve_http("127.0.0.1:0")
        .await?;
    let client = Client::connect(Target::url(server.url()), ClientOptions::default()).await?;
    let call = client.call_tool("render", Render { pages: 2 }).await?;
    assert_eq!(call.result().await?.text(), "2 pages");
    client.close().await;
    Ok(server.shutdown().await?)
}

async fn an_axum_router_with_authentication_and_a_filter() -> Result<(), Failure> {
    let server = Server::builder("mounted", "1.0")
        .tools(tools())
        .authenticate(Users)
        .middleware(HideCount)
        .build()
        .start()
        .await?;
    let endpoint = server.http_service();
    let app = axum::Router::new().nest_service("/mcp", endpoint.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });

    let options = HttpClientOptions::new(&url).bearer("user:ada");
    let client = Client::connect(Target::http(options), ClientOptions::default()).await?;
    let names: Vec<_> = client.tools().await?.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), ["render"]);
    let stranger = Client::connect(Target::url(url), ClientOptions::default()).await;
    assert!(stranger.is_err_and(|error| error.to_string().contains("401")));

    client.close().await;
    endpoint.close();
    serving.abort();
    Ok(server.shutdown().await?)
}

async fn work_that_ends_elsewhere() -> Result<(), Failure> {
    let queue = Arc::new(Mutex::new(Vec::<String>::new()));
    let jobs = queue.clone();
    let tool = Tool::new("print", "Prints elsewhere", move |_, cx| {
        let jobs = jobs.clone();
        async move {
            let handle = cx.detach(Duration::from_secs(600)).await?;
            jobs.lock().map_err(|error| error.to_string())?.push(handle.to_string());
            Ok(text("queued"))
        }
    });
    let server = Server::builder("printer", "1.0")
        .tool(tool.task(TaskSupport::Required))
        .build()
        .serve_http("127.0.0.1:0")
        .await?;
    let client = Client::connect(Target::url(server.url()), ClientOptions::default()).await?;
    let call = client.call_tool("print", ()).await?;
    let handle: CompletionHandle = loop {
        if let Some(job) = queue.lock().map_err(|error| error.to_string())?.pop() {
            break job.parse()?;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let completion = server.completion(&handle).await?;
    completion.end(Outcome::Result(Raw::from(&text("printed")))).await?;
    assert_eq!(call.result().await?.text(), "printed");
    client.close().await;
    Ok(server.shutdown().await?)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let all = async {
        typed_tools_and_a_client().await?;
        an_rmcp_server().await?;
        an_axum_router_with_authentication_and_a_filter().await?;
        work_that_ends_elsewhere().await
    };
    tokio::time::timeout(Duration::from_secs(120), all).await??;
    println!("all parts passed");
    Ok(())
}
