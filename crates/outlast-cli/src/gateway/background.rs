//! The gateway in the background: `outlast stdio` starts it, and it exits after it was idle for a
//! while.

use std::io;
use std::path::Path;
use std::time::Duration;

use outlast::Outlast;
use outlast::gateway::policy;
use outlast::transport::http::raise_open_file_limit;
use tracing::level_filters::LevelFilter;

use super::control::GatewayKind;
use super::local::{GatewayInfo, LocalServer};
use super::start::{StartLock, open_when_free};
use super::{LATE_SERVER_TIMEOUT, socket};
use crate::args;
use crate::dirs;
use crate::exit::Failure;
use crate::interrupts::StopSignals;
use crate::logs::{self, BoundedFile};

pub(crate) async fn run(args: args::Background) -> Result<(), Failure> {
    // The gateway continues when the host's terminal closes. The call fails if this process leads a
    // group already, which is sufficient.
    let _ = rustix::process::setsid();
    let path = socket::path(&args.store)?;
    logs::to_file(
        &args.logs,
        LevelFilter::INFO,
        BoundedFile::open(&socket::log(&path))?,
    )?;
    raise_open_file_limit();
    let mut signals = StopSignals::listen()?;
    let Some(starting) = StartLock::take_unless_served(&path).await? else {
        return Ok(());
    };
    let outlast = Outlast::builder()
        .store(open_when_free(&args.store).await?)
        .policy(policy())
        .children(dirs::child_registry(&args.store))
        .late_upstreams(LATE_SERVER_TIMEOUT)
        .build();
    let mut gateway = outlast.gateway(Vec::new()).await?;
    gateway.started().await?;
    let about = GatewayInfo {
        kind: GatewayKind::Background,
        store: dirs::store_argument(&args.store),
        urls: Vec::new(),
    };
    let local = LocalServer::new(&gateway, about);
    let (listener, path) = socket::listen_next_to(&args.store)?;
    drop(starting);
    tokio::select! {
        () = local.accept(&listener) => {}
        () = local.idle(Duration::from_millis(args.idle_ms)) => {}
        () = socket_removed(&path) => {}
        () = local.stop_requested() => {}
        () = signals.next() => {}
    }
    // Remove the socket before the store is free, so that the socket of the next gateway is not
    // removed.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    drop(listener);
    let stopped = signals.during(gateway.shutdown_after(local.close())).await;
    Ok(stopped?)
}

/// Returns when the socket has been removed, for instance with its folder. No relay can reach this
/// gateway then, and its tasks would keep it running.
async fn socket_removed(path: &Path) {
    while path.exists() {
        tokio::time::sleep(SOCKET_CHECK_INTERVAL).await;
    }
}

const SOCKET_CHECK_INTERVAL: Duration = Duration::from_secs(2);
