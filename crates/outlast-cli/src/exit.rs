//! How a command fails: in words, with a next step, and with a documented exit code.

use std::process::ExitCode;

use outlast::back::{CallRefused, Fault, NotCancelled, Unsettled};
use outlast::engine::engine::EngineError;
use outlast::engine::{StoreError, TaskId};
use outlast::store::OpenError;
use outlast::transport::link::LinkError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("no task {0} here\n  next: `outlast tasks list` shows the tasks there are")]
    NoTask(TaskId),
    #[error(
        "the server has no task {0}: it never had it, it has expired, or it belongs to somebody else\n  \
         next: `outlast tasks list TARGET` shows yours"
    )]
    NoTaskThere(String),
    #[error(
        "task {0} is {1} and has no result\n  next: `outlast tasks get {0}` shows where it stands"
    )]
    NoResult(TaskId, String),
    #[error(
        "task {0} is {1}: it asks nothing now\n  next: `outlast tasks watch TARGET {0} --interactive` asks you when it does"
    )]
    NothingAsked(String, String),
    #[error(
        "task {0} waits for input, but the server did not send its question\n  next: try again"
    )]
    NothingCame(String),
    #[error("{0}")]
    Open(#[from] OpenError),
    #[error("{0}")]
    Backup(#[from] outlast::store::sqlite::BackupError),
    #[error("{0}\n  next: check the disk and the file, then try again")]
    Store(#[from] StoreError),
    #[error("{0}")]
    Engine(#[from] EngineError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The text says what was wrong and what to type instead.
    #[error("{0}")]
    Usage(String),
    #[error(
        "{0}\n  next: `outlast doctor` with the same target says what the server is and can do"
    )]
    Refused(#[from] CallRefused),
    #[error("{0}{next}", next = after(.0))]
    Fault(#[from] Fault),
    #[error("{0}")]
    Unsettled(#[from] Unsettled),
    #[error("{0}")]
    NotCancelled(#[from] NotCancelled),
    /// The tool said so itself; what it said is on stdout.
    #[error("the tool answered with an error")]
    Tool,
    #[error("the call was cancelled")]
    Cancelled,
}

/// What to do after a fault.
fn after(fault: &Fault) -> &'static str {
    match fault {
        Fault::Link(LinkError::Refused {
            status: 401 | 403, ..
        }) => {
            "\n  next: give its token, by --token, by the environment variable OUTLAST_TOKEN, or by `headers` in the \
             configuration file"
        }
        Fault::Link(_) => "\n  next: check that the server runs and that the target is right",
        Fault::Unsupported(_) => {
            "\n  next: `outlast doctor` with the same target says what the server is and can do"
        }
        Fault::TimedOut(_) => "\n  next: check that the target is an MCP server",
        _ => "",
    }
}

/// A code of the table in the help text.
#[derive(Clone, Copy)]
pub(crate) struct Code(u8);

pub(crate) const FAILED: Code = Code(1);
const USAGE: Code = Code(2);
const NO_TASK: Code = Code(3);
const NO_RESULT: Code = Code(4);
const STORE: Code = Code(5);
const SERVER: Code = Code(6);
const TOOL: Code = Code(7);
const CANCELLED: Code = Code(8);
const UNKNOWN: Code = Code(9);

impl Failure {
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::NoTask(_) | Self::NoTaskThere(_) => NO_TASK,
            Self::NoResult(..) => NO_RESULT,
            Self::Open(_)
            | Self::Backup(_)
            | Self::Store(_)
            | Self::Engine(EngineError::Store(_)) => STORE,
            Self::Engine(_) | Self::Io(_) | Self::NothingAsked(..) => FAILED,
            Self::NothingCame(_) => SERVER,
            Self::Usage(_) => USAGE,
            Self::Refused(CallRefused::Fault(_)) => SERVER,
            Self::Refused(_) => USAGE,
            Self::Fault(_) | Self::Unsettled(Unsettled::Fault(_)) => SERVER,
            Self::Unsettled(_) => UNKNOWN,
            Self::NotCancelled(NotCancelled::Fault(_)) => SERVER,
            Self::NotCancelled(_) => FAILED,
            Self::Tool => TOOL,
            Self::Cancelled => CANCELLED,
        }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.0)
    }
}
