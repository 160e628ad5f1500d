//! Connects to the gateway of a store, and starts one in the background if none runs.

use std::io;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use outlast::store::StoreUrl;
use outlast_store::private_file;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::args;
use crate::dirs;
use crate::exit::{Code, Failure};
use crate::gateway::{ControlReply, FirstLine, line, read_line, socket};
use crate::logs;

/// The parameters for connecting to the gateway.
pub(super) struct GatewayConnector {
    pub(super) store: StoreUrl,
    pub(super) logs: args::Logs,
    /// Names the server.
    pub(super) first: FirstLine,
}

/// A connection to a gateway that serves the server of this relay.
pub(super) struct GatewayConnection {
    /// The process id of the gateway.
    pub(super) gateway: u32,
    pub(super) read: BufReader<OwnedReadHalf>,
    pub(super) write: OwnedWriteHalf,
}

impl GatewayConnector {
    /// Connects to the gateway. If a gateway stops between the connection and its reply, tries the
    /// next one.
    pub(super) async fn connect(&self) -> Result<GatewayConnection, Failure> {
        let until = Instant::now() + START_TIMEOUT;
        loop {
            let stream = self.reach(until).await?;
            match self.name_server(stream).await {
                Ok(connection) => return Ok(connection),
                Err(NotServed::Stopped(_)) if Instant::now() < until => {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
                Err(NotServed::Stopped(error)) => return Err(error.into()),
                Err(NotServed::Refused(why)) => return Err(Failure::Usage(why)),
            }
        }
    }

    /// Whether the gateway stopped in order. One that was killed leaves its socket behind.
    pub(super) fn is_stopped(&self) -> Result<bool, Failure> {
        Ok(!socket::path(&self.store)?.exists())
    }

    async fn reach(&self, until: Instant) -> Result<UnixStream, Failure> {
        let path = socket::path(&self.store)?;
        let mut started: Option<Child> = None;
        loop {
            let error = match socket::connect(&path).await {
                Ok(stream) => return Ok(stream),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(Failure::StoreFault(error.to_string()));
                }
                Err(error) => error,
            };
            let exited = match &mut started {
                Some(child) => child.try_wait()?,
                None => None,
            };
            match exited {
                Some(status) if !status.success() => {
                    let why = not_started(&path, None);
                    return Err(if Code::is_store_fault(status) {
                        Failure::StoreFault(why)
                    } else {
                        Failure::GatewayFault(why)
                    });
                }
                // It exited because another gateway serves the store, or because it was idle for
                // its whole idle time.
                Some(_) => started = None,
                None => {}
            }
            if Instant::now() > until {
                return Err(Failure::GatewayFault(not_started(&path, Some(&error))));
            }
            if started.is_none() {
                started = Some(self.start(&path)?);
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    async fn name_server(&self, stream: UnixStream) -> Result<GatewayConnection, NotServed> {
        let (read, mut write) = stream.into_split();
        let mut read = BufReader::new(read);
        let mut reply = String::new();
        write.write_all(line(&self.first).as_bytes()).await?;
        let replied = tokio::time::timeout(REPLY_TIMEOUT, read.read_line(&mut reply)).await;
        if replied.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        match read_line(&reply)? {
            ControlReply::Ready { gateway } => Ok(GatewayConnection {
                gateway,
                read,
                write,
            }),
            ControlReply::Refused(why) => Err(NotServed::Refused(why)),
            _ => Err(NotServed::Refused(
                "the gateway sent an unexpected reply\n  next: stop it with `outlast gateway stop`, it may be of another version".into(),
            )),
        }
    }

    /// Starts a gateway that outlives this process and the host.
    fn start(&self, socket: &Path) -> Result<Child, Failure> {
        // Errors at its start go to the same file.
        let log =
            logs::append(&socket::log(socket)).map_err(Failure::unwritable_store_folder(socket))?;
        let mut command = std::process::Command::new(std::env::current_exe()?);
        command
            .args(["background", "--store", &dirs::store_argument(&self.store)])
            .args(self.logs.words())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        if let Ok(idle) = std::env::var(IDLE_VARIABLE) {
            command.args(["--idle-ms", &idle]);
        }
        Ok(command.spawn()?)
    }
}

/// Why a gateway does not serve this relay.
enum NotServed {
    /// It stopped before it replied.
    Stopped(io::Error),
    Refused(String),
}

impl From<io::Error> for NotServed {
    fn from(error: io::Error) -> Self {
        Self::Stopped(error)
    }
}

fn not_started(socket: &Path, error: Option<&io::Error>) -> String {
    let log = socket::log(socket);
    let why = match error {
        Some(error) => Some(error.to_string()),
        None => last_error(&log),
    };
    format!(
        "the gateway in the background did not start: {}\n  next: if another program has the store, stop it or name \
         another --store; else see {}",
        why.unwrap_or_else(|| "it ended at once".into()),
        log.display()
    )
}

/// The error in the log of a gateway that did not start, without its next step.
fn last_error(log: &Path) -> Option<String> {
    let log = private_file::read_to_string(log).ok()?;
    let is_error = |line: &&str| !line.trim().is_empty() && !line.starts_with("  next: ");
    let last = log.lines().rfind(is_error)?;
    Some(last.trim_start_matches("outlast: ").to_owned())
}

/// How long the gateway may take to start. If it waits for a stopping gateway to release the store,
/// that takes 20 s at most.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the gateway may take to reply to the first line.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// The variable with the idle time of a gateway that is started here, in milliseconds.
const IDLE_VARIABLE: &str = "OUTLAST_BACKGROUND_IDLE_MS";
