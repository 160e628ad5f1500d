//! The servers that are measured, each in a process of its own: prints its address, serves until its
//! standard input ends.

mod limit;
mod ours;
mod rmcp;
mod upstream;

use std::net::SocketAddr;
use std::path::PathBuf;

pub(super) use ours::now;
pub(super) use rmcp::Keeps;
use tokio::io::AsyncReadExt;
pub(crate) use upstream::GATED;

use crate::{Done, WORKERS};

/// What a process serves.
pub(crate) enum Server {
    /// Ours on the memory store, with so many tasks retained.
    Memory(usize),
    /// Ours on a file.
    Sqlite(PathBuf, usize),
    /// rmcp's, with its `TaskManager`.
    Rmcp(Keeps),
    /// The least that an HTTP server can do.
    Limit,
    /// What stands behind gateways, over HTTP.
    Upstream,
    /// The same on standard input and output.
    PipedUpstream,
}

impl Server {
    pub(crate) fn read(args: impl Iterator<Item = String>) -> Done<Self> {
        let args: Vec<String> = args.collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Ok(match args[..] {
            ["memory", retained] => Self::Memory(retained.parse()?),
            ["sqlite", path, retained] => Self::Sqlite(path.into(), retained.parse()?),
            ["rmcp"] => Self::Rmcp(Keeps::Nothing),
            ["rmcp", from] => Self::Rmcp(Keeps::All {
                from: from.parse()?,
            }),
            ["limit"] => Self::Limit,
            ["upstream"] => Self::Upstream,
            ["piped-upstream"] => Self::PipedUpstream,
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
            Self::Rmcp(Keeps::Nothing) => vec!["rmcp".into()],
            Self::Rmcp(Keeps::All { from }) => vec!["rmcp".into(), from.to_string()],
            Self::Limit => vec!["limit".into()],
            Self::Upstream => vec!["upstream".into()],
            Self::PipedUpstream => vec!["piped-upstream".into()],
        }
    }
}

pub(crate) fn run(server: Server) -> Done<()> {
    log()?;
    crate::runtime(WORKERS)?.block_on(async {
        match server {
            Server::Memory(retained) => ours::serve(ours::memory(), retained).await,
            Server::Sqlite(path, retained) => {
                ours::serve(ours::sqlite(&path).await?, retained).await
            }
            Server::Rmcp(keeps) => rmcp::serve(keeps).await,
            Server::Limit => limit::serve().await,
            Server::Upstream => upstream::serve().await,
            Server::PipedUpstream => upstream::pipe(),
        }
    })
}

/// Logs what `outlast serve` logs unless it is told otherwise: what the lines cost is part of what a server costs.
/// Nobody reads them here.
fn log() -> Done<()> {
    let nobody = std::fs::File::options().append(true).open("/dev/null")?;
    let logger = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::INFO)
        .with_ansi(false)
        .event_format(outlast::logs::Line)
        .with_writer(std::sync::Mutex::new(nobody))
        .finish();
    Ok(tracing::subscriber::set_global_default(logger)?)
}

/// Serves `router` as long as somebody holds the other end of standard input.
async fn serve_router(router: axum::Router) -> Done<()> {
    use axum::serve::ListenerExt;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    // As our own server does.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    tokio::spawn(async move { axum::serve(listener, router).await });
    until_released(address).await
}

/// Tells where the server is and waits until nobody holds the other end of standard input.
async fn until_released(address: SocketAddr) -> Done<()> {
    println!("{address}");
    let mut nothing = Vec::new();
    tokio::io::stdin().read_to_end(&mut nothing).await?;
    Ok(())
}
