//! `outlast serve`: durable tasks in front of any MCP server, over HTTP.

mod access;
mod console;
mod limits;
mod metrics;
mod metrics_page;
mod nodes;
mod operation;
mod server_name;
mod settings;
mod snippet;
mod store_opening;
mod token;
mod token_file;
mod upstreams;

pub(crate) use console::{console, secret as console_secret};
pub(crate) use server_name::server_name;
pub(crate) use settings::read as read_settings;
pub(crate) use token::stored as stored_token;
pub(crate) use token_file::TokenFile;
#[cfg(test)]
pub(crate) use {
    access::KEYS as PRINCIPAL_KEYS,
    limits::{KEYS as LIMIT_KEYS, read as read_limits},
    operation::{AUDIT_KEYS, RETENTION_KEYS, WEBHOOK_KEYS},
    settings::{SERVER_KEYS, TOOL_KEYS},
};

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use outlast::Outlast;
use outlast::gateway::{Gateway, RunningGateway};
use outlast::store::StoreUrl;
use outlast::transport::http::{Fallback, HttpOptions, raise_open_file_limit};
use tokio::net::UnixListener;
use tracing::level_filters::LevelFilter;

use crate::args::Serve;
use crate::dirs;
use crate::exit::Failure;
use crate::gateway::{self, GatewayInfo, GatewayKind, LocalServer, socket};
use crate::interrupts::{STOPPING_MESSAGE, StopSignals};
use crate::logs;
use crate::terminal::{self, clean, say, show};
use metrics_page::MetricsPage;
use store_opening::StoreOpening;

pub(crate) async fn run(args: Serve) -> Result<(), Failure> {
    let (upstreams, limits) = upstreams::all(&args)?;
    let audit = limits
        .audit
        .as_ref()
        .map(|audit| audit.open())
        .transpose()?;
    logs::to_stderr_and_audit(&args.logs, LevelFilter::INFO, audit)?;
    raise_open_file_limit();
    let mut signals = StopSignals::listen()?;
    // Installed before the engine opens, because the engine counts from then on.
    let collected = metrics::collect().map_err(std::io::Error::other)?;
    let url = match &args.store {
        Some(url) => url.clone(),
        None => dirs::gateway_store()?,
    };
    let starting = match &url {
        StoreUrl::Sqlite(_) => tokio::select! {
            starting = gateway::take_over(&url) => starting?,
            () = signals.next() => return Ok(()),
        },
        // Any number of gateways may use a database.
        StoreUrl::Memory | StoreUrl::Postgres(_) => None,
    };
    // The listener responds "starting" while the store opens.
    let opening = StoreOpening::start(url.clone());
    let outlast = Outlast::builder()
        .store(opening.store.clone())
        .policy(limits.policy)
        .children(dirs::child_registry(&url))
        .late_upstreams(gateway::LATE_SERVER_TIMEOUT)
        .webhooks(limits.webhooks)
        .public_url(limits.public_url)
        .retention(limits.retention)
        .build();
    let gateway = outlast.gateway(upstreams).await?;
    let tokens = if args.no_token {
        token::Tokens::default()
    } else {
        token::Tokens::find(&url, args.tokens.as_deref())?
    };
    let metrics = MetricsPage::of(&gateway, collected);
    let secret = console_secret(&url)?;
    let own_endpoints = Arc::new(OnceLock::new());
    let known = own_endpoints.clone();
    let console = console(gateway.engine(), &url, secret, tokens.authenticate.clone())
        .upstreams(gateway.upstreams().clone())
        .own_endpoints(move || known.get().cloned().unwrap_or_default())
        .build();
    let of_browser = console.clone();
    let page = Fallback::new(console.clone().into_service())
        .with_home(move |headers| of_browser.browser(headers));
    let http = limits
        .http
        .with_fallback(Some(page))
        .with_nodes(nodes::listener(&url, args.advertise.as_ref())?);
    let running = listen(gateway, metrics, &args, &tokens, http).await;
    let running = match running {
        Ok(running) => running,
        Err(error) => return Err(opening.failure().unwrap_or(error)),
    };
    let endpoints = running.endpoints();
    let named = endpoints.iter().map(|served| {
        let name = served.upstream.name().to_string();
        (name, running.url(served))
    });
    // The console has no page that needs them before.
    let _ = own_endpoints.set(named.collect());
    let urls: Vec<_> = endpoints.iter().map(|served| running.url(served)).collect();
    let local = Local::open(&running, &url, urls.clone());
    drop(starting);
    for url in urls {
        show!("{url}");
    }
    terminal::warn_of_other_machines(args.http.ip());
    say!("console: {}", running.url_of(&console.sign_in_path()));
    say!("tasks are kept in {}", dirs::store_argument(&url));
    let snippet = snippet::snippet_text(&running, &tokens, &url);
    snippet.lines().for_each(terminal::err);
    if !args.no_probe {
        probe(&running);
    }
    tokio::select! {
        () = signals.next() => {}
        () = local.serve() => {}
    }
    terminal::say!("{STOPPING_MESSAGE}");
    local.stop_listening();
    console.close().await;
    signals
        .during(running.shutdown_after(local.server.close()))
        .await?;
    Ok(())
}

/// The local socket of this gateway.
struct Local {
    server: Arc<LocalServer>,
    /// `None` if the store has no file, or if the socket cannot be opened.
    listener: Option<(UnixListener, PathBuf)>,
}

impl Local {
    /// Opens the socket next to the store. Without it, HTTP clients are served all the same.
    fn open(running: &RunningGateway, store: &StoreUrl, urls: Vec<String>) -> Self {
        let about = GatewayInfo {
            kind: GatewayKind::Serve,
            store: dirs::store_argument(store),
            urls,
        };
        let listener = match store {
            StoreUrl::Memory | StoreUrl::Postgres(_) => None,
            StoreUrl::Sqlite(_) => match socket::listen_next_to(store) {
                Ok(listener) => Some(listener),
                Err(why) => {
                    terminal::say!("outlast: {why}");
                    None
                }
            },
        };
        Self {
            server: LocalServer::new(running.gateway(), about),
            listener,
        }
    }

    /// Serves the socket until a connection requests a stop.
    async fn serve(&self) {
        let accept = async {
            match &self.listener {
                Some((listener, _)) => self.server.accept(listener).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = accept => {}
            () = self.server.stop_requested() => {}
        }
    }

    /// Removes the socket, before the store is free for the next gateway.
    fn stop_listening(&self) {
        if let Some((_, path)) = &self.listener {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Connects to all servers at the same time and reports those that cannot be reached.
fn probe(running: &RunningGateway) {
    for served in running.endpoints() {
        let upstream = served.upstream.clone();
        tokio::spawn(async move {
            if let Err(why) = upstream.probe().await {
                let what = clean(&why.what);
                let next = match why.next {
                    "" => "look at its own log",
                    next => next,
                };
                Failure::GatewayFault(format!("{what}\n  next: {next}")).print();
            }
        });
    }
}

async fn listen(
    gateway: Gateway,
    metrics: Arc<MetricsPage>,
    args: &Serve,
    tokens: &token::Tokens,
    limits: HttpOptions,
) -> Result<RunningGateway, Failure> {
    let options = limits
        .with_bind(args.http)
        .with_authenticate(tokens.authenticate.clone())
        .with_allowed_hosts(args.allow_host.clone())
        .with_allowed_origins(args.allow_origin.clone());
    gateway.http(Some(metrics), options).await.map_err(|error| {
        Failure::Usage(format!(
            "cannot listen on {}: {error}\n  next: choose another address with --http",
            args.http
        ))
    })
}
