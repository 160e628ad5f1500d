//! The errors of commands: each has a message, a next step and a documented exit code.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

use outlast::client::{self, CallError, CancelError, HubError, OutcomeError};
use outlast::engine::EngineError;
use outlast::store::OpenError;
use outlast::store::StoreError;
use outlast::transport::link::TransportError;

use crate::connect_error::ConnectError;
use crate::terminal::{self, StyledLine, Tone, clean};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("no task {0} in this store\n  next: `outlast tasks list` lists the tasks")]
    NoTask(String),
    #[error(
        "the server has no task {0}: the id is wrong, the task has expired, or it belongs to another owner\n  \
         next: `outlast tasks list TARGET` lists your tasks"
    )]
    NoTaskAtServer(String),
    #[error("task {0} is {1} and has no result\n  next: `outlast tasks get {0}` shows its state")]
    NoResult(String, String),
    #[error(
        "task {0} is {1}: it has no open input request\n  next: `outlast tasks watch TARGET {0} --interactive` waits for one"
    )]
    NoOpenInputRequest(String, String),
    #[error(
        "task {0} waits for input, but the server did not send the input request\n  next: try again"
    )]
    InputRequestMissing(String),
    #[error(
        "no gateway runs on {0}\n  next: start one with `outlast serve`; `outlast stdio` starts one when its host needs it"
    )]
    NoGateway(String),
    /// The gateway does not do what `outlast tasks` asks for; the text has the next step.
    #[error("{0}")]
    RefusedByGateway(String),
    #[error(
        "task {0} has already ended ({1}), so it cannot be cancelled\n  next: `outlast tasks result` prints its outcome"
    )]
    HasEnded(String, String),
    #[error("there is no store at {}\n  next: check the path after --store", .0.display())]
    NoStore(PathBuf),
    #[error("{}", open_error_text(.0))]
    Open(#[from] OpenError),
    #[error("{0}")]
    Backup(#[from] outlast_store::sqlite::BackupError),
    #[error("{0}\n  next: check the disk and the file, then try again")]
    Store(#[from] StoreError),
    #[error("{0}")]
    Engine(#[from] EngineError),
    #[error(
        "cannot use the data directory {}: {why}\n  next: make it writable, or set XDG_DATA_HOME to another directory",
        path.display()
    )]
    DataDirectory { path: PathBuf, why: std::io::Error },
    #[error(
        "cannot write next to the store, in {}: {why}\n  next: create the folder or make it writable, or name another --store",
        path.display()
    )]
    StoreFolder { path: PathBuf, why: std::io::Error },
    /// The store or its local socket cannot be used; the text has the next step.
    #[error("{0}")]
    StoreFault(String),
    /// A gateway does not start or stop; the text has the next step.
    #[error("{0}")]
    GatewayFault(String),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The text says what is wrong and what to type instead.
    #[error("{0}")]
    Usage(String),
    #[error(
        "{}\n  next: `outlast doctor` with the same target shows what the server can do", clean_text(.0)
    )]
    Refused(#[from] CallError),
    #[error("{0}")]
    ConnectError(Box<ConnectError>),
    #[error("{}{next}", clean_text(.0), next = next_step(.0))]
    Fault(#[from] client::Error),
    #[error("{}", clean_text(.0))]
    NoOutcome(#[from] OutcomeError),
    #[error(
        "the server cannot be reached any more: {}\n  task {} may still exist\n  next: when the server is back, `{}` \
         waits for the result",
        clean(why),
        clean(task),
        clean(next)
    )]
    OutOfReach {
        task: String,
        why: String,
        /// The command that waits for the task.
        next: String,
    },
    #[error("{}", clean_text(.0))]
    NotCancelled(#[from] CancelError),
    /// The error of the tool was printed.
    #[error("the tool returned an error")]
    Tool,
    /// The error of a tool that names input requests was printed, and this client declared that it
    /// accepts none.
    #[error(
        "the tool returned an error\n  next: if it needs your input, call it on a terminal or with --interactive; \
         with --detach its question stays open for `outlast tasks answer`"
    )]
    ToolWithoutInput,
    /// The error of the server was printed.
    #[error(
        "the outcome is unknown: the call may or may not have run\n  next: check its effects, then call the tool again if \
         that is safe"
    )]
    UnknownOutcome,
    #[error("the call was cancelled")]
    Cancelled,
}

impl From<HubError> for Failure {
    fn from(error: HubError) -> Self {
        match error {
            HubError::Call(error) => error.into(),
            HubError::Outcome(error) => error.into(),
            HubError::Request(error) => error.into(),
            HubError::AlreadyFinished(task) => Self::HasEnded(task, "ended".into()),
            error => Self::Io(std::io::Error::other(error)),
        }
    }
}

/// Formats an error that may quote a server as one line, so that a line break in it cannot imitate
/// our output.
fn clean_text(error: &impl ToString) -> String {
    clean(&error.to_string())
}

/// Formats why a store cannot be opened, with the next step on its own line.
fn open_error_text(error: &OpenError) -> String {
    let text = error.to_string();
    match error {
        OpenError::Io { .. } | OpenError::Sqlite { .. } => {
            format!(
                "{text}\n  next: check the path and who may write there, or name another --store"
            )
        }
        OpenError::Incomplete { .. } => text,
        _ => match text.rsplit_once("; ") {
            Some((what, advice)) => format!("{what}\n  next: {advice}"),
            None => text,
        },
    }
}

/// The next step after a connection error.
fn next_step(fault: &client::Error) -> &'static str {
    match fault {
        client::Error::Transport(TransportError::Refused {
            status: 401 | 403, ..
        }) => {
            "\n  next: give a token with --token, with the environment variable OUTLAST_TOKEN, or with `headers` in the \
             configuration file"
        }
        client::Error::Transport(_) => {
            "\n  next: check that the server runs and that the target is right"
        }
        client::Error::Unsupported(_) => {
            "\n  next: `outlast doctor` with the same target shows what the server can do"
        }
        client::Error::TimedOut(_) => "\n  next: check that the target is an MCP server",
        _ => "",
    }
}

/// An exit code of the table in the help text.
#[derive(Clone, Copy)]
pub(crate) struct Code(u8);

pub(crate) const FAILED: Code = Code(1);
pub(crate) const USAGE: Code = Code(2);
const NO_TASK: Code = Code(3);
const NO_RESULT: Code = Code(4);
const STORE: Code = Code(5);
const SERVER: Code = Code(6);
const TOOL: Code = Code(7);
const CANCELLED: Code = Code(8);
const UNKNOWN: Code = Code(9);

impl Failure {
    /// A file next to a store cannot be written.
    pub(crate) fn unwritable_store_folder(file: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = file.parent().unwrap_or(file).to_owned();
        move |why| Self::StoreFolder { path, why }
    }

    /// A shortened id that matches several tasks.
    pub(crate) fn ambiguous(id: &str, tasks: &[impl ToString]) -> Self {
        let tasks: Vec<_> = tasks.iter().map(|task| clean(&task.to_string())).collect();
        Self::Usage(format!(
            "several task ids begin with {id}, such as {}\n  next: type more of the id",
            tasks.join(" and ")
        ))
    }

    /// Prints the failure, with the next step on its own line.
    pub(crate) fn print(&self) {
        let text = self.to_string();
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        terminal::err(
            StyledLine::new()
                .tone(Tone::Failure, "outlast:")
                .text(" ")
                .text(first),
        );
        for line in lines {
            match line.strip_prefix("  next: ") {
                Some(next) => terminal::err(
                    StyledLine::new()
                        .tone(Tone::Active, "  next:")
                        .text(" ")
                        .text(next),
                ),
                None => terminal::err(line),
            }
        }
    }

    pub(crate) fn code(&self) -> Code {
        match self {
            Self::NoTask(_) | Self::NoTaskAtServer(_) => NO_TASK,
            Self::NoResult(..) => NO_RESULT,
            Self::Open(_)
            | Self::NoStore(_)
            | Self::DataDirectory { .. }
            | Self::Backup(_)
            | Self::StoreFolder { .. }
            | Self::StoreFault(_)
            | Self::Store(_)
            | Self::Engine(EngineError::Store(_)) => STORE,
            Self::Engine(_)
            | Self::Io(_)
            | Self::NoOpenInputRequest(..)
            | Self::NoGateway(_)
            | Self::GatewayFault(_)
            | Self::RefusedByGateway(_)
            | Self::HasEnded(..) => FAILED,
            Self::InputRequestMissing(_) | Self::OutOfReach { .. } | Self::ConnectError(_) => {
                SERVER
            }
            Self::Usage(_) => USAGE,
            Self::Refused(CallError::Request(_)) => SERVER,
            Self::Refused(_) => USAGE,
            Self::Fault(_) | Self::NoOutcome(OutcomeError::Request(_)) => SERVER,
            Self::NoOutcome(_) | Self::UnknownOutcome => UNKNOWN,
            Self::NotCancelled(CancelError::Request(_)) => SERVER,
            Self::NotCancelled(_) => FAILED,
            Self::Tool | Self::ToolWithoutInput => TOOL,
            Self::Cancelled => CANCELLED,
        }
    }
}

impl Code {
    /// Whether a gateway in the background ended with this status because of its store.
    pub(crate) fn is_store_fault(status: ExitStatus) -> bool {
        status.code() == Some(i32::from(STORE.0))
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.0)
    }
}
