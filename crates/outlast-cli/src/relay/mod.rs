//! `outlast stdio`: for a host's own configuration file. A relay to the user's background gateway, which is started if it is
//! not there and outlives the host.

mod background;
mod desk;
mod hello;

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use outlast::store::StoreUrl;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use crate::args;
use crate::exit::Failure;
use crate::logs;
use crate::place;
use hello::Hello;

pub(crate) use background::run as background;
pub(crate) use desk::at_gateway;

/// Passes on what the host says, and what is answered, until either is gone.
pub(crate) async fn run(args: args::Stdio) -> Result<(), Failure> {
    let store = match &args.store {
        Some(store) => store.clone(),
        None => place::gateway_store()?,
    };
    logs::check(&args.logs)?;
    let hello = Hello::of(&args)?;
    let mut gateway = reach(&store, &args.logs).await?;
    gateway.write_all(hello.line().as_bytes()).await?;
    let (mut from_gateway, mut to_gateway) = gateway.into_split();
    let mut answers =
        tokio::spawn(
            async move { tokio::io::copy(&mut from_gateway, &mut tokio::io::stdout()).await },
        );
    let asking = async {
        let mut stdin = tokio::io::stdin();
        let _ = tokio::io::copy(&mut stdin, &mut to_gateway).await;
        let _ = to_gateway.shutdown().await;
    };
    tokio::select! {
        // The host has left: the last answers, and no more. What became a task goes on.
        () = asking => {
            let _ = tokio::time::timeout(LAST_WORDS, &mut answers).await;
            Ok(())
        }
        _ = &mut answers => Err(Failure::Usage(
            "the background gateway has closed the connection\n  next: see its log beside the store, then start again".into(),
        )),
    }
}

/// A connection to the gateway of that store, which is started if it is not there.
async fn reach(store: &StoreUrl, logs: &args::Logs) -> Result<UnixStream, Failure> {
    let path = socket(store)?;
    if let Ok(found) = UnixStream::connect(&path).await {
        return Ok(found);
    }
    let mut started = start(store, &path, logs)?;
    let (mut until, mut ended) = (Instant::now() + START, false);
    loop {
        match UnixStream::connect(&path).await {
            Ok(found) => return Ok(found),
            Err(_) if Instant::now() < until => tokio::time::sleep(LOOK).await,
            Err(error) => {
                let log = log(&path);
                let why = last_line(&log).filter(|_| ended);
                return Err(Failure::Usage(format!(
                    "the background gateway did not start: {}\n  next: if another program has the store, as `outlast serve` \
                     does, give one of the two another with --store; else see {}",
                    why.unwrap_or_else(|| error.to_string()),
                    log.display()
                )));
            }
        }
        if !ended && started.try_wait()?.is_some() {
            // Another relay may have been faster, and its gateway may be about to listen.
            ended = true;
            until = until.min(Instant::now() + OTHERS);
        }
    }
}

/// The last words of a gateway that did not start.
fn last_line(log: &Path) -> Option<String> {
    let log = std::fs::read_to_string(log).ok()?;
    let last = log.lines().rfind(|line| !line.trim().is_empty())?;
    Some(last.trim_start_matches("outlast: ").to_owned())
}

/// Starts the gateway so that it outlives us and the host.
fn start(store: &StoreUrl, socket: &Path, logs: &args::Logs) -> Result<Child, Failure> {
    // Why it did not start is told there, too.
    let log = logs::append(&log(socket))?;
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command
        .args(["background", "--store", &place::shown(store)])
        .args(logs.words())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    if let Ok(idle) = std::env::var(IDLE) {
        command.args(["--idle-ms", &idle]);
    }
    Ok(command.spawn()?)
}

/// The socket of the gateway on that store, beside it.
fn socket(store: &StoreUrl) -> Result<PathBuf, Failure> {
    match store {
        StoreUrl::Sqlite(path) => {
            let mut name = std::path::absolute(path)?.into_os_string();
            name.push(".sock");
            Ok(name.into())
        }
        StoreUrl::Memory => Err(Failure::Usage(
            "a background gateway needs a file for its tasks\n  next: name one with --store".into(),
        )),
    }
}

fn log(socket: &Path) -> PathBuf {
    socket.with_extension("log")
}

/// How long the gateway may take to begin, and how often that is looked for.
const START: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(50);

/// How long a gateway that another relay has started may take to begin, once ours has left because of it.
const OTHERS: Duration = Duration::from_secs(3);

/// How long the gateway may take for its last answers when the host has left.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long a gateway that is started here stays when there is nothing to do, in milliseconds.
const IDLE: &str = "OUTLAST_BACKGROUND_IDLE_MS";
