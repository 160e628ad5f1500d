//! `outlast gateway status`, `stop`, `logs` and `token`.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast::store::StoreUrl;
use outlast_store::private_file;

use super::control::{self, ControlReply, FirstLine, GatewayKind, Status};
use super::{socket, start};
use crate::args::{GatewayCommand, GatewayLogs, GatewayStatus};
use crate::dirs;
use crate::exit::Failure;
use crate::serve::stored_token;
use crate::terminal::{say, show};

pub(crate) async fn run(command: GatewayCommand) -> Result<(), Failure> {
    match command {
        GatewayCommand::Status(args) => status(&args),
        GatewayCommand::Stop(at) => stop(&usual(at.store)?).await,
        GatewayCommand::Logs(args) => logs(&args).await,
        GatewayCommand::Token(at) => token(&usual(at.store)?),
    }
}

fn usual(store: Option<StoreUrl>) -> Result<StoreUrl, Failure> {
    store.map_or_else(dirs::gateway_store, Ok)
}

/// Returns the status of the gateway on `store`, if one runs.
fn running(store: &StoreUrl) -> Result<Option<Status>, Failure> {
    Ok(control::status(&socket::path(store)?)?)
}

/// Sends one request to the gateway on `store`.
pub(crate) fn ask(store: &StoreUrl, request: &FirstLine) -> Result<ControlReply, Failure> {
    match control::open(&socket::path(store)?, request) {
        Ok((_, reply)) => Ok(reply),
        Err(error) if control::is_absent(&error) => Err(absent(store)),
        Err(error) => Err(error.into()),
    }
}

fn absent(store: &StoreUrl) -> Failure {
    Failure::NoGateway(dirs::store_argument(store))
}

fn status(args: &GatewayStatus) -> Result<(), Failure> {
    let store = usual(args.at.store.clone())?;
    let status = running(&store)?;
    if args.json {
        show!(
            "{}",
            serde_json::json!({ "running": status.is_some(), "gateway": status })
        );
    }
    let Some(status) = status else {
        return Err(absent(&store));
    };
    if !args.json {
        print(&status);
    }
    Ok(())
}

fn print(status: &Status) {
    let started = match status.kind {
        GatewayKind::Serve => "started by `outlast serve`",
        GatewayKind::Background => "in the background, started by `outlast stdio`",
    };
    show!(
        "process  {} (outlast {}), {started}",
        status.pid,
        status.version
    );
    show!("tasks    {}", status.store);
    for url in &status.urls {
        show!("serves   {url}");
    }
    show!("hosts    {}", status.hosts);
    show!("calls    {}", status.calls);
    for server in &status.servers {
        show!("server   {server}");
    }
}

async fn stop(store: &StoreUrl) -> Result<(), Failure> {
    let path = socket::path(store)?;
    let stop = FirstLine::Stop { unless_busy: false };
    match control::open(&path, &stop) {
        Ok((stream, ControlReply::Stopping(status))) => {
            if status.calls > 0 {
                say!(
                    "process {} is stopping: {} running calls have 10 s",
                    status.pid,
                    status.calls
                );
            }
            start::wait_until_ended(stream, &status).await?;
            show!("stopped process {}", status.pid);
            Ok(())
        }
        Ok(_) => Err(absent(store)),
        Err(error) if control::is_absent(&error) => Err(absent(store)),
        Err(error) => Err(error.into()),
    }
}

fn token(store: &StoreUrl) -> Result<(), Failure> {
    match stored_token(store)? {
        Some(token) => {
            show!("{token}");
            Ok(())
        }
        None => Err(Failure::Usage(format!(
            "{} has no token yet\n  next: `outlast serve` creates one at its first start",
            dirs::store_argument(store)
        ))),
    }
}

/// Prints the end of the log of the gateway in the background.
async fn logs(args: &GatewayLogs) -> Result<(), Failure> {
    let store = usual(args.at.store.clone())?;
    if let Some(status) = running(&store)?.filter(|status| status.kind == GatewayKind::Serve) {
        say!(
            "process {} was started by `outlast serve` and logs to its standard error; this is the log of the gateway in the background",
            status.pid
        );
    }
    let path = socket::log(&socket::path(&store)?);
    let mut file = open(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::Usage(format!(
            "cannot read {}: {error}\n  next: `outlast stdio` starts a gateway that writes it",
            path.display()
        )),
        _ => unreadable(&error),
    })?;
    let mut text = older(&path)?;
    file.read_to_end(&mut text)?;
    std::io::stdout().write_all(last_lines(&text, args.lines))?;
    if !args.follow {
        return Ok(());
    }
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        // A full log starts again at length 0.
        if file.metadata()?.len() < file.stream_position()? {
            file.rewind()?;
        }
        let mut more = Vec::new();
        file.read_to_end(&mut more)?;
        std::io::stdout().write_all(&more)?;
    }
}

/// The part of the log that was moved to the older file.
fn older(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    let mut text = Vec::new();
    match open(&PathBuf::from(name)) {
        Ok(mut file) => file.read_to_end(&mut text)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
        Err(error) => return Err(unreadable(&error)),
    };
    Ok(text)
}

/// Opens a log for reading. A symbolic link is not followed.
fn open(path: &Path) -> std::io::Result<File> {
    private_file::open(path, |options| {
        options.read(true);
    })
}

fn unreadable(error: &std::io::Error) -> Failure {
    Failure::Usage(format!(
        "cannot read the log of the gateway: {error}\n  next: check the folder of the store"
    ))
}

fn last_lines(text: &[u8], count: usize) -> &[u8] {
    let ends = text.iter().enumerate().rev();
    let mut ends = ends.filter(|(at, byte)| **byte == b'\n' && at + 1 < text.len());
    match count.checked_sub(1).and_then(|before| ends.nth(before)) {
        Some((at, _)) => &text[at + 1..],
        None if count == 0 => &[],
        None => text,
    }
}

/// How often the log is read.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::last_lines;

    #[test]
    fn the_last_lines_of_a_log() {
        let text = b"one\ntwo\nthree\n";
        assert_eq!(last_lines(text, 1), b"three\n");
        assert_eq!(last_lines(text, 2), b"two\nthree\n");
        assert_eq!(last_lines(text, 9), text);
        assert_eq!(last_lines(text, 0), b"");
    }
}
