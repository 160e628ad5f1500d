//! Clients of each kind at a server side in this process.

use std::sync::Arc;

use outlast::server::McpServer;
use outlast::transport::stdio;
use outlast_testkit::mcp::caller::{Caller, ClientKind, everything};
use outlast_testkit::mcp::endpoint::ServerEndpoint;
use serde_json::Value;
use tokio::io::BufReader;

/// A pipe to a server.
pub(crate) fn pipe(mcp_server: &Arc<McpServer>) -> ServerEndpoint {
    let mcp_server = mcp_server.clone();
    ServerEndpoint::Pipe(Arc::new(move |pipe| {
        let (read, write) = tokio::io::split(pipe);
        tokio::spawn(stdio::serve_on(
            mcp_server.clone(),
            BufReader::new(read),
            write,
        ));
    }))
}

/// A client on a pipe that supports all input requests.
pub(crate) async fn connect(kind: ClientKind, mcp_server: &Arc<McpServer>) -> Caller {
    Caller::connect(kind, &pipe(mcp_server)).await
}

/// A client on a pipe with the name `name`.
pub(crate) async fn connect_as(
    kind: ClientKind,
    mcp_server: &Arc<McpServer>,
    name: &'static str,
) -> Caller {
    connect_declaring(kind, mcp_server, name, everything()).await
}

/// A client on a pipe that declares `can`.
pub(crate) async fn connect_declaring(
    kind: ClientKind,
    mcp_server: &Arc<McpServer>,
    name: &'static str,
    can: Value,
) -> Caller {
    Caller::connect_as(kind, &pipe(mcp_server), name, can).await
}
