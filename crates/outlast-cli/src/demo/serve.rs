//! The demo as a server: the sample tools over Streamable HTTP, for any MCP client.

use std::net::SocketAddr;
use std::sync::Arc;

use outlast::Tools;
use outlast::engine::Engine;
use outlast::front::{About, Front};
use outlast::transport::http::{HttpOptions, HttpServer, raise_open_file_limit, serve};

use super::narrate::say;
use crate::exit::Failure;

/// Serves until the user stops it; the server still answers then.
pub(super) async fn over_http(
    engine: &Engine,
    tools: Arc<Tools>,
    address: SocketAddr,
) -> Result<HttpServer, Failure> {
    raise_open_file_limit();
    let about = About {
        name: "outlast-demo".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        instructions: None,
    };
    let front = Front::new(engine.clone(), tools, about);
    let options = HttpOptions {
        bind: address,
        ..HttpOptions::default()
    };
    let server = serve(front, options).await?;
    let url = server.url();
    println!("{url}");
    say(format_args!(
        "\nConnect an MCP client. VS Code, in .vscode/mcp.json:\n"
    ));
    say(format_args!(
        "  {{ \"servers\": {{ \"outlast-demo\": {{ \"type\": \"http\", \"url\": \"{url}\" }} }} }}\n"
    ));
    say(format_args!(
        "Or the MCP Inspector (npx @modelcontextprotocol/inspector), transport Streamable HTTP, the same URL.\n"
    ));
    say(format_args!(
        "Then call LongRunningAnalysis as a task, kill this process, start it again, and ask for the result.\n"
    ));
    say(format_args!(
        "Ctrl-C stops it; what runs then has 10 s to finish."
    ));
    tokio::signal::ctrl_c().await?;
    Ok(server)
}
