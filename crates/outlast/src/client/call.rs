//! A tool call before it is made: what is called, and whether it shall be a task.

use std::fmt::Debug;
use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use outlast_engine::Outcome;
use outlast_wire::Raw;
use outlast_wire::v1::TaskSupport;
use outlast_wire::v2::InputRequired;

use super::client::Core;
use super::driver::Driver;
use super::error::Error;
use super::execution::{CallController, Execution, ExecutionStatus, OutcomeError};
use super::server_description::Generation;
use super::tool_cache::Freshness;

/// Whether a call shall be a task. In V2 the server decides for each call, and we only say whether it may (V2-CAP-5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskPreference {
    /// Only if the tool cannot be called otherwise. In V2: it may.
    Allow,
    /// If the server and the tool can. In V2: it may.
    #[default]
    Prefer,
    /// Or not at all. In V2: it may, and a server that makes no tasks is not called; a call that is answered at once
    /// needs none.
    Require,
    /// No.
    Forbid,
}

/// A tool call to be made: set it up, then `.await` it for its [`Execution`].
#[must_use = "a call is made when it is awaited"]
pub struct Call {
    core: Arc<Core>,
    pub(crate) spec: CallSpec,
}

/// What is called.
#[derive(Clone, Debug)]
pub(crate) struct CallSpec {
    pub(crate) tool: Arc<str>,
    pub(crate) arguments: Option<Raw>,
    pub(crate) preference: TaskPreference,
    pub(crate) ttl: Option<u64>,
    /// What else the params hold.
    pub(crate) params: Option<Raw>,
    /// Which of that is not sent.
    pub(crate) omit: OmittedParams,
    /// What else `_meta` holds.
    pub(crate) meta: Option<(&'static str, Raw)>,
    /// What the caller calls it.
    pub(crate) name: Option<Arc<str>>,
    /// Hears of rounds of questions.
    pub(crate) recorder: Option<Arc<dyn RoundRecorder>>,
    /// The round in which an earlier life of this program left it.
    pub(crate) pending: Option<InputRequired>,
}

/// A call that can be made.
pub(crate) struct CheckedCall {
    pub(crate) core: Arc<Core>,
    pub(crate) spec: CallSpec,
    pub(crate) form: CallForm,
}

/// Members of params, and keys of their `_meta`, that are not sent: those that belong to another hop.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OmittedParams {
    pub(crate) members: &'static [&'static str],
    pub(crate) meta: &'static [&'static str],
}

/// Hears of the rounds in which a server asks before it begins (V2-MRTR): in each, nothing is under way at the server until
/// its answers are sent.
#[async_trait]
pub(crate) trait RoundRecorder: Send + Sync + Debug {
    /// The server waits for these answers.
    async fn asked(&self, round: &InputRequired);

    /// The answers are about to be sent. If this fails, they are not.
    async fn answered(&self) -> Result<(), Error>;
}

/// Why a call was not made. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server takes no tasks (S4-45).
    #[error("server {0} does not support task-augmented tool calls")]
    ServerWithoutTasks(Arc<str>),
    /// The tool takes none (S4-46).
    #[error("tool {0} does not support task execution")]
    ToolWithoutTasks(Arc<str>),
    /// The tool takes nothing else.
    #[error("tool {0} runs only as a task; allow that")]
    TaskRequired(Arc<str>),
    /// The server has no such tool.
    #[error("server {server} has no tool {tool}")]
    UnknownTool {
        /// The server.
        server: Arc<str>,
        /// The tool.
        tool: Arc<str>,
    },
    /// The server could not be asked what the tool takes.
    #[error(transparent)]
    Request(#[from] Error),
}

/// How a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallForm {
    Plain,
    /// As a task (V1), or so that it may become one (V2).
    Task,
}

impl Call {
    pub(crate) fn new(core: Arc<Core>, tool: Arc<str>, arguments: Option<Raw>) -> Self {
        let spec = CallSpec {
            tool,
            arguments,
            preference: TaskPreference::default(),
            ttl: None,
            params: None,
            omit: OmittedParams::default(),
            meta: None,
            name: None,
            recorder: None,
            pending: None,
        };
        Self { core, spec }
    }

    /// Says whether it shall be a task. [`TaskPreference::Prefer`] if nothing is said.
    pub fn task(mut self, preference: TaskPreference) -> Self {
        self.spec.preference = preference;
        self
    }

    /// Asks the server to keep the task for so many milliseconds from its creation. A V2 server decides that itself.
    pub fn ttl(mut self, millis: u64) -> Self {
        self.spec.ttl = Some(millis);
        self
    }

    /// Sends these params, an object, with whatever they hold besides the tool and its arguments.
    pub fn params(mut self, params: Raw) -> Self {
        self.spec.params = Some(params);
        self
    }

    /// Sends the params without these.
    pub(crate) fn omit(mut self, omit: OmittedParams) -> Self {
        self.spec.omit = omit;
        self
    }

    /// Sends the params with this key of `_meta`.
    pub(crate) fn meta(mut self, key: &'static str, value: Raw) -> Self {
        self.spec.meta = Some((key, value));
        self
    }

    /// Gives the call a name: questions of the server that belong to it carry it
    /// ([`ServerInputRequest::call`](super::ServerInputRequest::call)).
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.spec.name = Some(name.into());
        self
    }

    /// Tells `keeper` of rounds of questions.
    pub(crate) fn recording_rounds(mut self, recorder: Arc<dyn RoundRecorder>) -> Self {
        self.spec.recorder = Some(recorder);
        self
    }

    /// Goes on in a round in which an earlier life of this program was left.
    pub(crate) fn resuming_round(mut self, round: InputRequired) -> Self {
        self.spec.pending = Some(round);
        self
    }

    /// Checks the call and starts it. It runs in the background as long as the [`Execution`] lives.
    async fn start(self) -> Result<Execution, CallError> {
        Ok(Execution::begin(self.check().await?))
    }

    /// Checks the call. Nothing is sent yet, except for a list of tools that the check needs.
    pub(crate) async fn check(self) -> Result<CheckedCall, CallError> {
        let form = self.form().await?;
        Ok(CheckedCall {
            core: self.core,
            spec: self.spec,
            form,
        })
    }

    async fn form(&self) -> Result<CallForm, CallError> {
        let core = &self.core;
        let conversation = core.conversation().await?;
        let support = match conversation.server.generation {
            Generation::V1(tasks) if tasks.tools_call => {
                let tools = core.tools(&conversation, Freshness::AsServerAllows).await?;
                let found = tools.iter().find(|tool| tool.name == self.spec.tool);
                found.map(|tool| tool.task_support)
            }
            // V1-TOOL-1: whatever the tool says. No list is needed, nor where the server decides.
            Generation::V1(_) | Generation::V2 | Generation::None => None,
        };
        plan(
            self.spec.preference,
            conversation.server.generation,
            support,
            &core.inbound.server,
            &self.spec.tool,
        )
    }
}

impl CheckedCall {
    /// Makes the call and drives it to its end, without a spawned task: polling this future drives it. Dropping it
    /// is as dropping an [`Execution`]. A result is as the server sent it.
    pub(crate) async fn drive<O: CallController>(
        self,
        controller: &mut O,
    ) -> Result<Outcome, OutcomeError> {
        let status = ExecutionStatus::new(self.core.inbound.server.clone(), self.spec.tool.clone());
        Driver::new(status, controller).call(self).await
    }
}

impl IntoFuture for Call {
    type Output = Result<Execution, CallError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.start())
    }
}

/// The form of a call to a tool with this support; `None` if the server's list does not have it.
fn plan(
    preference: TaskPreference,
    generation: Generation,
    support: Option<TaskSupport>,
    server: &Arc<str>,
    tool: &Arc<str>,
) -> Result<CallForm, CallError> {
    let takes_tasks = generation.supports_tool_tasks();
    if generation == Generation::V2 {
        return Ok(match preference {
            TaskPreference::Forbid => CallForm::Plain,
            TaskPreference::Allow | TaskPreference::Prefer | TaskPreference::Require => {
                CallForm::Task
            }
        });
    }
    match (preference, support.unwrap_or(TaskSupport::Forbidden)) {
        (TaskPreference::Require, _) if !takes_tasks => {
            Err(CallError::ServerWithoutTasks(server.clone()))
        }
        (TaskPreference::Require, _) if support.is_none() => Err(CallError::UnknownTool {
            server: server.clone(),
            tool: tool.clone(),
        }),
        // V1-TOOL-2.
        (TaskPreference::Require, TaskSupport::Forbidden) => {
            Err(CallError::ToolWithoutTasks(tool.clone()))
        }
        (TaskPreference::Require, _) => Ok(CallForm::Task),
        // V1-TOOL-5.
        (TaskPreference::Forbid, TaskSupport::Required) => {
            Err(CallError::TaskRequired(tool.clone()))
        }
        (TaskPreference::Allow | TaskPreference::Prefer, TaskSupport::Required)
        | (TaskPreference::Prefer, TaskSupport::Optional) => Ok(CallForm::Task),
        _ => Ok(CallForm::Plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_wire::v1::ServerTasks;

    #[test]
    fn a_call_takes_the_form_that_all_three_allow() {
        use TaskPreference::*;
        use TaskSupport::{Forbidden, Optional, Required};
        let tasks = Generation::V1(ServerTasks {
            tools_call: true,
            ..ServerTasks::default()
        });
        let (s, t): (Arc<str>, Arc<str>) = ("s".into(), "t".into());
        let no_server = || Err(CallError::ServerWithoutTasks("s".into()));
        let no_tool = || Err(CallError::ToolWithoutTasks("t".into()));
        let needs = || Err(CallError::TaskRequired("t".into()));
        for (preference, support, expected) in [
            (Allow, Forbidden, Ok(CallForm::Plain)),
            (Allow, Optional, Ok(CallForm::Plain)),
            (Allow, Required, Ok(CallForm::Task)),
            (Prefer, Forbidden, Ok(CallForm::Plain)),
            (Prefer, Optional, Ok(CallForm::Task)),
            (Prefer, Required, Ok(CallForm::Task)),
            (Require, Forbidden, no_tool()),
            (Require, Optional, Ok(CallForm::Task)),
            (Require, Required, Ok(CallForm::Task)),
            (Forbid, Forbidden, Ok(CallForm::Plain)),
            (Forbid, Optional, Ok(CallForm::Plain)),
            (Forbid, Required, needs()),
        ] {
            let planned = plan(preference, tasks, Some(support), &s, &t);
            assert_eq!(planned, expected, "{preference:?} {support:?}");
        }
        // V1-TOOL-1, V1-CAP-6.
        for preference in [Allow, Prefer, Forbid] {
            let planned = plan(preference, Generation::None, None, &s, &t);
            assert_eq!(planned, Ok(CallForm::Plain));
        }
        assert_eq!(plan(Require, Generation::None, None, &s, &t), no_server());
        let bare = Generation::V1(ServerTasks::default());
        assert_eq!(plan(Require, bare, None, &s, &t), no_server());
        assert!(matches!(
            plan(Require, tasks, None, &s, &t),
            Err(CallError::UnknownTool { .. })
        ));
        // V2-CAP-5: the server decides; only whether it may is said.
        for preference in [Allow, Prefer, Require] {
            let planned = plan(preference, Generation::V2, None, &s, &t);
            assert_eq!(planned, Ok(CallForm::Task));
        }
        assert_eq!(
            plan(Forbid, Generation::V2, None, &s, &t),
            Ok(CallForm::Plain)
        );
        // S4-45, S4-46: the seed's words.
        let says = |refused: Result<CallForm, CallError>| refused.unwrap_err().to_string();
        assert!(says(no_server()).contains("does not support task-augmented tool calls"));
        assert!(says(no_tool()).contains("does not support task execution"));
    }
}
