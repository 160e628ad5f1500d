//! What the other program reports, as JSON.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::engine::Progress;
use outlast_engine::{InputKind, InputRequest, Outcome};
use outlast_wire::Raw;
use serde::Deserialize;

use super::{Completion, CompletionError};
use crate::local_tools::ToolFailure;

/// One report about detached work. Its JSON has one member, the kind of the report.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum Report {
    /// A status text.
    Status(String),
    /// The work progresses.
    #[serde(rename_all = "camelCase")]
    Progress {
        /// The amount that is done. It grows.
        done: f64,
        /// The total amount, if known.
        total: Option<f64>,
        /// The current step; it becomes the status text.
        message: Option<String>,
    },
    /// The work is alive and continues for at most this time without another report of this kind.
    Heartbeat {
        /// The time in seconds.
        seconds: u64,
    },
    /// Asks the caller of the tool.
    Input {
        /// The key of the request, which the work chooses and uses once.
        key: String,
        /// The kind of the request.
        kind: ReportedInputKind,
        /// The params of the request.
        params: Raw,
    },
    /// The input response with this key was used and can be dropped.
    Confirm(String),
    /// Ends the task with this result of the tool.
    Result(Raw),
    /// Ends the task with this reason, which the model can read.
    Failure(String),
}

/// The kinds of input request of a [`Report`].
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ReportedInputKind {
    /// A form for the user (`elicitation/create`).
    ElicitForm,
    /// A URL that the user opens (`elicitation/create`).
    ElicitUrl,
    /// A request to the model (`sampling/createMessage`).
    Sample,
    /// The root folders (`roots/list`).
    Roots,
}

impl Report {
    /// Applies the report to its task.
    pub(crate) async fn apply(self, task: &Completion) -> Result<(), CompletionError> {
        match self {
            Self::Status(text) => task.status(&text).await,
            Self::Progress {
                done,
                total,
                message,
            } => {
                let message = message.map(Arc::from);
                let progress = Progress {
                    done,
                    total,
                    message,
                };
                task.progress(progress).await
            }
            Self::Heartbeat { seconds } => task.heartbeat(Duration::from_secs(seconds)).await,
            Self::Input { key, kind, params } => {
                let request = InputRequest::new(kind.into(), Some(params));
                task.request_input(&key, request).await
            }
            Self::Confirm(key) => task.confirm_input(&key).await,
            Self::Result(result) => task.end(Outcome::of_tool(result)).await,
            Self::Failure(why) => task.end(ToolFailure::from(why).into_outcome()).await,
        }
    }
}

impl From<ReportedInputKind> for InputKind {
    fn from(kind: ReportedInputKind) -> Self {
        match kind {
            ReportedInputKind::ElicitForm => Self::ElicitForm,
            ReportedInputKind::ElicitUrl => Self::ElicitUrl,
            ReportedInputKind::Sample => Self::Sample,
            ReportedInputKind::Roots => Self::Roots,
        }
    }
}
