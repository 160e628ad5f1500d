//! The demo as a server: the sample tools over Streamable HTTP, for any MCP client.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use outlast::store::StoreUrl;
use outlast::transport::http::{Fallback, raise_open_file_limit};
use outlast::{ServerBuilder, ServerError, ServerHandle};
use outlast_console::Console;

use crate::exit::Failure;
use crate::serve::{console, console_secret};
use crate::terminal::{self, say, show};

/// Listens until the returned server is shut down.
pub(super) async fn listen(
    server: ServerBuilder,
    address: SocketAddr,
    store: &StoreUrl,
) -> Result<(ServerHandle, Console), Failure> {
    raise_open_file_limit();
    let secret = console_secret(store)?;
    let made = Arc::new(OnceLock::new());
    let (store, slot) = (store.clone(), made.clone());
    let own_url = Arc::new(OnceLock::new());
    let known = own_url.clone();
    let server = server.fallback(move |engine| {
        let console = slot.get_or_init(|| {
            console(engine, &store, secret, None)
                .own_endpoints(move || {
                    let url = known.get().cloned();
                    url.map(|url| ("demo".to_owned(), url))
                        .into_iter()
                        .collect()
                })
                .build()
        });
        Fallback::new(console.clone().into_service())
    });
    let served = server.build().serve_http(&address.to_string()).await;
    let served = served.map_err(|error| match error {
        ServerError::Listen { address, source } => Failure::Usage(format!(
            "cannot listen on {address}: {source}\n  next: choose another address with --http"
        )),
        error => error.into(),
    })?;
    let _ = own_url.set(served.url());
    let console: Option<Console> = made.get().cloned();
    Ok((served, console.expect("the listener has made its fallback")))
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
pub(super) fn print(server: &ServerHandle, console: &Console, address: SocketAddr) {
    let url = server.url();
    show!("{url}");
    terminal::warn_of_other_machines(address.ip());
    say!("console: {}", server.url_of(&console.sign_in_path()));
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
