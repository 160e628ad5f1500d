//! The demo as a server: the sample tools over Streamable HTTP, for any MCP client.

use std::net::SocketAddr;
use std::sync::Arc;

use outlast::server::McpServer;
use outlast::transport::http::{HttpOptions, HttpServer, raise_open_file_limit, serve};

use crate::exit::Failure;
use crate::terminal::{say, show};

/// Listens until the returned server is shut down.
pub(super) async fn listen(
    server: Arc<McpServer>,
    address: SocketAddr,
) -> Result<HttpServer, Failure> {
    raise_open_file_limit();
    let options = HttpOptions {
        bind: address,
        ..HttpOptions::default()
    };
    serve(server, options).await.map_err(|error| {
        Failure::Usage(format!(
            "cannot listen on {address}: {error}\n  next: choose another address with --http"
        ))
    })
}

/// Prints the URL to standard output, and how to use it to standard error.
pub(super) fn print(server: &HttpServer) {
    let url = server.url();
    show!("{url}");
    say!("");
    say!(
        "Call a slow tool from another terminal, kill this process in the middle, and start it again:"
    );
    say!("the call continues and prints its result.");
    say!("");
    say!("  outlast call {url} research topic=tides");
    say!("");
    say!("Or connect an MCP client. VS Code, in .vscode/mcp.json:");
    say!("");
    say!(
        "  {{ \"servers\": {{ \"outlast-demo\": {{ \"type\": \"http\", \"url\": \"{url}\" }} }} }}"
    );
    say!("");
    say!(
        "The MCP Inspector (npx @modelcontextprotocol/inspector) takes the same URL, with Streamable HTTP."
    );
    say!("");
    say!("Ctrl-C stops it; running calls then have 10 s.");
}
