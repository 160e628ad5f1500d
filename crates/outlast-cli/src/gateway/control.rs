//! The protocol at the start of a connection to the gateway: the first line states the purpose, and
//! the gateway replies with one line.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::socket;

/// The purpose of a connection.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum FirstLine {
    /// MCP with the server that a relay names.
    Server(ServerRequest),
    /// MCP with all tasks and no server.
    Tasks,
    /// Runs the request of an ended task again.
    Rerun {
        id: String,
        /// Also if the tool may have its effect twice.
        yes: bool,
    },
    /// Deletes an ended task.
    Delete { id: String },
    /// Deletes ended tasks that exceed limits.
    Prune {
        /// The words of the statuses; all that are an end if empty.
        statuses: Vec<String>,
        age_ms: Option<u64>,
        count: Option<u64>,
        bytes: Option<u64>,
        /// Only finds the tasks.
        dry_run: bool,
    },
    /// Returns a [`Status`].
    Status,
    /// Stops the gateway. The connection ends with its process.
    Stop {
        /// Keeps running if calls are running.
        unless_busy: bool,
    },
}

/// The server that a relay names. The gateway keeps it in memory only.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ServerRequest {
    pub(crate) command: Vec<String>,
    /// The whole environment of the host.
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) directory: PathBuf,
    /// The `outlast` object, as text.
    pub(crate) settings: Option<String>,
}

/// The gateway's reply to the first line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ControlReply {
    /// MCP follows.
    Ready {
        /// The process id of the gateway.
        gateway: u32,
    },
    /// The gateway refuses the connection, for this reason.
    Refused(String),
    /// The gateway has no such task.
    NoTask,
    /// The id of a new task.
    Created(String),
    /// The task is deleted.
    Deleted,
    /// These tasks exceed the limits.
    Pruned {
        ids: Vec<String>,
        /// Whether there are more.
        more: bool,
    },
    Status(Status),
    /// The gateway is stopping.
    Stopping(Status),
    /// The gateway keeps running because calls are running.
    Busy(Status),
}

/// The status of a running gateway.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    pub(crate) pid: u32,
    pub(crate) version: String,
    pub(crate) kind: GatewayKind,
    pub(crate) store: String,
    /// The HTTP endpoints.
    pub(crate) urls: Vec<String>,
    /// Connections of `outlast stdio`.
    pub(crate) hosts: usize,
    /// The number of running calls.
    pub(crate) calls: usize,
    pub(crate) servers: Vec<String>,
}

/// Which command started a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum GatewayKind {
    /// `outlast serve`.
    Serve,
    /// `outlast stdio`, in the background.
    Background,
}

/// Serialises a value as one line.
pub(crate) fn line(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).expect("strings and numbers are JSON");
    format!("{text}\n")
}

/// Parses a value from one line.
pub(crate) fn read<T: DeserializeOwned>(line: &str) -> io::Result<T> {
    serde_json::from_str(line).map_err(|error| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("invalid line from another version of outlast: {error}"),
        )
    })
}

/// Opens a connection to the gateway at `path` and returns its reply. Must be called in a runtime.
pub(super) fn open(path: &Path, first: &FirstLine) -> io::Result<(UnixStream, ControlReply)> {
    let mut stream = socket::connect_now(path)?;
    stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
    stream.write_all(line(first).as_bytes())?;
    let mut reply = Vec::new();
    // Read byte by byte: the bytes after the line belong to MCP.
    let mut byte = [0];
    loop {
        stream.read_exact(&mut byte)?;
        match byte {
            [b'\n'] => break,
            [byte] => reply.push(byte),
        }
    }
    stream.set_read_timeout(None)?;
    let reply = read(&String::from_utf8_lossy(&reply))?;
    Ok((stream, reply))
}

/// Returns the status of the gateway at `path`, if one runs.
pub(super) fn status(path: &Path) -> io::Result<Option<Status>> {
    match open(path, &FirstLine::Status) {
        Ok((_, ControlReply::Status(status))) => Ok(Some(status)),
        Ok(_) => Ok(None),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the error means that no gateway listens, or that it has just stopped.
pub(super) fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
    matches!(
        error.kind(),
        NotFound | ConnectionRefused | ConnectionReset | BrokenPipe | UnexpectedEof
    )
}

/// How long the gateway may take to reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
