//! The builder of a tool call: which tool, which arguments, and whether the call may be a task.
//! [`driver`](super::driver) sends it.

use std::fmt::Debug;
use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_engine::Outcome;
use outlast_wire::Raw;
use outlast_wire::envelope::Id;
use outlast_wire::v1::TaskSupport;
use outlast_wire::v2::InputRequired;
use serde::Serialize;

use super::client::Core;
use super::driver::Driver;
use super::error::Error;
use super::execution::{CallController, Execution, ExecutionStatus, OutcomeError};
use super::server_description::Generation;
use super::tool_cache::Freshness;

/// Whether a call becomes a task. In V2 the server decides for each call; the client only declares
/// whether a task is allowed (V2-CAP-5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskPreference {
    /// A task only if the tool requires one. V2: a task is allowed.
    Allow,
    /// A task if the server and the tool support it. V2: a task is allowed.
    #[default]
    Prefer,
    /// The call fails before it is sent if the server or, in V1, the tool does not support tasks. A
    /// V2 server may still return the result without a task.
    Require,
    /// No task.
    Forbid,
}

/// A tool call that is not sent yet. Configure it, then `.await` it to get its [`Execution`].
///
/// ```no_run
/// use std::time::Duration;
/// use outlast::client::TaskPreference;
/// use outlast::prelude::*;
///
/// # async fn run(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let call = client
///     .call_tool("research", serde_json::json!({ "topic": "tides" }))
///     .task(TaskPreference::Require)
///     .ttl(Duration::from_secs(3_600));
/// let execution = call.await?;
/// println!("{}", execution.result().await?.text());
/// # Ok(()) }
/// ```
#[must_use = "a call is sent when it is awaited"]
pub struct Call {
    core: Arc<Core>,
    pub(crate) spec: CallSpec,
    /// Why the arguments cannot be sent.
    invalid: Option<String>,
}

/// The parameters of a call.
#[derive(Clone, Debug)]
pub(crate) struct CallSpec {
    pub(crate) tool: Arc<str>,
    pub(crate) arguments: Option<Raw>,
    pub(crate) preference: TaskPreference,
    /// In milliseconds.
    pub(crate) ttl: Option<u64>,
    /// The progress token that the caller chooses.
    pub(crate) progress_token: Option<Id>,
    /// Other members of the params.
    pub(crate) params: Option<Raw>,
    /// Members of `params` that are not sent.
    pub(crate) omit: OmittedParams,
    /// An additional key of `_meta`.
    pub(crate) meta: Option<(&'static str, Raw)>,
    /// A name that the caller chooses; input requests for this call carry it.
    pub(crate) name: Option<Arc<str>>,
    /// Records the rounds of input requests.
    pub(crate) recorder: Option<Arc<dyn RoundRecorder>>,
    /// The round that a previous run of this program did not finish.
    pub(crate) pending: Option<InputRequired>,
}

/// A call whose form is decided, ready to be sent.
pub(crate) struct CheckedCall {
    pub(crate) core: Arc<Core>,
    pub(crate) spec: CallSpec,
    pub(crate) form: CallForm,
}

/// Members of params, and keys of their `_meta`, that are not sent because they belong to another
/// hop.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OmittedParams {
    pub(crate) members: &'static [&'static str],
    pub(crate) meta: &'static [&'static str],
}

/// Records the rounds of input requests that precede a result (V2-MRTR). Between the rounds no work
/// runs at the server.
#[async_trait]
pub(crate) trait RoundRecorder: Send + Sync + Debug {
    /// The server waits for the responses of this round.
    async fn round_started(&self, round: &InputRequired);

    /// Runs before the input responses are sent. If it fails, they are not sent.
    async fn before_responses(&self) -> Result<(), Error>;
}

/// Why a call was not made. The call was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server does not support tasks (S4-45).
    #[error("server {0} does not support task-augmented tool calls")]
    ServerWithoutTasks(Arc<str>),
    /// The tool does not support tasks (S4-46).
    #[error("tool {0} does not support task execution")]
    ToolWithoutTasks(Arc<str>),
    /// The tool runs only as a task.
    #[error("tool {0} runs only as a task; allow tasks for this call")]
    TaskRequired(Arc<str>),
    /// The server has no such tool.
    #[error("server {server} has no tool {tool}")]
    UnknownTool {
        /// The server.
        server: Arc<str>,
        /// The tool.
        tool: Arc<str>,
    },
    /// The arguments are not an object, or cannot be JSON.
    #[error("the arguments of tool {tool} cannot be sent: {why}; give an object, or `()` for none")]
    Arguments {
        /// The tool.
        tool: Arc<str>,
        /// Why not.
        why: String,
    },
    /// The tool list, which the check needs, could not be read.
    #[error(transparent)]
    Request(#[from] Error),
}

/// How a call is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallForm {
    Plain,
    /// V1: as a task. V2: with permission to become a task.
    Task,
}

impl Call {
    pub(crate) fn new(core: Arc<Core>, tool: Arc<str>, arguments: &impl Serialize) -> Self {
        let (arguments, invalid) = match Raw::encode(arguments) {
            Ok(none) if none.borrow().is_null() => (None, None),
            Ok(object) if object.borrow().is_object() => (Some(object), None),
            Ok(_) => (None, Some("they are not an object".into())),
            Err(error) => (None, Some(error.to_string())),
        };
        let spec = CallSpec {
            tool,
            arguments,
            preference: TaskPreference::default(),
            ttl: None,
            progress_token: None,
            params: None,
            omit: OmittedParams::default(),
            meta: None,
            name: None,
            recorder: None,
            pending: None,
        };
        Self {
            core,
            spec,
            invalid,
        }
    }

    /// Sets whether the call becomes a task. The default is [`TaskPreference::Prefer`].
    pub fn task(mut self, preference: TaskPreference) -> Self {
        self.spec.preference = preference;
        self
    }

    /// Requests a TTL from the creation of the task. A V2 server decides the TTL itself.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.spec.ttl = Some(ttl.as_millis() as u64);
        self
    }

    /// Sets the params, an object. The tool and its arguments are added to it.
    pub fn params(mut self, params: Raw) -> Self {
        self.spec.params = Some(params);
        self
    }

    /// Sets the progress token, in place of one that the client chooses. It must differ from those
    /// of other open calls of the connection (V1-PRG-1).
    pub fn progress_token(mut self, token: Id) -> Self {
        self.spec.progress_token = Some(token);
        self
    }

    /// Sends the params without these members.
    pub(crate) fn omit(mut self, omit: OmittedParams) -> Self {
        self.spec.omit = omit;
        self
    }

    /// Adds a key of `_meta` to the params.
    pub(crate) fn meta(mut self, key: &'static str, value: Raw) -> Self {
        self.spec.meta = Some((key, value));
        self
    }

    /// Names the call. The server's input requests for this call carry the name
    /// ([`ServerInputRequest::call`](super::ServerInputRequest::call)).
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.spec.name = Some(name.into());
        self
    }

    /// Reports the rounds of input requests to `recorder`.
    pub(crate) fn recording_rounds(mut self, recorder: Arc<dyn RoundRecorder>) -> Self {
        self.spec.recorder = Some(recorder);
        self
    }

    /// Continues a round that a previous run of this program did not finish.
    pub(crate) fn resuming_round(mut self, round: InputRequired) -> Self {
        self.spec.pending = Some(round);
        self
    }

    /// Checks the call and starts it. It runs in the background until the [`Execution`] is dropped.
    async fn start(self) -> Result<Execution, CallError> {
        Ok(Execution::start(self.check().await?))
    }

    /// Checks the call. Only the tool list is requested, if the check needs it.
    pub(crate) async fn check(self) -> Result<CheckedCall, CallError> {
        if let Some(why) = self.invalid {
            let tool = self.spec.tool;
            return Err(CallError::Arguments { tool, why });
        }
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
            // V1-TOOL-1: without the server's capability the tool's own setting does not count. In
            // V2 the server decides. Neither needs the tool list.
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
    /// Sends the call and drives it to its end without a spawned task: polling this future drives
    /// it. Dropping it has the effect of dropping an [`Execution`]. The result is returned as the
    /// server sent it.
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

/// Chooses the form of a call. `support` is `None` if the tool is not in the server's list, or if
/// the list was not needed.
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
    fn call_form_follows_preference_server_and_tool() {
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
        // V2-CAP-5: the server decides; the client declares what is allowed.
        for preference in [Allow, Prefer, Require] {
            let planned = plan(preference, Generation::V2, None, &s, &t);
            assert_eq!(planned, Ok(CallForm::Task));
        }
        assert_eq!(
            plan(Forbid, Generation::V2, None, &s, &t),
            Ok(CallForm::Plain)
        );
        // S4-45 and S4-46 require these texts.
        let says = |refused: Result<CallForm, CallError>| refused.unwrap_err().to_string();
        assert!(says(no_server()).contains("does not support task-augmented tool calls"));
        assert!(says(no_tool()).contains("does not support task execution"));
    }
}
