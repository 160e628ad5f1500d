//! The demo as a server: the sample tools over Streamable HTTP, for any MCP client.

use std::net::SocketAddr;

use outlast::transport::http::raise_open_file_limit;
use outlast::{ServerBuilder, ServerError, ServerHandle};

use crate::exit::Failure;
use crate::terminal::{say, show};

/// Listens until the returned server is shut down.
pub(super) async fn listen(
    server: ServerBuilder,
    address: SocketAddr,
) -> Result<ServerHandle, Failure> {
    raise_open_file_limit();
    let served = server.build().serve_http(&address.to_string()).await;
    served.map_err(|error| match error {
        ServerError::Listen { address, source } => Failure::Usage(format!(
            "cannot listen on {address}: {source}\n  next: choose another address with --http"
        )),
        error => error.into(),
    })
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Engine(error) => Self::Engine(error),
            ServerError::Store(error) => Self::Store(error),
            ServerError::Stdio(error) => Self::Io(error),
            other => Self::Usage(other.to_string()),
        }
    }
}

/// Prints the URL to standard output, and how to use it to standard error.
pub(super) fn print(server: &ServerHandle) {
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
