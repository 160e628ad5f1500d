//! A server that runs as a child process in its own process group. It is ended with everything that
//! it started (V1-INIT-10).
//!
//! To end it, its input is closed, then the group gets SIGTERM, then SIGKILL. Lines of its standard
//! error are logged and are not errors (V1-STDIO-4); so are lines of its standard output that are
//! not messages.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use outlast_wire::envelope::Limits;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::mpsc;

use super::child_registry::{ChildRecord, ChildRegistry};
use super::lines;
use super::link::{Incoming, Link, QUEUE_MESSAGES, TransportError};

/// A command that starts a server.
#[derive(Clone)]
#[non_exhaustive]
pub struct ChildOptions {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Additional environment variables.
    pub env: Vec<(OsString, OsString)>,
    /// Whether it inherits the environment of this process.
    pub inherit_env: bool,
    /// Its working directory, if it differs from ours.
    pub directory: Option<PathBuf>,
    /// Called with each line that the server writes to its standard error, and with each line of
    /// its standard output that is not a message.
    pub on_output: Option<OnLine>,
    /// The grace period after its input is closed, and again after SIGTERM.
    pub grace_period: Duration,
    /// The maximum size of a message from the server.
    pub max_message_bytes: usize,
    /// Records the process, so that the next run of this process can end it if this one is killed.
    pub registry: Option<ChildRegistry>,
}

outlast_engine::option_setters! { ChildOptions:
    set with_env(env: Vec<(OsString, OsString)>);
    set with_inherit_env(inherit_env: bool);
    maybe with_directory(directory: PathBuf);
    some with_on_output(on_output: OnLine);
    set with_grace_period(grace_period: Duration);
    set with_max_message_bytes(max_message_bytes: usize);
    maybe with_registry(registry: ChildRegistry);
}

/// Called with one line of text.
pub type OnLine = Arc<dyn Fn(&str) + Send + Sync>;

impl ChildOptions {
    /// Starts `program` without arguments.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            inherit_env: true,
            directory: None,
            on_output: None,
            grace_period: Duration::from_secs(2),
            max_message_bytes: Limits::default().bytes,
            registry: None,
        }
    }

    /// Sets the arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args = args.into_iter().map(Into::into).collect();
        self
    }
}

impl std::fmt::Debug for ChildOptions {
    /// Omits the environment, which can contain secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChildOptions")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// Starts a server and connects to it.
pub fn spawn(options: &ChildOptions) -> Result<Link, TransportError> {
    let mut command = Command::new(&options.program);
    if !options.inherit_env {
        command.env_clear();
    }
    command
        .args(&options.args)
        .envs(options.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(directory) = &options.directory {
        command.current_dir(directory);
    }
    let failed = |error: &dyn std::fmt::Display| {
        let program = options.program.display();
        TransportError::Unreachable(format!("{program} did not start: {error}"))
    };
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(failed(&"it has no pipes"));
    };
    let group = ProcessGroup::of(&child);
    let record = group.record(options.registry.as_ref());
    let output = Output {
        tail: Arc::default(),
        on_line: options.on_output.clone(),
    };
    let stderr_task = tokio::spawn(forward_stderr(stderr, output.clone()));
    let (outgoing, mut outgoing_receiver) = mpsc::channel(QUEUE_MESSAGES);
    let (incoming_sender, incoming) = mpsc::channel(QUEUE_MESSAGES);
    let (grace_period, limit) = (options.grace_period, options.max_message_bytes);
    tokio::spawn(async move {
        let closed = {
            let stray = |line: &[u8]| {
                if !may_be_message(line) {
                    output.push(line);
                }
            };
            let reading = lines::read(BufReader::new(stdout), &incoming_sender, limit, stray);
            let mut reading = std::pin::pin!(reading);
            let writing = async {
                let mut stdin = stdin;
                let written = lines::write(&mut outgoing_receiver, &mut stdin).await;
                let _ = stdin.shutdown().await;
                written
            };
            tokio::select! {
                read = &mut reading => match read {
                    Err(error @ TransportError::TooLarge { .. }) => Some(error),
                    // The exit status says more.
                    Ok(()) | Err(_) => None,
                },
                written = writing => match written {
                    Ok(()) => {
                        // Read the last messages while the server exits.
                        let _ = tokio::time::timeout(grace_period, &mut reading).await;
                        Some(TransportError::Closed)
                    }
                    // It closed its input. Its last messages may still be in the pipe.
                    Err(_) => {
                        let _ = tokio::time::timeout(LAST_OUTPUT_TIMEOUT, &mut reading).await;
                        None
                    }
                },
            }
        };
        let status = end(&mut child, &group, grace_period).await;
        // Clean up before `Closed` is sent: no process is left, and all output is read.
        drop(group);
        drop(record);
        let _ = tokio::time::timeout(LAST_OUTPUT_TIMEOUT, stderr_task).await;
        let error = closed.unwrap_or_else(|| TransportError::Ended {
            status,
            printed: output.tail.lock().text(),
        });
        let _ = incoming_sender.send(Incoming::Closed(error)).await;
    });
    Ok(Link::new(outgoing, incoming))
}

/// Waits until the child exits; after the grace period it gets signals.
async fn end(child: &mut Child, group: &ProcessGroup, grace_period: Duration) -> String {
    let waited = |status: std::io::Result<ExitStatus>| match status {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    if let Ok(status) = tokio::time::timeout(grace_period, child.wait()).await {
        return waited(status);
    }
    group.signal(Signal::TERM);
    if let Ok(status) = tokio::time::timeout(grace_period, child.wait()).await {
        return waited(status);
    }
    group.signal(Signal::KILL);
    waited(child.wait().await)
}

/// The process group of a child. Dropping it kills all remaining processes of the group.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    /// Records the group. If that fails, the server runs without a record.
    fn record(&self, registry: Option<&ChildRegistry>) -> Option<ChildRecord> {
        let record = registry?.record(self.0?);
        record
            .inspect_err(|error| tracing::warn!(%error, "could not record a child process"))
            .ok()
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // An error means that the group has no processes left.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// The output of a server that is not a message.
#[derive(Clone)]
struct Output {
    tail: Arc<Mutex<Tail>>,
    on_line: Option<OnLine>,
}

impl Output {
    fn push(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line.trim_ascii_end());
        self.tail.lock().push(&text);
        if let Some(on_line) = &self.on_line {
            on_line(&text);
        }
    }
}

/// Whether a line of the standard output may be a message. Other lines are text, such as a banner
/// or a JSON log. Long lines are not searched.
fn may_be_message(line: &[u8]) -> bool {
    matches!(line.trim_ascii_start().first(), Some(b'{' | b'['))
        && (line.len() as u64 > MAX_LINE_BYTES
            || line
                .windows(JSONRPC_MEMBER.len())
                .any(|part| part == JSONRPC_MEMBER.as_bytes()))
}

/// Forwards the standard error of a server.
async fn forward_stderr(stderr: ChildStderr, output: Output) {
    let mut input = BufReader::new(stderr);
    loop {
        let mut line = Vec::new();
        // A long line is forwarded in parts.
        let read = (&mut input)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)
            .await;
        if !matches!(read, Ok(1..)) {
            return;
        }
        output.push(&line);
    }
}

/// The last lines of an output.
#[derive(Default)]
struct Tail {
    lines: VecDeque<String>,
    bytes: usize,
}

impl Tail {
    fn push(&mut self, line: &str) {
        self.bytes += line.len();
        self.lines.push_back(line.to_owned());
        while self.lines.len() > TAIL_LINES || self.bytes > TAIL_BYTES && self.lines.len() > 1 {
            let Some(dropped) = self.lines.pop_front() else {
                return;
            };
            self.bytes -= dropped.len();
        }
    }

    fn text(&self) -> String {
        let lines: Vec<_> = self.lines.iter().map(String::as_str).collect();
        lines.join("\n")
    }
}

/// How long to read the other pipe after a server has closed one.
pub(crate) const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// How many bytes of a line are forwarded at once.
const MAX_LINE_BYTES: u64 = 16 << 10;

/// The member that every message has.
const JSONRPC_MEMBER: &str = "\"jsonrpc\"";

/// How much of the output is part of the error when the server ends.
const TAIL_LINES: usize = 20;
const TAIL_BYTES: usize = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_retained_output_is_bounded() {
        let mut tail = Tail::default();
        for line in 0..100 {
            tail.push(&format!("{line}{}", "x".repeat(1_000)));
        }
        assert!(tail.text().len() <= TAIL_BYTES + TAIL_LINES);
        assert!(tail.text().contains("99x"));
        tail.push(&"y".repeat(100_000));
        assert_eq!(tail.lines.len(), 1);
    }
}
