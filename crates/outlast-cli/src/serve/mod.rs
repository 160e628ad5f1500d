//! `outlast serve`: durable tasks in front of any MCP server, over HTTP.

mod called;
mod limits;
mod metrics;
mod nearest;
mod opening;
mod pages;
mod settings;
mod snippet;
mod token;
mod upstreams;

pub(crate) use called::called;
pub(crate) use settings::read as read_settings;

use std::sync::Arc;

use outlast::Outlast;
use outlast::gateway::{Gateway, RunningGateway};
use outlast::transport::http::{HttpOptions, raise_open_file_limit};
use tokio::signal::unix::{SignalKind, signal};
use tracing::level_filters::LevelFilter;

use crate::args::Serve;
use crate::exit::Failure;
use crate::logs;
use crate::place;
use opening::Opening;
use pages::Metrics;

pub(crate) async fn run(args: Serve) -> Result<(), Failure> {
    logs::to_stderr(&args.logs, LevelFilter::INFO)?;
    raise_open_file_limit();
    let (upstreams, limits) = upstreams::all(&args)?;
    // Before the engine is opened, which counts from then on.
    let collected = metrics::collect().map_err(std::io::Error::other)?;
    let url = match &args.store {
        Some(url) => url.clone(),
        None => place::gateway_store()?,
    };
    // The listener answers "starting" while the store opens.
    let opening = Opening::start(url.clone());
    let outlast = Outlast::builder()
        .store(opening.store.clone())
        .policy(limits.policy)
        .children(place::children(&url))
        .build();
    let gateway = outlast.gateway(upstreams).await?;
    let tokens = match args.no_token {
        true => token::Tokens::default(),
        false => token::Tokens::find(&url, args.tokens.as_deref())?,
    };
    let metrics = Metrics::of(&gateway, collected);
    let running = listen(gateway, metrics, &args, &tokens, limits.http).await;
    let running = match running {
        Ok(running) => running,
        Err(error) => return Err(opening.failure().unwrap_or(error)),
    };
    for served in running.served() {
        println!("{}", running.url(served));
    }
    eprintln!("tasks are kept in {}", place::shown(&url));
    eprint!("{}", snippet::all(&running, tokens.local.as_deref()));
    if !args.no_probe {
        probe(&running);
    }
    until_stopped().await?;
    eprintln!("stopping: what runs has 10 s to finish, the rest is settled at the next start");
    running.shutdown().await?;
    Ok(())
}

/// Finds out which servers cannot be reached, and says so before anybody needs them. None waits for another.
fn probe(running: &RunningGateway) {
    for served in running.served() {
        let upstream = served.upstream.clone();
        tokio::spawn(async move {
            if let Err(why) = upstream.probe().await {
                eprintln!("outlast: {why}");
            }
        });
    }
}

async fn listen(
    gateway: Gateway,
    metrics: Arc<Metrics>,
    args: &Serve,
    tokens: &token::Tokens,
    limits: HttpOptions,
) -> Result<RunningGateway, Failure> {
    let options = HttpOptions {
        bind: args.http,
        tokens: tokens.all.clone(),
        allowed_hosts: args.allow_host.clone(),
        allowed_origins: args.allow_origin.clone(),
        ..limits
    };
    gateway.http(Some(metrics), options).await.map_err(|error| {
        Failure::Usage(format!(
            "cannot listen on {}: {error}\n  next: choose another address with --http",
            args.http
        ))
    })
}

/// Resolves when somebody wants the process to stop.
async fn until_stopped() -> Result<(), Failure> {
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminated.recv() => {}
    }
    Ok(())
}
