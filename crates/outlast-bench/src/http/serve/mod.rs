//! The servers to measure, each in a separate process: it prints its address and runs until its
//! standard input ends.

mod limit;
mod ours;
mod rmcp;
mod upstream;

use std::net::SocketAddr;
use std::path::PathBuf;

use outlast::engine::AUDIT;
use tokio::io::AsyncReadExt;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;

use super::mcp_client::ARGUMENTS;
use crate::{BenchResult, runtime};

pub(crate) use ours::OutlastServer;

/// A server. The number says how many ended tasks it stores before the measurement.
#[derive(Clone, Debug)]
pub(crate) enum Server {
    /// OutlastServer on the memory store.
    Memory(usize),
    /// OutlastServer on a file.
    Sqlite(PathBuf, usize),
    /// rmcp's, with its `TaskManager`, which keeps all tasks in memory.
    Rmcp(usize),
    /// A minimal HTTP server.
    Limit,
    /// The server behind gateways, on standard input and output.
    Upstream,
    /// The server behind gateways at a URL: rmcp's with its default settings.
    HttpUpstream,
}

impl Server {
    pub(crate) fn read(args: impl Iterator<Item = String>) -> BenchResult<Self> {
        let args: Vec<String> = args.collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Ok(match args[..] {
            ["memory", retained] => Self::Memory(retained.parse()?),
            ["sqlite", path, retained] => Self::Sqlite(path.into(), retained.parse()?),
            ["rmcp", retained] => Self::Rmcp(retained.parse()?),
            ["limit"] => Self::Limit,
            ["upstream"] => Self::Upstream,
            ["http-upstream"] => Self::HttpUpstream,
            _ => return Err("no such server".into()),
        })
    }

    pub(crate) fn args(&self) -> Vec<String> {
        match self {
            Self::Memory(retained) => vec!["memory".into(), retained.to_string()],
            Self::Sqlite(path, retained) => {
                let path = path.display().to_string();
                vec!["sqlite".into(), path, retained.to_string()]
            }
            Self::Rmcp(retained) => vec!["rmcp".into(), retained.to_string()],
            Self::Limit => vec!["limit".into()],
            Self::Upstream => vec!["upstream".into()],
            Self::HttpUpstream => vec!["http-upstream".into()],
        }
    }
}

pub(crate) fn run(server: Server) -> BenchResult<()> {
    log()?;
    runtime()?.block_on(async {
        match server {
            Server::Memory(retained) => {
                OutlastServer::open(OutlastServer::memory())
                    .await?
                    .serve(retained)
                    .await
            }
            Server::Sqlite(path, retained) => {
                let ours = OutlastServer::open(OutlastServer::sqlite(&path).await?).await?;
                ours.serve(retained).await
            }
            Server::Rmcp(retained) => rmcp::serve(retained).await,
            Server::Limit => limit::serve().await,
            Server::Upstream => upstream::serve(),
            Server::HttpUpstream => rmcp::serve_default().await,
        }
    })
}

/// Logs like `outlast serve` at its default level: no line per request.
fn log() -> BenchResult<()> {
    let filter = Targets::new()
        .with_target("outlast", LevelFilter::INFO)
        .with_target(AUDIT, LevelFilter::OFF)
        .with_default(LevelFilter::WARN);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let logger = tracing_subscriber::registry().with(filter).with(lines);
    Ok(tracing::subscriber::set_global_default(logger)?)
}

/// Serves `router` until standard input ends.
async fn serve_router(router: axum::Router) -> BenchResult<()> {
    use axum::serve::ListenerExt;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    // Outlast sets this option, too.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    tokio::spawn(async move { axum::serve(listener, router).await });
    until_stdin_ends(address).await
}

/// Prints the address of the server and waits until standard input ends.
async fn until_stdin_ends(address: SocketAddr) -> BenchResult<()> {
    println!("{address}");
    let mut nothing = Vec::new();
    tokio::io::stdin().read_to_end(&mut nothing).await?;
    Ok(())
}

/// The text of every result of every server: about 200 bytes with its wrapping.
const TEXT: &str = concat!(
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901",
    "0123456789012345678901234567890123456789012345678901234567890123456789",
);
