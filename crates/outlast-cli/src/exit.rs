//! How a command fails: in words, with a next step, and with a documented exit code.

use std::process::ExitCode;

use outlast::engine::engine::EngineError;
use outlast::engine::{StoreError, TaskId};
use outlast::store::OpenError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("no task {0} here\n  next: `outlast tasks list` shows the tasks there are")]
    NoTask(TaskId),
    #[error(
        "task {0} is {1} and has no result\n  next: `outlast tasks get {0}` shows where it stands"
    )]
    NoResult(TaskId, String),
    #[error("{0}")]
    Open(#[from] OpenError),
    #[error("{0}\n  next: check the disk and the file, then try again")]
    Store(#[from] StoreError),
    #[error("{0}")]
    Engine(#[from] EngineError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// A code of the table in the help text.
#[derive(Clone, Copy)]
pub(crate) struct Code(u8);

pub(crate) const FAILED: Code = Code(1);
const NO_TASK: Code = Code(3);
const NO_RESULT: Code = Code(4);
const STORE: Code = Code(5);

impl Failure {
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::NoTask(_) => NO_TASK,
            Self::NoResult(..) => NO_RESULT,
            Self::Open(_) | Self::Store(_) | Self::Engine(EngineError::Store(_)) => STORE,
            Self::Engine(_) | Self::Io(_) => FAILED,
        }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.0)
    }
}
